"""What a report says about the whole run, and what answers cost by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...counterfactuals import ALREADY, ANSWERED, UNANSWERED, Counterfactuals
from ...errors import ParameterError, shorten
from ...explainer import MCCE, requirements_of
from ...kernels import IntArray
from ...tables.columns import is_measured
from ...tables.schema import Schema
from ...tables.text import plain
from ..changes import cells_of
from ..label_checks import level_key
from ..plots import plot_changed_features, plot_group_costs
from ..plots.person import level_order
from ..plots.style import best_answers
from ..sentences import kind_of
from .page import Image, PageWords, TableView, make_image
from .people_section import MAX_NAME, STATUS

# Features in the picture, and people who are named for each reason.
MOST_FEATURES, MOST_NAMED = 15, 30
MAX_SETTING = 300
# Settings of the machine, and what the page shows elsewhere.
LEFT_OUT = {"predictor", "constraints", "immutable", "mutable", "kinds", "roles", "verbose"}
LEFT_OUT |= {"n_jobs", "memory", "random_state"}
# Groups of a column, and columns that are compared unless asked for.
MOST_GROUPS, MOST_COLUMNS = 12, 4
# Parts that numbers of many values are cut into.
N_PARTS = 4


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
    return Counter(changes.loc[changes["rank"] == 1, "feature"]).most_common()


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


@dataclass(frozen=True)
class GroupView:
    """Costs by the groups of one column."""

    name: str
    image: Image | None
    table: TableView


def view_groups(
    result: Counterfactuals[pd.DataFrame],
    schema: Schema,
    words: PageWords,
    groups: Sequence[Hashable] | None,
) -> list[GroupView]:
    """The costs by groups."""
    columns = _choose(result, schema, words) if groups is None else _check(groups, result)
    return [_view(result, name, words) for name in columns]


def _choose(
    result: Counterfactuals[pd.DataFrame], schema: Schema, words: PageWords
) -> list[Hashable]:
    """Columns that nobody can change and that have few values."""
    names = [feature.name for feature in schema.features if feature.immutable]
    sizes = {name: len(_members(result, name, words)) for name in names}
    return [name for name in names if 2 <= sizes[name] <= MOST_GROUPS][:MOST_COLUMNS]


def _check(groups: Any, result: Counterfactuals[pd.DataFrame]) -> list[Hashable]:
    names = [groups] if isinstance(groups, str) else list(groups)
    unknown = [name for name in names if name not in result.factuals.columns]
    if unknown:
        raise ParameterError(
            f"groups must be columns of the people, got {shorten(unknown, 200)}. The columns are "
            f"{shorten(list(result.factuals.columns), 300)}."
        )
    return names


def _members(
    result: Counterfactuals[pd.DataFrame], name: Hashable, words: PageWords
) -> dict[str, IntArray]:
    """The people of each group by its name, in the order of the groups."""
    column = result.factuals[name].reset_index(drop=True)
    if is_measured(column.dtype) and column.nunique() > MOST_GROUPS:
        return _quarters(column, words)
    cells = cells_of(column)
    order = level_order([column], cells)
    numbers = np.array([len(order) if c is None else order[level_key(c)] for c in cells], np.int64)
    members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    texts = words.cells.values(name, [cells[at[0]] for at in members])
    joined: dict[str, list[int]] = {}
    for text, at in zip(texts, members, strict=True):
        # Long levels may look alike; such groups are shown as one.
        joined.setdefault(text, []).extend(at.tolist())
    return {text: np.array(sorted(at), dtype=np.int64) for text, at in joined.items()}


def _quarters(column: pd.Series[Any], words: PageWords) -> dict[str, IntArray]:
    """People by quarters of a number, named by the least and the largest in each."""
    parts = pd.qcut(column.rank(method="min"), N_PARTS, labels=False, duplicates="drop")
    members = {}
    for part in sorted(parts.dropna().unique()):
        at = np.flatnonzero(parts == part)
        ends = cells_of(pd.Series([column.iloc[at].min(), column.iloc[at].max()]))
        low, high = words.cells.values(column.name, ends)
        members[words.say("from_to", low=low, high=high)] = at
    missing = np.flatnonzero(parts.isna())
    if missing.size:
        members[words.language.messages["values.missing"]] = missing
    return members


def _view(result: Counterfactuals[pd.DataFrame], name: Hashable, words: PageWords) -> GroupView:
    members, title = _members(result, name, words), words.cells.name(name)
    table = TableView(
        words.say("group_caption", name=title),
        [title, *(words.say(key) for key in ("declined_people", "no_answer"))]
        + [words.say(key) for key in ("mean_sparsity", "mean_distance")],
        _rows(result, members, words),
    )
    if not len(result.frame):
        return GroupView(title, None, table)
    codes = np.zeros(len(result.people), dtype=np.int64)
    for code, at in enumerate(members.values()):
        codes[at] = code
    groups = pd.Series(pd.Categorical.from_codes(codes, pd.Index(list(members)), ordered=True))
    image = make_image(
        lambda axes: plot_group_costs(result, groups, labels=words.cells.labels, ax=axes),
        1.0 + 0.42 * len(members),
        words.say("group_alt", name=title),
    )
    return GroupView(title, image, table)


def _rows(
    result: Counterfactuals[pd.DataFrame], members: dict[str, IntArray], words: PageWords
) -> list[list[str]]:
    best = best_answers(result)
    costs = result.measures[["sparsity", "gower"]].iloc[best].set_axis(result.owner[best])
    status = result.people["status"].to_numpy()
    rows = []
    for text, at in members.items():
        theirs = costs.loc[costs.index.isin(at)]
        counts = [int((status[at] != ALREADY).sum()), int((status[at] == UNANSWERED).sum())]
        means = [
            words.number(theirs["sparsity"].mean(), 2),
            words.number(theirs["gower"].mean()),
        ]
        rows.append([text, *map(words.number, counts), *means])
    return rows
