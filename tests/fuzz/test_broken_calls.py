"""Calls that a careless user might make end in an error of ours, or are answered well."""

from __future__ import annotations

import copy
import datetime
import decimal
import inspect
import warnings
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from fuzz_child import examples, few_or_many
from mcce import MCCE, ExactSearch, McceError, Search
from mcce import constraints as c

# Values that hardly belong anywhere.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, float("nan"), float("inf"), -float("inf"), 10**30, 1j),
    *("", "age", "x", "20 %", "age > 1", "\ud800", "a" * 1000, b"age"),
    *((), [], {}, set(), (1, 2), ("age",), ["age"], ["sex"], [[]], {"age": 1}, range(3)),
    *(object(), int, len, slice(0, 2), Ellipsis, Exception("x"), decimal.Decimal("1.5")),
    *(np.int64(3), np.float32("nan"), np.array([1, 2]), np.array(3)),
    *(pd.NA, pd.NaT, pd.Timestamp(0), datetime.date(2020, 1, 1)),
    *(pd.Series([True, False]), pd.DataFrame()),
)
NAMES = (None, 3, ("a", "b"), "", "Age", float("nan"), True)
DTYPES = (
    *("str", "string", "object", "category", "Int64", "Float64", "float32", "int8", "uint64"),
    *("bool", "boolean", "complex128", "datetime64[ns]", "timedelta64[ns]", "Sparse[float]"),
    *("int64[pyarrow]", "string[pyarrow]", "double[pyarrow]", "float16", "S3"),
)
SETTINGS = (
    *("desired", "immutable", "kinds", "score_class", "generator", "n_samples", "search"),
    *("max_seconds", "n_counterfactuals", "diversity", "distance", "memory", "n_jobs"),
    *("random_state", "verbose", "constraints"),
)


@dataclass
class Call:
    """What will be passed to fit and explain."""

    train: Any
    people: Any
    predictor: Any = score
    settings: dict[str, Any] = field(default_factory=dict)
    constraints: list[Any] = field(default_factory=list)
    fickle: bool = False


def odd(draw):
    return ODD[draw(st.integers(0, len(ODD) - 1))]


def with_cell(frame, name, draw):
    cells = frame[name].astype(object).tolist()
    cells[draw(st.integers(0, len(cells) - 1))] = odd(draw)
    return frame.assign(**{name: pd.Series(cells, index=frame.index, dtype=object)})


def odd_labels(frame, draw):
    n_rows = len(frame)
    pairs = pd.MultiIndex.from_arrays([range(n_rows), range(n_rows)])
    labels = [[0] * n_rows, pairs, [None] * n_rows, pd.date_range("2020", periods=n_rows)]
    return frame.set_axis(labels[draw(st.integers(0, 3))])


def another_form(frame, draw):
    polars, arrow = (pytest.importorskip(name) for name in ("polars", "pyarrow"))
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
        lambda: odd(draw),
        lambda: polars.from_pandas(frame),
        lambda: polars.from_pandas(frame).lazy(),
        lambda: arrow.Table.from_pandas(frame, preserve_index=False),
    ]
    return forms[draw(st.integers(0, len(forms) - 1))]()


FRAMES = {
    "a column less": lambda f, name, draw: f.drop(columns=name),
    "a column twice": lambda f, name, draw: pd.concat([f, f[[name]]], axis=1),
    "a column more": lambda f, name, draw: f.assign(more=[odd(draw)] * len(f)),
    "an odd name": lambda f, name, draw: f.rename(columns={name: draw(st.sampled_from(NAMES))}),
    "another order": lambda f, name, draw: f[draw(st.permutations(list(f.columns)))],
    "levels of columns": lambda f, name, draw: f.set_axis(
        pd.MultiIndex.from_product([["a"], f.columns]), axis=1
    ),
    "an odd cell": with_cell,
    "one value": lambda f, name, draw: f.assign(**{name: [odd(draw)] * len(f)}),
    "another dtype": lambda f, name, draw: f.astype({name: draw(st.sampled_from(DTYPES))}),
    "gaps": lambda f, name, draw: f.assign(**{name: f[name].mask(np.arange(len(f)) % 2 == 0)}),
    "infinity": lambda f, name, draw: f.assign(salary=[np.inf, *f["salary"].iloc[1:]]),
    "new values": lambda f, name, draw: f.assign(age=f["age"] * 7 + 1, housing="tent"),
    "few rows": lambda f, name, draw: f.head(draw(st.integers(0, 2))),
    "no columns": lambda f, name, draw: f[[]],
    "odd labels": lambda f, name, draw: odd_labels(f, draw),
    "another form": lambda f, name, draw: another_form(f, draw),
}


def break_frame(call, draw):
    which = draw(st.sampled_from(["train", "people"]))
    frame = getattr(call, which)
    if not isinstance(frame, pd.DataFrame) or not frame.shape[1]:
        return
    name = draw(st.sampled_from(list(frame.columns)))
    setattr(call, which, FRAMES[draw(st.sampled_from(sorted(FRAMES)))](frame, name, draw))


def not_too_long(name, value):
    """The value, unless it would only take long, which is not broken."""
    long = name in {"n_samples", "max_samples"} and isinstance(value, int) and value > 10**6
    return 50 if long else value


def break_setting(call, draw):
    name = draw(st.sampled_from(SETTINGS))
    call.settings[name] = not_too_long(name, odd(draw))


def break_search(call, draw):
    preset = draw(st.sampled_from(["paper", "balanced", "near", "exact"]))
    before = ExactSearch() if preset == "exact" else Search(preset)
    names = st.sampled_from([field.name for field in fields(before)])
    chosen = [draw(names) for _ in range(draw(st.integers(1, 2)))]
    call.settings["search"] = replace(
        before, **{name: not_too_long(name, odd(draw)) for name in chosen}
    )


def break_constraints(call, draw):
    word = getattr(c, draw(st.sampled_from([name for name in c.__all__ if name != "Constraint"])))
    sound = ["age", "salary", "housing", "sex", "nothing", 30, ["rent", "own"], "age > 30", "10 %"]
    arguments = [
        odd(draw) if draw(st.integers(0, 2)) == 0 else draw(st.sampled_from(sound))
        for _ in range(draw(st.integers(1, 2)))
    ]
    try:
        inspect.signature(word).bind(*arguments)
    except TypeError:
        return
    call.constraints.append(word(*arguments))


def wrecks(frame):
    scores = score(frame)
    frame.iloc[:, 0] = frame.iloc[:, 0].iloc[0]
    return scores


def moody(frame):
    return score(frame) + np.random.default_rng(len(frame)).normal(0, 0.3, len(frame))


PREDICTORS = {
    "nothing": lambda frame: None,
    "an error": lambda frame: 1 / 0,
    "always no": lambda frame: np.zeros(len(frame)),
    "always yes": lambda frame: np.ones(len(frame)),
    "infinity": lambda frame: np.where(frame["age"] > 40, np.inf, score(frame)),
    "an iterator": lambda frame: iter(score(frame)),
    "its input wrecked": wrecks,
    "another mind": moody,
}


def break_predictor(call, draw):
    name = draw(st.sampled_from(["odd", *sorted(PREDICTORS)]))
    call.predictor = odd(draw) if name == "odd" else PREDICTORS[name]
    call.fickle |= name == "another mind"


WAYS = (break_frame, break_frame, break_setting, break_search, break_constraints, break_predictor)


@cache
def tables():
    return bank(100), bank(10, seed=1)


@st.composite
def broken_calls(draw):
    """A sound call, broken in one to three ways; what cannot be made is left out."""
    call = Call(*(table.copy() for table in tables()))
    for way in draw(st.lists(st.sampled_from(WAYS), min_size=1, max_size=3)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if way in (break_search, break_constraints):
                try:  # only errors of ours are for what is written wrong
                    way(call, draw)
                except McceError:
                    continue
            elif way is break_frame:
                try:
                    way(call, draw)
                except (ValueError, TypeError, AttributeError, KeyError, NotImplementedError):
                    continue  # pandas cannot make it
                except Exception as error:
                    if not type(error).__module__.startswith(("pandas", "pyarrow", "polars")):
                        raise
            else:
                way(call, draw)
    return call


def unchanged(before, after):
    if isinstance(before, pd.DataFrame):
        same = before.shape == after.shape and before.columns.equals(after.columns)
        return same and list(before.dtypes) == list(after.dtypes) and before.equals(after)
    return True


def check_answers(call, explainer, result):
    """What is said of every answer."""
    result = result.to_pandas()
    assert len(result.people) == len(result.factuals)
    if not len(result.frame):
        return
    if not call.fickle and result.n_unstable == 0:
        assert explainer.decision_.score(result.frame).valid.all()
    own = result.factuals.iloc[result.owner]
    for name in explainer.schema_.names:
        if name not in (explainer.immutable or ()):
            continue
        ours, theirs = result.frame[name], own[name]
        assert list(ours.isna()) == list(theirs.isna())
        present = ~ours.isna().to_numpy()
        assert ours[present].tolist() == theirs[present].tolist()


@few_or_many
@pytest.mark.filterwarnings("ignore")
def test_a_broken_call_ends_in_an_error_of_ours_or_in_a_good_answer(share):
    @examples(share, 2.0)
    @given(broken_calls())
    def check(call):
        settings = {"desired": (0.8, 10), "n_samples": 30, "random_state": 1, "immutable": ["sex"]}
        if call.constraints:
            settings["constraints"] = call.constraints
        inputs = copy.deepcopy([call.train, call.people])
        said = None
        with np.errstate(all="ignore"):
            try:
                explainer = MCCE(call.predictor, **(settings | call.settings))
                result = explainer.fit(call.train).explain(call.people)
                check_answers(call, explainer, result)
            except McceError as error:
                said = str(error)
        assert said is None or len(said) >= 15
        assert all(map(unchanged, inputs, (call.train, call.people)))

    check()
