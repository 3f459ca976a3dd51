"""Plain values as JSON, exactly: what goes in comes out with the same type and bits.

None, booleans, strings, integers and finite floats stand as they are, and a list is a tuple;
everything else is a dict of one entry, its tag and what it is made of. To save one more type, add a
line to ``CELLS``, or to ``SETTINGS`` if no cell of a table can be one.
"""

from __future__ import annotations

import datetime as dt
import math
import re
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
from ..errors import SavedFileError
from ..model.registry import GENERATORS
from ..plugins import Registry
from ..predictors.decision import Interval
from ..search.config import ExactSearch, Search
from ..survival.committee import Survival
from .archive import ensure

# Bits of the largest integers: Python may neither write nor read those of more than 640 digits.
MAX_BITS = 2**11
# Values that differ and have one hash: each costs a set or dict a comparison with all others.
MAX_ONE_HASH = 100
# The dtypes of NumPy's scalars.
SCALAR = re.compile(r"[<|][biufmM][1248](?:\[\w{1,8}\])?")


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
    small = kind is int and value.bit_length() < MAX_BITS
    if value is None or kind in (bool, str) or small or (kind is float and math.isfinite(value)):
        return value
    if kind is tuple:
        return [pack(item, what) for item in value]
    codec = _codec(value)
    if codec is not None:
        return {codec.tag: pack(codec.take(value), what)}
    raise SavedFileError(
        f"Cannot save {what}: it holds a {kind.__module__}.{kind.__qualname__}, which cannot "
        "be written without code in the file. What can be saved is plain values (numbers, "
        "strings, booleans, dates, missing ones, and lists of them) and what comes with mcce. "
        "Nothing was written."
    )


def unpack(plain: Any) -> Any:
    """The value of what :func:`pack` gave."""
    ensure(not isinstance(plain, np.ndarray), "an array stands where a plain value should")
    if isinstance(plain, list):
        return tuple(check_hashes([unpack(item) for item in plain]))
    if not isinstance(plain, dict):
        return plain
    [(tag, parts)] = plain.items()
    return _BY_TAG[tag].make(unpack(parts))


def unpack_cell(plain: Any) -> Any:
    """The same of a cell, which no setting can be."""
    is_setting = isinstance(plain, dict) and bool(plain.keys() - {codec.tag for codec in CELLS})
    ensure(not is_setting, "a cell holds what no column has")
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


def check_entries(plain: Any, names: Iterable[str], what: str) -> dict[str, Any]:
    """A part of a file by name, which has these entries and no others."""
    sound = isinstance(plain, dict) and plain.keys() == set(names)
    ensure(sound, f"{what} lacks entries, or has others")
    return dict(plain)


def _zone_name(zone: Any) -> Any:
    """Name in the tz database; the zones that pandas 2 takes by default have it as zone."""
    return zone.key if isinstance(zone, ZoneInfo) else getattr(zone, "zone", None)


def for_pandas(zone: dt.tzinfo | None) -> Any:
    """A time zone for pandas, which has classes of its own for those with a name."""
    return getattr(zone, "key", zone)


def _take_set(value: Any) -> tuple[Any, ...]:
    # Sorted, because string hashes differ between runs.
    return (*sorted(check_hashes([*value]), key=lambda one: (type(one).__qualname__, repr(one))),)


def _make_dict(items: tuple[tuple[Any, Any], ...]) -> dict[Any, Any]:
    check_hashes([key for key, _ in items])
    made = dict(items)
    ensure(len(made) == len(items), "a mapping names a key twice")
    return made


def _take_moment(value: Any) -> tuple[Any, ...]:
    """A date and time, or a time, without its zone; fold; and the zone."""
    return value.replace(tzinfo=None).isoformat(), value.fold, value.tzinfo


def _make_moment(kind: Any) -> Callable[[tuple[Any, ...]], Any]:
    return lambda parts: kind.fromisoformat(parts[0]).replace(fold=parts[1], tzinfo=parts[2])


def _make_timestamp(parts: tuple[Any, Any]) -> Any:
    stamp, zone = pd.Timestamp(parts[0]), for_pandas(parts[1])
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)


def _take_scalar(value: np.generic) -> tuple[str, str]:
    little = np.asarray(value, value.dtype.newbyteorder("<"))
    return little.dtype.str, little.tobytes().hex()


def _make_scalar(parts: tuple[str, str]) -> Any:
    name, data = parts
    # Another byte than 0 and 1 in a boolean may do anything.
    sound = SCALAR.fullmatch(name) and (name != "|b1" or data in ("00", "01"))
    ensure(sound, "a value has no dtype of a plain one")
    [value] = np.frombuffer(bytes.fromhex(data), name)
    return value.astype(value.dtype.newbyteorder("="))


def _codec(value: Any) -> Codec | None:
    """How to write a value; None if that is impossible."""
    kind: Any = Constraint if isinstance(value, Constraint) else type(value)
    if isinstance(value, np.generic) and SCALAR.fullmatch(value.dtype.newbyteorder("<").str):
        kind = np.generic
    if isinstance(value, dt.tzinfo) and kind is not dt.timezone:
        kind = ZoneInfo if _zone_name(value) else dt.tzinfo
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    return next((codec for codec, names in REGISTERED.items() if names.name_of(kind)), None)


def _take_registered(names: Registry) -> Callable[[Any], tuple[Any, ...]]:
    def take(value: Any) -> tuple[Any, ...]:
        given = getattr(value, "saved_params", value.get_params)()
        return names.name_of(type(value)), dict(sorted(given.items()))

    return take


def _make_registered(names: Registry) -> Callable[[tuple[Any, Any]], Any]:
    def make(parts: tuple[Any, Any]) -> Any:
        name, given = parts
        # A path in a file could name any other file.
        ensure(not isinstance(given.get("domains"), str), "a path stands where domains should")
        return names.load(name)(**given)

    return make


def _from_all_fields(kind: type[Any]) -> Callable[[dict[str, Any]], Any]:
    """Makes a value of a dataclass from all of its fields."""
    return lambda parts: kind(**check_entries(parts, kind.__dataclass_fields__, "its search"))


CELLS = (
    Codec(float, "float", repr, float),
    Codec(bytes, "bytes", bytes.hex, bytes.fromhex),
    Codec(frozenset, "frozenset", _take_set, frozenset),
    Codec(Decimal, "decimal", str, Decimal),
    Codec(dt.date, "date", dt.date.isoformat, dt.date.fromisoformat),
    Codec(dt.time, "time", _take_moment, _make_moment(dt.time)),
    Codec(dt.datetime, "datetime", _take_moment, _make_moment(dt.datetime)),
    Codec(
        dt.timedelta,
        "timedelta",
        lambda t: (t.days, t.seconds, t.microseconds),
        lambda parts: dt.timedelta(*parts),
    ),
    Codec(ZoneInfo, "zone", _zone_name, ZoneInfo),
    Codec(
        dt.timezone,
        "seconds east of UTC",
        lambda zone: zone.utcoffset(None).total_seconds(),
        lambda seconds: dt.timezone(dt.timedelta(seconds=seconds)),
    ),
    Codec(np.generic, "numpy", _take_scalar, _make_scalar),
    Codec(np.str_, "numpy.str_", str, np.str_),
    Codec(pd.Timestamp, "pandas.Timestamp", lambda t: (t.to_numpy(), t.tzinfo), _make_timestamp),
    Codec(pd.Timedelta, "pandas.Timedelta", pd.Timedelta.to_numpy, pd.Timedelta),
    Codec(
        pd.Interval,
        "pandas.Interval",
        lambda i: (i.left, i.right, i.closed),
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
            "survival": Survival,
            "exact search": ExactSearch,
        }.items()
    ),
    Codec(list, "list", tuple, list),
    Codec(set, "set", _take_set, set),
    Codec(dict, "dict", lambda d: (*d.items(),), _make_dict),
)
_BY_TYPE = {codec.type: codec for codec in (*CELLS, *SETTINGS)}
_BY_TAG = {codec.tag: codec for codec in (*CELLS, *SETTINGS, *REGISTERED)}
