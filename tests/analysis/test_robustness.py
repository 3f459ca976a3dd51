"""How firmly counterfactuals stand: by hand, by brute force, for any predictor and any batch."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression

import mcce.analysis.robustness
from brute_force import same
from mcce import MCCE, Interval, McceWarning, NotFittedError, ParameterError, SchemaError
from mcce.candidates import Draws
from mcce.protocols import Capabilities
from tables import cases

COLUMNS = ["valid", "margin", "stability", "partial", "minimal", "n_evaluated"]
TRAIN = pd.DataFrame({"a": np.repeat(np.arange(21), 21), "b": np.tile(np.arange(21), 21)})


def total(frame):
    return frame["a"] + frame["b"]


AT_LEAST_20 = Interval(20, np.inf)


def fitted(predictor=total, desired=AT_LEAST_20, train=TRAIN, **settings):
    settings = {"n_samples": 50, "random_state": 0} | settings
    return MCCE(predictor, desired, **settings).fit(train)


def answered(explainer, person, answers):
    """A result in which one person has the given counterfactuals."""
    people = pd.DataFrame([person])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(people)
    frame = pd.DataFrame(answers, columns=people.columns).astype(people.dtypes)
    index = pd.MultiIndex.from_product([[0], range(1, len(frame) + 1)], names=["factual", "rank"])
    owner = np.zeros(len(frame), dtype=np.int64)
    return replace(result, frame=frame.set_axis(index), owner=owner)


def test_numbers_that_can_be_checked_by_hand():
    explainer = fitted()
    result = answered(explainer, {"a": 5, "b": 5}, [[10, 10], [20, 20], [15, 5], [5, 16]])

    told = explainer.robustness(result, scale=0.05)

    assert told.columns.tolist() == COLUMNS
    assert told.index.equals(result.frame.index)
    assert told["valid"].all()
    assert told["margin"].tolist() == [0, 20, 0, 1]
    # (9, 9), (9, 11), (11, 9), (11, 11); (19, 19) alone; 14 or 16; 15 or 17
    assert told["stability"].tolist() == [0.75, 1.0, 0.5, 1.0]
    # (10, 5) and (5, 10); (20, 5) and (5, 20); nothing lies between none and one change
    assert told["partial"].tolist()[:2] == [0.0, 1.0]
    assert told["partial"].isna().tolist() == [False, False, True, True]
    assert told["minimal"].tolist() == [True, False, True, True]
    assert told["n_evaluated"].tolist() == [1 + 4 + 2, 1 + 1 + 2, 1 + 2, 1 + 2]


def test_of_many_changes_each_alone_and_all_but_one_are_tried():
    chance = np.random.default_rng(0)
    train = pd.DataFrame(chance.choice(["no", "yes"], (60, 10)), columns=list("abcdefghij"))
    explainer = fitted(lambda f: (f == "yes").sum(axis=1), (6, 10), train)
    person = dict.fromkeys(train.columns, "no")

    nine_and_ten = answered(explainer, person, [["yes"] * 9 + ["no"], ["yes"] * 10])
    eight = answered(explainer, person, [["yes"] * 8 + ["no"] * 2])

    told = explainer.robustness(nine_and_ten)
    assert told["partial"].tolist() == [0.5, 0.5]
    assert told["n_evaluated"].tolist() == [1 + 18, 1 + 20]
    told = explainer.robustness(eight)
    assert told["n_evaluated"].tolist() == [1 + 254]
    # of eight changes, 28 ways to make six of them and 8 to make seven
    assert told["partial"].tolist() == [36 / 254]
    assert not told["minimal"].any()


def test_categories_do_not_move():
    train = pd.DataFrame({"a": ["x", "y"] * 10, "b": ["x", "x", "y", "y"] * 5})
    explainer = fitted(lambda f: (f == "y").sum(axis=1), (1, 2), train)

    told = explainer.robustness(explainer.explain(train.head(1)))

    assert told["stability"].isna().all()
    assert told["n_evaluated"].tolist() == [1]


def test_a_missing_value_does_not_move_and_can_be_undone():
    train = pd.DataFrame({"a": [*range(20), None], "b": [*range(20), 0]})
    explainer = fitted(lambda f: f["b"] + f["a"].isna() * 1.0, (10, 99), train)
    result = answered(explainer, {"a": 3.0, "b": 2}, [[np.nan, 10]])
    back = answered(explainer, {"a": np.nan, "b": 2}, [[4.0, 10]])

    told = explainer.robustness(result, scale=0.06)
    told_back = explainer.robustness(back, scale=0.06)

    # b may be 9 or 11, and a stays missing
    assert told[["margin", "stability", "partial"]].to_numpy().tolist() == [[1, 1.0, 0.5]]
    # (3 or 5, 9 or 11); then b alone with a still missing
    assert told_back[["margin", "stability", "partial"]].to_numpy().tolist() == [[0, 0.5, 0.5]]


@pytest.mark.parametrize("unit", ["ns", "s"])
def test_dates_move_whatever_their_unit(unit):
    train = pd.DataFrame({"since": pd.date_range("2024-01-01", periods=40, unit="ns")})
    days = lambda frame: (frame["since"] - pd.Timestamp("2024-01-01")).dt.days
    explainer = fitted(days, (20, 99), train)

    result = explainer.explain(train.astype(f"datetime64[{unit}]").head(1))
    told = explainer.robustness(answer_of(result, pd.Timestamp("2024-01-22")), scale=2.5 / 39)

    # 21 days, so that 19 is too few of 19, 20, 22 and 23
    assert told["stability"].tolist() == [0.75]


def answer_of(result, moment):
    """The result with another date for an answer."""
    frame = result.frame.assign(since=pd.Series([moment] * len(result.frame)).to_numpy())
    return replace(result, frame=frame.astype(result.frame.dtypes))


DESIRED = Interval(0.55, np.inf, closed="left")


@st.composite
def explained(draw):
    case = draw(cases())
    explainer = MCCE(
        case.score,
        DESIRED,
        immutable=case.immutable,
        n_samples=25,
        n_counterfactuals=draw(st.integers(1, 3)),
        random_state=draw(st.integers(0, 5)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.fit(case.train).explain(case.people)
    return case, explainer, result


def neighbours(explainer, row, changed, scale):
    """Per column of a counterfactual the values that a move may give it."""
    allowed = []
    for feature in explainer.schema_.features:
        value = row[feature.name]
        near = []
        if feature.name in changed and feature.kind == "numeric" and not pd.isna(value):
            reach = scale * feature.spread
            near = [
                other
                for other in feature.known
                if value - reach <= other <= value + reach and other != value
            ]
        allowed.append(near or [value])
    return allowed


def brute_force(explainer, before, after, scale):
    """All moves and all parts of one counterfactual, as rows."""
    changed = [name for name in before.index if not same(before[name], after[name])]
    allowed = neighbours(explainer, after, changed, scale)
    moves = [list(cells) for cells in itertools.product(*allowed)]
    own = after.tolist()
    if len(moves) == 1 and all(same(a, b) for a, b in zip(moves[0], own, strict=True)):
        moves = []
    parts = []
    for size in range(1, len(changed)):
        for some in itertools.combinations(changed, size):
            parts.append([after[n] if n in some else before[n] for n in before.index])
    return moves, parts


def is_valid(case, rows):
    frame = pd.DataFrame(rows, columns=case.people.columns, dtype=object)
    return DESIRED.contains(case.score(frame))


@given(explained(), st.sampled_from([0.01, 0.1, 0.5, 1.0]))
def test_the_numbers_are_those_of_trying_everything_one_by_one(work, scale):
    case, explainer, result = work

    told = explainer.robustness(result, n_perturbations=1000, scale=scale)

    factuals, answers = result.factuals.astype(object), result.frame.astype(object)
    for place in range(len(result.frame)):
        moves, parts = brute_force(
            explainer, factuals.iloc[result.owner[place]], answers.iloc[place], scale
        )
        row = told.iloc[place]
        assert row["n_evaluated"] == 1 + min(len(moves), 1000) + len(parts)
        if not moves:
            assert np.isnan(row["stability"])
        elif len(moves) <= 1000:
            assert row["stability"] == is_valid(case, moves).mean()
        if parts:
            assert row["partial"] == is_valid(case, parts).mean()
            assert row["minimal"] == (row["partial"] == 0)
        else:
            assert np.isnan(row["partial"])
            assert row["minimal"]
    assert np.array_equal(told["margin"], result.measures["score"] - 0.55)


@pytest.mark.slow
@given(explained(), st.integers(1, 5))
def test_moves_at_random_are_moves_that_may_be_made(work, n_perturbations):
    case, explainer, result = work
    asked = []

    def listen(frame):
        asked.append(frame)
        return case.score(frame)

    listening = replace(explainer.decision_, predictor=listen)
    explainer.fitted_ = replace(explainer.fitted_, decision=listening)
    for place in range(len(result.frame)):
        one = only(result, [place])
        before = one.factuals.astype(object).iloc[one.owner[0]]
        after = one.frame.astype(object).iloc[0]
        moves, parts = brute_force(explainer, before, after, 0.3)

        explainer.robustness(one, n_perturbations=n_perturbations, scale=0.3)

        frame = asked.pop()
        assert not asked
        assert frame.dtypes.equals(case.people.dtypes)
        n_moves = len(frame) - 1 - len(parts)
        assert n_moves == min(len(moves), n_perturbations)
        for cells in frame.astype(object).iloc[1 : 1 + n_moves].to_numpy().tolist():
            assert any(all(map(same, cells, move)) for move in moves)


def only(result, places):
    """A result with some of the counterfactuals in another order."""
    return replace(result, frame=result.frame.iloc[places], owner=result.owner[places])


@pytest.mark.slow
@given(explained(), st.integers(0, 2**32 - 1), st.sampled_from([1, 20, 100_000]))
def test_batch_order_and_chunks_change_nothing(work, seed, rows_per_call):
    _, explainer, result = work
    places = np.random.default_rng(seed).permutation(len(result.frame))[: 1 + seed % 5]

    everything = explainer.robustness(result, n_perturbations=3, scale=0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mcce.analysis.robustness, "ROWS_PER_CALL", rows_per_call)
        some = explainer.robustness(only(result, places), n_perturbations=3, scale=0.3)

    pd.testing.assert_frame_equal(some, everything.iloc[places], check_exact=True)


def test_chance_hangs_on_the_seed_alone():
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
    model = LinearRegression().fit(TRAIN, total(TRAIN))
    explainer = fitted(model, (19.5, 30.25))
    result = answered(explainer, {"a": 5, "b": 5}, [[15, 15], [5, 15]])

    assert explainer.robustness(result)["margin"].tolist() == pytest.approx([0.25, 0.5])


def test_an_end_that_a_probability_cannot_pass_is_no_end():
    model = LogisticRegression().fit(TRAIN, total(TRAIN) > 20)
    explainer = fitted(model, None)
    result = answered(explainer, {"a": 5, "b": 5}, [[20, 20]])

    told = explainer.robustness(result)

    score = model.predict_proba(result.frame)[0, 1]
    assert score > 0.9
    assert told["margin"].item() == score - 0.5


def test_the_margin_of_labels_is_one_of_probabilities():
    target = np.where(total(TRAIN) < 15, "low", np.where(total(TRAIN) < 25, "mid", "high"))
    model = LogisticRegression(max_iter=5000).fit(TRAIN, target)
    explainer = fitted(model, ["mid", "high"])
    result = answered(explainer, {"a": 2, "b": 2}, [[10, 10], [20, 20]])

    told = explainer.robustness(result)

    high, low, mid = model.predict_proba(result.frame).T
    assert told["margin"].tolist() == (np.maximum(mid, high) - low).tolist()


def test_labels_without_probabilities_have_no_margin():
    explainer = fitted(lambda f: np.where(total(f) >= 20, "yes", "no"), "yes")

    told = explainer.robustness(answered(explainer, {"a": 5, "b": 5}, [[10, 10]]), scale=0.05)

    assert told["margin"].isna().all()
    assert told["stability"].tolist() == [0.75]


def test_arrays_are_asked_as_arrays():
    asked = []

    def predictor(rows):
        asked.append(type(rows))
        return rows.sum(axis=1)

    explainer = fitted(predictor, train=TRAIN.to_numpy())
    told = explainer.robustness(explainer.explain(np.array([[5, 5], [0, 1]])))

    assert told["valid"].all()
    assert set(asked) == {np.ndarray}


class Halves:
    """A generator that invents numbers half-way between those of training."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        return self

    def sample(self, given, keys, draws):
        codes = np.tile(draws % 10, (2, keys.size, 1)).astype(np.int32)
        return Draws(codes, [pd.Series(np.arange(10) + 10.5)] * 2)


def test_invented_values_move_to_training_values():
    explainer = fitted(train=TRAIN.astype(float), generator=Halves())

    result = explainer.explain(pd.DataFrame({"a": [5.5, 10.5], "b": [5.5, 3.25]}))
    told = explainer.robustness(result, scale=0.05)

    assert result.frame.to_numpy().tolist() == [[10.5, 10.5], [10.5, 10.5]]
    # 10 or 11 each, and the second keeps its own a
    assert told["stability"].tolist() == [1.0, 1.0]
    assert told["n_evaluated"].tolist() == [1 + 4 + 2, 1 + 2]


def test_without_counterfactuals_there_is_nothing_to_ask():
    asked = []

    def predictor(frame):
        asked.append(len(frame))
        return total(frame)

    explainer = fitted(predictor)
    result = explainer.explain(TRAIN.tail(2))
    asked.clear()

    told = explainer.robustness(result)

    assert not asked
    assert told.columns.tolist() == COLUMNS
    assert told.index.names == ["factual", "rank"]
    assert told.dtypes.astype(str).tolist() == ["bool", *["float64"] * 3, "bool", "int64"]


def test_counterfactuals_that_no_longer_hold_are_told():
    result = answered(fitted(), {"a": 5, "b": 5}, [[10, 10], [20, 20]])
    stricter = fitted(desired=(30, 50))

    with pytest.warns(McceWarning, match="1 of 2 counterfactuals are not valid by this explainer"):
        told = stricter.robustness(result)

    assert told["valid"].tolist() == [False, True]
    assert told["margin"].tolist() == [-10, 10]


def test_nothing_is_changed_by_asking():
    explainer = fitted()
    result = explainer.explain(TRAIN.head(3))
    before = [result.frame.copy(), result.factuals.copy()]

    explainer.robustness(result)

    pd.testing.assert_frame_equal(result.frame, before[0])
    pd.testing.assert_frame_equal(result.factuals, before[1])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"n_perturbations": 0}, "n_perturbations must be a whole number from 1 to 100000, got 0"),
        ({"n_perturbations": 1.5}, "got 1.5"),
        ({"n_perturbations": 10**6}, "got 1000000"),
        ({"scale": 0}, "scale must be a number above 0 and up to 1, got 0"),
        ({"scale": 1.1}, "got 1.1"),
        ({"scale": np.nan}, "got nan"),
        ({"scale": "small"}, "got 'small'"),
        ({"random_state": -1}, "random_state must be a whole number from 0"),
    ],
)
def test_a_setting_that_cannot_work_is_an_error_that_names_it(settings, says):
    explainer = fitted()

    with pytest.raises(ParameterError, match=says):
        explainer.robustness(explainer.explain(TRAIN.head(1)), **settings)


def test_a_result_of_another_explainer_is_an_error():
    result = fitted().explain(TRAIN.head(1))

    renamed = TRAIN.rename(columns={"a": "c"})
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
    result = explainer.explain(TRAIN.head(1))

    with pytest.raises(NotFittedError, match="not fitted yet"):
        MCCE(total, (20, 40)).robustness(result)
    with pytest.raises(NotFittedError, match="desired was changed after fit"):
        explainer.set_params(desired=(1, 2)).robustness(result)


@pytest.mark.parametrize(
    ("interval", "margins"),
    [
        (Interval(0, 10), [-np.inf, -1, 0, 4, 0, -np.inf]),
        (Interval(-np.inf, 10), [np.inf, 11, 10, 4, 0, -np.inf]),
        (Interval(0, np.inf), [-np.inf, -1, 0, 6, 10, np.inf]),
        (Interval(-np.inf, np.inf), [np.inf] * 6),
        (Interval(np.inf, np.inf), [-np.inf] * 5 + [0]),
    ],
)
def test_the_margin_of_an_interval_knows_infinite_ends_and_scores(interval, margins):
    scores = np.array([-np.inf, -1, 0, 6, 10, np.inf])

    assert interval.margin(scores).tolist() == margins
