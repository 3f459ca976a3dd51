"""Measures of generated rows: discriminator, correlations, copies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from brute_force import same
from mcce import ParameterError, SchemaError, metrics
from mcce.metrics import Evaluator
from mcce.metrics.evaluator import read_rows
from tables import cases


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
    settings = {"n_repeats": 2, "n_trees": 50} | settings
    return metrics.discriminator(generated, training, **settings)


def test_real_rows_cannot_be_distinguished_from_real_rows():
    result = discriminate(rows(2000, 0), rows(2000, 1), n_repeats=3)

    assert result.index.tolist() == [
        (evaluator, part)
        for evaluator in ("forest", "logistic")
        for part in ("generated", "control")
    ]
    assert result["accuracy"].between(0.47, 0.53).all()
    assert result["auc"].between(0.46, 0.54).all()
    # halves of 2000 generated rows; the control has only 1000 real rows of each sort
    assert result["n_train"].tolist() == result["n_test"].tolist() == [1000, 500, 1000, 500]
    assert (result["accuracy_sd"] < 0.03).all()


def test_shifted_rows_are_distinguished_and_the_control_is_not():
    for holdout in (None, rows(1000, 2)):
        result = discriminate(rows(1000, 0, shift=3.0), rows(1000, 1), holdout=holdout)

        generated, control = (result.xs(part, level="rows") for part in ("generated", "control"))
        assert (generated[["accuracy", "auc"]] > 0.9).to_numpy().all()
        assert control["accuracy"].between(0.44, 0.56).all()


def test_copies_of_training_rows_are_as_hard_to_tell_as_new_real_rows():
    training = rows(1000, 0)
    copied = training.sample(frac=1.0, random_state=1)

    result = discriminate(copied, training, holdout=rows(1000, 2))

    assert result.loc[("forest", "generated"), "accuracy"] == pytest.approx(0.5, abs=0.03)
    assert result.loc[("logistic", "generated"), "accuracy"] == pytest.approx(0.5, abs=0.03)


def test_without_a_holdout_copies_are_mistaken_for_the_rows_they_copy():
    training = rows(1000, 0)
    copied = training.sample(frac=1.0, random_state=1)

    assert discriminate(copied, training).loc[("forest", "generated"), "accuracy"] < 0.45


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


def test_pearson_equals_that_of_numpy_with_its_sign():
    frame = rows(500, 0)[["x", "l"]].assign(z=lambda f: -(f["x"] ** 3))

    result = metrics.correlations(frame, frame, method="pearson")

    plain = np.corrcoef([frame["x"], frame["l"] == "up", frame["z"]])
    np.testing.assert_allclose(result, plain, atol=1e-12)
    assert result.loc["x", "z"] < 0


def test_the_difference_of_correlations_by_hand():
    real = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]})
    other = pd.DataFrame({"a": [0, 0, 1, 1], "b": [1, 1, 0, 0], "c": [0, 1, 0, 1]})

    result = metrics.correlation_difference(other, real, method="pearson", n_bootstrap=2)

    # a and b: from 1 to -1; a and c, b and c: 0 and 0
    assert result.loc["generated"].tolist() == pytest.approx([2, 2 / 3, (4 / 3) ** 0.5])


@pytest.mark.parametrize("method", ["association", "pearson"])
def test_shuffled_columns_lose_their_correlations(method):
    real = rows(3000, 0).drop(columns="m")
    shuffled = real.apply(lambda c: c.sample(frac=1, random_state=len(c.name)).to_numpy())
    shuffled["y"] = np.roll(real["y"], 7)
    shuffled["l"] = np.roll(real["l"], 1500)

    result = metrics.correlation_difference(shuffled, real, method=method, n_bootstrap=5)

    matrix = metrics.correlations(real, real, method=method).to_numpy()
    off = np.abs(matrix[~np.eye(3, dtype=bool)])
    assert result.loc["generated", "mean"] == pytest.approx(off.mean(), abs=0.04)
    assert (result.loc["noise_q95"] < 0.1).all()


def test_fresh_rows_are_within_the_noise():
    real, fresh = rows(2000, 0), rows(2000, 1)

    result = metrics.correlation_difference(fresh, real)

    # Fresh rows differ by the chance of both samples, the draws by that of one.
    assert (result.loc["generated"] < 3 * result.loc["noise_q95"]).all()
    assert (result.loc["noise"] <= result.loc["noise_q95"]).all()
    pd.testing.assert_frame_equal(result, metrics.correlation_difference(fresh, real))


@given(cases())
def test_copies_equal_those_found_row_by_row(case):
    people = pd.concat([case.people, case.train.tail(2)])
    people = people[~people.isna().all(axis=1)]
    if people.empty:
        return
    table = [list(row) for row in case.train.astype(object).itertuples(index=False)]
    expected = [
        any(all(map(same, row, other)) for other in table)
        for row in people.astype(object).itertuples(index=False)
    ]

    assert metrics.copies(people, case.train).tolist() == expected


def test_value_copies_by_hand():
    training = pd.DataFrame({"x": [1, 1, 2, 3], "y": [5.0, 6.0, 6.0, np.nan], "l": ["a"] * 4})
    generated = pd.DataFrame({"x": [1, 2, 9], "y": [5.0, np.nan, 6.0], "l": ["a"] * 3})

    # x: 1 is held twice, 2 once, 9 never; y: 5 once, a missing cell is no value, 6 twice
    assert metrics.value_copies(generated, training) == 2 / 5
    # x is the person's own: 5 once, 6 twice
    assert metrics.value_copies(generated, Evaluator.fit(training, immutable=["x"])) == 1 / 2
    # changed are 2 in x and 6 in y only
    people = pd.DataFrame({"x": [1, 1, 9], "y": [5.0, np.nan, 5.0], "l": ["a"] * 3})
    assert metrics.value_copies(generated, training, factuals=people) == 1 / 2
    assert np.isnan(metrics.value_copies(people, training, factuals=people))


def test_the_closest_record_by_hand():
    training = pd.DataFrame({"x": [0.0, 10.0], "l": ["a", "b"]})
    generated = pd.DataFrame({"x": [0.0, 2.0, 4.0, 9.0], "l": ["a", "a", "b", "b"]})

    result = metrics.closest_record(generated, training)

    # 0; 2 of 10; 6 of 10 and the same level; 1 of 10
    assert result["median"] == pytest.approx((0.1 + 0.2) / 2)
    assert result["q05"] == pytest.approx(0.15 * 0.1)
    assert result["zero"] == 0.25
    assert result.index.tolist() == ["median", "q05", "zero"]


def test_the_holdout_share_by_hand():
    training, holdout = pd.DataFrame({"x": [0.0, 10.0]}), pd.DataFrame({"x": [5.0, 6.0]})
    generated = pd.DataFrame({"x": [1.0, 2.0, 2.5, 5.0]})

    result = metrics.closest_record(generated, training, holdout=holdout)

    # nearer to 0, nearer to 0, as near to 0 as to 5, nearer to 5
    assert result["holdout_share"] == (1 + 1 + 0.5 + 0) / 4
    z, share, n = 1.959964, 0.625, 4
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    assert result["low"] == pytest.approx(centre - half)
    assert result["high"] == pytest.approx(centre + half)


def test_copies_lie_closer_to_training_than_to_a_holdout_and_fresh_rows_do_not():
    training, holdout = rows(600, 0), rows(900, 1)

    copied = metrics.closest_record(training.head(200), training, holdout=holdout)
    fresh = metrics.closest_record(rows(400, 2), training, holdout=holdout)

    assert copied["holdout_share"] > 0.97
    assert copied["zero"] == 1
    assert fresh["low"] < 0.5 < fresh["high"]
    assert fresh["zero"] == 0


def test_generated_rows_may_hold_levels_and_gaps_that_training_does_not_have():
    training = rows(100, 0).assign(y=lambda frame: frame["x"])
    generated = rows(100, 1)
    generated.loc[:9, "m"] = "new"
    generated.loc[10:19, "l"] = None
    evaluator = Evaluator.fit(training)

    assert metrics.copies(generated, evaluator).sum() == 0
    assert metrics.contradictory_pairs(generated, evaluator).notna().all()
    assert metrics.outlier_factor(generated, evaluator).notna().all()
    assert metrics.isolation(generated, evaluator).notna().all()
    assert discriminate(generated, evaluator, n_trees=5).notna().to_numpy().all()
    assert metrics.correlation_difference(generated, evaluator).notna().to_numpy().all()
    assert metrics.closest_record(generated, evaluator, holdout=generated)["holdout_share"] == 0
    assert len(read_rows(generated, evaluator)[1]) == 100


FEW = pd.DataFrame({"x": [1, 2, 3], "l": ["a", "b", "c"]})
EMPTY = FEW.head(0)
GONE = pd.DataFrame({"x": [None, None], "l": [None, None]}, dtype=object)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: metrics.discriminator(FEW.head(1), FEW), SchemaError, "at least 4 generated"),
        (lambda: metrics.discriminator(FEW, FEW, n_trees=0), ParameterError, "n_trees must be"),
        (lambda: metrics.discriminator(FEW, FEW, n_repeats=0), ParameterError, "n_repeats must be"),
        (lambda: metrics.discriminator(EMPTY, FEW), SchemaError, "at least one row and column"),
        (lambda: metrics.discriminator(GONE, FEW), SchemaError, "generated has no row that holds"),
        (
            lambda: metrics.closest_record(FEW, FEW, holdout=EMPTY),
            SchemaError,
            "at least one row and column",
        ),
        (lambda: metrics.correlations(FEW, FEW, method="pearson"), ParameterError, "has 3 levels"),
        (lambda: metrics.correlations(FEW, FEW, method="rank"), ParameterError, "method must be"),
        (lambda: metrics.correlation_difference(FEW[["x"]], FEW[["x"]]), SchemaError, "two feat"),
        (lambda: metrics.correlation_difference(FEW, FEW, n_bootstrap=0), ParameterError, "n_boot"),
        (lambda: metrics.value_copies(FEW[["l"]], FEW[["l"]]), SchemaError, "numeric feature"),
        (lambda: metrics.closest_record(FEW[["x"]], FEW), SchemaError, r"missing \['l'\]"),
    ],
)
def test_what_cannot_be_measured_is_an_error_that_says_why(call, error, says):
    with pytest.raises(error, match=says):
        call()
