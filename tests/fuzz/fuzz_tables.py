"""Tables of every dtype, black boxes and rules for them, and what must be true of every answer.

Nothing of mcce is used here but its public names for making a call: cells are compared, decisions
made and rules checked by straightforward code of its own.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from mcce import MCCE, ExactSearch, ForestChain, InferenceTreeChain, Interval, Search, TreeChain
from mcce import constraints as c

Chance = np.random.Generator
TRICKY = [5e-324, 1e-310, 0.1 + 0.2, 0.3, 1.0, 1.0000000000000002, -1.5, 1e15]
BIG = [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1, 2**62, -(2**53) - 1, -(2**63), 2**63 - 1, 0, 1]
WORDS = ["a", "b", "", " ", "A", "æ", "ae\u0301", "\U0001f600", "nan", "None", "0", "1.0", "x" * 60]
MOMENTS = [
    *(pd.Timestamp("2024-03-01 12:00"), pd.Timestamp("2023-01-01"), pd.Timestamp("2000-02-29")),
    *(pd.Timestamp("2024-10-27 02:30"), pd.Timestamp("1969-12-31 23:59:59")),
]
NAMES: list[Any] = ["a", "b c", "", "æ", 0, 7, ("t", 1), "class", "0", "x" * 80, -1.5, "if`"]
PRESETS = ["paper", "sparse", "balanced", "plausible", "near", "nearest", "exact"]
# How far rounded arithmetic may be from the exact one: a few units in the last place.
SLACK = 1e-12


# Columns.


def pool(chance: Chance, cells: list[Any], n: int, gap: Any = ...) -> list[Any]:
    """Cells from a random part of the list, some of them missing if ``gap`` says how."""
    some = [cells[place] for place in chance.permutation(len(cells))[: chance.integers(1, 9)]]
    drawn = [some[place] for place in chance.integers(0, len(some), n)]
    if gap is not ...:
        drawn = [gap if chance.random() < 0.15 else cell for cell in drawn]
    return drawn


def levels(chance: Chance, n: int, names: list[Any], *, ordered: bool) -> pd.Series:
    dtype = pd.CategoricalDtype([names[i] for i in chance.permutation(len(names))], ordered)
    return pd.Series(pd.Categorical(pool(chance, names, n, None), dtype=dtype))


def _times(chance: Chance, n: int) -> pd.Series:
    return pd.Series(pd.DatetimeIndex(pool(chance, MOMENTS, n)))


COLUMNS: dict[str, Callable[[Chance, int], pd.Series]] = {
    "tricky": lambda ch, n: pd.Series(pool(ch, TRICKY, n, np.nan), dtype=float),
    "floats": lambda ch, n: pd.Series(ch.normal(0, 10.0 ** ch.integers(-300, 300), n)),
    "quarters": lambda ch, n: pd.Series(ch.integers(0, 20, n) / 4),
    "float32": lambda ch, n: pd.Series(ch.normal(0, 9, n).astype("float32")),
    "Float64": lambda ch, n: pd.Series(pool(ch, TRICKY, n, None), dtype="Float64"),
    "int64": lambda ch, n: pd.Series(pool(ch, BIG, n)),
    "uint64": lambda ch, n: pd.Series(pool(ch, [2**64 - 1, 2**63, 0], n), dtype="uint64"),
    "int8": lambda ch, n: pd.Series(ch.integers(-5, 5, n).astype("int8")),
    "Int64": lambda ch, n: pd.Series(pool(ch, BIG, n, None), dtype="Int64"),
    "bool": lambda ch, n: pd.Series(ch.random(n) < 0.4),
    "boolean": lambda ch, n: pd.Series(pool(ch, [True, False], n, None), dtype="boolean"),
    "objects": lambda ch, n: pd.Series(pool(ch, WORDS, n, None), dtype=object),
    "string": lambda ch, n: pd.Series(pool(ch, WORDS, n, None), dtype=pd.StringDtype("python")),
    "category": lambda ch, n: levels(ch, n, WORDS, ordered=False),
    "ordered": lambda ch, n: levels(ch, n, WORDS[:5], ordered=True),
    "many": lambda ch, n: levels(ch, n, [f"level {i}" for i in range(90)], ordered=False),
    "codes": lambda ch, n: levels(ch, n, list(range(7)), ordered=False),
    "seconds": lambda ch, n: _times(ch, n).astype("datetime64[s]"),
    "moments": lambda ch, n: _times(ch, n).astype("datetime64[ns]").mask(ch.random(n) < 0.1),
    "zoned": lambda ch, n: _times(ch, n).dt.tz_localize("UTC").dt.tz_convert("Europe/Oslo"),
    "spans": lambda ch, n: (_times(ch, n) - MOMENTS[0]).astype("timedelta64[ns]"),
    "constant": lambda ch, n: pd.Series(pool(ch, ["same"], n)),
    # These are declared.
    "dates": lambda ch, n: pd.Series(
        pool(ch, [datetime.date(2024, 1, day) for day in range(1, 8)], n), dtype=object
    ),
    "huge": lambda ch, n: pd.Series(pool(ch, [10**30, -1, 2], n, None), dtype=object),
    "flags": lambda ch, n: pd.Series(ch.random(n) < 0.5),
}
DECLARED = {"dates": "categorical", "huge": "categorical", "flags": "numeric"}
if find_spec("pyarrow"):
    ARROW = {"int64": BIG, "double": TRICKY, "string": WORDS, "timestamp[us]": MOMENTS}
    COLUMNS |= {
        f"arrow {name}": lambda ch, n, name=name, cells=cells: pd.Series(
            pool(ch, cells, n, None), dtype=f"{name}[pyarrow]"
        )
        for name, cells in ARROW.items()
    }


# Cells.


def exact(cell: Any) -> tuple[str, str]:
    """What is the same only for cells that are the same to the last bit."""
    return type(cell).__name__, repr(cell)


def is_missing(cell: Any) -> bool:
    return cell is None or cell is pd.NA or cell is pd.NaT or cell != cell


def number(cell: Any) -> Any:
    """A number as Python has it, a time in nanoseconds, and None for all else."""
    if is_missing(cell):
        return None
    if isinstance(cell, datetime.timedelta):
        return pd.Timedelta(cell).as_unit("ns").value
    if hasattr(cell, "isoformat"):
        return pd.Timestamp(cell).as_unit("ns").value
    plain = cell.item() if isinstance(cell, np.generic) else cell
    return plain if isinstance(plain, (bool, int, float)) else None


def meaning(cell: Any) -> str:
    """What is the same for cells of equal value."""
    if is_missing(cell):
        return "missing"
    value = number(cell)
    if value is None or isinstance(value, bool):
        return f"{cell!r}"
    return f"number {int(value) if value == value // 1 else value}"


def cells_of(frame: pd.DataFrame) -> list[list[Any]]:
    """The cells of each row."""
    columns = [frame.iloc[:, at].astype(object).tolist() for at in range(frame.shape[1])]
    return [list(row) for row in zip(*columns, strict=True)]


def as_pandas(rows: Any) -> pd.DataFrame:
    """Any kind of frame in pandas."""
    if isinstance(rows, (pd.DataFrame, np.ndarray)):
        return pd.DataFrame(rows)
    table = rows.to_arrow() if hasattr(rows, "to_arrow") else rows
    for place, kind in enumerate(table.schema.types):
        # Old versions of pyarrow cannot turn the dictionaries of polars into objects.
        if hasattr(kind, "index_type"):
            decoded = table.column(place).cast(kind.value_type)
            table = table.set_column(place, table.schema.names[place], decoded)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def take(rows: Any, places: list[int]) -> Any:
    """Some rows of any kind of frame."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[places]
    return (
        rows[places]
        if isinstance(rows, np.ndarray) or hasattr(rows, "to_arrow")
        else (rows.take(places))
    )


# Black boxes.


@dataclass(frozen=True)
class BlackBox:
    """A predictor that scores each row by its own cells, and what is desired of it."""

    weights: np.ndarray
    # For each column the centre and the width of its numbers; None hashes the cells.
    scales: tuple[tuple[float, float] | None, ...]
    threshold: float
    kind: str
    classes_ = np.array(["declined", "granted"])

    def score(self, rows: Any) -> np.ndarray:
        frame = as_pandas(rows)
        total = np.zeros(len(frame))
        for at, (weight, scale) in enumerate(zip(self.weights, self.scales, strict=True)):
            parts: dict[Any, float] = {}
            for place, cell in enumerate(frame.iloc[:, at].astype(object).tolist()):
                key = type(cell), cell
                if key not in parts:
                    parts[key] = weight * self._part(cell, scale)
                total[place] += parts[key]
        return total

    @staticmethod
    def _part(cell: Any, scale: tuple[float, float] | None) -> float:
        if scale is None:
            return crc32(meaning(cell).encode("utf-8", "replace")) / 2**32
        value = number(cell)
        return 0.0 if value is None else float(np.tanh((float(value) - scale[0]) / scale[1]))

    def accepts(self, rows: Any) -> np.ndarray:
        return self.score(rows) >= self.threshold

    def __call__(self, rows: Any) -> np.ndarray:
        scores = self.score(rows)
        return np.where(scores >= self.threshold, "yes", "no") if self.kind == "labels" else scores

    @property
    def predictor(self) -> Any:
        return Classifier(self) if self.kind == "classifier" else self

    @property
    def desired(self) -> Any:
        ways = {"labels": "yes", "classifier": "granted"}
        return ways.get(self.kind, Interval(self.threshold, np.inf, closed="left"))


class Classifier:
    """A black box in the manner of scikit-learn."""

    _estimator_type = "classifier"

    def __init__(self, box: BlackBox) -> None:
        self.box, self.classes_ = box, box.classes_

    def predict_proba(self, rows: Any) -> np.ndarray:
        granted = 1 / (1 + np.exp(self.box.threshold - self.box.score(rows)))
        return np.stack([1 - granted, granted], axis=1)

    def predict(self, rows: Any) -> np.ndarray:
        return self.classes_[self.box.accepts(rows).astype(int)]


# Rules.


@dataclass(frozen=True)
class Rule:
    """A constraint, and whether it lets a row of cells become another one."""

    constraint: Any
    holds: Callable[[list[Any], list[Any]], bool]


def changed(before: list[Any], after: list[Any], at: int) -> bool:
    return meaning(before[at]) != meaning(after[at])


def by_number(at: int, allows: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """A check of a cell that changed by its numbers, which are None for missing."""
    return lambda before, after: (
        not changed(before, after, at) or allows(number(before[at]), number(after[at]))
    )


def directions(name: Any, at: int, chance: Chance) -> Rule:
    make, up, strict = [
        (c.only_up, True, True),
        (c.only_down, False, True),
        (c.not_down, True, False),
        (c.not_up, False, False),
    ][chance.integers(4)]

    def allows(old: Any, new: Any) -> bool:
        if old is None or new is None:
            return not strict
        return new >= old if up else new <= old

    return Rule(make(name), by_number(at, allows))


def ranges(name: Any, at: int, chance: Chance, known: list[Any]) -> Rule:
    low, high = sorted((known[i] for i in chance.integers(0, len(known), 2)), key=number)
    inside = lambda old, new: new is not None and number(low) <= new <= number(high)
    return Rule(c.between(name, low, high), by_number(at, inside))


def amounts(name: Any, at: int, chance: Chance, known: list[Any]) -> Rule | None:
    first, second = (number(known[i]) for i in chance.integers(0, len(known), 2))
    size = abs(float(first) - float(second))
    is_time = hasattr(known[0], "isoformat") or isinstance(known[0], datetime.timedelta)
    written: Any = pd.Timedelta(int(size), "ns") if is_time else size

    def allows(old: Any, new: Any) -> bool:
        if old is None or new is None:
            return False
        return new - old <= size + SLACK * (abs(float(old)) + abs(float(new)) + size)

    return Rule(c.change(name, at_most=written), by_number(at, allows))


def allowed_levels(name: Any, at: int, chance: Chance, known: list[Any]) -> Rule:
    each = {meaning(cell): cell for cell in known}
    some = [key for key in each if chance.random() < 0.6] or list(each)[:1]
    return Rule(
        c.levels(name, [each[key] for key in some]),
        lambda before, after: not changed(before, after, at) or meaning(after[at]) in some,
    )


def made_rules(chance: Chance, train: pd.DataFrame, mutable: list[int], numeric: list[bool]) -> Any:
    """Up to three constraints on a table, no two on one feature."""
    rules: list[Rule | None] = []
    for at in chance.permutation(mutable)[: chance.integers(0, 3)].tolist():
        name = train.columns[at]
        known = [cell for cell in train.iloc[:, at].astype(object) if not is_missing(cell)]
        if not known:
            continue
        if numeric[at]:
            make = [ranges, amounts, lambda *given: directions(*given[:3])][chance.integers(3)]
            rules.append(make(name, at, chance, known))
        else:
            rules.append(allowed_levels(name, at, chance, known))
    if chance.random() < 0.3:
        most = int(chance.integers(1, 3))
        counted = lambda before, after: (
            sum(changed(before, after, at) for at in range(len(before))) <= most
        )
        rules.append(Rule(c.max_changes(most), counted))
    if chance.random() < 0.2:
        at = int(chance.choice(mutable))
        present = lambda rows: [not is_missing(row[at]) for row in cells_of(as_pandas(rows))]
        constraint = c.relation("known", lambda rows: np.array(present(rows), dtype=bool))
        rules.append(Rule(constraint, lambda before, after: not is_missing(after[at])))
    return [rule for rule in rules if rule is not None]


# Cases.


@dataclass(frozen=True)
class Case:
    """All that a call of fit and explain needs, in pandas and in the kind that is passed."""

    train: pd.DataFrame
    people: pd.DataFrame
    given_train: Any
    given_people: Any
    immutable: list[Any]
    numeric: list[bool]
    box: BlackBox
    rules: list[Rule]
    settings: dict[str, Any]

    def explainer(self, **changes: Any) -> MCCE:
        rules = [rule.constraint for rule in self.rules] or None
        settings = {"constraints": rules, "immutable": self.immutable} | self.settings | changes
        return MCCE(self.box.predictor, self.box.desired, **settings)


@st.composite
def searches(draw: Any) -> dict[str, Any]:
    """A search with few draws, sometimes with bounds, and what goes with it."""
    name = draw(st.sampled_from(PRESETS))
    n_samples = draw(st.sampled_from([5, 40]))
    bounds: list[dict[str, Any]] = [{"copies": "never"}, {"max_sparsity": 2}, {"max_distance": 0.3}]
    few = draw(st.sampled_from([*[{}] * 4, *bounds]))
    generators: list[Any] = [None, None, TreeChain(min_samples_leaf=1), InferenceTreeChain()]
    search: Any = ExactSearch(max_rows=200, max_nodes=20_000, **few)
    if name != "exact":
        search = Search(name, max_samples=2 * n_samples, **few)
        generators.append(ForestChain(n_trees=3))
    settings = {"search": search, "random_state": draw(st.sampled_from([0, 1, 2**64 - 1]))}
    settings["n_samples"] = n_samples
    settings["n_counterfactuals"] = draw(st.sampled_from([1, 2, 5]))
    if name != "exact" and settings["n_counterfactuals"] > 1 and draw(st.booleans()):
        settings["diversity"] = draw(st.sampled_from([0.0, 0.5, 1.0]))
    generator = draw(st.sampled_from(generators))
    return settings if generator is None else settings | {"generator": generator}


@st.composite
def wide_cases(draw: Any) -> Case:
    """Training rows and people of any dtypes, a black box, rules and a search."""
    columns = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6))
    n_train = draw(st.sampled_from([1, 2, 5, 12, 40, 80]))
    n_people = draw(st.sampled_from([1, 8, 25]))
    kind = draw(st.sampled_from(["pandas", "pandas", "array", "polars", "pyarrow"]))
    odd_names = kind == "pandas" and draw(st.integers(0, 3)) == 0
    settings = draw(searches())
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "array":
        columns = ["quarters" for _ in columns]
    names = NAMES if odd_names else [f"x{at}" for at in range(len(columns))]
    n_rows = n_train + n_people
    table = pd.concat([COLUMNS[name](chance, n_rows) for name in columns], axis=1)
    table.columns = pd.Index(names[: len(columns)], dtype=object if odd_names else None)
    declared = {
        table.columns[at]: DECLARED[name] for at, name in enumerate(columns) if name in DECLARED
    }
    train, people = table.iloc[:n_train], table.iloc[n_train:].reset_index(drop=True)
    given_train, given_people = train, people
    if kind in ("polars", "pyarrow"):
        train, people, given_train, given_people = _converted(train, people, kind)
    elif kind == "array":
        given_train, given_people = train.to_numpy(), people.to_numpy()
    else:
        labels = [pd.RangeIndex(n_people), pd.Index([3] * n_people)]
        labels += [pd.MultiIndex.from_arrays([range(n_people), ["a"] * n_people])]
        people = given_people = people.set_axis(draw(st.sampled_from(labels)))
    numeric = [_is_numeric(train.iloc[:, at], declared) for at in range(len(columns))]
    mutable = sorted(chance.permutation(len(columns))[: (len(columns) + 2) // 2].tolist())
    immutable = [train.columns[at] for at in range(len(columns)) if at not in mutable]
    box = _box(chance, given_train, train, numeric, draw(st.sampled_from(KINDS)))
    rules = made_rules(chance, train, mutable, numeric)
    settings |= {"kinds": declared or None}
    return Case(train, people, given_train, given_people, immutable, numeric, box, rules, settings)


KINDS = ["score", "labels", "classifier"]


def _box(
    chance: Chance, given: Any, train: pd.DataFrame, numeric: list[bool], kind: str
) -> BlackBox:
    scales: list[tuple[float, float] | None] = []
    for at, is_numeric in enumerate(numeric):
        known = [number(cell) for cell in train.iloc[:, at].astype(object)]
        cells = [float(value) for value in known if value is not None] or [0.0]
        with np.errstate(all="ignore"):
            width = float(np.std(cells))
        fine = width if 0 < width < 1e300 else 1.0
        scales.append((float(np.median(cells)), fine) if is_numeric else None)
    weights = chance.normal(0, 1, len(numeric))
    levels = np.sort(BlackBox(weights, tuple(scales), 0.0, kind).score(given))
    threshold = float(levels[int(len(levels) * chance.choice([0.4, 0.6, 0.8]))])
    return BlackBox(weights, tuple(scales), threshold, kind)


def _converted(train: pd.DataFrame, people: pd.DataFrame, kind: str) -> Any:
    """The tables in another library and back in pandas, or as they are if it cannot hold them."""
    if not (find_spec("pyarrow") and find_spec(kind)):
        return train, people, train, people
    import pyarrow as pa

    # Libraries refuse what they cannot hold in many ways; whether mcce does is tried elsewhere.
    try:
        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in (train, people)]
        if tables[0].schema.types != tables[1].schema.types:
            return train, people, train, people
        if kind == "polars":
            import polars

            tables = [polars.from_arrow(table) for table in tables]
        return (*[as_pandas(table) for table in tables], *tables)
    except Exception:
        return train, people, train, people


def _is_numeric(column: pd.Series, declared: dict[Any, str]) -> bool:
    if column.name in declared:
        return declared[column.name] == "numeric"
    return not isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.kind in "iufmM"
