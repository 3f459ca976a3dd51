"""Extreme parameters and shapes of data: an answer, or a clear error before any work."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceWarning, ParameterError, SchemaError, Search
from mcce import constraints as rules

MOST = 2**31 - 1


@pytest.fixture
def train() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "points": chance.integers(0, 5, 60),
            "balance": chance.normal(size=60),
            "city": chance.choice(list("xyz"), 60),
        }
    )


def score(frame) -> np.ndarray:
    return (np.asarray(frame["balance"]) > 0).astype(float)


def explain(train, people, **settings):
    explainer = MCCE(score, (0.5, 1), random_state=0, **settings).fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_samples": MOST}, r"n_samples=2147483647 draws need about 176 GiB.*Lower n_samples"),
        ({"search": Search(max_samples=MOST)}, r"max_samples=2147483647 .*Lower max_samples"),
    ],
)
def test_draws_that_no_memory_holds_are_refused_before_a_row_is_scored(
    train, settings, says, monkeypatch
):
    calls = []

    def counted(frame):
        calls.append(len(frame))
        return score(frame)

    explainer = MCCE(counted, (0.5, 1), random_state=0, **settings).fit(train)
    calls.clear()
    monkeypatch.setattr("mcce.search.explain.physical_memory", lambda: 2.0**34)

    with pytest.raises(ParameterError, match=says):
        explainer.explain(train.head(3))
    assert not calls


@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
def test_any_number_of_counterfactuals_gives_as_many_as_there_are(train, search):
    result = explain(
        train, train[train["balance"] < 0].head(2), search=search, n_counterfactuals=MOST
    )

    assert len(result.frame) > 2


@pytest.mark.parametrize("memory", [5e-324, 1e-300, 1e-4, 1e12, 1e308])
def test_any_memory_gives_the_same_answers(train, memory):
    people = train[train["balance"] < 0].head(3)

    result = explain(train, people, memory=memory)

    pd.testing.assert_frame_equal(result.frame, explain(train, people).frame)


@pytest.mark.slow
def test_thousands_of_columns_are_explained():
    chance = np.random.default_rng(0)
    wide = pd.DataFrame(chance.normal(size=(20, 2000))).add_prefix("x")
    wide = wide.rename(columns={"x0": "balance"})

    result = explain(wide, wide[wide["balance"] < 0].head(1), n_samples=10)

    assert len(result.frame) == 1


@pytest.mark.parametrize(
    "labels",
    [
        [7, 7, 7],
        pd.MultiIndex.from_tuples([(1, "a"), (1, "a"), (2, "b")], names=["factual", "rank"]),
        pd.MultiIndex.from_tuples([(1, np.nan), (1, None), (2, "b")]),
    ],
)
def test_any_labels_are_kept(train, labels):
    people = train[train["balance"] < 0].head(3).set_axis(labels)

    result = explain(train, people)

    assert result.people.index.tolist() == people.index.tolist() or people.index.hasnans
    assert len(result.frame) == 3


def test_masked_cells_of_an_array_are_missing():
    cells = np.ma.masked_array(np.arange(40.0).reshape(20, 2), mask=np.zeros((20, 2)))
    cells[3, 1] = np.ma.masked
    model = MCCE(lambda rows: 1 - np.isnan(rows[:, 1]), (0.5, 1), random_state=0).fit(cells)

    result = model.explain(cells[3:4])

    assert result.factuals.isna().to_numpy().tolist() == [[False, True]]
    assert result.frame.notna().to_numpy().all()


def test_integers_that_a_mask_would_round_are_an_error():
    cells = np.ma.masked_array(2**60 + np.arange(4).reshape(2, 2), mask=[[True, False]] * 2)

    with pytest.raises(SchemaError, match=r"integers beyond 2\*\*53"):
        MCCE(lambda rows: rows[:, 0], (0.5, 1)).fit(cells)


@pytest.mark.parametrize("search", ["paper", "balanced", "near", "plausible", "exact", "fast"])
def test_numbers_far_outside_a_tiny_range_are_no_overflow(search):
    train = pd.DataFrame({"tiny": [0, 5e-324, 1e-323] * 20, "balance": [-1.0, 1.0] * 30})
    people = pd.DataFrame({"tiny": [1e300, -1e300, 5e-324], "balance": [-1.0] * 3})

    result = explain(train, people, search=search, n_counterfactuals=2)

    assert result.people["status"].eq("answered").all()
    assert not result.measures["gower"].isna().any()


@pytest.mark.parametrize("search", ["balanced", "exact"])
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (np.float64, 5e-324),
        (np.float64, 1e-310),
        (np.float64, 1e-160),
        (np.float64, 1e150),
        (np.float64, 1e300),
        (np.float32, 1e-45),
        (np.float32, 1 / 7),
        (np.float32, 1e36),
    ],
)
def test_numbers_of_any_size_are_computed_with_in_silence(search, dtype, scale):
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"net": chance.integers(1, 50, 200), "tax": chance.integers(1, 30, 200)})
    train = (train * scale).astype(dtype)
    with np.errstate(all="ignore"):
        for formula in ("net + tax", "net * tax", "net / tax"):
            train[formula] = train.eval(formula).replace(math.inf, scale).astype(dtype)
    train["balance"] = chance.normal(size=200)
    followed = [rules.derived("net * tax", "net * tax", tolerance=dtype(0))]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explain(train, train.head(5), search=search)
        explain(train, train.head(5), search=search, constraints=followed)

    assert result.people["status"].ne("no answer").all()


@pytest.mark.parametrize("search", ["paper", "balanced", "exact", "fast"])
@pytest.mark.parametrize(
    "constraints",
    [
        [],
        [rules.only_up("large")],
        [rules.between("large", 2**62, 2**62 + 2)],
        [rules.change("large", at_most=1)],
        [rules.only_down("huge")],
    ],
)
def test_integers_beyond_the_reach_of_floats_stay_exact(search, constraints):
    chance = np.random.default_rng(0)
    large = 2**62 + chance.integers(0, 3, 60)
    huge = np.array([2**64 - 1], dtype=np.uint64) - chance.integers(0, 3, 60).astype(np.uint64)
    train = pd.DataFrame({"large": large, "huge": huge, "balance": [-1.0, 1.0] * 30})
    people = train[train["balance"] < 0].head(3)

    result = explain(train, people, search=search, constraints=constraints)

    assert result.frame.dtypes.equals(people.dtypes)
    assert set(result.frame["large"]) <= set(train["large"])
    assert set(result.frame["huge"]) <= set(train["huge"])
