"""What a report says about the whole run, and what answers cost by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..counterfactuals.parts import ALREADY, ANSWERED, UNANSWERED
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import IntArray
from ..tables.columns import is_measured
from ..tables.text import short_line
from .changes import cells_of
from .labels import level_key
from .page import Image, Part, Table, make_image
from .people import MAX_NAME, STATUS
from .plots.style import best_answers
from .plots.summaries import plot_changed_features, plot_group_costs
from .plots.tracks import level_order
from .words import Words

# Features in the picture.
MAX_FEATURES = 15
MAX_SETTING = 300
# Settings of the machine, and what the page shows elsewhere.
LEFT_OUT = {"predictor", "constraints", "immutable", "mutable", "kinds", "roles", "verbose"}
LEFT_OUT |= {"n_jobs", "memory", "random_state"}
# Groups of a column, and columns that are compared by default.
MAX_GROUPS, MAX_COMPARED = 12, 4
# Parts that numbers of many values are cut into.
N_PARTS = 4


@dataclass(frozen=True, eq=False)
class RunSection:
    """The run, for the template."""

    explainer: MCCE
    result: Counterfactuals[pd.DataFrame]
    words: Words
    names: Mapping[int, Any]
    columns_to_compare: Sequence[Hashable] | None
    constraints: Any

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many people have which status, by the key of its word."""
        status = self.result.people["status"]
        return {key: int((status == value).sum()) for value, key in STATUS.items()}

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Means of people's best answers."""
        words, result = self.words, self.result
        best = result.measures.iloc[best_answers(result)]
        n_declined = len(result.people) - self.counts[STATUS[ALREADY]]
        coverage = self.counts[STATUS[ANSWERED]] / n_declined if n_declined else np.nan
        figures = [
            (words.say("report.coverage"), words.language.percent(coverage)),
            (words.say("report.mean_sparsity"), words.figure(best["sparsity"].mean(), 2)),
            (words.say("report.mean_distance"), words.figure(best["gower"].mean())),
        ]
        if "plausibility" in best:
            middle = best["plausibility"].median()
            figures.append((words.say("report.median_plausibility"), words.figure(middle, 2)))
        per_person = result.n_evaluated / n_declined if n_declined else np.nan
        figures.append((words.say("report.evaluated"), words.figure(per_person, 0)))
        return figures

    @cached_property
    def changed(self) -> Image | None:
        """Which features change, as a picture."""
        if not len(self.result.frame):
            return None
        return make_image(
            lambda axes: plot_changed_features(
                self.result, n_features=MAX_FEATURES, labels=self.words.labels, ax=axes
            ),
            1.2 + 0.36 * min(MAX_FEATURES, len(self._n_changed)),
            self.words.say("report.changed_alt"),
        )

    @property
    def changed_table(self) -> Table:
        """Which features change, as a table."""
        words, n_answered = self.words, max(1, self.counts[STATUS[ANSWERED]])
        rows = [
            [words.title(name), words.figure(n), words.language.percent(n / n_answered)]
            for name, n in self._n_changed
        ]
        heads = [words.say(f"report.{key}") for key in ("feature", "people", "share")]
        return Table(words.say("report.changed_caption"), heads, rows)

    @cached_property
    def _n_changed(self) -> list[tuple[Hashable, int]]:
        """How many people's best answers change a feature, the most first."""
        changes = self.result.changes()
        return Counter(changes.loc[changes["rank"] == 1, "feature"]).most_common()

    @property
    def reasons(self) -> list[tuple[str, list[int]]]:
        """Why which people have no answer, the most frequent reason first."""
        people = self.result.people
        missing = people[people["status"] == UNANSWERED]
        without = [
            (self.words.say(f"nothing.{kind}"), rows.index.tolist())
            for kind, rows in missing.groupby("reason_kind", sort=False)
        ]
        return sorted(without, key=lambda pair: -len(pair[1]))

    def name(self, row: int) -> str:
        """What a person is called."""
        return short_line(self.names[row], MAX_NAME)

    @property
    def rules(self) -> list[str]:
        """The constraints."""
        listed = requirements_of(self.explainer, self.constraints).constraints.listed
        return [short_line(repr(rule), MAX_SETTING) for rule in listed]

    @property
    def relations(self) -> list[str]:
        """The relations that answers keep."""
        kept = requirements_of(self.explainer, self.constraints).relations
        return [short_line(relation.name, MAX_SETTING) for relation in kept]

    @property
    def settings(self) -> list[tuple[str, str]]:
        """The parameters of the explainer."""
        given: Mapping[str, Any] = self.explainer.get_params(deep=False)
        shown = {name: value for name, value in given.items() if name not in LEFT_OUT}
        shown["seed"] = self.explainer.seed_
        return [
            (name, short_line(value if isinstance(value, str) else repr(value), MAX_SETTING))
            for name, value in shown.items()
            if value is not None
        ]

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What the explainer learned from."""
        fitted, words = self.explainer.fitted_, self.words
        facts = []
        if fitted.value_counts:
            n_train = int(fitted.value_counts[0].sum())
            facts.append((words.say("report.n_train"), words.figure(n_train)))
            facts.append(
                (
                    words.say("report.share_desired"),
                    words.language.percent(fitted.n_desired / n_train),
                )
            )
        facts.append((words.say("report.n_desired"), words.figure(fitted.n_desired)))
        facts.append((words.say("report.n_features"), words.figure(len(fitted.schema.features))))
        return facts

    @property
    def columns(self) -> Table:
        """The columns of the data."""
        words = self.words
        rows = [
            [
                words.title(feature.name),
                short_line(feature.name),
                words.say(f"report.kind_{feature.kind}"),
                words.say("report.role_held" if feature.immutable else "report.role_free"),
                words.figure(len(feature.known)),
                words.flag(feature.has_missing),
            ]
            for feature in self.explainer.schema_.features
        ]
        heads = [
            words.say(f"report.{key}")
            for key in ("feature", "column", "kind", "role", "values", "missing")
        ]
        return Table(words.say("report.columns_caption"), heads, rows, numeric=False)

    @cached_property
    def groups(self) -> list[Part]:
        """What answers cost by the groups of columns."""
        return [self._group(name) for name in self._compared()]

    def _compared(self) -> list[Hashable]:
        """The columns that the user names; else those that nobody can change, with few values."""
        given, known = self.columns_to_compare, self.result.factuals.columns
        if given is None:
            features = self.explainer.schema_.features
            names = [feature.name for feature in features if feature.immutable]
            sizes = {name: len(self._members(name)) for name in names}
            return [name for name in names if 2 <= sizes[name] <= MAX_GROUPS][:MAX_COMPARED]
        names = [given] if isinstance(given, str) else list(given)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ParameterError(
                f"groups must be columns of the people, got {shorten(unknown, 200)}. The columns "
                f"are {shorten(list(known), 300)}."
            )
        return names

    def _members(self, name: Hashable) -> dict[str, IntArray]:
        """The people of each group by its name, in the order of the groups."""
        column = self.result.factuals[name].reset_index(drop=True)
        if is_measured(column.dtype) and column.nunique() > MAX_GROUPS:
            return self._quarters(column)
        cells = cells_of(column)
        order = level_order([column], cells)
        numbers = np.array(
            [len(order) if c is None else order[level_key(c)] for c in cells], np.int64
        )
        members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        texts = self.words.values(name, [cells[at[0]] for at in members])
        joined: dict[str, list[int]] = {}
        for text, at in zip(texts, members, strict=True):
            # Long levels may look alike; such groups are shown as one.
            joined.setdefault(text, []).extend(at.tolist())
        return {text: np.array(sorted(at), dtype=np.int64) for text, at in joined.items()}

    def _quarters(self, column: pd.Series[Any]) -> dict[str, IntArray]:
        """People by quarters of a number, named by the least and the largest in each."""
        parts = pd.qcut(column.rank(method="min"), N_PARTS, labels=False, duplicates="drop")
        members = {}
        for part in sorted(parts.dropna().unique()):
            at = np.flatnonzero(parts == part)
            ends = cells_of(pd.Series([column.iloc[at].min(), column.iloc[at].max()]))
            low, high = self.words.values(column.name, ends)
            members[self.words.say("report.from_to", low=low, high=high)] = at
        missing = np.flatnonzero(parts.isna())
        if missing.size:
            members[self.words.say("values.missing")] = missing
        return members

    def _group(self, name: Hashable) -> Part:
        """The costs by the groups of one column."""
        words, result, members = self.words, self.result, self._members(name)
        title = words.title(name)
        heads = [
            words.say(f"report.{key}")
            for key in ("declined_people", "no_answer", "mean_sparsity", "mean_distance")
        ]
        table = Table(
            words.say("report.group_caption", name=title), [title, *heads], self._costs(members)
        )
        if not len(result.frame):
            return Part(title, None, table)
        codes = np.zeros(len(result.people), dtype=np.int64)
        for code, at in enumerate(members.values()):
            codes[at] = code
        groups = pd.Series(pd.Categorical.from_codes(codes, pd.Index(list(members)), ordered=True))
        image = make_image(
            lambda axes: plot_group_costs(result, groups, labels=words.labels, ax=axes),
            1.0 + 0.42 * len(members),
            words.say("report.group_alt", name=title),
        )
        return Part(title, image, table)

    def _costs(self, members: dict[str, IntArray]) -> list[list[str]]:
        result, number = self.result, self.words.figure
        best = best_answers(result)
        costs = result.measures[["sparsity", "gower"]].iloc[best].set_axis(result.owner[best])
        status = result.people["status"].to_numpy()
        rows = []
        for text, at in members.items():
            means = costs.loc[costs.index.isin(at)].mean()
            counts = [int((status[at] != ALREADY).sum()), int((status[at] == UNANSWERED).sum())]
            shown = [number(means["sparsity"], 2), number(means["gower"])]
            rows.append([text, *map(number, counts), *shown])
        return rows
