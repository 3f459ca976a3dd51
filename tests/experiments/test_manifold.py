"""Generated rows: the right mix of people, and classifiers that hardly tell them from real ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.datasets import load
from mcce.experiments import published
from mcce.experiments.case import Case
from mcce.experiments.manifold import PROTOCOLS, generate_like, remarks
from mcce.metrics import discriminator


@pytest.fixture
def rows():
    chance = np.random.default_rng(0)
    sex = chance.choice(["f", "m"], 400)
    salary = chance.integers(20, 90, 400) + 20 * (sex == "m")
    return pd.DataFrame({"sex": pd.Categorical(sex), "salary": salary, "rent": salary // 3})


def test_generated_rows_have_the_immutable_values_and_decisions_of_the_real_ones(rows):
    decision = (rows["salary"] > 60).to_numpy()

    generated = generate_like(rows, decision, ["sex"], seed=0)

    assert generated["sex"].tolist() == rows["sex"].tolist()
    assert generated.dtypes.equals(rows.dtypes)
    assert ((generated["salary"] > 60) == decision).mean() > 0.99
    assert generated["salary"].nunique() > 40, "rows with equal immutable values differ"


def test_rows_can_be_generated_for_the_desired_decision_alone(rows):
    decision = (rows["salary"] > 60).to_numpy()

    generated = generate_like(rows, decision, ["sex"], seed=0, wanted=np.ones(400, dtype=bool))

    assert (generated["salary"] > 60).all()


def test_generated_rows_are_the_same_for_the_same_seed_and_others_for_another(rows):
    decision = (rows["salary"] > 60).to_numpy()

    first, again, other = (generate_like(rows, decision, ["sex"], seed=seed) for seed in (0, 0, 1))

    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


@pytest.fixture
def case(rows):
    return Case("bank", rows, rows.head(), ["sex"], lambda frame: frame["salary"].to_numpy() / 120)


@pytest.mark.parametrize("protocol", ["other half", "other half, copies"])
def test_no_real_row_of_the_test_was_seen_by_the_generator(protocol, rows, case):
    generated, training, holdout = PROTOCOLS[protocol](rows, case, 0)

    assert len(generated) == len(training) == len(holdout) == 200
    assert set(training.index).isdisjoint(holdout.index)
    assert set(training.index) | set(holdout.index) == set(rows.index)
    assert set(generated["salary"]) <= set(training["salary"]), "values of the training half only"


def test_generated_rows_and_copies_are_tested_against_the_same_rows(rows, case):
    made, copied = (PROTOCOLS[name](rows, case, 3) for name in ("other half", "other half, copies"))

    pd.testing.assert_frame_equal(made.holdout, copied.holdout)
    pd.testing.assert_frame_equal(copied.generated, copied.training)
    assert not made.generated.reset_index(drop=True).equals(copied.generated.reset_index(drop=True))


def test_the_same_rows_are_those_of_the_trees(rows, case):
    for protocol in ("same rows", "same rows, all desired"):
        samples = PROTOCOLS[protocol](rows, case, 0)
        assert samples.training is rows
        assert samples.holdout is None
        assert len(samples.generated) == len(rows)


def accuracies(**changes):
    """A table with one row per protocol, that of the other half changed."""
    lines = []
    for place, protocol in enumerate(PROTOCOLS):
        row = {"dataset": "adult", "protocol": protocol, "classifier": "forest"}
        row |= {"accuracy": 52.3 - place, "accuracy_low": 51.2 - place}
        lines.append(row | {"accuracy_high": 53.4 - place})
    table = pd.DataFrame([lines[0] | changes, *lines[1:]])
    return {"discriminator": table, "paper": published.DISCRIMINATOR.table.head(1)}


def test_remarks_state_what_the_table_holds():
    first, text = remarks(accuracies())[0], " ".join(remarks(accuracies()))

    assert "52.3 [51.2, 53.4] (adult)" in first
    assert "62.8 (adult)" in text
    assert "they have 51.3 [50.2, 52.4] (adult)" in text, "the copies"
    assert "60.1 [51.2, 53.4] (adult)" in remarks(accuracies(accuracy=60.1))[0]


def test_rows_are_told_from_real_ones_if_the_interval_lies_above_one_half():
    assert "better than by chance in adult" in remarks(accuracies())[0]
    assert "no better than by chance" in remarks(accuracies(accuracy_low=49.8))[0]


@pytest.mark.slow
def test_generated_german_rows_can_hardly_be_distinguished_from_real_ones():
    german = load("german", form="paper")
    half, unseen = german.features.iloc[::2], german.features.iloc[1::2]
    decision = (german.target == german.desired).to_numpy()[::2]

    generated = generate_like(half, decision, german.immutable, seed=0)
    accuracy = discriminator(generated, half, holdout=unseen, n_repeats=5, n_trees=50)["accuracy"]

    assert accuracy["forest", "control"] == pytest.approx(0.5, abs=0.06)
    assert accuracy["forest", "generated"] < 0.62


@pytest.mark.slow
def test_the_experiment_leaves_its_tables_and_figures(tmp_path, bench_cache):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "manifold", "--quick", "--seeds", "2", "--out", str(tmp_path)]) == 0

    table = pd.read_csv(tmp_path / "manifold-discriminator.csv")
    assert list(dict.fromkeys(table["protocol"])) == list(PROTOCOLS)
    assert set(table["classifier"]) == {"forest", "logistic"}
    numbers = table.filter(regex="accuracy$|auc$")
    assert numbers.gt(35).all(axis=None)
    assert numbers.lt(70).all(axis=None)
    agreement = pd.read_csv(tmp_path / "manifold-agreement.csv")
    assert agreement.loc[0, "mean_difference"] < 2 * agreement.loc[0, "chance"]
    page = (tmp_path / "manifold.md").read_text()
    assert "55.7 (german)" in page
    assert not (tmp_path / "manifold-published.csv").exists(), "measured in another way"
    for name in ("histograms", "correlations"):
        assert (tmp_path / f"manifold-{name}.png").stat().st_size > 10_000
