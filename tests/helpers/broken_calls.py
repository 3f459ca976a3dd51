"""Calls that a careless user might make: sound ones, broken in one to three random ways."""

from __future__ import annotations

import datetime
import decimal
import warnings
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import McceError
from mcce import constraints as c
from mcce.search.config import PRESETS

TRAIN, PEOPLE = bank(120), bank(12, seed=1)
ODD = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    10**30,
    "",
    "age",
    "x",
    b"age",
    (),
    [],
    {},
    set(),
    (1, 2),
    ("age",),
    ["age"],
    ["sex"],
    [[]],
    {"age": 1},
    object(),
    int,
    np.int64(3),
    np.float32("nan"),
    np.array([1, 2]),
    np.array(3),
    pd.NA,
    pd.NaT,
    pd.Timestamp(0),
    datetime.date(2020, 1, 1),
    decimal.Decimal("1.5"),
    1j,
    lambda frame: frame,
    range(3),
    "20 %",
    "age > 1",
    pd.Series([True, False]),
    pd.DataFrame(),
    slice(0, 2),
    Ellipsis,
    Exception("x"),
    "\ud800",
    "a" * 1000,
]


@dataclass
class Call:
    """What will be passed to fit and explain."""

    train: Any = field(default_factory=TRAIN.copy)
    people: Any = field(default_factory=PEOPLE.copy)
    predictor: Any = score
    settings: dict[str, Any] = field(default_factory=dict)
    constraints: Any = None
    broken: list[str] = field(default_factory=list)
    # What Search raised, if it is no error of ours.
    crash: BaseException | None = None


def broken_call(seed: int) -> Call:
    """The call of a number."""
    chance = np.random.default_rng(seed)
    call = Call()
    for _ in range(chance.integers(1, 4)):
        ways = [
            _break_frame,
            _break_frame,
            _break_setting,
            _break_search,
            _break_constraints,
            _break_predictor,
        ]
        way = ways[chance.integers(len(ways))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                way(call, chance)
        except (Exception, pytest.skip.Exception) as error:
            # A constraint or a search may be refused where it is written.
            message = f": {error}" if isinstance(error, McceError) else ""
            if way is _break_search and not isinstance(error, McceError):
                call.crash = error
            call.broken.append(f"({way.__name__} could not be made{message})")
    return call


def odd(chance: np.random.Generator) -> Any:
    """A value that hardly belongs anywhere."""
    return ODD[chance.integers(len(ODD))]


def _break_setting(call: Call, chance: np.random.Generator) -> None:
    names = [
        "desired",
        "immutable",
        "kinds",
        "score_class",
        "generator",
        "n_samples",
        "search",
        "max_seconds",
        "n_counterfactuals",
        "diversity",
        "distance",
        "memory",
        "n_jobs",
        "random_state",
        "verbose",
        "constraints",
    ]
    name = names[chance.integers(len(names))]
    value = _not_too_long(name, odd(chance))
    call.settings[name] = value
    call.broken.append(f"{name}={value!r}")


def _break_search(call: Call, chance: np.random.Generator) -> None:
    """A search whose parameters are odd; it may be refused where it is written."""
    before = list(PRESETS.values())[chance.integers(len(PRESETS))]
    names = [field.name for field in fields(before)]
    chosen = [names[chance.integers(len(names))] for _ in range(chance.integers(1, 3))]
    changes = {name: _not_too_long(name, odd(chance)) for name in chosen}
    call.broken.append(f"{type(before).__name__} with {changes!r}")
    call.settings["search"] = replace(before, **changes)


def _not_too_long(name: str, value: Any) -> Any:
    """The value, unless it would only take long, which is not broken."""
    long = name in {"n_samples", "max_samples"} and isinstance(value, int) and value > 10**6
    return 50 if long else value


def _break_frame(call: Call, chance: np.random.Generator) -> None:
    which = ("train", "people")[chance.integers(2)]
    frame = getattr(call, which)
    ways = [way for name, way in sorted(globals().items()) if name.startswith("_frame_")]
    way = ways[chance.integers(len(ways))]
    setattr(call, which, way(frame, chance))
    call.broken.append(f"{way.__name__[7:]} in {which}")


def _column(frame: pd.DataFrame, chance: np.random.Generator) -> Any:
    return frame.columns[chance.integers(frame.shape[1])]


def _frame_without_a_column(frame, chance):
    return frame.drop(columns=_column(frame, chance))


def _frame_with_a_column_twice(frame, chance):
    return pd.concat([frame, frame[[_column(frame, chance)]]], axis=1)


def _frame_with_a_column_more(frame, chance):
    return frame.assign(more=odd(chance) if chance.random() < 0.5 else 1)


def _frame_with_an_odd_name(frame, chance):
    names = [None, 3, ("a", "b"), "", "Age", float("nan"), True]
    return frame.rename(columns={_column(frame, chance): names[chance.integers(len(names))]})


def _frame_in_another_order(frame, chance):
    return frame[chance.permutation(frame.columns.to_numpy(dtype=object))]


def _frame_with_levels_of_columns(frame, chance):
    return frame.set_axis(pd.MultiIndex.from_product([["a"], frame.columns]), axis=1)


def _frame_with_an_odd_cell(frame, chance):
    frame, name = frame.copy(), _column(frame, chance)
    cells = frame[name].astype(object).tolist()
    cells[chance.integers(len(cells))] = odd(chance)
    frame[name] = pd.Series(cells, index=frame.index, dtype=object)
    return frame


def _frame_with_one_value(frame, chance):
    value = odd(chance)
    return frame.assign(**{str(_column(frame, chance)): [value] * len(frame)})


def _frame_of_another_dtype(frame, chance):
    dtypes = [
        "str",
        "string",
        "object",
        "category",
        "Int64",
        "Float64",
        "float32",
        "int8",
        "uint64",
        "bool",
        "boolean",
        "complex128",
        "datetime64[ns]",
        "timedelta64[ns]",
        "Sparse[float]",
        "int64[pyarrow]",
        "string[pyarrow]",
        "double[pyarrow]",
        "float16",
        "S3",
    ]
    name = _column(frame, chance)
    return frame.astype({name: dtypes[chance.integers(len(dtypes))]})


def _frame_with_missing_cells(frame, chance):
    name = _column(frame, chance)
    return frame.assign(**{str(name): frame[name].mask(chance.random(len(frame)) < 0.5)})


def _frame_with_infinity(frame, chance):
    frame = frame.assign(salary=frame["salary"].astype(float))
    frame.iloc[0, frame.columns.get_loc("salary")] = np.inf
    return frame


def _frame_with_new_values(frame, chance):
    name = ("age", "years")[chance.integers(2)]
    return frame.assign(**{name: frame[name] * 7 + 1}).assign(housing="tent")


def _frame_of_few_rows(frame, chance):
    return frame.head(int(chance.integers(0, 3)))


def _frame_of_no_columns(frame, chance):
    return frame[[]]


def _frame_with_odd_labels(frame, chance):
    labels = [
        [0] * len(frame),
        pd.MultiIndex.from_arrays([range(len(frame)), range(len(frame))]),
        [None] * len(frame),
        [[]] * 0 or list("abcdefgh" * len(frame))[: len(frame)],
        pd.date_range("2020", periods=len(frame)),
    ]
    return frame.set_axis(labels[chance.integers(len(labels))])


def _frame_as_something_else(frame, chance):
    forms = [
        lambda: frame.to_numpy(),
        lambda: frame["age"],
        lambda: frame.to_dict("list"),
        lambda: frame.to_dict("records"),
        lambda: frame.to_numpy()[:, :, None],
        lambda: frame[["age", "salary", "years"]].to_numpy(),
        lambda: frame.iloc[0],
        lambda: iter([frame]),
        lambda: frame.T,
        lambda: odd(chance),
        lambda: pytest.importorskip("polars").from_pandas(frame),
        lambda: pytest.importorskip("polars").from_pandas(frame).lazy(),
        lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False),
    ]
    return forms[chance.integers(len(forms))]()


def _break_predictor(call: Call, chance: np.random.Generator) -> None:
    def wrecks(frame):
        scores = score(frame)
        frame.iloc[:, 0] = frame.iloc[:, 0].iloc[0]
        return scores

    def moody(frame):
        return score(frame) + np.random.default_rng(len(frame)).normal(0, 0.3, len(frame))

    value = odd(chance)
    ways = {
        "a constant": lambda frame: value,
        "one score less": lambda frame: score(frame)[:-1],
        "a column of scores": lambda frame: score(frame)[:, None],
        "two columns": lambda frame: np.stack([score(frame)] * 2, axis=1),
        "texts": lambda frame: score(frame).astype(str),
        "NaN": lambda frame: np.where(frame["age"] > 40, np.nan, score(frame)),
        "infinity": lambda frame: np.where(frame["age"] > 40, np.inf, score(frame)),
        "complex numbers": lambda frame: score(frame) * 1j,
        "a list": lambda frame: list(score(frame)),
        "a frame": lambda frame: pd.DataFrame({"score": score(frame)}),
        "a series": lambda frame: pd.Series(score(frame), index=frame.index),
        "an iterator": lambda frame: iter(score(frame)),
        "nothing": lambda frame: None,
        "an error": lambda frame: 1 / 0,
        "its input wrecked": wrecks,
        "another mind each time": moody,
        "always no": lambda frame: np.zeros(len(frame)),
        "always yes": lambda frame: np.ones(len(frame)),
    }
    name = list(ways)[chance.integers(len(ways))]
    call.predictor = ways[name] if chance.random() < 0.9 else odd(chance)
    call.broken.append(f"the predictor gives {name} {value!r}")


def _break_constraints(call: Call, chance: np.random.Generator) -> None:
    words = [getattr(c, name) for name in c.__all__ if name != "Constraint"]
    word = words[chance.integers(len(words))]
    names = ["age", "salary", "housing", "education", "sex", "nothing"]
    sound = [names[chance.integers(6)], chance.integers(0, 50), ["rent", "own"], "age > 30", "10 %"]
    args = [sound[chance.integers(5)] if chance.random() < 0.6 else odd(chance) for _ in range(2)]
    call.broken.append(f"{word.__name__}{tuple(args)!r}")
    made = word(args[0]) if chance.random() < 0.3 else word(*args)
    call.constraints = [*(call.constraints or []), made]
