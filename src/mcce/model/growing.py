"""How the trees of a chain are grown: parameters, inputs, and one task for each feature.

Paper, section "Model": the tree of a feature may split on the immutable features, on the mutable
ones visited before and on the decision, with every kind of column. Plausibility grows its trees of
levels from the same columns and responses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import isqrt
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from ..errors import ParameterError, shorten
from ..kernels import (
    BoolArray,
    Classes,
    Codes,
    Growth,
    IntArray,
    Numbers,
    SplitColumns,
    Trees,
    fixed_point,
    join_trees,
    person_keys,
)
from ..parameters import check_flag
from ..runtime.progress import ProgressBar
from ..runtime.threads import map_ordered
from ..tables.schema import EncodedRows, Schema
from .associations import Associations, visit_order

AUTO = "auto"
# Larger than any number of rows and any depth, and fits into a kernel's integer.
MAX_TREE_ROWS = 2**31 - 1
# In keys of trees, instead of the codes of people, which are not negative: so no tree shares a key
# with a person's draws.
NO_PERSON = -1


class GrownChain(Protocol):
    """The parameters that chains share if their trees are grown on training rows."""

    visit_order: str | Sequence[Hashable]
    condition_on_decision: bool
    decisions: tuple[bool, ...]
    min_samples_split: int
    max_depth: int | None
    max_inputs: int | None


@dataclass(frozen=True, eq=False)
class GrowTask:
    """What the trees of one feature are grown from; every kind of chain sets the leaf sizes."""

    columns: SplitColumns
    inputs: IntArray
    column: int
    growth: Growth


def grow_chain(
    chain: GrownChain,
    rows: EncodedRows,
    is_desired: BoolArray,
    grow: Callable[[GrowTask], Sequence[Trees]],
    *,
    n_jobs: int | None,
    verbose: bool,
) -> tuple[IntArray, Trees]:
    """The visit order of a chain whose parameters were checked, and the trees of its features."""
    schema = rows.schema
    growth = growth_of(chain, len(schema.features))
    order = visit_order(
        chain.visit_order, rows, is_desired if chain.condition_on_decision else None
    )
    columns = split_columns(schema, [*rows.tree_codes, is_desired.astype(np.int32)])
    last = [len(schema.features)] * chain.condition_on_decision
    most = chain.max_inputs
    associations = None if most is None else Associations.of(rows)

    def grow_feature(n_before: int) -> Sequence[Trees]:
        column = int(order[n_before])
        known = np.sort(np.concatenate([schema.immutable, order[:n_before]]))
        if associations is not None and most is not None:
            known = associations.inputs(column, known, most)
        inputs = np.concatenate([known, last]).astype(np.int64)
        return grow(GrowTask(columns, inputs, column, growth))

    bar = ProgressBar(order.size, "model", verbose)
    grown: list[Sequence[Trees]] = []
    # The last feature has the most inputs; started first, no thread works on it alone at the end.
    for trees in map_ordered(grow_feature, range(order.size)[::-1], n_jobs):
        grown.append(trees)
        bar.show(len(grown))
    bar.close()
    return order, join_trees([tree for trees in grown[::-1] for tree in trees], columns.by_set)


def split_columns(schema: Schema, codes: Codes | Sequence[Codes]) -> SplitColumns:
    """How each column may be split; the decision, if it comes last, is a number."""
    features, decision = schema.features, [True] * (len(codes) - len(schema.features))
    return SplitColumns(
        codes=codes,
        by_set=np.array([f.kind == "categorical" for f in features] + [False for _ in decision]),
        ordered=np.array([f.ordered for f in features] + decision),
        n_codes=np.array([f.n_codes for f in features] + [2 for _ in decision]),
    )


def tree_response(rows: EncodedRows, column: int) -> Numbers | Classes:
    """What the tree of a feature predicts: classes, or numbers with missing above the rest."""
    feature = rows.schema.features[column]
    numbers = rows.numbers(column)
    if numbers is None:
        return Classes(rows.tree_codes[column].astype(np.int64), feature.n_codes)
    missing = np.isnan(numbers)
    if missing.all():
        return Numbers(np.zeros(numbers.size, dtype=np.int64))
    numbers[missing] = np.nanmax(numbers) + feature.spread
    return Numbers(fixed_point(numbers))


def growth_of(chain: GrownChain, n_features: int) -> Growth:
    """When the trees of a chain stop, by parameters that were checked."""
    return Growth(
        min_samples_split=at_most(chain.min_samples_split),
        max_depth=None if chain.max_depth is None else at_most(chain.max_depth),
        decision_column=n_features,
        grow_undesired=False in chain.decisions,
    )


def check_growth(chain: GrownChain) -> None:
    """Raise for the first shared parameter with which no trees can be grown."""
    check_at_least("min_samples_split", chain.min_samples_split, 2)
    if chain.max_depth is not None:
        check_at_least("max_depth", chain.max_depth, 1)
    if chain.max_inputs is not None:
        check_at_least("max_inputs", chain.max_inputs, 1)
    check_flag("condition_on_decision", chain.condition_on_decision)
    check_decisions(chain.decisions)


def check_decisions(given: Any) -> None:
    """Raise unless these are decisions that rows can be drawn for."""
    known = ((True,), (False, True), (True, False))
    if not isinstance(given, tuple) or given not in known:
        raise ParameterError(f"decisions must be (True,) or (False, True), got {shorten(given)}.")


def features_to_check(given: Any, n_inputs: int, *, auto: str | None = None) -> int | None:
    """How many of the inputs of a tree a node checks; None for all.

    ``auto`` is the word that ``"auto"`` stands for; None where it cannot be given.

    Examples
    --------
    >>> [features_to_check(given, 12) for given in ("sqrt", "third", 0.5, 5, 20, None)]
    [3, 4, 6, 5, None, None]
    """
    if given is None:
        return None
    choices = '"sqrt", "third"' if auto is None else '"auto", "sqrt", "third"'
    if auto is not None and is_auto(given):
        given = auto
    number = isinstance(given, Real) and not isinstance(given, bool)
    if isinstance(given, str) and given in ("sqrt", "third"):
        n_checked = isqrt(n_inputs) if given == "sqrt" else n_inputs // 3
    elif number and isinstance(given, Integral) and int(given) >= 1:
        n_checked = int(given)
    elif number and not isinstance(given, Integral) and 0 < float(given) <= 1:
        n_checked = int(float(given) * n_inputs)
    else:
        raise ParameterError(
            f"max_features must be a whole number >= 1, a share above 0 and up to 1.0, {choices} "
            f"or None for all features, got {shorten(given)}."
        )
    return None if n_checked >= n_inputs else max(n_checked, 1)


def is_auto(given: Any) -> bool:
    """Whether a parameter is ``"auto"``; arrays cannot be compared with a string."""
    return isinstance(given, str) and given == AUTO


def at_most(given: int) -> int:
    """A number of rows or levels of a tree as kernels take it; more would change nothing."""
    return min(int(given), MAX_TREE_ROWS)


def tree_key(seed: int, column: int, tree: int = 0) -> int:
    """The random key of a tree of a feature."""
    return int(person_keys(seed, np.array([[NO_PERSON, column, tree]]))[0])


def check_at_least(name: str, value: Any, least: int, *, or_auto: bool = False) -> None:
    """Raise unless a parameter is a whole number from ``least``, or ``"auto"`` if it may be."""
    if or_auto and is_auto(value):
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        choice = ' or "auto"' if or_auto else ""
        raise ParameterError(
            f"{name} must be a whole number >= {least}{choice}, got {shorten(value)}."
        )
