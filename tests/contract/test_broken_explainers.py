"""Each check for explainers can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcce import Counterfactuals, Schema
from mcce.predictors import make_decision
from mcce.testing import check_explainer


class Neighbour:
    """The accepted training row with the person's immutable values that has the highest score."""

    def __init__(self, predictor, desired, immutable):
        self.predictor, self.desired, self.immutable = predictor, desired, immutable

    def fit(self, X):
        self.schema = Schema.learn(X, immutable=self.immutable)
        self.decision = make_decision(self.predictor, self.desired)
        scored = self.decision.score(X)
        accepted = X.assign(score=scored.score)[scored.valid].sort_values("score", kind="stable")
        self.best = accepted.drop_duplicates(self.immutable, keep="last")
        return self

    def explain(self, X):
        found = X[self.immutable].assign(owner=range(len(X))).merge(self.best, on=self.immutable)
        answers = self.alter(found[X.columns].astype(X.dtypes))
        return Counterfactuals.from_frame(
            X, answers, schema=self.schema, decision=self.decision, owner=found["owner"].to_numpy()
        )

    def alter(self, answers):
        return answers


def test_an_explainer_that_returns_our_result_passes():
    check_explainer(Neighbour)


class FitElsewhere(Neighbour):
    def fit(self, X):
        super().fit(X)
        return [self]


class Greedy(Neighbour):
    def fit(self, X):
        super().fit(X.copy())
        X.iloc[0, 0] += 10
        return self


class Mute(Neighbour):
    def fit(self, X):
        super().fit(X)
        self.best = self.best.head(0)
        return self


class Raising(Neighbour):
    def fit(self, X):
        super().fit(X)
        if self.best.empty:
            raise ValueError("nobody is accepted")
        return self


class Uncloneable(Neighbour):
    def get_params(self, deep=True):
        raise TypeError("no parameters")


class Bare(Neighbour):
    def explain(self, X):
        return super().explain(X).frame


class Scribbling(Neighbour):
    def explain(self, X):
        result = super().explain(X.copy())
        X.iloc[0, 0] += 10
        return result


class InOrder(Neighbour):
    def explain(self, X):
        if X.index[0] != "person 0":
            self.best = self.best.head(0)
        return super().explain(X)


class Ageing(Neighbour):
    def alter(self, answers):
        return answers.assign(age=answers["age"] + 1)


class Refused(Neighbour):
    def alter(self, answers):
        return answers.assign(salary=0.0, years=0, housing="rent")


class Crowded(Neighbour):
    def explain(self, X):
        self.n_people = len(X)
        return super().explain(X)

    def alter(self, answers):
        return answers.assign(years=11 + self.n_people % 2)


class Learning(Neighbour):
    n_fits = 0

    def fit(self, X):
        self.n_fits += 1
        return super().fit(X)

    def alter(self, answers):
        return answers.assign(years=11 + self.n_fits)


class Losing(Neighbour):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, people=result.people.iloc[1:])


class Silent(Mute):
    def explain(self, X):
        result = super().explain(X)
        return replace(result, people=result.people.assign(reason=""))


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
        labels = [f"{label}!" for label in result.frame.index.levels[0]]
        index = result.frame.index.set_levels(labels, level=0)
        return replace(result, frame=result.frame.set_axis(index))


@pytest.mark.slow
def test_a_broken_promise_is_named():
    for explainer, message in [
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
    ]:
        with pytest.raises(AssertionError, match=message):
            check_explainer(explainer)
