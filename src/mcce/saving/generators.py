"""Generators and distances: their parameters by name, and what they learned as arrays.

A file holds no code. Of a generator that is not registered it holds the name of the class and what
``to_arrays`` gives; to load it, the user passes an instance, whose ``from_arrays`` takes that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..distances import FeatureDistance, find_distance
from ..errors import ParameterError, SavedFileError, shorten
from ..model.registry import GENERATORS, require, suggest_generators
from ..protocols import Distance, Generator
from ..tables.schema import Schema
from .archive import ensure, refused
from .values import check_entries, pack, unpack

CUSTOM = "custom generator"


def pack_distance(distance: Distance) -> dict[str, Any] | None:
    """What a fitted distance learned; None if that is nothing."""
    if isinstance(distance, FeatureDistance):
        return dict(distance.to_arrays()) if distance.reads_rows else None
    raise SavedFileError(
        f"Cannot save the distance {type(distance).__name__}: files hold sums over features, "
        "mcce.FeatureDistance, that have a registered name. Nothing was written."
    )


def unpack_distance(plain: Any, given: Any, schema: Schema) -> FeatureDistance:
    """The fitted distance of what :func:`pack_distance` gave, by the parameter ``distance``."""
    blank = find_distance(given)
    if not isinstance(blank, FeatureDistance):
        raise SavedFileError("its distance is no mcce.FeatureDistance")
    whole = (plain is not None) == blank.reads_rows
    ensure(whole, "it lacks what its distance learned, or has some that it did not")
    arrays = {} if plain is None else check_entries(plain, blank.array_names, "the distance")
    return blank.from_arrays(arrays, schema)


def is_custom(generator: Any) -> bool:
    """Whether a generator has no registered name."""
    return not isinstance(generator, str) and GENERATORS.name_of(type(generator)) is None


def pack_generator(generator: Any) -> Any:
    """The parameter ``generator`` as JSON."""
    if not is_custom(generator):
        return pack(generator, "the parameter generator")
    if not generator.capabilities.saving:
        raise SavedFileError(
            f"Cannot save the generator {type(generator).__name__}: it does not declare the "
            "capability 'saving' (to_arrays, from_arrays), and a file holds no code. Declare and "
            f"implement it, or use {suggest_generators('saving')}. Nothing was written."
        )
    return {CUSTOM: type(generator).__name__}


def unpack_generator(plain: Any, given: Any, path: str) -> Any:
    """The parameter ``generator`` of a file, which is ``given`` if it has no registered name."""
    name = plain.get(CUSTOM) if isinstance(plain, dict) else None
    if not isinstance(name, str):
        if given is not None:
            raise ParameterError(
                f"generator is for files saved with a generator of your own, but {path!r} has one "
                f"that is found by name; got {shorten(given)}. Leave generator out."
            )
        with refused(path):
            return unpack(plain)
    if type(given).__name__ != name:
        title = name if name.isidentifier() and len(name) < 80 else shorten(name)
        raise ParameterError(
            f"{path!r} was saved with the generator {title}, which has no registered name; got "
            f"generator={shorten(given)}. Pass an instance: mcce.load(path, predictor, "
            f"generator={title}())."
        )
    return given


def pack_fitted(generator: Generator) -> dict[str, Any]:
    """What a fitted generator learned."""
    savable = require(generator, "saving", "Saving needs what the generator learned as arrays")
    arrays = dict(savable.to_arrays())
    return {CUSTOM: arrays} if is_custom(generator) else arrays


def unpack_fitted(plain: Mapping[str, Any], blank: Generator, schema: Schema) -> Generator:
    """The fitted generator of what :func:`pack_fitted` gave."""
    savable = require(blank, "saving", "Loading needs a generator that takes arrays")
    if not is_custom(blank):
        names: tuple[str, ...] = type(blank).array_names  # type: ignore[attr-defined]
        check_entries(plain, names, "the model")
        return savable.from_arrays(plain, schema)
    arrays = check_entries(plain, (CUSTOM,), "the model")[CUSTOM]
    try:
        return savable.from_arrays(arrays, schema)
    except ValueError as error:
        # It is the user's own code, whose reason is of use.
        raise SavedFileError(f"its generator refused it: {shorten(error, 300)}") from error
