"""The generators by name, those of other packages included."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

from sklearn.base import clone

from ..errors import ParameterError, shorten
from ..plugins import Registry
from ..protocols import Generator
from ..tables.schema import EncodedRows, Schema
from .associations import MAX_INPUTS, is_wide
from .declarations import check_capabilities

# Classes whose parameters are their arguments, as scikit-learn has it; `array_names` are the
# entries of their `to_arrays`.
GENERATORS = Registry(
    group="mcce.generators",
    built_in={
        "trees": "mcce.model.trees:TreeChain",
        "forest": "mcce.model.forest:ForestChain",
        "ctree": "mcce.model.ctree:InferenceTreeChain",
        "private": "mcce.privacy.trees:PrivateTrees",
    },
    elsewhere=dict.fromkeys(("copula", "made", "ctgan"), "mcce-lab"),
)


def find_generator(generator: Any) -> Generator:
    """A new, unfitted generator.

    Examples
    --------
    >>> find_generator("trees")
    TreeChain()
    """
    if generator in GENERATORS:
        named: Generator = GENERATORS.load(generator)()
        return named
    if not _can_generate(generator):
        raise ParameterError(
            f"generator must be one of {GENERATORS.names()!r} or an object with "
            "fit(rows, decision, *, seed, n_jobs, verbose) and sample(given, keys, draws), "
            f"got {shorten(generator)}."
        )
    check_capabilities(generator)
    copy: Generator = clone(generator) if hasattr(generator, "get_params") else deepcopy(generator)
    return copy


def is_private(generator: Any) -> bool:
    """Whether a generator learns with differential privacy.

    It says so by ``is_private = True``. Its ``encode_training`` gives the rows that it fits on, in
    a schema that is public, and its ``n_desired_`` a noisy count. Nothing else reads the rows.
    """
    return getattr(generator, "is_private", False) is True


def encode_training(generator: Generator, data: Any, **names: Any) -> EncodedRows:
    """Training rows for a generator: encoded with their own schema, or with a public one."""
    if is_private(generator):
        rows: EncodedRows = generator.encode_training(data, **names)  # type: ignore[attr-defined]
        return rows
    return Schema.learn_rows(data, **names)


def limit_inputs(generator: Generator, given: Any, schema: Schema, beyond_paper: bool) -> Generator:
    """The generator for a table: of many columns, trees consider those that matter."""
    named = isinstance(given, str) and beyond_paper
    if named and is_wide(schema) and hasattr(generator, "max_inputs"):
        generator.max_inputs = MAX_INPUTS
    return generator


def _can_generate(generator: Any) -> bool:
    """Whether an object has the methods of a generator, with their arguments."""
    try:
        inspect.signature(generator.fit).bind(None, None, seed=0, n_jobs=None, verbose=False)
        inspect.signature(generator.sample).bind(None, None, None)
    except (AttributeError, TypeError):
        return False
    return True
