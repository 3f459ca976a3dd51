"""What a report says about the whole run, as plain texts for a template."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...counterfactuals import ALREADY, ANSWERED, UNANSWERED, Counterfactuals
from ...explainer import MCCE, requirements_of
from ...tables.text import plain
from ..nothing import kind_of
from ..plots import plot_changed_features
from ..plots.selecting import best_answers
from .groups import GroupView, TableView, view_groups
from .images import Image, make_image
from .people import MAX_NAME, STATUS
from .words import PageWords

# Features in the picture, and people who are named for each reason.
MOST_FEATURES, MOST_NAMED = 15, 30
MAX_SETTING = 300
# Settings of the machine, and what the page shows elsewhere.
LEFT_OUT = {"predictor", "constraints", "immutable", "mutable", "kinds", "roles", "verbose"}
LEFT_OUT |= {"n_jobs", "memory", "random_state"}


@dataclass(frozen=True)
class ReasonView:
    """Why people have no answer: the sentence, how many, and the first of them by row and name."""

    text: str
    n_people: str
    people: list[tuple[int, str]]
    more: bool


@dataclass(frozen=True)
class RunView:
    """The run, as the page shows it."""

    counts: list[tuple[str, str, str]]
    shares: list[tuple[str, float]]
    figures: list[tuple[str, str]]
    changed: Image | None
    changed_table: TableView
    groups: list[GroupView]
    reasons: list[ReasonView]
    rules: list[str]
    relations: list[str]
    settings: list[tuple[str, str]]
    columns: TableView
    facts: list[tuple[str, str]]


def view_run(
    explainer: MCCE,
    result: Counterfactuals[pd.DataFrame],
    words: PageWords,
    names: Mapping[int, Any],
    groups: Sequence[Hashable] | None,
    constraints: Any,
) -> RunView:
    """The view of a run."""
    schema = explainer.schema_
    required = requirements_of(explainer, constraints)
    return RunView(
        counts=_counts(result, words),
        shares=_shares(result),
        figures=_figures(result, words),
        changed=_picture_changes(result, words),
        changed_table=_tabulate_changes(result, words),
        groups=view_groups(result, schema, words, groups),
        reasons=_reasons(result, words, names),
        rules=[plain(repr(rule), MAX_SETTING) for rule in required.constraints.listed],
        relations=[plain(relation.name, MAX_SETTING) for relation in required.relations],
        settings=_settings(explainer),
        columns=_tabulate_columns(explainer, words),
        facts=_facts(explainer, words),
    )


def _count_status(result: Counterfactuals[pd.DataFrame], status: str) -> int:
    return int((result.people["status"] == status).sum())


def _counts(result: Counterfactuals[pd.DataFrame], words: PageWords) -> list[tuple[str, str, str]]:
    """How many people there are, and how many have which status: key, number and share."""
    n_people = len(result.people)
    counts = [(key, _count_status(result, status)) for status, key in STATUS.items()]
    shown = [
        (key, words.number(n), words.percent(n / n_people) if n_people else "") for key, n in counts
    ]
    return [("people", words.number(n_people), ""), *shown]


def _shares(result: Counterfactuals[pd.DataFrame]) -> list[tuple[str, float]]:
    """Percent of people with each status, for a bar."""
    n_people = max(1, len(result.people))
    return [
        (key, round(100 * _count_status(result, status) / n_people, 2))
        for status, key in STATUS.items()
    ]


def _figures(result: Counterfactuals[pd.DataFrame], words: PageWords) -> list[tuple[str, str]]:
    """Means of people's best answers."""
    best = result.measures.iloc[best_answers(result)]
    n_declined = len(result.people) - _count_status(result, ALREADY)
    coverage = _count_status(result, ANSWERED) / n_declined if n_declined else np.nan
    figures = [
        (words.say("coverage"), words.percent(coverage)),
        (words.say("mean_sparsity"), words.number(best["sparsity"].mean(), 2)),
        (words.say("mean_distance"), words.number(best["gower"].mean())),
    ]
    if "plausibility" in best:
        middle = best["plausibility"].median()
        figures.append((words.say("median_plausibility"), words.number(middle, 2)))
    per_person = result.n_evaluated / n_declined if n_declined else np.nan
    figures.append((words.say("evaluated"), words.number(per_person, 0)))
    return figures


def _picture_changes(result: Counterfactuals[pd.DataFrame], words: PageWords) -> Image | None:
    if not len(result.frame):
        return None
    changes = _count_changes(result)
    n_shown = min(MOST_FEATURES, len(changes))
    return make_image(
        lambda axes: plot_changed_features(
            result, n_features=MOST_FEATURES, labels=words.cells.labels, ax=axes
        ),
        1.2 + 0.36 * n_shown,
        words.say("changed_alt"),
    )


def _count_changes(result: Counterfactuals[pd.DataFrame]) -> list[tuple[Hashable, int]]:
    """How many people's best answers change a feature, the most first."""
    changes = result.changes()
    counts: dict[Hashable, int] = {}
    for name in changes.loc[changes["rank"] == 1, "feature"]:
        counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda pair: -pair[1])


def _tabulate_changes(result: Counterfactuals[pd.DataFrame], words: PageWords) -> TableView:
    n_answered = max(1, _count_status(result, ANSWERED))
    return TableView(
        words.say("changed_caption"),
        [words.say("feature"), words.say("people"), words.say("share")],
        [
            [words.cells.name(name), words.number(n), words.percent(n / n_answered)]
            for name, n in _count_changes(result)
        ],
    )


def _reasons(
    result: Counterfactuals[pd.DataFrame], words: PageWords, names: Mapping[int, Any]
) -> list[ReasonView]:
    """Why people have no answer, the most frequent reason first."""
    without: dict[str, list[int]] = {}
    missing = result.people[result.people["status"] == UNANSWERED]
    for row, reason in zip(missing.index.tolist(), missing["reason"], strict=True):
        without.setdefault(kind_of(reason), []).append(row)
    return [
        ReasonView(
            words.language.messages[f"nothing.{kind}"],
            words.number(len(rows)),
            [(row, plain(names[row], MAX_NAME)) for row in rows[:MOST_NAMED]],
            len(rows) > MOST_NAMED,
        )
        for kind, rows in sorted(without.items(), key=lambda pair: -len(pair[1]))
    ]


def _settings(explainer: MCCE) -> list[tuple[str, str]]:
    given: Mapping[str, Any] = explainer.get_params(deep=False)
    shown = {name: value for name, value in given.items() if name not in LEFT_OUT}
    shown["seed"] = explainer.seed_
    return [
        (name, plain(value if isinstance(value, str) else repr(value), MAX_SETTING))
        for name, value in shown.items()
        if value is not None
    ]


def _facts(explainer: MCCE, words: PageWords) -> list[tuple[str, str]]:
    """What the explainer learned from."""
    fitted = explainer.fitted_
    facts = []
    if fitted.value_counts:
        n_train = int(fitted.value_counts[0].sum())
        facts.append((words.say("n_train"), words.number(n_train)))
        facts.append((words.say("share_desired"), words.percent(fitted.n_desired / n_train)))
    facts.append((words.say("n_desired"), words.number(fitted.n_desired)))
    facts.append((words.say("n_features"), words.number(len(fitted.schema.features))))
    return facts


def _tabulate_columns(explainer: MCCE, words: PageWords) -> TableView:
    rows = [
        [
            words.cells.name(feature.name),
            plain(feature.name),
            words.say(f"kind_{feature.kind}"),
            words.say("role_held" if feature.immutable else "role_free"),
            words.number(len(feature.known)),
            words.flag(feature.has_missing),
        ]
        for feature in explainer.schema_.features
    ]
    heads = [words.say(key) for key in ("feature", "column", "kind", "role", "values", "missing")]
    return TableView(words.say("columns_caption"), heads, rows, numeric=False)
