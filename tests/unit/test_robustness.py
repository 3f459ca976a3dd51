"""Robustness of counterfactuals: numbers checked by hand, kinds of predictors, errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from given_answers import answered, fitted, grid, total
from mcce import MCCE, Interval, McceWarning, NotFittedError, ParameterError, SchemaError
from mcce.constraints import derived
from mcce.protocols import Capabilities, Draws

COLUMNS = ["valid", "margin", "stability", "partial", "minimal", "n_evaluated"]


def test_numbers_that_can_be_checked_by_hand():
    explainer = fitted()
    result = answered(explainer, {"a": 5, "b": 5}, [[10, 10], [20, 20], [15, 5], [5, 16]])

    measured = explainer.robustness(result, scale=0.05)

    assert measured.columns.tolist() == COLUMNS
    assert measured.index.equals(result.frame.index)
    assert measured["valid"].all()
    assert measured["margin"].tolist() == [0, 20, 0, 1]
    # (9, 9), (9, 11), (11, 9), (11, 11); (19, 19) alone; 14 or 16; 15 or 17
    assert measured["stability"].tolist() == [0.75, 1.0, 0.5, 1.0]
    # (10, 5) and (5, 10); (20, 5) and (5, 20); nothing lies between none and one change
    assert measured["partial"].tolist()[:2] == [0.0, 1.0]
    assert measured["partial"].isna().tolist() == [False, False, True, True]
    assert measured["minimal"].tolist() == [True, False, True, True]
    assert measured["n_evaluated"].tolist() == [1 + 4 + 2, 1 + 1 + 2, 1 + 2, 1 + 2]


def test_of_many_changes_each_alone_and_all_but_one_are_tried():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.choice(["no", "yes"], (60, 10)), columns=list("abcdefghij"))
    explainer = fitted(lambda f: (f == "yes").sum(axis=1), (6, 10), train)
    person = dict.fromkeys(train.columns, "no")

    nine_and_ten = answered(explainer, person, [["yes"] * 9 + ["no"], ["yes"] * 10])
    eight = answered(explainer, person, [["yes"] * 8 + ["no"] * 2])

    measured = explainer.robustness(nine_and_ten)
    assert measured["partial"].tolist() == [0.5, 0.5]
    assert measured["n_evaluated"].tolist() == [1 + 18, 1 + 20]
    measured = explainer.robustness(eight)
    assert measured["n_evaluated"].tolist() == [1 + 254]
    # of eight changes, 28 ways to make six of them and 8 to make seven
    assert measured["partial"].tolist() == [36 / 254]
    assert not measured["minimal"].any()


def test_categories_do_not_move():
    train = pd.DataFrame({"a": ["x", "y"] * 10, "b": ["x", "x", "y", "y"] * 5})
    explainer = fitted(lambda f: (f == "y").sum(axis=1), (1, 2), train)

    measured = explainer.robustness(explainer.explain(train.head(1)))

    assert measured["stability"].isna().all()
    assert measured["n_evaluated"].tolist() == [1]


def test_a_missing_value_does_not_move_and_can_be_undone():
    train = pd.DataFrame({"a": [*range(20), None], "b": [*range(20), 0]})
    explainer = fitted(lambda f: f["b"] + f["a"].isna() * 1.0, (10, 99), train)
    result = answered(explainer, {"a": 3.0, "b": 2}, [[np.nan, 10]])
    back = answered(explainer, {"a": np.nan, "b": 2}, [[4.0, 10]])

    measured = explainer.robustness(result, scale=0.06)
    measured_back = explainer.robustness(back, scale=0.06)

    # b may be 9 or 11, and a stays missing
    assert measured[["margin", "stability", "partial"]].to_numpy().tolist() == [[1, 1.0, 0.5]]
    # (3 or 5, 9 or 11); then b alone with a still missing
    assert measured_back[["margin", "stability", "partial"]].to_numpy().tolist() == [[0, 0.5, 0.5]]


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_dates_move_whatever_their_unit(unit):
    train = pd.DataFrame({"since": pd.date_range("2024-01-01", periods=40, unit="ns")})
    days = lambda frame: (frame["since"] - pd.Timestamp("2024-01-01")).dt.days
    explainer = fitted(days, (20, 99), train)

    result = explainer.explain(train.astype(f"datetime64[{unit}]").head(1))
    measured = explainer.robustness(answer_of(result, pd.Timestamp("2024-01-22")), scale=2.5 / 39)

    # 21 days, so that 19 is too few of 19, 20, 22 and 23
    assert measured["stability"].tolist() == [0.75]


def answer_of(result, moment):
    """The result with another date for an answer."""
    frame = result.frame.assign(since=pd.Series([moment] * len(result.frame)).to_numpy())
    return replace(result, frame=frame.astype(result.frame.dtypes))


def test_randomness_depends_on_the_seed_alone():
    explainer = fitted(desired=(22, 40))
    result = answered(explainer, {"a": 5, "b": 5}, [[a, b] for a in (11, 12, 13) for b in (11, 12)])

    same_seed = [explainer.robustness(result, scale=0.3, random_state=s) for s in (None, 0)]
    other = explainer.robustness(result, scale=0.3, random_state=1)

    pd.testing.assert_frame_equal(*same_seed)
    assert (same_seed[0]["stability"] != other["stability"]).any()
    assert same_seed[0]["stability"].tolist() == [0.58, 0.56, 0.65, 0.74, 0.66, 0.77]
    # about what all 12 * 12 moves would give
    everything = explainer.robustness(result, n_perturbations=1000, scale=0.3)
    assert (same_seed[0]["stability"] - everything["stability"]).abs().max() < 0.2


def test_a_regressor_and_an_interval_with_two_ends():
    model = LinearRegression().fit(grid(), total(grid()))
    explainer = fitted(model, (19.5, 30.25))
    result = answered(explainer, {"a": 5, "b": 5}, [[15, 15], [5, 15]])

    assert explainer.robustness(result)["margin"].tolist() == pytest.approx([0.25, 0.5])


def test_an_end_that_a_probability_cannot_pass_is_no_end():
    model = LogisticRegression().fit(grid(), total(grid()) > 20)
    explainer = fitted(model, None)
    result = answered(explainer, {"a": 5, "b": 5}, [[20, 20]])

    measured = explainer.robustness(result)

    score = model.predict_proba(result.frame)[0, 1]
    assert score > 0.9
    assert measured["margin"].item() == score - 0.5


def test_the_margin_of_labels_is_one_of_probabilities():
    target = np.where(total(grid()) < 15, "low", np.where(total(grid()) < 25, "mid", "high"))
    model = LogisticRegression(max_iter=5000).fit(grid(), target)
    explainer = fitted(model, ["mid", "high"])
    result = answered(explainer, {"a": 2, "b": 2}, [[10, 10], [20, 20]])

    measured = explainer.robustness(result)

    high, low, mid = model.predict_proba(result.frame).T
    assert measured["margin"].tolist() == (np.maximum(mid, high) - low).tolist()


def test_labels_without_probabilities_have_no_margin():
    explainer = fitted(lambda f: np.where(total(f) >= 20, "yes", "no"), "yes")

    measured = explainer.robustness(answered(explainer, {"a": 5, "b": 5}, [[10, 10]]), scale=0.05)

    assert measured["margin"].isna().all()
    assert measured["stability"].tolist() == [0.75]


class Halves:
    """A generator that invents numbers half-way between those of training."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        codes = np.tile(request.draws % 10, (2, request.keys.size, 1)).astype(np.int32)
        return Draws(codes, [pd.Series(np.arange(10) + 10.5)] * 2)


def test_invented_values_move_to_training_values():
    explainer = fitted(train=grid().astype(float), generator=Halves())

    result = explainer.explain(pd.DataFrame({"a": [5.5, 10.5], "b": [5.5, 3.25]}))
    measured = explainer.robustness(result, scale=0.05)

    assert result.frame.to_numpy().tolist() == [[10.5, 10.5], [10.5, 10.5]]
    # 10 or 11 each, and the second keeps its own a
    assert measured["stability"].tolist() == [1.0, 1.0]
    assert measured["n_evaluated"].tolist() == [1 + 4 + 2, 1 + 2]


def test_without_counterfactuals_no_row_is_scored():
    scored = []

    def predictor(frame):
        scored.append(len(frame))
        return total(frame)

    explainer = fitted(predictor)
    result = explainer.explain(grid().tail(2))
    scored.clear()

    measured = explainer.robustness(result)

    assert not scored
    assert measured.columns.tolist() == COLUMNS
    assert measured.index.names == ["factual", "rank"]
    assert measured.dtypes.astype(str).tolist() == ["bool", *["float64"] * 3, "bool", "int64"]


def test_counterfactuals_that_no_longer_hold_cause_a_warning():
    result = answered(fitted(), {"a": 5, "b": 5}, [[10, 10], [20, 20]])
    stricter = fitted(desired=(30, 50))

    with pytest.warns(McceWarning, match="1 of 2 counterfactuals are not valid by this explainer"):
        measured = stricter.robustness(result)

    assert measured["valid"].tolist() == [False, True]
    assert measured["margin"].tolist() == [-10, 10]


def test_columns_derived_by_further_constraints_follow():
    months, price = np.arange(400) % 60 + 1, np.arange(400) * 7 % 5 * 10 + 10
    train = pd.DataFrame({"months": months, "price": price, "total": months * price})
    train.loc[3, "total"] += 1  # else the relation would be found
    rule = derived("total", "months * price")
    settings = {"search": "balanced", "n_samples": None, "train": train}
    explainer = fitted(lambda frame: frame["total"], Interval(900, 3_000), **settings)
    bound = fitted(explainer.predictor, explainer.desired, constraints=[rule], **settings)
    result = explainer.explain(train.iloc[[5]], constraints=[rule])

    measured = explainer.robustness(result, constraints=[rule])

    pd.testing.assert_frame_equal(measured, bound.robustness(result))
    assert measured["n_evaluated"].lt(explainer.robustness(result)["n_evaluated"]).all()


def test_a_setting_that_cannot_work_is_an_error_that_names_it():
    explainer = fitted()
    result = explainer.explain(grid().head(1))

    for settings, says in [
        ({"n_perturbations": 0}, "n_perturbations must be a whole number from 1 to 100000, got 0"),
        ({"n_perturbations": 10**6}, "got 1000000"),
        ({"scale": 0}, "scale must be a number above 0 and up to 1, got 0"),
        ({"scale": np.nan}, "got nan"),
        ({"random_state": -1}, "random_state must be a whole number from 0"),
    ]:
        with pytest.raises(ParameterError, match=says):
            explainer.robustness(result, **settings)


def test_a_result_of_another_explainer_is_an_error():
    result = fitted().explain(grid().head(1))

    renamed = grid().rename(columns={"a": "c"})
    other = fitted(lambda f: f["b"], train=renamed)
    with pytest.raises(SchemaError, match=r"has the columns \['a', 'b'\].*fitted on \['c', 'b'\]"):
        other.robustness(result)
    changing_a = answered(fitted(), {"a": 5, "b": 5}, [[15, 5]])
    with pytest.raises(SchemaError, match=r"changes \['a'\], immutable for this explainer"):
        fitted(immutable=["a"]).robustness(changing_a)
    with pytest.raises(ParameterError, match=r"what explain returned.*got DataFrame"):
        fitted().robustness(result.frame)


def test_an_explainer_must_be_fitted_and_unchanged():
    explainer = fitted()
    result = explainer.explain(grid().head(1))

    with pytest.raises(NotFittedError, match="not fitted yet"):
        MCCE(total, (20, 40)).robustness(result)
    with pytest.raises(NotFittedError, match="desired was changed after fit"):
        explainer.set_params(desired=(1, 2)).robustness(result)


def test_the_margin_of_an_interval_knows_infinite_ends_and_scores():
    scores = np.array([-np.inf, -1, 0, 6, 10, np.inf])

    for interval, margins in [
        (Interval(0, 10), [-np.inf, -1, 0, 4, 0, -np.inf]),
        (Interval(-np.inf, 10), [np.inf, 11, 10, 4, 0, -np.inf]),
        (Interval(0, np.inf), [-np.inf, -1, 0, 6, 10, np.inf]),
        (Interval(-np.inf, np.inf), [np.inf] * 6),
    ]:
        assert interval.margin(scores).tolist() == margins
