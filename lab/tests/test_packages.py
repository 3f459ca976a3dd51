"""Adapters of published packages: with stand-ins for them, and with the packages if installed."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from fake_packages import FakeDice, fake_dice, fake_nice
from mcce import PredictorError, SchemaError
from mcce.errors import MissingExtraError
from mcce.testing import check_explainer
from mcce_lab.baselines import NICE
from mcce_lab.experiments.packages import DiCEPackage, NICExPackage
from row_methods import answers, explain

DESIRED = (0.6, 10.0)


def table(n_rows=80, seed=0):
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": chance.choice(["f", "m"], n_rows),
            "pay": chance.random(n_rows).round(3),
            "years": chance.integers(0, 20, n_rows),
            "job": pd.Categorical(chance.choice(["a", "b", "c"], n_rows)),
        }
    )


def score(frame):
    good = np.asarray(frame["job"] == "a")
    return np.asarray(0.5 * frame["pay"] + frame["years"] / 50 + 0.2 * good)


@pytest.fixture
def packages(monkeypatch):
    """Both stand-ins, installed."""
    monkeypatch.setitem(sys.modules, "nice", fake_nice())
    monkeypatch.setitem(sys.modules, "dice_ml", fake_dice())
    monkeypatch.setattr(FakeDice, "calls", [])


KINDS = [NICExPackage, DiCEPackage]


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [(NICExPackage, "nice", "NICEx"), (DiCEPackage, "dice_ml", "dice-ml")],
)
def test_a_missing_package_is_named_with_how_to_install_it(monkeypatch, kind, module, package):
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingExtraError, match=f"needs the package {package}: pip install"):
        kind(score, DESIRED).fit(table())


@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_is_an_explainer(packages, kind):
    check_explainer(lambda f, desired, fixed: kind(f, desired, immutable=fixed))


# Warnings cannot be caught in several threads at once.
@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_calls_in_several_threads_give_what_they_give_alone(packages, kind):
    method, people = kind(score, DESIRED, immutable=["sex"]).fit(table()), table(12, seed=1)
    parts = [people.iloc[at::4] for at in range(4)]
    together = threading.Barrier(4)

    def found(part):
        together.wait(timeout=60)
        return answers(method.explain(part))

    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(found, parts))

    assert at_once == [answers(method.explain(part)) for part in parts]


@pytest.mark.parametrize("immutable", [[], ["sex", "job"]], ids=["none", "two"])
def test_the_adapter_of_nice_gives_what_our_nice_does(packages, immutable):
    train, people = table(), table(30, seed=1)

    found = NICExPackage(score, DESIRED, immutable=immutable).fit(train).explain(people)

    ours = NICE(score, DESIRED, immutable=immutable).fit(train).explain(people)
    assert len(found.frame) > 10
    assert answers(found) == answers(ours)
    pd.testing.assert_series_equal(found.frame.dtypes, people.dtypes)


def test_the_adapter_of_nice_uses_justified_rows_alone(packages):
    train, people = table(), table(30, seed=1)
    outcome = (np.arange(len(train)) % 2).astype(bool)
    both = {"immutable": ["sex"], "justified": True}

    found = NICExPackage(score, DESIRED, **both).fit(train, outcome).explain(people)

    ours = NICE(score, DESIRED, **both).fit(train, outcome).explain(people)
    assert answers(found) == answers(ours)


def test_an_interval_from_above_is_reached_too(packages):
    train, people = table(), table(30, seed=1)
    low = (-1.0, 0.3)

    found = NICExPackage(score, low, immutable=["sex"]).fit(train).explain(people)

    assert (score(found.frame) <= 0.3).all()
    assert answers(found) == answers(NICE(score, low, immutable=["sex"]).fit(train).explain(people))


@pytest.mark.parametrize("kind", KINDS)
def test_global_random_states_stay_as_they_were(packages, kind):
    train, people = table(), table(8, seed=1)
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    expected = np.random.random(), random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)

    explain(kind(score, DESIRED).fit(train), people)

    assert (np.random.random(), random.random()) == expected  # noqa: NPY002


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_numbers_are_left_out_and_such_people_get_a_reason(packages, kind):
    train, people = table(), table(6, seed=1)
    train.loc[::7, "pay"] = np.nan
    people.loc[0, "pay"] = np.nan
    filled = lambda frame: score(frame.fillna({"pay": 0.0}))

    method = kind(filled, DESIRED).fit(train)
    result = explain(method, people)

    assert len(method.box_.rows) == int(train["pay"].notna().sum())
    reason = "a number is missing, and the package needs complete rows"
    assert result.people["reason"].tolist()[0] == reason
    assert result.frame["pay"].notna().all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_date_must_be_immutable(packages, kind):
    train = table().assign(since=pd.date_range("2024-01-01", periods=80))

    with pytest.raises(SchemaError, match="cannot change the date or duration 'since'"):
        kind(score, DESIRED).fit(train)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_the_predictor_is_not_taken_for_a_failed_search(packages, kind):
    n_calls = []

    def broken(frame):
        n_calls.append(len(frame))
        # Training rows and people pass; the search does not.
        if len(n_calls) > 2:
            raise RuntimeError("out of service")
        return score(frame)

    method = kind(broken, DESIRED).fit(table())

    with pytest.raises(PredictorError):
        method.explain(table(5, seed=1))


def test_dice_gets_names_of_its_own_levels_as_words_and_a_seed(packages):
    method = DiCEPackage(score, DESIRED, immutable=["sex"], n_counterfactuals=3, random_state=7)
    method.fit(table())

    result = explain(method, table(10, seed=1))

    frame = method.dice_.data.dataframe
    assert list(frame) == ["c0", "c1", "c2", "c3", "outcome"]
    assert method.dice_.data.continuous_features == ["c1", "c2"]
    assert set(frame["c0"]) == {"0", "1"}
    assert frame["c2"].dtype == np.int64
    expected = {"features_to_vary": ["c1", "c2", "c3"], "random_seed": 7}
    assert FakeDice.calls
    assert all(call == expected for call in FakeDice.calls)
    assert np.bincount(result.owner).max() == 3


def test_what_dice_raises_is_a_reason(packages):
    people = table(4, seed=1).assign(sex="x")

    result = explain(DiCEPackage(score, DESIRED, immutable=["sex"]).fit(table()), people)

    reasons = set(result.missing["reason"])
    assert reasons == {"the package found no counterfactual (ValueError)"}


@pytest.mark.skipif(find_spec("nice") is None, reason="NICEx is not installed")
def test_the_published_nice_walks_as_ours():
    train, people = table(), table(30, seed=1)

    found = NICExPackage(score, DESIRED, immutable=["sex"]).fit(train).explain(people)

    ours = NICE(score, DESIRED, immutable=["sex"]).fit(train).explain(people)
    assert answers(found) == answers(ours)


@pytest.mark.skipif(find_spec("dice_ml") is None, reason="dice-ml is not installed")
@pytest.mark.filterwarnings("ignore")
def test_the_published_dice_gives_valid_rows():
    result = explain(DiCEPackage(score, DESIRED, immutable=["sex"]).fit(table()), table(3, seed=1))

    assert (score(result.frame) >= DESIRED[0]).all()
