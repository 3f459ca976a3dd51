"""Page one of a report, for readers who decide, and its appendix, for those who check.

Always true: means and intervals are the same on every call; a group of few people shows nothing
but its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..counterfactuals.parts import ALREADY, ANSWERED, UNANSWERED
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import IntArray
from ..tables.columns import is_measured
from ..tables.text import short_line
from .changes import cells_of
from .page import Table
from .people import how_usual
from .plots.summaries import mean_interval, people_by_level
from .words import Words

# Features, and groups of a column.
MAX_FEATURES, MAX_GROUPS = 12, 12
# People of the smallest group that is shown.
LEAST_PEOPLE = 5
# Parts that numbers of many values are cut into.
N_PARTS = 4
MAX_SETTING = 300
# Words for how sure and how usual answers are; "" where nobody knows.
SURE, USUAL = ("narrow", "fair", "wide", ""), ("common", "uncommon", "rare")
# Settings of the machine, and what the page shows elsewhere.
LEFT_OUT = {"predictor", "constraints", "immutable", "mutable", "kinds", "roles", "verbose"}
LEFT_OUT |= {"n_jobs", "memory", "random_state"}


class Board:
    """What happened, for the template; it counts people whose answers came in several results."""

    least: ClassVar = str(LEAST_PEOPLE)

    def __init__(
        self,
        explainer: MCCE,
        results: Sequence[Counterfactuals[pd.DataFrame]],
        words: Words,
        groups: Sequence[Hashable] | None,
    ) -> None:
        self.explainer, self.words = explainer, words
        self.yes, self.no = words.verdicts(explainer.decision_)
        people, self.factuals, measures = (
            pd.concat([getattr(result, name) for result in results]).sort_index(kind="stable")
            for name in ("people", "factuals", "measures")
        )
        self.status, self.missing = people["status"], people[people["status"] == UNANSWERED]
        first = measures.index.get_level_values("rank") == 1
        self.best = measures[first].droplevel("rank")
        changes = pd.concat([result.changes() for result in results], ignore_index=True)
        self.n_changed = Counter(changes.loc[changes["rank"] == 1, "feature"])
        self.groups = [self._group(name) for name in self._compared(groups)]

    def say(self, key: str, **values: str) -> str:
        """A text of the report, which may name both decisions."""
        return self.words.say(f"report.{key}", yes=self.yes, no=self.no, **values)

    @property
    def cards(self) -> list[tuple[str, str, str]]:
        """How many people there are and what became of them: a key, a number and a text."""
        n = Counter(self.status.tolist())
        declined = n[ANSWERED] + n[UNANSWERED]
        listed = [
            ("people", len(self.status), self.say("people")),
            ("already_desired", n[ALREADY], self.yes),
            ("declined", declined, self.no),
            ("answered", n[ANSWERED], self.say("with_way")),
            ("no_answer", n[UNANSWERED], self.say("without_way")),
        ]
        return [(key, self.words.figure(number), text) for key, number, text in listed]

    @property
    def changed(self) -> Table:
        """Which features change in people's best answers, the most frequent first."""
        counts = self.n_changed.most_common(MAX_FEATURES)
        return self._counted("changed", {self.words.title(name): n for name, n in counts})

    @property
    def sure(self) -> list[Table]:
        """How sure people's best answers are, and how usual."""
        measures, tables = self.best, []
        if "margin_word" in measures:
            words = Counter(measures["margin_word"].tolist())
            counts = {self.say(f"sure_{key or 'unknown'}"): words[key] for key in SURE}
            tables.append(self._counted("sure", counts))
        if "plausibility" in measures:
            usual = Counter(map(how_usual, measures["plausibility"].tolist()))
            counts = {self.say(f"usual_{key}"): usual[key] for key in USUAL}
            tables.append(self._counted("usual", counts))
        return tables

    def _counted(self, key: str, counts: Mapping[str, int]) -> Table:
        """A table of how many people, of those who have an answer."""
        words, n_all = self.words, max(1, len(self.best))
        heads = [self.say(f"head_{key}"), self.say("head_people"), self.say("head_share")]
        shown = {text: n for text, n in counts.items() if n}
        rows = [[t, words.figure(n), words.language.percent(n / n_all)] for t, n in shown.items()]
        return Table(self.say(f"caption_{key}"), heads, rows, [n / n_all for n in shown.values()])

    @property
    def reasons(self) -> list[tuple[str, str, list[int]]]:
        """Why which people have no answer, the most frequent reason first."""
        listed = self.missing.groupby("reason_kind", sort=False)
        by_kind = [(kind, rows.index.tolist()) for kind, rows in listed]
        by_kind.sort(key=lambda pair: -len(pair[1]))
        return [(self.words.say(f"why.{k}"), self.words.figure(len(r)), r) for k, r in by_kind]

    def _compared(self, given: Sequence[Hashable] | None) -> list[Hashable]:
        """The columns that the user names; else those that nobody can act on, with few values."""
        if given is None:
            roles, features = self.explainer.roles or {}, self.explainer.schema_.features
            past = [name for name, role in roles.items() if role == "past"]
            names = past or [feature.name for feature in features if feature.immutable]
            return [name for name in names if 2 <= len(self._members(name)) <= MAX_GROUPS]
        known = self.factuals.columns
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
        column = self.factuals[name].reset_index(drop=True)
        if is_measured(column.dtype) and column.nunique() > MAX_GROUPS:
            return self._quarters(column)
        return people_by_level(column, self.words)

    def _quarters(self, column: pd.Series[Any]) -> dict[str, IntArray]:
        """People by quarters of a number, named by the least and the largest in each."""
        parts = pd.qcut(column.rank(method="min"), N_PARTS, labels=False, duplicates="drop")
        members = {}
        for part in sorted(parts.dropna().unique()):
            at = np.flatnonzero(parts == part)
            low, high = cells_of(pd.Series([column.iloc[at].min(), column.iloc[at].max()]))
            members[self.words.between(column.name, low, high)] = at
        missing = np.flatnonzero(parts.isna())
        if missing.size:
            members[self.words.say("values.missing")] = missing
        return members

    def _group(self, name: Hashable) -> Table:
        """The costs by the groups of one column."""
        title, rows = self.words.title(name), list[list[str]]()
        for text, at in self._members(name).items():
            status = self.status.iloc[at]
            n_declined, n_without = ((status != ALREADY).sum(), (status == UNANSWERED).sum())
            if n_declined < LEAST_PEOPLE:
                rows.append([text, self.say("too_few", n=self.least), *[""] * 3])
                continue
            costs = self.best[self.best.index.isin(status.index)]
            share = self.words.language.percent(n_without / n_declined)
            means = [self._mean(costs["sparsity"], 1), self._mean(costs["gower"], 2)]
            rows.append([text, self.words.figure(n_declined), share, *means])
        keys = ("head_declined", "head_without", "head_changes", "head_distance")
        heads = [title, *(self.say(key) for key in keys)]
        return Table(self.say("caption_group", name=title), heads, rows)

    def _mean(self, costs: pd.Series[Any], places: int) -> str:
        """A mean and its interval."""
        mean, *ends = mean_interval(costs.to_numpy(dtype=float))
        number, low, high = (self.words.figure(value, places) for value in (mean, *ends))
        if np.isnan(ends).any() or low == high:
            return number
        return f"{number} ({self.words.language.between(low, high)})"


@dataclass(frozen=True, eq=False)
class Appendix:
    """What an answer can be checked by, for the template."""

    explainer: MCCE
    words: Words
    constraints: Any

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
        facts = {"n_desired": words.figure(fitted.n_desired)}
        if fitted.value_counts:
            n_train = int(fitted.value_counts[0].sum())
            share = words.language.percent(fitted.n_desired / n_train)
            facts = {"n_train": words.figure(n_train), "share_desired": share, **facts}
        facts["n_features"] = words.figure(len(fitted.schema.features))
        return [(words.say(f"report.{key}"), text) for key, text in facts.items()]

    @property
    def columns(self) -> Table:
        """The columns of the data."""
        words, keys = self.words, ("feature", "column", "kind", "role", "values", "missing")
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
        heads = [words.say(f"report.{key}") for key in keys]
        return Table(words.say("report.columns_caption"), heads, rows)
