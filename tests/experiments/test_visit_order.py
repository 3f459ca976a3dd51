"""Visit orders: what is compared, and a likelihood that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import Schema, TreeChain
from mcce.cli import main
from mcce.experiments.visit_order import (
    MEASURES,
    Halves,
    bin_numbers,
    heldout_log_likelihood,
    log_likelihood,
)


def test_likelihoods_are_those_of_leaves_with_one_more_row():
    train = pd.DataFrame({"a": pd.Categorical(["x", "x", "x", "y"])})
    rows = Schema.learn_rows(train)
    decision = np.ones(4, dtype=bool)
    chain = TreeChain(decisions=(False, True)).fit(rows, decision)
    new = rows.schema.encode(pd.DataFrame({"a": pd.Categorical(["x", "y"])}))

    likelihoods = log_likelihood(chain, rows, new, decision[:2])

    # One leaf of 4 rows; the fifth is spread as 3 to 1, with half a row of 4.5 for the unknown.
    assert np.exp(likelihoods) == pytest.approx([(3 + 3 / 4.5) / 5, (1 + 1 / 4.5) / 5])


def test_a_level_that_training_does_not_have_is_improbable_but_possible():
    train = pd.DataFrame({"a": ["x"] * 5 + ["y"] * 5})
    rows = Schema.learn_rows(train)
    decision = np.ones(10, dtype=bool)
    chain = TreeChain(decisions=(False, True)).fit(rows, decision)

    likelihoods = log_likelihood(
        chain, rows, rows.schema.encode(pd.DataFrame({"a": ["z"]})), decision[:1]
    )

    assert np.exp(likelihoods) == pytest.approx([0.5 / 10.5 / 11])


def test_the_likelihood_of_a_chain_adds_up_to_one_but_for_the_unknown():
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"a": chance.integers(0, 3, 60), "b": chance.integers(0, 2, 60)})
    rows = Schema.learn_rows(train)
    decision = chance.random(60) < 0.5
    chain = TreeChain(decisions=(False, True)).fit(rows, decision)
    grid = pd.DataFrame([(a, b) for a in range(3) for b in range(2)], columns=["a", "b"])

    for desired in (True, False):
        likelihoods = log_likelihood(chain, rows, rows.schema.encode(grid), np.full(6, desired))
        assert 0.99 < np.exp(likelihoods).sum() < 1


def test_numbers_become_tenths_of_training_and_immutable_ones_stay():
    train = pd.DataFrame({"a": range(100), "age": range(100)})

    seen, new = bin_numbers(train, pd.DataFrame({"a": [-3, 55, 400], "age": [1, 2, 3]}), ["age"])

    assert sorted(seen["a"].unique()) == list(range(10))
    assert new["a"].tolist() == [0, 5, 9]
    assert new["age"].tolist() == [1, 2, 3]


def test_a_better_model_of_the_rows_has_a_higher_likelihood():
    chance = np.random.default_rng(0)
    a = chance.integers(0, 5, 2000)
    tied = pd.DataFrame({"a": a, "b": a})
    loose = tied.assign(b=chance.permutation(a))
    decision = chance.random(2000) < 0.5

    likelihoods = []
    for frame in (tied, loose):
        halves = Halves(frame[:1000], frame[1000:], decision[:1000], decision[1000:], [])
        likelihoods.append(heldout_log_likelihood(halves, "data"))

    # The second feature follows from the first, or is one of five.
    assert likelihoods[0] - likelihoods[1] == pytest.approx(np.log(5), abs=0.15)


@pytest.mark.slow
def test_the_experiment_compares_data_correlation_and_random_orders(tmp_path, bench_cache):
    pytest.importorskip("matplotlib")

    assert (
        main(["experiments", "visit-order", "--quick", "--seeds", "2", "--out", str(tmp_path)]) == 0
    )

    orders = pd.read_csv(tmp_path / "visit-order-orders.csv")
    assert orders["order"].tolist() == [
        *("data", "correlation", "authors' code", "random 0", "random 1")
    ]
    assert set(MEASURES) <= set(orders)
    assert orders["coverage"].eq(1).all()
    assert orders["log_likelihood"].between(-20, -14).all()
    summary = pd.read_csv(tmp_path / "visit-order-summary.csv")
    assert summary["measure"].tolist() == list(MEASURES)
    assert (tmp_path / "visit-order-orders.png").stat().st_size > 5000
