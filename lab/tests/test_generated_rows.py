"""Generated rows beside real ones: how well they are told apart, and how columns go together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import ParameterError, SchemaError
from mcce_lab import metrics

FEW = pd.DataFrame({"x": [1, 2, 3], "l": ["a", "b", "c"]})


def rows(n_rows, seed, shift=0.0):
    """Two correlated numbers, one of them with gaps, and two levels that depend on them."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=n_rows)
    y = x + chance.normal(size=n_rows)
    return pd.DataFrame(
        {
            "x": x + shift,
            "y": np.where(chance.random(n_rows) < 0.1, np.nan, y),
            "l": np.where(y > 0, "up", "down"),
            "m": chance.choice(["p", "q", "r"], n_rows),
        }
    )


def discriminate(generated, training, **settings):
    settings = {"n_repeats": 2, "n_trees": 20} | settings
    return metrics.discriminator(generated, training, **settings)


def test_real_rows_cannot_be_distinguished_from_real_rows():
    result = discriminate(rows(1000, 0), rows(1000, 1), n_repeats=3)

    assert result.index.tolist() == [
        (evaluator, part)
        for evaluator in ("forest", "logistic")
        for part in ("generated", "control")
    ]
    assert result["accuracy"].between(0.46, 0.54).all()
    assert result["auc"].between(0.45, 0.55).all()
    # halves of 1000 generated rows; the control has only 500 real rows of each sort
    assert result["n_train"].tolist() == result["n_test"].tolist() == [500, 250, 500, 250]
    assert (result["accuracy_sd"] < 0.05).all()


def test_shifted_rows_are_distinguished_and_the_control_is_not():
    for holdout in (None, rows(500, 2)):
        result = discriminate(rows(500, 0, shift=3.0), rows(500, 1), holdout=holdout)

        generated, control = (result.xs(part, level="rows") for part in ("generated", "control"))
        assert (generated[["accuracy", "auc"]] > 0.9).to_numpy().all()
        assert control["accuracy"].between(0.44, 0.56).all()


def test_copies_of_training_rows_are_as_hard_to_tell_as_new_real_rows():
    training = rows(1000, 0)
    copied = training.sample(frac=1.0, random_state=1)

    result = discriminate(copied, training, holdout=rows(1000, 2))

    assert result.loc[("forest", "generated"), "accuracy"] == pytest.approx(0.5, abs=0.03)
    assert result.loc[("logistic", "generated"), "accuracy"] == pytest.approx(0.5, abs=0.03)


def test_a_holdout_replaces_the_training_rows_altogether():
    # x separates generated rows from training rows, but not from those of the holdout
    training, generated = rows(400, 0).assign(x=1.0), rows(400, 1).assign(x=2.0)
    training.loc[0, "x"] = 1.5

    result = discriminate(generated, training, holdout=rows(400, 2).assign(x=2.0))

    assert result.loc[("forest", "generated"), "accuracy"] == pytest.approx(0.5, abs=0.04)
    assert discriminate(generated, training).loc[("forest", "generated"), "accuracy"] > 0.97


def test_numbers_of_rows_learned_from_and_tested_on_are_equal_and_reported():
    result = discriminate(rows(300, 0), rows(1000, 1), holdout=rows(91, 2), n_trees=5)

    # 91 of each class, halved for training and test. Control: 45 of each, likewise halved.
    assert result["n_train"].tolist() == [45, 22, 45, 22]
    assert result["n_test"].tolist() == [46, 23, 46, 23]


def test_the_same_seed_gives_the_same_and_one_split_has_no_deviation():
    one, again = (discriminate(rows(60, 0), rows(60, 1), n_trees=5) for _ in range(2))
    single = discriminate(rows(60, 0), rows(60, 1), n_trees=5, n_repeats=1)

    pd.testing.assert_frame_equal(one, again)
    assert single[["accuracy_sd", "auc_sd"]].isna().to_numpy().all()


def test_correlations_by_hand():
    frame = pd.DataFrame(
        {"a": [1, 2, 3, 4], "b": [2, 4, 6, 9], "c": [5, 5, 5, 5], "l": ["n", "n", "y", "y"]}
    )

    result = metrics.correlations(frame, frame, method="pearson")

    # centred: a -1.5 -.5 .5 1.5 (5); b -3.25 -1.25 .75 3.75 (26.75); l -.5 -.5 .5 .5 (1)
    assert result.loc["a", "b"] == pytest.approx(11.5 / (5 * 26.75) ** 0.5)
    assert result.loc["a", "l"] == pytest.approx(2 / 5**0.5)
    assert result["c"].tolist() == [0, 0, 1, 0]
    ratio = metrics.correlations(frame, frame).loc["a", "l"]
    # means 1.5 and 3.5 around 2.5: 4 * 1 of 5 lies between the levels
    assert ratio == pytest.approx((4 / 5) ** 0.5)


def test_the_difference_of_correlations_by_hand():
    real = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
    other = pd.DataFrame({"a": [0, 0, 1, 1], "b": [1, 1, 0, 0], "c": [0, 1, 0, 1]})

    result = metrics.correlation_difference(other, real, method="pearson", n_bootstrap=2)

    # a and b: from 1 to -1; a and c, b and c: 0 and 0
    assert result.loc["generated"].tolist() == pytest.approx([2, 2 / 3, (4 / 3) ** 0.5])


def test_fresh_rows_are_within_the_noise():
    real, fresh = rows(2000, 0), rows(2000, 1)

    result = metrics.correlation_difference(fresh, real)

    # Fresh rows differ by the chance of both samples, the draws by that of one.
    assert (result.loc["generated"] < 3 * result.loc["noise_q95"]).all()
    assert (result.loc["noise"] <= result.loc["noise_q95"]).all()
    pd.testing.assert_frame_equal(result, metrics.correlation_difference(fresh, real))


def test_generated_rows_may_hold_levels_and_gaps_that_training_does_not_have():
    training = rows(100, 0).assign(y=lambda frame: frame["x"])
    generated = rows(100, 1)
    generated.loc[:9, "m"] = "new"
    generated.loc[10:19, "l"] = None

    assert discriminate(generated, training, n_trees=5).notna().to_numpy().all()
    assert metrics.correlation_difference(generated, training).notna().to_numpy().all()


WRONG = {
    "at least 4 generated": lambda: metrics.discriminator(FEW.head(1), FEW),
    "n_trees must be": lambda: metrics.discriminator(FEW, FEW, n_trees=0),
    "has 3 levels": lambda: metrics.correlations(FEW, FEW, method="pearson"),
    "method must be": lambda: metrics.correlations(FEW, FEW, method="rank"),
}


def test_what_cannot_be_measured_is_an_error_that_says_why():
    for says, call in WRONG.items():
        with pytest.raises((ParameterError, SchemaError), match=says):
            call()
