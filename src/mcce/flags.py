"""Columns that nobody can act on, as ``fit`` finds them without being told.

Identifiers name a row instead of describing it, constants have one value, and the predictor ignores
some columns. Nothing can be learned from the first two: an immutable identifier leaves hardly any
answers, a mutable one tells people to become somebody else. A column may also be the outcome
itself, left among the columns.

Always true: what is found depends on the training rows and the predictor alone; the predictor
scores some rows in which cells were exchanged, and an error that it raises there means nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .errors import McceWarning, PredictorError, shorten
from .kernels import BoolArray, Codes, FloatArray, IntArray
from .predictors.decision import Decision, ScoredRows
from .tables.columns import assemble, unwrapped
from .tables.features import Feature
from .tables.schema import EncodedRows, Schema

# Levels per row above which a column is taken for an identifier, and the fewest rows for it.
SHARE, MIN_ROWS = 0.9, 100
# Integers that number the rows: the share of distinct ones, and how many could lie between them.
# Of as many random integers from such a range only four fifths would be distinct.
DISTINCT, SPAN = 0.99, 2.0
# Counters and codes have many values. Four standard errors: about one unrelated column in 30,000
# exceeds this.
MANY_VALUES, RELATED, MAX_RELATED_ROWS = 50, 4.0, 20_000
# The outcome has this many rows on either side, and at most so many levels.
MIN_SIDE, MAX_LEVELS = 20, 20
# Permute 32 rows of each column; repeat with 256 rows for columns without effect.
N_FIRST, N_MORE, MAX_GROUPS, SAME_SCORE = 32, 256, 200, 1e-9
# By the evidence that was found: the kind of flag, and why the column has it.
EVIDENCE = {
    "labels": ("outcome", "it determines the labels that were passed to fit"),
    "name": ("outcome", "it has the name of the labels that were passed to fit"),
    "classes": ("outcome", "its values are the predictor's labels, and the predictor ignores it"),
    "decision": ("outcome", "it determines the decision, but the predictor ignores it"),
    "constant": ("constant", "it has one value in all rows"),
    "level per row": ("identifier", "almost every row has its own level"),
    "row number": ("identifier", "its values number the rows"),
    "date of entry": ("identifier", "its dates rise or fall from row to row"),
    "code": ("identifier", "it has many levels, related neither to a column nor to the score"),
    "not an input": ("ignored", "the predictor was trained without it"),
    "no effect": ("ignored", "no score changes if its values are exchanged among rows"),
}


@dataclass(frozen=True)
class Flag:
    """What was found of the column at a position."""

    position: int
    evidence: str

    @property
    def kind(self) -> str:
        """Such as ``identifier``."""
        return EVIDENCE[self.evidence][0]


def table_of_flags(found: Sequence[Flag], schema: Schema) -> pd.DataFrame:
    """One row for each flagged column, in the order of the columns."""
    cells = {
        "column": [schema.names[one.position] for one in found],
        "flag": [one.kind for one in found],
        "why": [EVIDENCE[one.evidence][1] for one in found],
    }
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})


def find_flags(
    rows: EncodedRows, decision: Decision, scored: ScoredRows, labels: Any, *, try_inputs: bool
) -> tuple[Flag, ...]:
    """The flags of columns; ``try_inputs`` lets the predictor score rows to learn what it uses."""
    if len(rows) < MIN_ROWS:
        return ()
    features = rows.schema.features
    known = None if decision.names is None else set(decision.names)
    surplus = {at for at, feature in enumerate(features) if known and feature.name not in known}
    varying = [at for at, feature in enumerate(features) if feature.n_codes > 1]
    inputs = [at for at in varying if at not in surplus]
    # Without labels, the outcome is looked for among the columns that the predictor ignores.
    suspects = dict.fromkeys(
        [at for at in varying if _determines(rows, at, scored.valid)], "decision"
    )
    suspects |= {at: "classes" for at in varying if _lists_classes(features[at], decision)}
    tried = inputs if try_inputs else [at for at in inputs if at in suspects]
    ignored = surplus.union(_without_effect(rows, decision, scored, tried))
    # If one of its inputs decides alone, other columns may say the same, in another unit perhaps.
    if any(evidence == "decision" and at not in ignored for at, evidence in suspects.items()):
        suspects = {at: evidence for at, evidence in suspects.items() if evidence != "decision"}
    found = {at: "not an input" if at in surplus else "no effect" for at in ignored}
    found |= _identifiers(rows, scored.score)
    found |= {at: "constant" for at in range(len(features)) if at not in varying}
    found |= {at: evidence for at, evidence in suspects.items() if at in ignored}
    found |= _outcomes(rows, labels)
    return tuple(Flag(at, evidence) for at, evidence in sorted(found.items()))


def warn_of_flags(
    found: Sequence[Flag], schema: Schema, named: Collection[Hashable], *, stacklevel: int
) -> None:
    """Warn of the outcome, and of useless columns that the user did not name as mutable."""
    # Levels per row harm the model too, so immutable ones are named as well.
    texts = {
        "level per row": "Almost every row has its own level in {}",
        "row number": "{} look like row numbers",
        "date of entry": "{} look like dates of entry",
        "code": "{} look like codes, whose many levels are related to nothing",
        "constant": "{} have one value in all rows",
    }
    parts = []
    for evidence, text in texts.items():
        names = [
            schema.names[one.position]
            for one in found
            if one.evidence == evidence
            and schema.names[one.position] not in named
            and (evidence == "level per row" or not schema.features[one.position].immutable)
        ]
        parts += [text.format(shorten(names))] if names else []
    if parts:
        warnings.warn(
            f"{'; '.join(parts)}. Nothing can be learned from such columns, and an answer that "
            "changes one is of no use. Leave them out of the data, or make them immutable if the "
            "predictor needs them. Only the paper's search changes them, unless you name them in "
            "mutable or in a constraint.",
            McceWarning,
            stacklevel=stacklevel + 1,
        )
    if any(one.kind == "outcome" for one in found):
        text = describe_outcome(found, schema)
        warnings.warn(text, McceWarning, stacklevel=stacklevel + 1)


def describe_outcome(found: Sequence[Flag], schema: Schema) -> str:
    """Which columns seem to be the outcome, why, and what to do; empty if there is none."""
    told = [
        f"{shorten(schema.names[one.position])} looks like the outcome: {EVIDENCE[one.evidence][1]}"
        for one in found
        if one.kind == "outcome"
    ]
    todo = "Leave it out of the data, and train the predictor without it."
    return f"{'; '.join(told)}. {todo}" if told else ""


def is_identifier(feature: Feature, n_rows: int) -> bool:
    """Whether almost every one of ``n_rows`` has a level of its own."""
    return not feature.ordered and n_rows >= MIN_ROWS and feature.n_codes > SHARE * n_rows


def _identifiers(rows: EncodedRows, score: FloatArray) -> Iterator[tuple[int, str]]:
    """Columns that name their row, and how that shows."""
    features = rows.schema.features
    names = [is_identifier(feature, len(rows)) for feature in features]
    # A name per row may number the rows, too.
    columns = {at: codes for at, codes in enumerate(rows.codes) if not names[at]}
    for at, feature in enumerate(features):
        if names[at]:
            yield at, "level per row"
        elif feature.kind == "numeric":
            if evidence := _counts_rows(rows, at, list(columns.values()), score):
                yield at, evidence
        elif not feature.ordered:
            others = [codes for other, codes in columns.items() if other != at]
            if _is_unrelated(rows.codes[at], [*others, score]):
                yield at, "code"


def _counts_rows(rows: EncodedRows, at: int, columns: Sequence[Codes], score: FloatArray) -> str:
    """Whether values number the rows: as evidence, or empty.

    They are nearly distinct integers close together, or rise or fall in the order of the rows or of
    their index, which knows the order of shuffled rows. A table may also be sorted by a number that
    describes its rows, so integers with repeated values must be related neither to the score nor to
    another column, except those that rise or fall with them.
    """
    feature, codes, index = rows.schema.features[at], rows.codes[at], rows.index
    numbers, dtype = feature.numbers, rows.frame.iloc[:, at].dtype
    if numbers is None or dtype.kind not in "iuM" or feature.has_missing:
        return ""
    nearly_distinct = dtype.kind != "M" and feature.n_codes >= DISTINCT * len(rows)
    if nearly_distinct and float(numbers[-1] - numbers[0]) < SPAN * len(rows):
        return "row number"
    by_index = index.is_unique and index.dtype.kind in "iu"
    orders = [np.arange(len(rows)), *([np.argsort(index.to_numpy())] if by_index else [])]
    for order in orders:
        if feature.n_codes < MANY_VALUES or not _is_monotone(codes[order]):
            continue
        if dtype.kind == "M":
            return "date of entry"
        bins = codes.astype(np.int64) * MANY_VALUES // feature.n_codes
        rest = [other for other in columns if not _is_monotone(other[order])] + [score]
        is_strict = np.unique(np.diff(codes[order])).size == 1
        if (nearly_distinct and is_strict) or _is_unrelated(bins, rest):
            return "row number"
    return ""


def _is_monotone(codes: IntArray | Codes) -> bool:
    steps = np.diff(codes)
    return bool((steps >= 0).all() or (steps <= 0).all())


def _is_unrelated(groups: IntArray | Codes, others: Sequence[np.ndarray]) -> bool:
    """Whether many groups of rows differ in nothing else.

    The share of the variance of ranks that groups explain has a beta distribution if they are
    random.
    """
    some = np.linspace(0, groups.size - 1, min(groups.size, MAX_RELATED_ROWS)).astype(np.int64)
    group = np.unique(groups[some], return_inverse=True)[1]
    counts = np.bincount(group)
    n, k = some.size, counts.size
    if k < MANY_VALUES or n - k < MANY_VALUES:
        return False
    expected = (k - 1) / (n - 1)
    error = np.sqrt(2 * (k - 1) * (n - k) / (n + 1)) / (n - 1)
    for other in others:
        ranks = pd.Series(other[some]).rank().to_numpy() - (n + 1) / 2
        total = float(ranks @ ranks)
        explained = float((np.bincount(group, ranks) ** 2 / counts).sum())
        if total > 0 and explained / total > expected + RELATED * error:
            return False
    return True


def _outcomes(rows: EncodedRows, labels: Any) -> Iterator[tuple[int, str]]:
    """Columns that equal or determine labels, or have their name."""
    given = np.asarray(labels, dtype=object).ravel()
    if given.size != len(rows):
        return
    codes, values = pd.factorize(pd.Series(given).infer_objects(), sort=True, use_na_sentinel=False)
    name = getattr(labels, "name", None)
    for at, feature in enumerate(rows.schema.features):
        if name is not None and feature.name == name:
            yield at, "name"
        elif len(values) > MAX_LEVELS:
            if any(np.array_equal(rows.codes[at], one) for one in (codes, codes.max() - codes)):
                yield at, "labels"
        elif _determines(rows, at, codes):
            yield at, "labels"


def _determines(rows: EncodedRows, at: int, labels: IntArray | BoolArray) -> bool:
    """Whether each level, or each side of a threshold, has one label, with enough rows of each."""
    feature, codes = rows.schema.features[at], rows.codes[at]
    n_labels = np.unique(labels, return_counts=True)[1]
    if n_labels.size < 2 or n_labels.min() < MIN_SIDE or feature.n_codes < n_labels.size:
        return False
    first = np.zeros(feature.n_codes, dtype=np.int64)
    first[codes] = labels
    if (first[codes] != labels).any():
        return False
    ordered = feature.kind == "numeric" and not feature.has_missing
    switches = int((np.diff(first) != 0).sum())
    return feature.n_codes <= MAX_LEVELS or (ordered and switches == n_labels.size - 1)


def _lists_classes(feature: Feature, decision: Decision) -> bool:
    """Whether the values of a column are the labels of the predictor, which are texts."""
    classes = np.asarray(getattr(decision.predictor, "classes_", ())).ravel().tolist()
    texts = all(isinstance(one, str) for one in classes)
    return texts and feature.n_codes == len(classes) and set(feature.level_codes) == set(classes)


def _without_effect(
    rows: EncodedRows, decision: Decision, scored: ScoredRows, tried: Sequence[int]
) -> list[int]:
    """Columns that change no score: first tried alone on few rows, then together on more."""
    if not decision.has_scores:
        return []
    size = -(-len(tried) // MAX_GROUPS)
    groups: list[Sequence[int]] = [tried[at : at + size] for at in range(0, len(tried), size or 1)]
    try:
        for n_rows in (N_FIRST, N_MORE):
            groups, kept = [group for group in groups if len(group)], []
            while groups:
                same = _same_scores(rows, decision, scored, groups, n_rows)
                pairs = list(zip(groups, same, strict=True))
                kept += [at for group, is_same in pairs if is_same for at in group]
                split = [group for group, is_same in pairs if not is_same and len(group) > 1]
                halves = [(group[: len(group) // 2], group[len(group) // 2 :]) for group in split]
                groups = [half for both in halves for half in both]
            groups = [sorted(kept)]
    except PredictorError:
        return []
    return sorted(kept)


def _same_scores(
    rows: EncodedRows,
    decision: Decision,
    scored: ScoredRows,
    groups: Sequence[Sequence[int]],
    most: int,
) -> list[bool]:
    """Whether scores of some rows stay if a group of columns has the cells of other rows.

    One call of the predictor for all groups.
    """
    some = np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)
    others = np.random.default_rng(0).permutation(len(rows))[: some.size]
    where = np.tile(some, (len(rows.schema.features), len(groups), 1))
    for place, group in enumerate(groups):
        where[list(group), place] = others
    taken = [rows.frame.iloc[:, at].take(cells.ravel()) for at, cells in enumerate(where)]
    frame = assemble([unwrapped(column) for column in taken], rows.frame.columns)
    score = decision.score(frame).score.reshape(len(groups), some.size)
    before = scored.score[some]
    with np.errstate(invalid="ignore"):
        near = np.abs(score - before) <= SAME_SCORE * (1 + np.abs(before))
    return [bool(same) for same in ((score == before) | near).all(axis=1)]
