"""Ranges of counterfactuals: values checked by hand, constraints, kinds of frames, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from bills import bills, value
from given_answers import AT_LEAST_20, answered, fitted, grid, total
from mcce import MCCE, McceWarning, NotFittedError, ParameterError, SchemaError
from mcce import constraints as c
from mcce_lab.baselines import NICE

COLUMNS = [
    *("factual", "rank", "feature", "kind", "value", "low", "high", "low_open", "high_open"),
    *("others", "n_training", "n_tried"),
    *("box_low", "box_high", "box_tried", "box_held", "box_share", "box_accepted"),
]


def shown(ranges, *columns):
    return ranges[list(columns)].astype(object).to_numpy().tolist()


def test_ends_that_can_be_checked_by_hand():
    explainer = fitted(desired=(20, 26))
    result = answered(explainer, {"a": 5, "b": 5}, [[5, 17], [18, 5]])

    ranges = explainer.ranges(result)

    assert ranges.columns.tolist() == COLUMNS
    assert shown(ranges, "factual", "rank", "feature", "kind", "value") == [
        [0, 1, "b", "numeric", 17],
        [0, 2, "a", "numeric", 18],
    ]
    # 5 + b from 20 to 26; training has 20 at most
    assert shown(ranges, "low", "high", "low_open", "high_open", "n_training") == [
        [15, 20, False, True, 6 * 21],
        [15, 20, False, True, 6 * 21],
    ]
    assert (ranges["n_tried"] <= 19).all()
    assert ranges["others"].tolist() == [[], []]
    assert ranges["box_low"].isna().all()
    assert type(ranges["low"].iloc[0]) is int


def test_a_hole_ends_the_range():
    explainer = fitted(lambda f: total(f) - 30 * (f["a"] == 18), train=grid())
    result = answered(explainer, {"a": 5, "b": 5}, [[16, 5]])

    assert shown(explainer.ranges(result), "low", "high") == [[15, 17]]


TWICE = {
    "between": [c.between("b", high=18), c.between("b", low=2)],
    "change": [c.change("b", at_most=13), c.change("b", at_least=0)],
}


@pytest.mark.parametrize("turn", [1, -1], ids=["first", "last"])
@pytest.mark.parametrize("kind", TWICE)
def test_of_two_constraints_of_a_kind_on_a_column_both_end_the_range(kind, turn):
    explainer = fitted(constraints=TWICE[kind][::turn])
    result = answered(explainer, {"a": 5, "b": 5}, [[5, 17]])

    assert shown(explainer.ranges(result), "low", "high") == [[15, 18]]


def test_a_box_is_smaller_than_its_ranges_and_labelled():
    explainer = fitted()
    result = answered(explainer, {"a": 5, "b": 5}, [[12, 12]])

    ranges = explainer.ranges(result)

    assert shown(ranges, "low", "high") == [[8, 20], [8, 20]]
    low, high = ranges["box_low"].astype(int), ranges["box_high"].astype(int)
    assert low.sum() >= 20
    assert (low <= 12).all()
    assert (low > 8).any()
    # Nothing is in the way upwards.
    assert high.tolist() == [20, 20]
    tried, held, share = ranges[["box_tried", "box_held", "box_share"]].iloc[0]
    assert tried == held > 2
    assert share == pytest.approx(0.05 ** (1 / held))
    assert ranges["box_accepted"].isna().all()


def test_a_box_in_which_everything_was_tried_is_sure():
    square = lambda f: (f["a"].between(11, 13) & f["b"].between(12, 13)) * 1.0
    explainer = fitted(square, (1, 1))
    result = answered(explainer, {"a": 5, "b": 5}, [[12, 12]])

    ranges = explainer.ranges(result)

    assert shown(ranges, "low", "high") == [[11, 13], [12, 13]]
    assert shown(ranges, "box_low", "box_high") == [[11, 13], [12, 13]]
    assert ranges["box_share"].tolist() == [1.0, 1.0]


def test_accepted_rows_in_a_box_are_counted_if_fit_kept_them():
    explainer = fitted(search="sparse", n_samples=None)
    result = answered(explainer, {"a": 5, "b": 5}, [[14, 14]])

    ranges = explainer.ranges(result)

    (low_a, high_a), (low_b, high_b) = shown(ranges, "box_low", "box_high")
    inside = grid()["a"].between(low_a, high_a) & grid()["b"].between(low_b, high_b)
    accepted = total(grid()) >= 20
    assert ranges["box_accepted"].tolist() == [(inside & accepted).sum()] * 2


def test_other_levels_that_would_do_come_most_frequent_first():
    train = pd.DataFrame({"plan": list("aabbbccccde") * 4, "n": range(44)})
    wanted = lambda f: f["plan"].isin(["a", "b", "d"]) * 1.0
    explainer = fitted(wanted, (1, 1), train)
    result = answered(explainer, {"plan": "c", "n": 3}, [["a", 3]])

    ranges = explainer.ranges(result)

    assert shown(ranges, "feature", "kind", "value") == [["plan", "categorical", "a"]]
    assert ranges["others"].tolist() == [["b", "d"]]
    assert ranges["n_training"].tolist() == [(2 + 3 + 1) * 4]
    assert ranges["n_tried"].tolist() == [4]
    assert ranges[["low", "high"]].isna().all(axis=None)


def test_of_many_levels_the_most_frequent_are_tried():
    levels = [f"l{n:03}" for n in range(150)]
    train = pd.DataFrame({"level": np.repeat(levels, np.arange(150, 0, -1)).astype(object)})
    explainer = fitted(lambda f: (f["level"] != "l149") * 1.0, (1, 1), train)
    result = answered(explainer, {"level": "l149"}, [["l060"]])

    ranges = explainer.ranges(result)

    assert ranges["others"].tolist() == [levels[:19]]


def test_a_missing_value_has_no_range_and_is_in_none():
    train = pd.DataFrame({"a": [*range(20), None, None], "b": [*range(20), 0, 0]})
    explainer = fitted(lambda f: f["b"] + f["a"].isna() * 1.0, (10, 99), train)
    result = answered(explainer, {"a": 3.0, "b": 2}, [[np.nan, 11]])

    ranges = explainer.ranges(result)

    assert shown(ranges, "feature", "low", "high") == [["a", None, None], ["b", 9, 19]]
    assert ranges["n_training"].tolist() == [2, 11]


def test_a_value_that_training_never_held_is_surrounded_by_training_values():
    explainer = fitted(train=2.0 * grid())
    result = answered(explainer, {"a": 5.0, "b": 5.0}, [[17.5, 5.0], [99.0, 5.0]])

    ranges = explainer.ranges(result)

    assert shown(ranges, "low", "high", "high_open") == [[16.0, 40.0, True], [16.0, 99.0, True]]
    assert ranges["n_training"].tolist() == [13 * 21, 13 * 21]


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_dates_have_ranges_whatever_their_unit(unit):
    train = pd.DataFrame({"since": pd.date_range("2024-01-01", periods=40, unit="ns")})
    days = lambda frame: (frame["since"] - pd.Timestamp("2024-01-01")).dt.days
    explainer = fitted(days, (20, 30), train)
    result = explainer.explain(train.astype(f"datetime64[{unit}]").head(1))

    ranges = explainer.ranges(result)

    assert shown(ranges, "low", "high") == [
        [pd.Timestamp("2024-01-21"), pd.Timestamp("2024-01-31")]
    ]


def test_constraints_limit_ranges_those_of_the_call_too():
    explainer = fitted(constraints=[c.between("a", low=0, high=18)])
    result = answered(explainer, {"a": 5, "b": 5}, [[16, 5]])

    ranges = explainer.ranges(result)
    stricter = explainer.ranges(result, constraints=[c.change("a", at_most=12)])

    assert shown(ranges, "low", "high", "high_open") == [[15, 18, False]]
    assert shown(stricter, "low", "high") == [[15, 17]]


def test_further_constraints_may_be_about_some_people():
    explainer = fitted()
    people = grid().iloc[[0, 1, 2]]
    result = explainer.explain(people)
    only_second = [c.frozen("a", where=np.array([False, True, False]))]

    ranges = explainer.ranges(result, constraints=only_second)

    everything = explainer.ranges(result)
    free = everything["factual"] != 1
    pd.testing.assert_frame_equal(ranges[free.to_numpy()], everything[free])


def test_columns_that_follow_from_others_follow_and_have_no_range():
    train = bills(400)
    derived = [c.derived("total", "months * price")]
    explainer = MCCE(
        value, (0.0, 99.0), immutable=["age"], constraints=derived, search="sparse", random_state=0
    ).fit(train)
    people = train[value(train) < -1].head(8)
    result = explainer.explain(people)

    ranges = explainer.ranges(result)

    assert len(ranges)
    assert "total" not in set(ranges["feature"])
    answers, numeric = result.frame, ranges[ranges["kind"] == "numeric"]
    assert len(numeric)
    for _, row in numeric.iterrows():
        for end in (row["low"], row["high"]):
            tried = answers.loc[[(row["factual"], row["rank"])]].copy()
            tried[row["feature"]] = end
            tried["total"] = (tried["months"] * tried["price"]).round(2)
            assert value(tried)[0] >= 0


def test_rows_at_the_ends_are_as_plausible_as_the_search_requires():
    chance = np.random.default_rng(0)
    income = chance.integers(20, 90, 600)
    train = pd.DataFrame({"income": income, "debt": income // 2 + chance.integers(0, 8, 600)})
    explainer = MCCE(
        lambda f: f["income"] / 100, (0.6, 1.0), search="plausible", random_state=0
    ).fit(train)
    people = train[train["income"] < 50].head(20)
    result = explainer.explain(people)

    ranges = explainer.ranges(result)

    least = mcce.Search("plausible").min_plausibility
    own = explainer.plausibility(people)["plausibility"]
    # Debt goes with income, so that a very large income is not plausible with the same debt.
    assert not ranges["high_open"].all()
    for _, row in ranges.iterrows():
        for end in (row["low"], row["high"]):
            tried = result.frame.loc[[(row["factual"], row["rank"])]].copy()
            tried[row["feature"]] = end
            p_value = explainer.plausibility(tried)["plausibility"].iloc[0]
            assert p_value >= min(least, own[row["factual"]])


def test_answers_of_a_baseline_have_ranges():
    explainer = fitted()
    result = NICE(total, AT_LEAST_20).fit(grid()).explain(grid().head(3))

    ranges = explainer.ranges(result)

    assert ranges["low"].notna().all()
    assert len(ranges) == len(result.changes())


def test_without_counterfactuals_no_row_is_scored():
    scored = []

    def predictor(frame):
        scored.append(len(frame))
        return total(frame)

    explainer = fitted(predictor)
    result = explainer.explain(grid().tail(2))
    scored.clear()

    ranges = explainer.ranges(result)

    assert not scored
    assert ranges.columns.tolist() == COLUMNS
    assert ranges.empty


def test_counterfactuals_that_do_not_hold_have_no_ranges_and_cause_a_warning():
    result = answered(fitted(), {"a": 5, "b": 5}, [[15, 5], [5, 20]])
    stricter = fitted(desired=(25, 50))

    with pytest.warns(McceWarning, match="1 of 2 counterfactuals are not valid by this explainer"):
        ranges = stricter.ranges(result)

    assert ranges["low"].isna().tolist() == [True, False]
    assert ranges["n_training"].isna().tolist() == [True, False]
    assert not ranges["low_open"].iloc[0]


def test_the_margin_of_the_search_is_kept():
    strict = mcce.Search("sparse", margin=3)
    explainer = fitted(search=strict, n_samples=None)
    result = answered(explainer, {"a": 5, "b": 5}, [[5, 19]])

    assert shown(explainer.ranges(result), "low", "high") == [[18, 20]]


@pytest.mark.parametrize("bound", [0.2, 0.29, 0.3, None])
def test_bounds_on_the_distance_limit_ranges(bound):
    search = mcce.Search("paper", max_distance=bound)
    explainer = fitted(search=search, n_samples=None)
    result = answered(explainer, {"a": 5, "b": 5}, [[5, 16]])

    # A mean of two features, each a share of 20: 16 is 0.275 away, and 17 is 0.3.
    high = {0.2: 20, 0.29: 16, 0.3: 17, None: 20}[bound]
    # What the answer itself does not keep is not required.
    assert shown(explainer.ranges(result), "low", "high") == [[15, high]]


def test_copies_of_training_rows_limit_ranges_if_there_must_be_none():
    train = grid()[(grid()["a"] != 5) | (grid()["b"] == 18)]
    search = mcce.Search("paper", copies="never")
    explainer = fitted(train=train, search=search, n_samples=None)
    result = answered(explainer, {"a": 5, "b": 5}, [[5, 16]])

    assert shown(explainer.ranges(result), "low", "high") == [[15, 17]]


def test_a_result_of_another_explainer_is_an_error():
    result = fitted().explain(grid().head(1))

    renamed = grid().rename(columns={"a": "c"})
    other = fitted(lambda f: f["b"], train=renamed)
    with pytest.raises(SchemaError, match=r"has the columns \['a', 'b'\].*fitted on \['c', 'b'\]"):
        other.ranges(result)
    changing_a = answered(fitted(), {"a": 5, "b": 5}, [[15, 5]])
    with pytest.raises(SchemaError, match=r"changes \['a'\], immutable for this explainer"):
        fitted(immutable=["a"]).ranges(changing_a)
    with pytest.raises(ParameterError, match=r"what explain returned.*got DataFrame"):
        fitted().ranges(result.frame)


def test_what_cannot_work_is_an_error():
    explainer = fitted()
    result = explainer.explain(grid().head(1))

    with pytest.raises(ParameterError, match="random_state must be a whole number from 0"):
        explainer.ranges(result, random_state=-1)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MCCE(total, (20, 40)).ranges(result)
    with pytest.raises(NotFittedError, match="desired was changed after fit"):
        explainer.set_params(desired=(1, 2)).ranges(result)
