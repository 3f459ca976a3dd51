"""The checks for explainers: every search of ours passes, and each check can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Counterfactuals, Schema
from mcce.predictors.desired import make_decision
from mcce.testing import check_explainer


@pytest.mark.parametrize(
    "search", ["paper", "balanced", "sparse", "plausible", "near", "fast", "exact"]
)
def test_every_search_passes(search):
    check_explainer(
        lambda predictor, desired, immutable: MCCE(
            predictor, desired, immutable=immutable, search=search, random_state=0
        )
    )


class Neighbour:
    """The training row of a person with the same immutable values that has the highest score."""

    def __init__(self, predictor, desired, immutable):
        self.predictor, self.desired, self.immutable = predictor, desired, immutable

    def fit(self, X):
        self.schema = Schema.learn(X, immutable=self.immutable)
        self.decision = make_decision(self.predictor, self.desired)
        scored = self.decision.score(X)
        self.accepted = X[scored.valid].assign(score=scored.score[scored.valid])
        return self

    def explain(self, X):
        rows = [self.answer(X.iloc[place]) for place in range(len(X))]
        return self.result(X, np.flatnonzero([r is not None for r in rows]), rows)

    def answer(self, person):
        same = (self.accepted[self.immutable] == person[self.immutable]).all(axis=1)
        best = self.accepted[same].sort_values("score", kind="stable")
        return None if best.empty else best.iloc[[-1]].drop(columns="score")

    def result(self, X, owner, rows):
        answers = pd.concat([X.iloc[:0], *(rows[place] for place in owner)], ignore_index=True)
        return Counterfactuals.from_frame(
            X, answers.astype(X.dtypes), schema=self.schema, decision=self.decision, owner=owner
        )


def test_an_explainer_that_returns_our_result_passes():
    check_explainer(Neighbour)


class FitElsewhere(Neighbour):
    def fit(self, X):
        super().fit(X)
        return [self]


class Bare(Neighbour):
    def explain(self, X):
        return super().explain(X).frame


class Scribbling(Neighbour):
    def explain(self, X):
        result = super().explain(X.copy())
        X.iloc[0, 0] += 10
        return result


class Losing(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, people=result.people.iloc[1:])


class Silent(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, people=result.people.assign(reason=""))

    def answer(self, person):
        return None


class Mute(Neighbour):
    def answer(self, person):
        return None


class Misreporting(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, people=result.people.assign(status="answered"))


class Reordering(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, frame=result.frame.iloc[:, ::-1])


class Widening(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, frame=result.frame.astype({"years": float}))


class Relabelling(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        index = result.frame.index.set_levels(
            [str(label) + "!" for label in result.frame.index.levels[0]], level=0
        )
        return replace(result, frame=result.frame.set_axis(index))


class Ageing(Neighbour):
    def answer(self, person):
        found = super().answer(person)
        return None if found is None else found.assign(age=found["age"] + 1)


class Refused(Neighbour):
    def answer(self, person):
        found = super().answer(person)
        return None if found is None else found.assign(salary=0.0, years=0, housing="rent")


class Crowded(Neighbour):
    def explain(self, X):
        self.n_people = len(X)
        return super().explain(X)

    def answer(self, person):
        found = super().answer(person)
        return None if found is None else found.assign(years=11 + self.n_people % 2)


class InOrder(Neighbour):
    def result(self, X, owner, rows):
        return super().result(X, owner if X.index[0] == "person 0" else owner[:0], rows)


class Greedy(Neighbour):
    def fit(self, X):
        super().fit(X.copy())
        X.iloc[0, 0] += 10
        return self


class Learning(Neighbour):
    n_fits = 0

    def fit(self, X):
        self.n_fits += 1
        return super().fit(X)

    def answer(self, person):
        found = super().answer(person)
        return None if found is None else found.assign(years=11 + self.n_fits)


class Uncloneable(Neighbour):
    def get_params(self, deep=True):
        raise TypeError("no parameters")


class Raising(Neighbour):
    def fit(self, X):
        super().fit(X)
        if self.accepted.empty:
            raise ValueError("nobody is accepted")
        return self


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (FitElsewhere, "fit returns the explainer itself"),
        (Bare, "explain: expected a Counterfactuals, got a DataFrame"),
        (Scribbling, "expected unchanged people"),
        (Greedy, "expected unchanged training data"),
        (Losing, "one row per person in the order they came"),
        (Misreporting, "The table people, status"),
        (Silent, "a reason for everybody without an answer"),
        (Mute, "at least one person with an answer, got nobody"),
        (Reordering, "The frame of counterfactuals: expected the columns"),
        (Widening, "the dtypes of the people, got .*years.*float64"),
        (Relabelling, "the labels of the people by owner"),
        (Ageing, "The immutable feature 'age'"),
        (Refused, "A fresh call of the predictor"),
        (Crowded, "Explaining only some of the people"),
        (InOrder, "Explaining the people in another order"),
        (Learning, "Fitting a second time"),
        (Uncloneable, "Cloning: expected an unfitted copy"),
        (Raising, "A predictor that never decides as desired: expected reasons"),
    ],
)
def test_a_broken_promise_is_named(explainer, message):
    with pytest.raises(AssertionError, match=message):
        check_explainer(explainer)
