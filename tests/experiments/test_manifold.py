"""Generated rows: the right mix of people, and classifiers that hardly tell them from real ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.datasets import load
from mcce.experiments.manifold import AUTHORS_CODE, PUBLISHED, generate_like
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


@pytest.mark.slow
def test_generated_german_rows_can_hardly_be_distinguished_from_real_ones():
    german = load("german", form="paper")
    half, unseen = german.features.iloc[::2], german.features.iloc[1::2]
    decision = (german.target == german.desired).to_numpy()[::2]

    generated = generate_like(half, decision, german.immutable, seed=0)
    accuracy = discriminator(generated, half, holdout=unseen, n_repeats=5, n_trees=50)["accuracy"]

    assert accuracy["forest", "control"] == pytest.approx(0.5, abs=0.06)
    assert accuracy["forest", "generated"] < AUTHORS_CODE["german"] / 100


@pytest.mark.slow
def test_the_experiment_leaves_its_tables_and_figures(tmp_path, bench_cache):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "manifold", "--quick", "--seeds", "2", "--out", str(tmp_path)]) == 0

    table = pd.read_csv(tmp_path / "manifold-discriminator.csv")
    assert set(table["protocol"]) == {"clean split", "same rows", "same rows, all desired"}
    assert set(table["classifier"]) == {"forest", "logistic"}
    numbers = table.filter(regex="accuracy$|auc$")
    assert numbers.gt(35).all(axis=None)
    assert numbers.lt(70).all(axis=None)
    agreement = pd.read_csv(tmp_path / "manifold-agreement.csv")
    assert agreement.loc[0, "mean_difference"] < 2 * agreement.loc[0, "chance"]
    page = (tmp_path / "manifold.md").read_text()
    assert f"{PUBLISHED['german']} (german). They are not set next to ours" in page
    assert f"the clean split, the authors' code has {AUTHORS_CODE['german']}" in page
    assert not (tmp_path / "manifold-published.csv").exists()
    for name in ("histograms", "correlations"):
        assert (tmp_path / f"manifold-{name}.png").stat().st_size > 10_000
