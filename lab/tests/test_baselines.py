"""The baselines without networks: their algorithms by hand and by brute force, and promises."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank import bank, score
from mcce import McceWarning, NotFittedError, ParameterError, PredictorError, SchemaError, metrics
from mcce_lab.baselines import (
    FACE,
    NICE,
    GrowingSpheres,
    NearestUnlike,
)
from row_methods import (
    FORMS,
    SURE,
    Spheres,
    answers,
    bits,
    cheapest,
    dijkstra,
    explain,
    gap,
    l1,
    same,
    shares,
)
from tables import cases

# Distances are summed in another order.
ROUNDING = 1e-9


def equal(one, other):
    return all(same(one[name], other[name]) for name in other.index)


def numeric(frame):
    return [
        name
        for name in frame
        if pd.api.types.is_numeric_dtype(frame[name])
        and not pd.api.types.is_bool_dtype(frame[name])
    ]


class TestPromises:
    """What holds of every method."""

    @pytest.mark.parametrize("name", FORMS)
    @given(case=cases(max_rows=15))
    @settings(max_examples=7)
    def test_answers_are_valid_keep_immutable_cells_and_do_not_depend_on_others(self, name, case):
        if name == "spheres" and case.train[numeric(case.train)].isna().all().any():
            return
        method = FORMS[name](case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)

        result = explain(method, case.people)

        declined = case.score(case.people) < 0.5
        assert (result.people["status"] == "already desired").tolist() == (~declined).tolist()
        assert (result.missing["reason"] != "").all()
        assert (case.score(result.frame) >= 0.5).all()
        own = case.people.iloc[result.owner]
        for column in case.immutable:
            assert bits(result.frame[column]) == bits(own[column])
        pd.testing.assert_series_equal(result.frame.dtypes, case.people.dtypes)
        backwards = answers(explain(method, case.people.iloc[::-1]))
        alone = answers(explain(method, case.people.tail(1)))
        label = case.people.index[-1]
        assert backwards == answers(result)
        assert alone.get(label) == backwards.get(label)
        if name in SURE:
            accepted = case.train[case.score(case.train) >= 0.5]
            for label in result.missing.index:
                person = case.people.loc[label]
                rows = (row for _, row in accepted.iterrows())
                assert not any(shares(row, person, case.immutable) for row in rows)

    @pytest.mark.parametrize("name", FORMS)
    def test_one_accepted_row_and_a_score_at_the_edge_are_enough(self, name):
        line = pd.DataFrame({"x": [0.0, 0.25, 0.5]})
        at_edge = FORMS[name](lambda rows: rows["x"], (0.5, 0.5)).fit(line).explain(line)
        rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "k": list("aabba")})
        one_row = explain(FORMS[name](lambda rows: rows["x"], (4.0, 9.0)).fit(rows), rows.head(4))

        assert at_edge.people["status"].tolist() == ["answered", "answered", "already desired"]
        assert at_edge.frame["x"].tolist() == [0.5, 0.5]
        assert (one_row.frame["x"] == 4.0).all()
        assert len(one_row.frame) == 4 or name == "face-radius"

    @pytest.mark.parametrize("name", FORMS)
    def test_every_row_that_the_search_scores_is_counted(self, name):
        n_scored = []
        predictor = lambda rows: n_scored.append(len(rows)) or score(rows)
        method = FORMS[name](predictor, (0.85, 10.0), immutable=["sex"]).fit(bank(80))
        n_scored.clear()
        people = bank(8, seed=1)

        result = explain(method, people)

        # Beside the search: everybody's own row, to choose whom to explain and for the result, and
        # a fresh call on the answers.
        assert len(result.frame) > 2
        assert sum(n_scored) == 2 * len(people) + result.n_evaluated + len(result.frame)

    def test_without_an_accepted_training_row_the_reason_says_so_and_nothing_is_searched(self):
        people = bank(6, seed=1)
        for make in FORMS.values():
            method = make(lambda rows: np.zeros(len(rows)), (0.5, 1.0)).fit(bank(40))

            result = explain(method, people)

            reason = "the predictor declines all training rows"
            assert result.missing["reason"].tolist() == [reason] * 6
            assert result.n_evaluated == 0

    def test_rows_that_the_predictor_refuses_later_are_not_returned(self):
        train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
        for make in FORMS.values():
            limit, n_calls = 99, []

            def fickle(rows):
                n_calls.append(len(rows))  # noqa: B023
                return rows["x"] * (len(n_calls) < limit)  # noqa: B023

            make(fickle, (2.0, 9.0)).fit(train).explain(train.head(1))
            limit, n_calls[:] = len(n_calls), []

            result = explain(make(fickle, (2.0, 9.0)).fit(train), train.head(1))

            reason = "the predictor refuses the row that was found when it is called again"
            assert result.frame.empty
            assert result.missing["reason"].tolist() == [reason]

    def test_no_answer_is_nearer_than_the_boundary_of_a_linear_model(self):
        train = pd.DataFrame(np.random.default_rng(3).random((60, 2)), columns=["x", "y"])
        train.iloc[:2] = [[0.0, 0.0], [1.0, 1.0]]
        for make in FORMS.values():
            method = make(lambda rows: rows["x"] + rows["y"], (1.2, 2.0)).fit(train)

            result = explain(method, train)

            own = train.iloc[result.owner].to_numpy()
            moved = np.abs(result.frame.to_numpy() - own).sum(axis=1)
            assert len(moved) > 15
            assert (moved >= 1.2 - own.sum(axis=1) - ROUNDING).all()


class TestCarelessUse:
    """What a hurried user does: it works, or a clear error says why not."""

    TRAIN = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "k": list("aabb"), "n": [1, 2, 3, 4]})
    KINDS = (NearestUnlike, NICE, GrowingSpheres, FACE)

    def method(self, kind, **parameters):
        return kind(lambda rows: np.asarray(rows["x"]), (2.0, 9.0), **parameters)

    def test_a_method_must_be_fitted_again_after_a_change(self):
        for kind in self.KINDS:
            with pytest.raises(NotFittedError, match=f"This {kind.__name__} is not fitted"):
                self.method(kind).explain(self.TRAIN)
            with pytest.raises(NotFittedError, match=r"immutable was changed after fit.*Fit again"):
                self.method(kind).fit(self.TRAIN).set_params(immutable=["k"]).explain(self.TRAIN)

    def test_people_with_other_columns_are_refused_by_name(self):
        people = {"'k'": self.TRAIN.drop(columns="k"), "'more'": self.TRAIN.assign(more=1)}
        for kind in self.KINDS:
            for says, wrong in people.items():
                with pytest.raises(SchemaError, match=says):
                    self.method(kind).fit(self.TRAIN).explain(wrong)

    def test_a_parameter_that_cannot_work_is_named_with_what_was_expected(self):
        wrong = [
            (NearestUnlike, {"rows": "all"}, 'rows must be one of "same", "any", got \'all\''),
            (NICE, {"reward": "sparse"}, 'reward must be one of "sparsity", "proximity"'),
            (NICE, {"n_starts": 0}, "n_starts must be a whole number from 1"),
            (NICE, {"random_state": None}, "random_state must be a whole number from 0"),
            (GrowingSpheres, {"n_samples": 2.5}, "n_samples must be a whole number from 1"),
            (GrowingSpheres, {"radius": float("inf")}, "radius must be a finite number > 0"),
            (FACE, {"n_neighbors": 0}, "n_neighbors must be a whole number from 1"),
            (FACE, {"cost": "cheap"}, 'cost must be one of "density", "distance", "unit"'),
            (FACE, {"min_density": 1.5}, "min_density must be a number from 0 to 1"),
            (FACE, {"immutable": ["x", "k", "n"]}, "All 3 columns are immutable"),
        ]
        for kind, parameters, says in wrong:
            with pytest.raises(ValueError, match=says):
                self.method(kind, **parameters).fit(self.TRAIN)

    def test_justified_rows_need_an_outcome_for_each_row(self):
        for kind in (NearestUnlike, NICE):
            justified = self.method(kind, justified=True)
            with pytest.raises(ParameterError, match=r"each of the 4 training rows, got None"):
                justified.fit(self.TRAIN)
            with pytest.raises(ParameterError, match="got 3 values"):
                justified.fit(self.TRAIN, [True, True, False])

    def test_a_predictor_that_fails_is_an_error_and_leaves_the_fit_before(self):
        def broken(rows):
            raise KeyError("no such column")

        for kind in self.KINDS:
            with pytest.raises(PredictorError, match="predictor"):
                kind(broken, (2.0, 9.0)).fit(self.TRAIN)
            fitted = self.method(kind).fit(self.TRAIN)
            expected = answers(fitted.explain(self.TRAIN))
            with pytest.raises(SchemaError):
                fitted.fit(self.TRAIN.head(0))
            assert answers(fitted.explain(self.TRAIN)) == expected

    def test_odd_people_are_no_error(self):
        odd = pd.DataFrame({"x": [0.0, 0.5, 0.0], "k": ["z", None, "b"], "n": [1.0, 9.0, 1e200]})
        for make in FORMS.values():
            method = make(lambda rows: np.asarray(rows["x"]), (2.0, 9.0)).fit(self.TRAIN)

            result, nobody = explain(method, odd), method.explain(self.TRAIN.head(0))

            assert (result.frame["x"] >= 2.0).all()
            assert len(result.frame) + len(result.missing) == 3
            pd.testing.assert_series_equal(nobody.frame.dtypes, self.TRAIN.dtypes)

    def test_other_kinds_of_frames_and_orders_of_columns_come_back_as_they_are(self):
        polars = pytest.importorskip("polars")
        for kind in self.KINDS:
            expected = self.method(kind).fit(self.TRAIN).explain(self.TRAIN.head(2))
            fitted = self.method(kind).fit(polars.from_pandas(self.TRAIN))

            result = fitted.explain(polars.from_pandas(self.TRAIN.head(2)))
            turned = self.method(kind).fit(self.TRAIN).explain(self.TRAIN.head(2)[["n", "x", "k"]])

            assert isinstance(result.frame, polars.DataFrame)
            assert result.frame.to_dicts() == expected.frame.to_dict("records")
            pd.testing.assert_frame_equal(turned.frame, expected.frame[["n", "x", "k"]])

    def test_people_without_an_answer_are_one_warning_at_the_line_of_the_call(self):
        for make in FORMS.values():
            fitted = make(lambda rows: np.zeros(len(rows)), (2.0, 9.0)).fit(self.TRAIN)

            with pytest.warns(McceWarning) as warned:
                fitted.explain(self.TRAIN.head(3))

            (only,) = warned
            assert "3 of 3 people have no counterfactual" in str(only.message)
            assert only.filename == __file__

    @pytest.mark.parametrize("name", ["nice", "spheres", "face"])
    def test_a_fit_during_a_call_changes_nothing_for_that_call(self, name):
        class Refitting:
            method = None

            def __call__(self, rows):
                if self.method is not None:
                    method, self.method = self.method, None
                    method.fit(rows.iloc[:0].reindex(range(2)).assign(x=[9.0, 0.0], k="z", n=1))
                return rows["x"]

        expected = answers(
            explain(FORMS[name](Refitting(), (2.0, 9.0)).fit(self.TRAIN), self.TRAIN)
        )
        predictor = Refitting()
        method = FORMS[name](predictor, (2.0, 9.0)).fit(self.TRAIN)
        predictor.method = method

        found = answers(explain(method, self.TRAIN))

        assert len(method.training_.rows) == 2
        assert found == expected


class TestNearestUnlike:
    TRAIN = pd.DataFrame({"sex": list("ffmm"), "pay": [0, 6, 8, 10], "job": list("aaba")})

    def method(self, **parameters):
        return NearestUnlike(lambda rows: np.asarray(rows["pay"]), (7, 20), **parameters)

    @given(case=cases(max_rows=25))
    @settings(max_examples=12)
    def test_the_row_is_the_nearest_by_hand(self, case):
        method = NearestUnlike(case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)

        result = explain(method, case.people)

        accepted = case.train[case.score(case.train) >= 0.5]
        for label, person in case.people[case.score(case.people) < 0.5].iterrows():
            alike = [row for _, row in accepted.iterrows() if shares(row, person, case.immutable)]
            found = result.frame[result.frame.index.get_level_values(0) == label]
            assert len(found) == bool(alike)
            if alike:
                least = min(l1(row, person, case.train) for row in alike)
                assert l1(found.iloc[0], person, case.train) == pytest.approx(least)
                assert any(equal(found.iloc[0], row) for row in alike)

    def test_of_equally_near_rows_the_first_is_taken(self):
        train = pd.DataFrame({"x": [2, 0, 4, 0, 4]})
        method = NearestUnlike(lambda rows: rows["x"] != 2, (1, 1)).fit(train)

        assert method.explain(train.head(1)).frame["x"].tolist() == [0]

    def test_any_row_lends_its_mutable_cells_unless_they_do_not_suffice(self):
        women = self.TRAIN.head(2)
        same_rows = explain(self.method(immutable=["sex"]).fit(self.TRAIN), women)
        lent = self.method(immutable=["sex"], rows="any").fit(self.TRAIN).explain(women)
        only_men = lambda rows: np.asarray(rows["pay"]) * (rows["sex"] == "m")
        refused = NearestUnlike(only_men, (7, 20), rows="any", immutable=["sex"]).fit(self.TRAIN)

        reason = "no accepted training row has the same immutable values"
        assert same_rows.missing["reason"].tolist() == [reason] * 2
        assert lent.frame.to_numpy().tolist() == [["f", 10, "a"], ["f", 10, "a"]]
        reason = "the nearest accepted row is declined with the person's own immutable values"
        assert explain(refused, women).missing["reason"].tolist() == [reason] * 2

    def test_a_justified_row_has_the_desired_outcome_too(self):
        method = self.method(justified=True)

        answer = method.fit(self.TRAIN, [False, False, False, True]).explain(self.TRAIN.head(1))
        nothing = explain(method.fit(self.TRAIN, [True, True, False, False]), self.TRAIN.head(1))

        assert answer.frame["pay"].tolist() == [10]
        reason = "no accepted training row with the desired outcome can be used"
        assert nothing.missing["reason"].tolist() == [reason]

    def test_missing_cells_and_dates_are_values_like_any_other(self):
        since = pd.to_datetime(["2020-01-01", "2020-01-03", None])
        train = pd.DataFrame({"since": since, "pay": [0.0, 9.0, np.nan]})
        method = NearestUnlike(lambda rows: rows["pay"].fillna(8), (7.0, 20.0)).fit(train)

        # Both rows are 2 away; the first is taken.
        answer = method.explain(train.head(1)).frame.iloc[0].tolist()
        assert answer == [pd.Timestamp("2020-01-03"), 9.0]


class TestNICE:
    TRAIN = pd.DataFrame({"a": [0, 4, 9], "b": [0, 4, 9], "c": [0, 4, 9]})
    PERSON = TRAIN.head(1)

    @staticmethod
    def walk(case, person, goal, reward):
        """The greedy walk from a person to a row, one cell at a time."""
        worth = lambda row: float(case.score(row.to_frame().T.astype(object))[0])
        left = [
            name
            for name in case.train
            if name not in case.immutable and not same(person[name], goal[name])
        ]
        now = person.copy()
        while worth(now) < 0.5:
            tried = []
            for name in left:
                row = now.copy()
                row[name] = goal[name]
                gain = round(worth(row) - worth(now), 10)
                if reward == "proximity":
                    gain /= gap(goal[name], person[name], case.train[name]) + 1e-10
                tried.append((gain, name, row))
            _, name, now = max(tried, key=lambda step: step[0])
            left.remove(name)
        return now

    @pytest.mark.parametrize("reward", ["sparsity", "proximity"])
    @given(case=cases(max_rows=15))
    @settings(max_examples=12)
    def test_the_walk_to_the_nearest_unlike_row_is_the_one_by_hand(self, reward, case):
        fixed = {"immutable": case.immutable}
        method = NICE(case.score, (0.5, 1.0), reward=reward, **fixed).fit(case.train)
        goals = NearestUnlike(case.score, (0.5, 1.0), **fixed).fit(case.train)

        found, goal_of = (
            explain(one, case.people).frame.reset_index(level=1, drop=True)
            for one in (method, goals)
        )

        assert found.index.tolist() == goal_of.index.tolist()
        for label, row in found.iterrows():
            expected = self.walk(case, case.people.loc[label], goal_of.loc[label], reward)
            assert equal(row, expected)

    def test_cells_are_copied_by_gain_and_in_column_order_without_any(self):
        found = lambda f, low: NICE(f, (low, 99)).fit(self.TRAIN).explain(self.PERSON)
        both = lambda rows: ((rows["b"] >= 4) & (rows["c"] >= 4)).astype(float)

        by_gain = found(lambda rows: rows["a"] + 3 * rows["b"] + 2 * rows["c"], 8)
        assert by_gain.frame.to_numpy().tolist() == [[0, 4, 0]]
        assert found(both, 1).frame.to_numpy().tolist() == [[4, 4, 4]]
        beyond = pd.DataFrame({"a": [0.0, 3.0], "b": [0.0, 9.0], "c": [0.0, -8.0]})
        inside = NICE(lambda rows: rows.sum(axis=1), (3.0, 5.0)).fit(beyond).explain(beyond.head(1))
        assert inside.frame.to_numpy().tolist() == [[3.0, 0.0, 0.0]], "b alone would overshoot"

    def test_by_labels_alone_a_cell_that_suffices_comes_before_the_order_of_columns(self):
        def found(columns):
            class Labels:
                def predict(self, rows):
                    return np.where((rows[columns] >= 4).all(axis=1), "yes", "no")

            method = NICE(Labels(), "yes").fit(self.TRAIN)
            return method.explain(self.PERSON).frame.to_numpy().tolist()

        assert found(["b"]) == [[0, 4, 0]]
        assert found(["b", "c"]) == [[4, 4, 4]]

    def test_plausibility_keeps_together_what_goes_together(self):
        chance = np.random.default_rng(0)
        x, free = chance.choice([-1.0, 1.0], (2, 300))
        noise = chance.normal(size=(2, 300)) / 20
        train = pd.DataFrame({"x": x + noise[0], "twin": x, "free": free + noise[1]})
        person = pd.DataFrame({"x": [-1.0], "twin": [-1.0], "free": [-1.0]})
        predictor = lambda rows: 1.1 * (rows["x"] > 0) + (rows["free"] > 0)

        def changed(reward):
            method = NICE(predictor, (1.0, 9.0), reward=reward, justified=True)
            result = method.fit(train, (x > 0) & (free > 0)).explain(person)
            return set(result.changes()["feature"])

        # Copying x alone gains most, and tears it from its twin.
        assert changed("sparsity") == {"x"}
        assert ("x" in changed("plausibility")) == ("twin" in changed("plausibility"))

    @given(case=cases(max_rows=15))
    @settings(max_examples=10)
    def test_more_starts_never_need_more_changes_and_answer_whoever_one_did(self, case):
        def costs(n_starts):
            method = NICE(case.score, (0.5, 1.0), starts="any", n_starts=n_starts)
            method.set_params(immutable=case.immutable)
            result = explain(method.fit(case.train), case.people)
            return dict(zip(result.owner.tolist(), result.measures["sparsity"], strict=True))

        one, three = costs(1), costs(3)

        assert one.keys() <= three.keys()
        assert all(three[owner] <= sparsity for owner, sparsity in one.items())

    def test_any_start_never_copies_immutable_cells(self):
        train = pd.DataFrame({"sex": list("fm"), "pay": [0, 9], "job": list("ab")})
        predictor = lambda rows: rows["pay"] + 5 * (rows["sex"] == "m")
        any_start = {"immutable": ["sex"], "starts": "any", "n_starts": 2}

        found = NICE(predictor, (9, 99), **any_start).fit(train).explain(train.head(1))
        nothing = explain(NICE(predictor, (14, 99), **any_start).fit(train), train.head(1))

        assert found.frame.to_numpy().tolist() == [["f", 9, "a"]]
        reason = (
            "the predictor declines the person with every mutable value of the nearest accepted"
        )
        assert nothing.missing["reason"].str.startswith(reason).all()

    def test_justified_starts_are_used_alone_and_infinite_scores_are_allowed(self):
        method = NICE(lambda rows: rows["a"], (4, 9), justified=True)
        endless = lambda rows: np.where(rows["a"] + rows["b"] >= 8, np.inf, -np.inf)

        assert method.fit(self.TRAIN, [0, 0, 5]).explain(self.PERSON).frame["a"].tolist() == [9]
        for reward in ("sparsity", "proximity", "plausibility"):
            result = NICE(endless, (0, np.inf), reward=reward).fit(self.TRAIN).explain(self.PERSON)
            assert np.isposinf(endless(result.frame)).all()


class TestGrowingSpheres:
    SQUARE = pd.DataFrame({"x": [0.0, 1.0, 0.123456789], "y": [0.0, 1.0, 0.987654321]})

    def test_a_half_space_is_found_just_behind_its_boundary(self):
        method = GrowingSpheres(lambda rows: rows["x"], (0.3, 1.0)).fit(self.SQUARE)
        wide = GrowingSpheres(lambda rows: rows["x"], (0.01, 1.0), radius=0.9).fit(self.SQUARE)

        result, near = method.explain(self.SQUARE.head(1)), wide.explain(self.SQUARE.head(1))

        assert 0.3 <= result.frame["x"].iloc[0] < 0.5
        assert result.frame["y"].tolist() == [0.0]
        # The ball is halved until none of its points is accepted: at most twice as far, nearly.
        assert 0.01 <= near.frame["x"].iloc[0] < 0.03

    @pytest.mark.parametrize("low", [3.0, 7.0, 11.0])
    def test_changes_that_are_not_needed_are_undone(self, low):
        train = pd.DataFrame(np.random.default_rng(0).random((40, 5)), columns=list("abcde"))
        lowest = train.min().to_frame().T
        predictor = lambda rows: np.asarray(rows, dtype=float) @ [1.0, 2.0, 3.0, 4.0, 5.0]

        result = Spheres(predictor, (low, 15.0)).fit(train).explain(lowest)

        # From the lowest row on, every change raises the score, so each can be judged alone.
        by = metrics.Evaluator.fit(train, predictor=predictor, desired=(low, 15.0))
        assert metrics.redundancy(lowest, result.frame, by).tolist() == [0]

    def test_levels_alone_and_missing_levels_can_be_the_answer(self):
        train = pd.DataFrame({"job": list("abc") * 4, "town": list("xy") * 6})
        method = Spheres(lambda rows: rows["job"] == "c", (1, 1)).fit(train)
        gaps = pd.DataFrame({"x": [0.0, 0.5, 1.0, 0.7], "job": ["a", None, "b", None]})
        missing = Spheres(lambda rows: 1.0 * rows["job"].isna(), (1.0, 3.0)).fit(gaps)

        result = method.explain(train.head(2))

        assert result.frame.to_numpy().tolist() == [["c", "x"], ["c", "y"]]
        assert missing.explain(gaps.head(1)).frame["job"].isna().all()

    @given(case=cases(max_rows=20))
    @settings(max_examples=10)
    def test_changed_numbers_lie_towards_the_training_range_and_levels_are_known(self, case):
        numbers = numeric(case.train)
        if case.train[numbers].isna().all().any():
            return
        method = Spheres(case.score, (0.5, 1.0), immutable=case.immutable).fit(case.train)

        result = explain(method, case.people)

        own = case.people.iloc[result.owner]
        for name in case.train:
            pairs = zip(result.frame[name], own[name], strict=True)
            for cell, before in (pair for pair in pairs if not same(*pair)):
                known = case.train[name]
                if name in numbers:
                    least, most = min(known.min(), before), max(known.max(), before)
                    assert least - 1e-12 <= cell <= most + 1e-12
                else:
                    assert any(same(cell, level) for level in known)

    def test_numbers_are_written_as_those_of_their_column_and_constants_stay(self):
        train = pd.DataFrame({"whole": [0, 40, 100], "cents": [0.0, 0.25, 1.0], "fee": 3.0})
        predictor = lambda rows: rows["whole"] / 100 + rows["cents"] + (rows["fee"] > 3)

        result = GrowingSpheres(predictor, (1.1, 3.0)).fit(train).explain(train.head(2))

        assert result.frame["whole"].dtype == train["whole"].dtype
        assert (result.frame["cents"].round(2) == result.frame["cents"]).all()
        assert (result.frame["fee"] == 3.0).all()

    def test_people_outside_of_the_range_can_come_back_and_incomplete_ones_get_a_reason(self):
        train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.0, 1.0]})
        method = Spheres(lambda rows: rows["x"].fillna(0.0), (2.0, 3.0)).fit(train)
        people = pd.DataFrame({"x": [-9.0, 15.0, np.nan], "y": [7.0, 0.0, 0.0]})

        result = explain(method, people)

        assert result.owner.tolist() == [0, 1]
        assert result.frame["x"].between(2.0, 3.0).all()
        assert result.missing["reason"].str.startswith("a number is missing").all()

    def test_an_accepted_row_that_no_random_point_meets_is_no_answer(self):
        method = Spheres(lambda rows: rows["y"] == 0.987654321, (1, 1)).fit(self.SQUARE)

        reason = explain(method, self.SQUARE.head(1)).missing["reason"].tolist()
        assert reason == ["no random point was accepted up to the largest shell"]

    def test_seeds_and_parameters_act_alike_before_and_after_the_fit(self):
        find = lambda **given: answers(
            explain(GrowingSpheres(score, (0.9, 9.0), **given).fit(bank(60)), bank(6, seed=1))
        )
        fitted = GrowingSpheres(score, (0.9, 9.0)).fit(bank(60))

        for changed in ({"n_samples": 7}, {"radius": 0.9}, {"max_shells": 1}, {"random_state": 5}):
            late = explain(
                GrowingSpheres(score, (0.9, 9.0)).fit(bank(60)).set_params(**changed),
                bank(6, seed=1),
            )
            assert answers(late) == find(**changed)
        assert answers(explain(fitted, bank(6, seed=1))) == find() != find(random_state=1)

    def test_a_date_must_be_immutable(self):
        train = self.SQUARE.assign(since=pd.date_range("2024-01-01", periods=3))

        with pytest.raises(SchemaError, match="cannot move the date or duration 'since'"):
            Spheres(lambda rows: rows["x"], (0.3, 1.0)).fit(train)
        method = Spheres(lambda rows: rows["x"], (0.3, 1.0), immutable=["since"]).fit(train)
        kept = method.explain(train.head(1)).frame["since"].tolist()
        assert kept == [pd.Timestamp("2024-01-01")]


class TestFACE:
    LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0]})
    CUT_OFF = "no path over training rows with the same immutable values leads to an accepted one"

    def face(self, low=3.0, **parameters):
        return FACE(lambda rows: np.asarray(rows["x"]), (low, 99.0), **parameters)

    @pytest.mark.parametrize("cost", ["distance", "unit"])
    @given(case=cases(max_rows=18), k=st.integers(1, 4))
    @settings(max_examples=10)
    def test_costs_are_those_of_plain_dijkstra_on_the_graph_by_hand(self, cost, case, k):
        fixed = {"immutable": case.immutable, "n_neighbors": k, "cost": cost}
        method = FACE(case.score, (0.5, 1.0), **fixed).fit(case.train)

        steps = self.graph(case, k, cost)
        targets = np.flatnonzero(case.score(case.train) >= 0.5).tolist()
        for row in range(len(case.train)):
            expected = cheapest(dijkstra(steps, row), targets)
            assert method.cost_[row] == pytest.approx(expected)

    @staticmethod
    def graph(case, k, cost):
        """Rows with equal immutable values, joined if one is among the other's k nearest."""
        rows = [row for _, row in case.train.iterrows()]
        steps = {at: {} for at in range(len(rows))}

        def join(one, other, distance):
            step = distance if cost == "distance" else float(distance > 0)
            steps[one][other] = steps[other][one] = step

        first = [min(j for j in range(len(rows)) if equal(rows[j], row)) for row in rows]
        distinct = sorted(set(first))
        for at in range(len(rows)):
            if first[at] != at:
                join(at, first[at], 0.0)
        for one in distinct:
            others = [
                o for o in distinct if o != one and shares(rows[o], rows[one], case.immutable)
            ]
            # Rounded, so that ties are ties.
            near = sorted((round(l1(rows[o], rows[one], case.train), 12), o) for o in others)
            for distance, other in near[:k]:
                join(one, other, distance)
        return steps

    @given(case=cases(max_rows=20))
    @settings(max_examples=10)
    def test_every_step_is_a_training_row_with_the_persons_immutable_values(self, case):
        fixed = {"immutable": case.immutable, "n_neighbors": 3, "cost": "distance"}
        method = FACE(case.score, (0.5, 1.0), **fixed)
        result = explain(method.fit(case.train), case.people)
        paths = method.paths(case.people)

        for owner, (_, row) in zip(result.owner, result.frame.iterrows(), strict=True):
            person, label = case.people.iloc[owner], case.people.index[owner]
            path = paths[paths.index.get_level_values("factual") == label]
            steps = path.index.get_level_values("step").tolist()
            assert steps == list(range(len(path)))
            assert equal(path.iloc[0], person)
            assert equal(path.iloc[-1], row)
            for _, step in path.iloc[1:].iterrows():
                assert shares(step, person, case.immutable)
                assert any(equal(step, known) for _, known in case.train.iterrows())
            # By distance, a path is as long as the sum of its steps.
            ways = [l1(path.iloc[i + 1], path.iloc[i], case.train) for i in range(len(path) - 1)]
            costs = path.index.get_level_values("cost").to_numpy()
            np.testing.assert_allclose(costs, np.cumsum([0.0, *ways]), atol=ROUNDING)

    def test_the_path_on_a_line_goes_through_every_point(self):
        method = self.face(radius=0.25, cost="unit").fit(self.LINE)

        assert method.explain(self.LINE.head(1)).frame["x"].tolist() == [3.0]
        paths = method.paths(self.LINE.head(1))
        assert paths["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
        assert paths.index.tolist() == [(0, step, float(step)) for step in range(4)]

    def test_who_is_cut_off_gets_a_reason(self):
        apart = pd.DataFrame({"x": [0.0, 1.0, 2.0, 8.0, 9.0, 10.0]})
        sexes = self.LINE.assign(sex=["f", "f", "f", "m", "m"])

        cut = explain(self.face(8.0, radius=0.3).fit(apart), apart.head(3))
        fixed = explain(self.face(immutable=["sex"]).fit(sexes), sexes.head(3))
        alone = explain(self.face(radius=0.25).fit(self.LINE), pd.DataFrame({"x": [-9.0]}))
        joined = self.face(8.0, radius=0.65).fit(apart).explain(apart.head(3))

        assert (
            cut.missing["reason"].tolist() == fixed.missing["reason"].tolist() == [self.CUT_OFF] * 3
        )
        reason = "no training row to go to has the same immutable values"
        assert alone.missing["reason"].tolist() == [reason]
        assert joined.frame["x"].tolist() == [8.0] * 3

    def test_a_detour_of_dense_steps_is_cheaper_than_one_long_step(self):
        chance = np.random.default_rng(0)
        # A crowd from the person along y and on to a target; another target straight ahead.
        crowd = np.column_stack([np.zeros(60), np.linspace(0, 0.55, 60)])
        crowd = crowd + chance.normal(size=(60, 2)) / 200
        rows = np.vstack([crowd, [[0.0, 0.6], [0.5, 0.0], [1, 1]]])
        train = pd.DataFrame(rows, columns=["x", "y"])
        accepts = lambda rows: (rows["x"] >= 0.5) | (rows["y"] >= 0.6)

        def found(cost):
            method = FACE(accepts, (1, 1), n_neighbors=62, cost=cost).fit(train)
            person = pd.DataFrame({"x": [0.0], "y": [0.0]})
            return method.explain(person).frame.iloc[0].round(3).tolist()

        assert found("distance") == [0.5, 0.0]
        assert found("density") == [0.0, 0.6]

    def test_density_counts_every_copy_of_a_row(self):
        train = pd.DataFrame({"x": [0.0] * 4 + [1.0, 3.0]})
        method = self.face(n_neighbors=2).fit(train)

        # Of the two nearest rows of 0, both are copies; of 1, two at 0; of 3, those at 1 and 0.
        h = np.median([1 / 3, 1 / 3, 2 / 3, 1.0])
        one, two, three = (np.exp(-gap / 3 / h) for gap in (1, 2, 3))
        expected = [1.0] * 4 + [(1 + 2 * one) / 3, (1 + two + three) / 3]
        np.testing.assert_allclose(method.density_, expected)

    def test_an_answer_can_be_asked_to_have_a_score_and_a_density(self):
        crowded = pd.DataFrame({"x": [0.0, 3.0, 3.1, 3.2, 9.0, 9.1, 9.2, 9.3, 9.4]})
        method = self.face(n_neighbors=4).fit(crowded)
        most = float(method.density_.max())

        sure = self.face(min_score=9.0).fit(crowded).explain(crowded.head(1))
        dense = self.face(n_neighbors=4, min_density=most).fit(crowded).explain(crowded.head(1))

        assert sure.frame["x"].tolist() == [9.0]
        assert dense.frame["x"].tolist() == [crowded["x"].iloc[method.density_.argmax()]]

    def test_people_are_joined_to_training_rows_and_not_to_each_other(self):
        method = self.face(radius=0.25).fit(pd.DataFrame({"x": [3.0, 7.0]}))

        result = explain(method, pd.DataFrame({"x": [0.0, 1.0, 2.0, 2.9]}))

        assert result.owner.tolist() == [2, 3]

    def test_many_equal_rows_do_not_cut_a_table_into_pieces(self):
        chance = np.random.default_rng(0)
        train = pd.DataFrame({name: chance.choice(["a", "b"], 300) for name in "xyz"})
        method = FACE(lambda rows: (rows[["x", "y"]] == "b").all(axis=1), (1, 1)).fit(train)

        result = method.explain(train)

        assert (result.people["status"] != "no answer").all()
        assert result.measures["l1"].max() == 2.0

    def test_paths_leave_out_people_without_an_answer_and_keep_labels_and_column_order(self):
        train = self.LINE.assign(k=list("aaaab"))
        people = pd.DataFrame({"k": ["a", "a"], "x": [0.0, 4.0]}, index=["p", "q"])

        paths = self.face(n_neighbors=2, immutable=["k"]).fit(train).paths(people)

        assert list(paths.columns) == ["k", "x"]
        assert set(paths.index.get_level_values("factual")) == {"p"}
        with pytest.raises(NotFittedError, match="Call fit first"):
            self.face().paths(people)


def measured(method, train, people):
    """Changes and distance of everybody's answer, by label."""
    result = explain(method.fit(train), people)
    return result.measures[["sparsity", "l1"]].reset_index(level=1, drop=True)


@given(case=cases(max_rows=20))
@settings(max_examples=10)
def test_the_nearest_unlike_row_bounds_face_from_below_and_nice_from_above(case):
    # A number far outside of the range can be nearer by way of a missing one.
    train, numbers = case.train, case.train.select_dtypes("number").columns
    if train[numbers].isna().any(axis=None):
        return
    own = case.people[numbers]
    inside = (own >= train[numbers].min()) & (own <= train[numbers].max())
    people = case.people[inside.all(axis=1)]
    fixed = {"predictor": case.score, "desired": (0.5, 1.0), "immutable": case.immutable}

    near = measured(NearestUnlike(**fixed), train, people)
    face, joined = (
        measured(FACE(**fixed, n_neighbors=k, cost="distance"), train, people)
        for k in (3, len(train))
    )
    nice, starts = (measured(NICE(**fixed, n_starts=n), train, people) for n in (1, 4))

    assert set(face.index) <= set(near.index)
    assert (face["l1"] >= near["l1"].loc[face.index] - ROUNDING).all()
    np.testing.assert_allclose(joined["l1"], near["l1"], atol=ROUNDING)
    assert nice.index.equals(near.index)
    assert (nice["l1"] <= near["l1"] + ROUNDING).all()
    assert (nice["sparsity"] <= near["sparsity"]).all()
    assert (starts["sparsity"] <= nice["sparsity"]).all()


WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import pandas as pd, mcce
from mcce_lab import baselines
frame = pd.DataFrame({"x": range(20)})
class Half:
    offers_gradients = True
    def __call__(self, rows): return rows["x"] / 20
    def encode_inputs(self, rows): return rows[["x"]].to_numpy(float) / 20
    def differentiate(self, inputs): return inputs[:, 0]
for name in ("Wachter", "CCHVAE", "REViSE", "CLUE", "CRUDS", "CEM"):
    try:
        getattr(baselines, name)(Half(), (0.5, 1.0)).fit(frame)
    except mcce.MissingExtraError as error:
        assert str(error).startswith(f"{name} needs torch, "), error
        assert 'pip install "./lab[deep]"' in str(error), error
    else:
        raise AssertionError(name)
for name in ("made", "ctgan", "cgan"):
    try:
        mcce.MCCE(Half(), (0.5, 1.0), generator=name).fit(frame)
    except mcce.MissingExtraError as error:
        assert 'needs torch, which is not installed: pip install "./lab[deep]"' in str(error), error
    else:
        raise AssertionError(name)
print(len(baselines.NearestUnlike(Half(), (0.5, 1.0)).fit(frame).explain(frame.head(3)).frame))
"""


@pytest.mark.slow
def test_without_torch_the_package_works_and_errors_name_the_extra():
    command = [sys.executable, "-c", WITHOUT_TORCH]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr
