"""Why somebody was declined: the features whose own value costs the most score.

The value of one feature is replaced at a time, with what follows from it, and the row is scored
again: the gain is how much more desirable the score is then, on average over the values tried.
These are the values of the person's answers; or, thoroughly, those of accepted people, for every
feature, whether the person can change it or not.

Always true: a person's reasons do not depend on other people. A reason speaks for the direction of
the person's answers, and for none if these disagree.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..analysis.answers import AnswerVariants, EncodedAnswers, Requirements
from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals
from ..explainer import MCCE
from ..kernels import FloatArray, IntArray
from ..tables.features import Feature
from .changes import AnswerChanges, Change, cells_of
from .labels import Labels

# The most reasons that a letter gives.
MAX_REASONS = 4
# Values of accepted people that are tried for each feature; fewer if there are many features.
N_VALUES, MAX_ROWS = 10, 500


def principal_reasons(
    explainer: MCCE,
    required: Requirements,
    final: Counterfactuals[pd.DataFrame],
    theirs: Sequence[Sequence[AnswerChanges]],
    labels: Labels,
    *,
    thorough: bool,
) -> list[list[Change]]:
    """Changes that say why people were declined, for each of them, the strongest first."""
    reasons: list[dict[Hashable, tuple[float, Change]]] = [{} for _ in theirs]
    changes = [_by_feature(answers, labels) for answers in theirs]
    declined = np.flatnonzero(final.people["status"] != ALREADY)
    for feature in explainer.schema_.features:
        name = feature.name
        if thorough:
            values = _typical(explainer, feature)
            people, cells = (
                declined.repeat(len(values)),
                pd.concat([values] * max(1, declined.size)),
            )
        else:
            answers = np.flatnonzero([name in changes[person] for person in final.owner])
            people, cells = final.owner[answers], final.frame[name].iloc[answers]
        if not people.size:
            continue
        gains = _gains(explainer, required, final, people, cells)
        own, tried = cells_of(final.factuals[name]), cells_of(cells)
        for person in np.unique(people).tolist():
            mine = np.flatnonzero(people == person)
            best = tried[mine[int(gains[mine].argmax())]]
            known = Change(name, own[person], best, feature.kind == "numeric")
            change = changes[person].get(name, known)
            reasons[person][name] = float(gains[mine].mean()), change
    return [_strongest(list(found.values())) for found in reasons]


def _by_feature(answers: Sequence[AnswerChanges], labels: Labels) -> dict[Hashable, Change]:
    """A person's changes by feature; vague if answers disagree on the direction."""
    found: dict[Hashable, Change] = {}
    for change in (one for answer in answers for one in answer.actions):
        first, order = found.setdefault(change.feature, change), labels.of(change.feature).order
        if change.direction(order) != first.direction(order):
            found[change.feature] = replace(first, vague=True)
    return found


def _strongest(reasons: Sequence[tuple[float, Change]]) -> list[Change]:
    """The changes with the largest gains; one at least, and no other without a gain."""
    ordered = sorted(reasons, key=lambda reason: -reason[0])
    return [one for at, (gain, one) in enumerate(ordered[:MAX_REASONS]) if gain > 0 or not at]


def _typical(explainer: MCCE, feature: Feature) -> pd.Series[Any]:
    """Values of accepted people of training, as frequent as they are; else of all values."""
    fitted, schema = explainer.fitted_, explainer.schema_
    codes = np.arange(len(feature.known))
    if fitted.plausibility is not None:
        codes = np.sort(fitted.plausibility.codes_[schema.names.index(feature.name)])
    n_values = max(2, min(N_VALUES, MAX_ROWS // len(schema.features)))
    places = (np.arange(n_values) + 0.5) / n_values * codes.size
    return feature.table.iloc[codes[places.astype(np.int64)]]


def _gains(
    explainer: MCCE,
    required: Requirements,
    final: Counterfactuals[pd.DataFrame],
    people: IntArray,
    cells: pd.Series[Any],
) -> FloatArray:
    """How much more desirable the scores of people are with another value of one feature each."""
    schema, decision = explainer.schema_, explainer.decision_
    own = final.factuals.iloc[people].reset_index(drop=True)
    changed = own.copy()
    changed[cells.name] = cells.reset_index(drop=True)
    rows = schema.encode(changed)
    if required.computed and not schema.features[schema.names.index(cells.name)].immutable:
        answers = EncodedAnswers.make(
            schema.encode(own), np.arange(len(own)), rows, required.computed
        )
        variants = AnswerVariants(answers, required.computed, required.constraints)
        frame = variants.make(np.arange(len(own)), answers.codes).frame
    else:
        frame = rows.frame
    before = final.people["score"].to_numpy(dtype=float)[people]
    return decision.desirability(decision.score(frame).score) - decision.desirability(before)
