"""Plain values as JSON, exactly: what goes in comes out with the same type and bits.

None, booleans, strings, lists and ordinary numbers stand as they are; everything else is a dict of
one entry, its tag and what it is made of. To save one more type, add a line to ``CODECS``. The
checks that all parts of a file share are here, too.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from ..constraints.builders import build
from ..constraints.kinds import CONSTRAINT_KINDS
from ..distances import DISTANCES, FeatureDistance
from ..errors import SavedFileError, shorten
from ..kernels import Codes
from ..model.registry import GENERATORS
from ..predictors.decision import Interval
from ..relations.views import DateView, Steps
from ..search.config import ExactSearch, Search
from ..tables.roles import has_lone_surrogate
from ..tables.schema import Schema

EXACT_IN_JSON = 2**53


@dataclass(frozen=True)
class Codec:
    """A type of values: its tag, what a value is made of, and the value made of that again."""

    type: type
    tag: str
    take: Callable[[Any], Any]
    make: Callable[[Any], Any]


def pack(value: Any, what: str) -> Any:
    """A value as JSON; ``what`` names it, should that be impossible."""
    kind = type(value)
    if value is None or kind is bool or (kind is int and abs(value) < EXACT_IN_JSON):
        return value
    if (kind is float and math.isfinite(value)) or (kind is str and not has_lone_surrogate(value)):
        return value
    if kind is list:
        return [pack(item, what) for item in value]
    codec = _codec(value)
    if codec is None:
        raise _unsavable(value, what)
    try:
        parts = codec.take(value)
    except NotPlainError:
        raise _unsavable(value, what) from None
    return {codec.tag: pack(parts, what)}


def unpack(plain: Any) -> Any:
    """The value of what :func:`pack` gave."""
    if isinstance(plain, list):
        return [unpack(item) for item in plain]
    if isinstance(plain, np.ndarray):
        raise SavedFileError("an array stands where a plain value should")
    if not isinstance(plain, dict):
        return plain
    [(tag, parts)] = plain.items()
    return _BY_TAG[tag].make(unpack(parts))


def unpack_cell(plain: Any) -> Any:
    """The same of a cell, which is a single plain value."""
    value = unpack(plain)
    if type(value) in NO_CELLS or isinstance(value, BaseEstimator):
        raise SavedFileError("a cell holds something that no column has")
    return value


def pack_zone(zone: datetime.tzinfo | None) -> str | float | None:
    """A time zone by its name in the tz database, or by its seconds east of UTC."""
    if zone is None:
        return None
    if isinstance(zone, datetime.timezone):
        return zone.utcoffset(None).total_seconds()
    # The zones that pandas 2 takes by default call it zone.
    name = zone.key if isinstance(zone, ZoneInfo) else getattr(zone, "zone", None)
    if not isinstance(name, str):
        raise NotPlainError
    return name


def check_zone(zone: Any) -> datetime.tzinfo | None:
    """The standard library's zone of what :func:`pack_zone` gave."""
    if zone is None:
        return None
    if isinstance(zone, str):
        return ZoneInfo(zone)
    return datetime.timezone(datetime.timedelta(seconds=zone))


def unpack_zone(zone: Any) -> Any:
    """A zone for pandas, which has classes of its own for the named ones."""
    known = check_zone(zone)
    return zone if isinstance(zone, str) else known


def check_entries(plain: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """A part of a file by name, which has these entries and no others."""
    if not isinstance(plain, dict) or plain.keys() != set(names):
        raise SavedFileError(f"{what} lacks entries, or has others")
    return plain


def check_integer(value: Any, what: str, most: int = 2**64 - 1) -> int:
    """A number in a file that counts something, or a seed."""
    if type(value) is not int or not 0 <= value <= most:
        raise SavedFileError(f"{what} is no whole number from 0 to {most}")
    return value


def check_codes(values: Any, schema: Schema, what: str) -> Codes:
    """Codes of training values, shape (n_features, n_rows), of at least one row."""
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype != np.int32:
        raise SavedFileError(f"{what} are no table of codes")
    if len(values) != n_codes.size or not values.size:
        raise SavedFileError(f"{what} are not those of its columns")
    if (values < 0).any() or (values >= n_codes).any():
        raise SavedFileError(f"{what} hold values that training never held")
    return values


class NotPlainError(Exception):
    """A value of a known type that holds something unknown."""


def _unsavable(value: Any, what: str) -> SavedFileError:
    kind = type(value)
    return SavedFileError(
        f"Cannot save {what}: it holds a {kind.__module__}.{kind.__qualname__}, which cannot be "
        "written without code in the file. What can be saved is plain values (numbers, strings, "
        "booleans, dates, missing ones, and lists of them) and what comes with mcce. Nothing was "
        "written."
    )


def _take_set(value: Any) -> list[Any]:
    # Sorted, because string hashes differ between runs.
    return sorted(value, key=lambda item: (type(item).__qualname__, _text(item)))


def _text(value: Any) -> str:
    """The repr of a value, also of one with more digits than Python writes."""
    try:
        return repr(value)
    except ValueError:
        return shorten(value)


def _take_datetime(value: datetime.datetime) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, pack_zone(value.tzinfo)]


def _make_datetime(parts: list[Any]) -> datetime.datetime:
    text, fold, zone = parts
    naive = datetime.datetime.fromisoformat(text)
    return naive.replace(fold=fold, tzinfo=check_zone(zone))


def _take_time(value: datetime.time) -> list[Any]:
    if value.tzinfo is not None:
        raise NotPlainError
    return [value.isoformat(), value.fold]


def _make_time(parts: list[Any]) -> datetime.time:
    text, fold = parts
    return datetime.time.fromisoformat(text).replace(fold=fold)


def _take_timestamp(value: pd.Timestamp) -> list[Any]:
    return [value.to_numpy(), pack_zone(value.tzinfo)]


def _make_timestamp(parts: list[Any]) -> Any:
    moment, zone = parts
    stamp = pd.Timestamp(moment)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(unpack_zone(zone))


def _take_scalar(value: np.generic) -> list[Any]:
    dtype = value.dtype
    if dtype.kind not in "biufmMU" or (dtype.itemsize > 8 and dtype.kind != "U"):
        raise NotPlainError
    number = value.view(np.int64) if dtype.kind in "mM" else value
    return [dtype.newbyteorder("<").str, number.item()]


def _make_scalar(parts: list[Any]) -> Any:
    name, item = parts
    dtype = np.dtype(name).newbyteorder("=")
    wide = dtype.itemsize > 8 and dtype.kind != "U"
    if dtype.kind not in "biufmMU" or wide or type(item) not in (bool, int, float, str):
        raise SavedFileError("a value has no dtype of a plain one")
    if dtype.kind == "U":
        return np.str_(item)
    plain = np.dtype(np.int64) if dtype.kind in "mM" else dtype
    return np.array(item, dtype=plain).astype(dtype)[()]


def _codec(value: Any) -> Codec | None:
    kind = np.generic if isinstance(value, np.generic) else type(value)
    if kind not in _BY_TYPE and GENERATORS.name_of(kind) is not None:
        return _GENERATOR
    if kind not in _BY_TYPE and DISTANCES.name_of(kind) is not None:
        return _DISTANCE
    return _BY_TYPE.get(kind)


def _take_generator(generator: Any) -> list[Any]:
    params = getattr(generator, "saved_params", generator.get_params)
    return [GENERATORS.name_of(type(generator)), dict(sorted(params().items()))]


def _make_generator(parts: list[Any]) -> Any:
    name, given = parts
    # A path in a file could name any other file.
    if isinstance(given.get("domains"), str):
        raise SavedFileError("its generator has a path where values should stand")
    return GENERATORS.load(name)(**given)


def _take_distance(distance: FeatureDistance) -> str | list[Any] | None:
    """The name of a distance, and its parameters where they are not the default ones."""
    given, usual = distance.get_params(), type(distance)().get_params()
    # The file has no place for weights; without them, answers would silently differ.
    if given.get("weights") is not None:
        raise NotPlainError
    changed = {name: given[name] for name in sorted(given) if given[name] != usual[name]}
    name = DISTANCES.name_of(type(distance))
    return [name, changed] if changed else name


def _make_distance(parts: str | list[Any]) -> Any:
    if isinstance(parts, str):
        return DISTANCES.load(parts)()
    name, given = parts
    return DISTANCES.load(name)(**given)


def _from_all_fields(kind: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """Makes a value of a dataclass from all of its fields."""
    names = [field.name for field in fields(kind)]
    return lambda parts: kind(**check_entries(parts, names, "its search"))


CODECS = (
    *(
        Codec(kind, "constraint", lambda c: list(c.builder_call()), lambda p: build(*p))
        for kind in CONSTRAINT_KINDS
    ),
    Codec(
        str,
        "utf-8 with surrogates",
        lambda s: s.encode("utf-8", "surrogatepass").hex(),
        lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
    ),
    Codec(int, "int", hex, lambda text: int(text, 16)),
    Codec(float, "float", repr, float),
    Codec(bytes, "bytes", bytes.hex, bytes.fromhex),
    Codec(tuple, "tuple", list, tuple),
    Codec(set, "set", _take_set, set),
    Codec(frozenset, "frozenset", _take_set, frozenset),
    Codec(dict, "dict", lambda d: [[key, item] for key, item in d.items()], dict),
    Codec(Decimal, "decimal", str, Decimal),
    Codec(datetime.date, "date", datetime.date.isoformat, datetime.date.fromisoformat),
    Codec(datetime.time, "time", _take_time, _make_time),
    Codec(datetime.datetime, "datetime", _take_datetime, _make_datetime),
    Codec(
        datetime.timedelta,
        "timedelta",
        lambda t: [t.days, t.seconds, t.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    Codec(np.generic, "numpy", _take_scalar, _make_scalar),
    Codec(pd.Timestamp, "pandas.Timestamp", _take_timestamp, _make_timestamp),
    Codec(pd.Timedelta, "pandas.Timedelta", pd.Timedelta.to_numpy, pd.Timedelta),
    Codec(
        pd.Interval,
        "pandas.Interval",
        lambda i: [i.left, i.right, i.closed],
        lambda parts: pd.Interval(*parts),
    ),
    Codec(type(pd.NA), "missing", lambda _: "NA", lambda _: pd.NA),
    Codec(type(pd.NaT), "missing time", lambda _: "NaT", lambda _: pd.NaT),
    Codec(
        Interval, "interval", lambda i: [i.low, i.high, i.closed], lambda parts: Interval(*parts)
    ),
    Codec(Search, "search", asdict, _from_all_fields(Search)),
    Codec(ExactSearch, "exact search", asdict, _from_all_fields(ExactSearch)),
    Codec(
        DateView, "date view", lambda v: [v.what, list(v.of)], lambda p: DateView(p[0], tuple(p[1]))
    ),
    Codec(Steps, "steps", lambda v: [list(v.of), list(v.limits)], lambda p: Steps(*map(tuple, p))),
)
# Of all registered classes.
_GENERATOR = Codec(object, "generator", _take_generator, _make_generator)
_DISTANCE = Codec(object, "distance", _take_distance, _make_distance)
# A file may hold these, but not as cells.
NO_CELLS = (
    *(list, set, dict, Interval, Search, ExactSearch, DateView, Steps),
    *CONSTRAINT_KINDS,
)
_BY_TYPE = {codec.type: codec for codec in CODECS}
_BY_TAG = {codec.tag: codec for codec in (*CODECS, _GENERATOR, _DISTANCE)}
