"""Plain values as JSON, exactly: what goes in comes out with the same type and bits.

None, booleans, strings, lists and ordinary numbers stand as they are; everything else is a dict of
one entry, its tag and what it is made of. To save one more type, add a line to ``CELLS``, or to
``SETTINGS`` if no cell of a table can be one. The checks that all parts of a file share are here,
too.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from ..constraints.constraint import Constraint
from ..constraints.files import build
from ..distances import DISTANCES
from ..errors import SavedFileError, shorten
from ..kernels import Codes
from ..model.registry import GENERATORS
from ..plugins import Registry
from ..predictors.decision import Interval
from ..search.config import ExactSearch, Search
from ..tables.roles import has_lone_surrogate
from ..tables.schema import Schema
from .archive import ensure

EXACT_IN_JSON = 2**53
# Values that differ and have one hash: each costs a set or dict a comparison with all others.
MAX_ONE_HASH = 100


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
    try:
        if codec is None:
            raise NotPlainError
        return {codec.tag: pack(codec.take(value), what)}
    except NotPlainError:
        raise SavedFileError(
            f"Cannot save {what}: it holds a {kind.__module__}.{kind.__qualname__}, which cannot "
            "be written without code in the file. What can be saved is plain values (numbers, "
            "strings, booleans, dates, missing ones, and lists of them) and what comes with mcce. "
            "Nothing was written."
        ) from None


def unpack(plain: Any) -> Any:
    """The value of what :func:`pack` gave."""
    ensure(not isinstance(plain, np.ndarray), "an array stands where a plain value should")
    if isinstance(plain, list):
        return check_hashes([unpack(item) for item in plain])
    if not isinstance(plain, dict):
        return plain
    [(tag, parts)] = plain.items()
    return _BY_TAG[tag].make(unpack(parts))


def unpack_cell(plain: Any) -> Any:
    """The same of a cell, which is a single plain value."""
    is_setting = isinstance(plain, dict) and bool(plain.keys() - {codec.tag for codec in CELLS})
    ensure(not is_setting and not isinstance(plain, list), "a cell holds what no column has")
    return unpack(plain)


def check_hashes(values: list[Any]) -> list[Any]:
    """The values, unless so many of one hash differ that sets and dicts of them are slow."""
    first: dict[int, Any] = {}
    others: Counter[int] = Counter()
    for value in values:
        # Python chooses the hashes of strings anew in every process; lists and such have none.
        if type(value) in (str, bool, list, dict, set):
            continue
        try:
            key = hash(value)
        except TypeError:
            continue
        known = first.setdefault(key, value)
        others[key] += known is not value and bool(known != value)
    ensure(max(others.values(), default=0) < MAX_ONE_HASH, "too many of its values have one hash")
    return values


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
    if zone is None or isinstance(zone, str):
        return None if zone is None else ZoneInfo(zone)
    return datetime.timezone(datetime.timedelta(seconds=zone))


def unpack_zone(zone: Any) -> Any:
    """A zone for pandas, which has classes of its own for the named ones."""
    known = check_zone(zone)
    return zone if isinstance(zone, str) else known


def check_entries(plain: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """A part of a file by name, which has these entries and no others."""
    sound = isinstance(plain, dict) and plain.keys() == set(names)
    ensure(sound, f"{what} lacks entries, or has others")
    return dict(plain)


def check_integer(value: Any, what: str, most: int = 2**64 - 1) -> int:
    """A number in a file that counts something, or a seed."""
    ensure(type(value) is int and 0 <= value <= most, f"{what} is no whole number from 0 to {most}")
    return int(value)


def check_array(values: Any, dtype: type[np.generic], n_dimensions: int, what: str) -> np.ndarray:
    """An array of a file, of this dtype and number of dimensions."""
    sound = isinstance(values, np.ndarray) and values.dtype == dtype
    ensure(sound and values.ndim == n_dimensions, f"{what} have another dtype or shape")
    return np.asarray(values)


def check_codes(values: Any, schema: Schema, what: str) -> Codes:
    """Codes of training values, shape (n_features, n_rows), of at least one row."""
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    codes = check_array(values, np.int32, 2, what)
    ensure(len(codes) == n_codes.size and codes.size, f"{what} are not those of its columns")
    within = (codes >= 0).all() and (codes < n_codes).all()
    ensure(within, f"{what} hold values that training never held")
    return codes


class NotPlainError(Exception):
    """A value of a known type that holds something unknown."""


def _take_set(value: Any) -> list[Any]:
    # Sorted, because string hashes differ between runs.
    return sorted(check_hashes([*value]), key=lambda item: (type(item).__qualname__, _text(item)))


def _text(value: Any) -> str:
    """The repr of a value, also of one with more digits than Python writes."""
    try:
        return repr(value)
    except ValueError:
        return shorten(value)


def _make_dict(items: list[Any]) -> dict[Any, Any]:
    check_hashes([key for key, _ in items])
    made = dict(items)
    ensure(len(made) == len(items), "a mapping names a key twice")
    return made


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


def _make_timestamp(parts: list[Any]) -> Any:
    moment, zone = parts
    stamp = pd.Timestamp(moment)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(unpack_zone(zone))


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "U" or (dtype.kind in "biufmM" and dtype.itemsize <= 8)


def _take_scalar(value: np.generic) -> list[Any]:
    if not _is_plain(value.dtype):
        raise NotPlainError
    number = value.view(np.int64) if value.dtype.kind in "mM" else value
    return [value.dtype.newbyteorder("<").str, number.item()]


def _make_scalar(parts: list[Any]) -> Any:
    name, item = parts
    dtype = np.dtype(name).newbyteorder("=")
    sound = _is_plain(dtype) and type(item) in (bool, int, float, str)
    ensure(sound, "a value has no dtype of a plain one")
    if dtype.kind == "U":
        return np.str_(item)
    plain = np.dtype(np.int64) if dtype.kind in "mM" else dtype
    return np.array(item, dtype=plain).astype(dtype)[()]


def _codec(value: Any) -> Codec | None:
    kind = next((k for k in (np.generic, Constraint) if isinstance(value, k)), type(value))
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    return next((codec for codec, names in REGISTERED.items() if names.name_of(kind)), None)


def _take_registered(names: Registry) -> Callable[[Any], list[Any]]:
    def take(value: Any) -> list[Any]:
        given = getattr(value, "saved_params", value.get_params)()
        # Without the weights of a distance, for which the file has no place, answers would differ.
        if given.get("weights") is not None:
            raise NotPlainError
        return [names.name_of(type(value)), dict(sorted(given.items()))]

    return take


def _make_registered(names: Registry) -> Callable[[list[Any]], Any]:
    def make(parts: list[Any]) -> Any:
        name, given = parts
        # A path in a file could name any other file.
        ensure(not isinstance(given.get("domains"), str), "a path stands where domains should")
        return names.load(name)(**given)

    return make


def _from_all_fields(kind: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """Makes a value of a dataclass from all of its fields."""
    return lambda parts: kind(**check_entries(parts, kind.__dataclass_fields__, "its search"))


CELLS = (
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
    Codec(frozenset, "frozenset", _take_set, frozenset),
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
    Codec(
        pd.Timestamp,
        "pandas.Timestamp",
        lambda t: [t.to_numpy(), pack_zone(t.tzinfo)],
        _make_timestamp,
    ),
    Codec(pd.Timedelta, "pandas.Timedelta", pd.Timedelta.to_numpy, pd.Timedelta),
    Codec(
        pd.Interval,
        "pandas.Interval",
        lambda i: [i.left, i.right, i.closed],
        lambda parts: pd.Interval(*parts),
    ),
    Codec(type(pd.NA), "missing", lambda _: "NA", lambda _: pd.NA),
    Codec(type(pd.NaT), "missing time", lambda _: "NaT", lambda _: pd.NaT),
)
# All registered classes.
REGISTERED = {
    Codec(object, tag, _take_registered(names), _make_registered(names)): names
    for tag, names in {"generator": GENERATORS, "distance": DISTANCES}.items()
}
SETTINGS = (
    Codec(Constraint, "constraint", lambda c: list(c.builder_call()), lambda p: build(*p)),
    *(
        Codec(kind, tag, asdict, _from_all_fields(kind))
        for tag, kind in {
            "interval": Interval,
            "search": Search,
            "exact search": ExactSearch,
        }.items()
    ),
    Codec(set, "set", _take_set, set),
    Codec(dict, "dict", lambda d: [[key, item] for key, item in d.items()], _make_dict),
)
_BY_TYPE = {codec.type: codec for codec in (*CELLS, *SETTINGS)}
_BY_TAG = {codec.tag: codec for codec in (*CELLS, *SETTINGS, *REGISTERED)}
