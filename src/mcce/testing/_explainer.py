"""Whether an object keeps the promises of :class:`mcce.protocols.Explainer`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..counterfactuals.parts import ALREADY, ANSWERED, UNANSWERED
from ..counterfactuals.result import Counterfactuals
from ..errors import McceWarning
from ..protocols import Explainer
from ..tables.columns import differ
from ._cases import (
    DESIRED,
    IMMUTABLE,
    Case,
    demand,
    demand_itself,
    make_frame,
    score,
    score_nothing,
)

N_PEOPLE = 30
MakeExplainer = Callable[..., Explainer]


def check_explainer(make_explainer: MakeExplainer) -> None:
    """Check an explainer.

    ``fit`` returns the explainer and can be called again; data are never changed. ``explain``
    accounts for everybody: answered, already desired, or without an answer and with a reason, also
    if the predictor never decides as desired. Counterfactuals are valid by a fresh call of the
    predictor, keep immutable features, and have the columns, dtypes and labels of the people.
    Nobody's answers depend on who else is explained, or in which order. An explainer with
    ``get_params`` can be cloned.

    Parameters
    ----------
    make_explainer
        Called as ``make_explainer(predictor, desired, immutable)``: a callable from a frame to
        scores, a tuple of two numbers and a list of column names. Returns an unfitted explainer,
        which must be deterministic: give it a fixed seed.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from mcce import MCCE
    >>> def make_explainer(predictor, desired, immutable):
    ...     return MCCE(predictor, desired, immutable=immutable, n_samples=100, random_state=0)
    >>> check_explainer(make_explainer)
    """
    _ExplainerCase(make_explainer).run()


class _ExplainerCase(Case):
    """A fitted explainer, and what it says of some people."""

    def __init__(self, make_explainer: MakeExplainer) -> None:
        self.make = make_explainer
        self.training = make_frame()
        labels = [f"person {number}" for number in range(N_PEOPLE)]
        self.people = make_frame(N_PEOPLE, seed=1).set_axis(labels)
        self.kept = self.training.copy(), self.people.copy()
        self.explainer = self.new()
        self.fitted = self.explainer.fit(self.training)
        self.result: Any = explain(self.explainer, self.people)

    def new(self, predictor: Callable[[Any], np.ndarray] = score) -> Explainer:
        """A new, unfitted explainer."""
        return self.make(predictor, DESIRED, list(IMMUTABLE))

    def check_fit_returns_the_explainer(self) -> None:
        demand_itself(self.fitted, self.explainer, "explainer")

    def check_explain_returns_counterfactuals(self) -> None:
        got = type(self.result).__name__
        demand(isinstance(self.result, Counterfactuals), "explain", "a Counterfactuals", f"a {got}")

    def check_data_stay_as_they_are(self) -> None:
        for name, now, before in zip(
            ("training data", "people"), (self.training, self.people), self.kept, strict=True
        ):
            try:
                pd.testing.assert_frame_equal(now, before)
            except AssertionError as error:
                raise AssertionError(
                    f"Fitting and explaining: expected unchanged {name}, got {error}"
                ) from error

    def check_everybody_is_accounted_for(self) -> None:
        people, check = self.result.people, "The table people"
        demand(
            people.index.tolist() == self.people.index.tolist(),
            check,
            "one row per person in the order they came, with their labels",
            f"{people.index.tolist()!r}",
        )
        desired = _is_desired(self.people)
        n_answers = np.bincount(self.result.owner, minlength=len(people))
        expected = np.where(
            desired, ALREADY, np.where(n_answers > 0, ANSWERED, UNANSWERED)
        ).tolist()
        got = people["status"].tolist()
        demand(got == expected, f"{check}, status", f"{expected!r}", f"{got!r}")
        silent = people.index[(people["status"] == UNANSWERED) & (people["reason"] == "")].tolist()
        demand(not silent, f"{check}, reason", "a reason for everybody without an answer", silent)

    def check_somebody_is_answered(self) -> None:
        answered = int((self.result.people["status"] == ANSWERED).sum())
        check = "Counterfactuals for people who could have one"
        demand(answered > 0, check, "at least one person with an answer", "nobody")

    def check_columns_dtypes_and_labels_are_those_of_the_people(self) -> None:
        frame, people, check = self.result.frame, self.people, "The frame of counterfactuals"
        names = list(people.columns)
        demand(list(frame.columns) == names, check, f"the columns {names!r}", list(frame.columns))
        other = {n: str(frame[n].dtype) for n in names if frame[n].dtype != people[n].dtype}
        demand(not other, check, "the dtypes of the people", f"{other!r}")
        labels = people.index[self.result.owner].tolist()
        got = frame.index.get_level_values("factual").tolist()
        demand(got == labels, check, "the labels of the people by owner", f"{got!r}")

    def check_immutable_features_stay(self) -> None:
        before = self.people.iloc[self.result.owner]
        for name in IMMUTABLE:
            changed = int(differ(before[name], self.result.frame[name]).sum())
            demand(
                not changed,
                f"The immutable feature {name!r}",
                "the person's own value in every counterfactual",
                f"{changed} other values",
            )

    def check_counterfactuals_are_valid(self) -> None:
        valid = _is_desired(self.result.frame)
        refused = self.result.frame.index[~valid].tolist()
        demand(
            not refused,
            "A fresh call of the predictor on the counterfactuals",
            "every one decided as desired",
            f"{len(refused)} that are not, first {refused[:1]!r}",
        )

    def check_other_people_change_nothing(self) -> None:
        half = self.people.iloc[::2]
        self.demand_same(explain(self.explainer, half), "Explaining only some of the people")

    def check_the_order_of_people_changes_nothing(self) -> None:
        backwards = explain(self.explainer, self.people.iloc[::-1])
        self.demand_same(backwards, "Explaining the people in another order")

    def check_a_second_fit_gives_the_same(self) -> None:
        again = self.new().fit(self.training).fit(self.training)
        self.demand_same(explain(again, self.people), "Fitting a second time")

    def check_a_clone_gives_the_same(self) -> None:
        if not hasattr(self.explainer, "get_params"):
            return
        check = "Cloning"
        try:
            copy = clone(self.explainer)
        except Exception as error:
            raise AssertionError(f"{check}: expected an unfitted copy, got {error!r}.") from error
        self.demand_same(explain(copy.fit(self.training), self.people), check)

    def check_a_predictor_that_never_agrees_gives_reasons(self) -> None:
        check = "A predictor that never decides as desired"
        try:
            result = explain(self.new(score_nothing).fit(self.training), self.people)
        except Exception as error:
            raise AssertionError(f"{check}: expected reasons, got {error!r}.") from error
        status = sorted(set(result.people["status"]))
        demand(status == [UNANSWERED], check, f"{UNANSWERED!r} for everybody", status)
        reasons = set(result.people["reason"])
        demand("" not in reasons, check, "a reason for everybody", f"{sorted(reasons)!r}")

    def demand_same(self, result: Counterfactuals[pd.DataFrame], check: str) -> None:
        """The answers of some people are those of the whole batch."""
        whole = self.result.frame
        for label in result.people.index:
            one, other = (
                frame[frame.index.isin([label], level=0)] for frame in (whole, result.frame)
            )
            demand(
                one.astype(object).equals(other.astype(object)),
                check,
                f"the same counterfactuals of {label!r}: {one.to_dict('records')!r}",
                f"{other.to_dict('records')!r}",
            )


def explain(explainer: Explainer, people: pd.DataFrame) -> Counterfactuals[pd.DataFrame]:
    """A result without the warnings about people who have no answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people)


def _is_desired(frame: pd.DataFrame) -> np.ndarray:
    scores = score(frame)
    return (scores >= DESIRED[0]) & (scores <= DESIRED[1])
