"""What the service computes: scores, answers, ranges, what to lift, and a description of features.

Takes rows of people and constraints that were read already; gives plain values for JSON.

Always true: nothing here knows of HTTP; a person's answer does not depend on others in the request;
a bar of a histogram that stands for fewer than five people is shown as 0.
"""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from ..analysis.answers import AnswerVariants, EncodedAnswers
from ..constraints.collection import read_given
from ..constraints.constraint import Constraint
from ..counterfactuals.parts import Record, as_records, plain_value
from ..counterfactuals.result import Counterfactuals, number_people
from ..errors import McceError
from ..explainer import MCCE, requirements_of
from ..fitted import Fitted
from ..predictors.decision import Interval
from ..protocols import Callback, is_private
from ..report.labels import Labels
from ..report.language import languages
from ..report.letters import write_letters
from ..report.words import Words
from ..runtime.files import checksum
from ..search.config import PRESETS, SearchName, find_search
from ..tables.columns import is_missing, plain
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from ..version import __version__
from .requests import MAX_LEVELS, MAX_RULES, CellKind
from .settings import ServiceSettings

N_BINS, MIN_SHOWN_COUNT = 24, 5
# Limits that clients should know.
LIMITS = ("people", "answers", "seconds", "bytes")


@dataclass(frozen=True, eq=False)
class Answerer:
    """An explainer, as requests use it."""

    explainer: MCCE
    searches: tuple[str, ...]
    fingerprint: str
    # Whatever the language, answers are the same.
    rounding: Mapping[Hashable, float]

    @classmethod
    def make(cls, explainer: MCCE, settings: ServiceSettings) -> Answerer:
        """An answerer with a copy of an explainer."""
        fingerprint = None if settings.origin is None else settings.origin.explainer
        own = copy.copy(explainer).set_params(max_seconds=None, verbose=False)
        requirements_of(own)
        no_people = _no_people(own)
        fingerprint = fingerprint or _explainer_checksum(own)
        own.set_params(constraints=[*read_given(own.constraints), *settings.rules])
        requirements_of(own)
        made = cls(own, (), fingerprint, settings.words(None).rounding(own.schema_))
        names = [name for name in get_args(SearchName) if made._can_search(name, no_people)]
        return replace(made, searches=tuple(names))

    def score(self, people: pd.DataFrame) -> tuple[list[float | None], list[bool]]:
        """Score of each person, and whether the decision is the desired one."""
        rows = self.explainer.schema_.encode(people)
        scored = self.explainer.decision_.score(rows.frame)
        return [plain_value(score) for score in scored.score.tolist()], scored.valid.tolist()

    def complete(self, person: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows of a person with what follows from their changes, such as totals."""
        requirements, schema = requirements_of(self.explainer), self.explainer.schema_
        owner = np.zeros(len(rows), dtype=np.int64)
        answers = EncodedAnswers.make(
            schema.encode(person), owner, schema.encode(rows), requirements.computed
        )
        if not requirements.computed:
            return rows
        variants = AnswerVariants(answers, requirements.computed, requirements.constraints)
        return variants.make(np.arange(len(rows)), answers.codes).frame

    def explain(
        self,
        people: pd.DataFrame,
        constraints: Sequence[Constraint] = (),
        *,
        search: str | None = None,
        n_counterfactuals: int | None = None,
        callback: Callback | None = None,
    ) -> Counterfactuals[pd.DataFrame]:
        """The final answers to people, numbered from 0."""
        explainer, rules = self._variant(search, n_counterfactuals), list(constraints)
        result = explainer.explain(people, constraints=rules, callback=callback)
        result = explainer.finalize(result, rounding=self.rounding, constraints=rules)
        return number_people(result.to_pandas(), np.arange(len(people)))

    def details(
        self,
        result: Counterfactuals[pd.DataFrame],
        constraints: Sequence[Constraint],
        labels: Labels,
    ) -> list[Record]:
        """The records of a final result with letters, ranges and robustness."""
        records = result.to_dict()
        letters = write_letters(
            self.explainer, result, labels, ranges=True, constraints=list(constraints)
        )
        robustness = self.explainer.robustness(result, constraints=list(constraints))
        texts: Mapping[Hashable, str] = letters.answers["text"].to_dict()
        ranges = _ranges_by_answer(result.ranges)
        robust = dict(zip(robustness.index, as_records(robustness), strict=True))
        for person, record in enumerate(records):
            record["letter"] = letters.people["text"].iloc[person]
            for answer in record["counterfactuals"]:
                key = person, answer["rank"]
                answer["text"] = texts[key]
                answer["ranges"] = ranges.get(key, [])
                answer["robustness"] = robust[key]
        return records

    def ranges(
        self, person: pd.DataFrame, answers: pd.DataFrame, constraints: Sequence[Constraint]
    ) -> list[Record]:
        """Whether rows are answers for a person, and which other values would do as well."""
        scores, valid = self.score(answers)
        given = ~np.all([is_missing(column) for _, column in answers.items()], axis=0)
        result = number_people(
            Counterfactuals.from_frame(
                person,
                answers,
                schema=self.explainer.schema_,
                decision=self.explainer.decision_,
                owner=np.zeros(len(answers), dtype=np.int64),
            ).to_pandas(),
            np.arange(1),
        )
        ranges: dict[Any, list[Record]] = {}
        if len(result.frame):
            ranges = _ranges_by_answer(self.explainer.ranges(result, constraints=list(constraints)))
        ranks = np.cumsum(given).tolist()
        return [
            {"valid": valid[at], "score": scores[at], "ranges": ranges.get((0, ranks[at]), [])}
            for at in range(len(answers))
        ]

    def relax(
        self, person: pd.DataFrame, constraints: Sequence[tuple[int, Constraint]]
    ) -> list[Record]:
        """What could be lifted for a person, the best first."""
        given = [constraint for _, constraint in constraints]
        table = self.explainer.relax(person, constraints=given)
        order = ["answered", "sparsity", "gower"]
        table = table.sort_values(order, ascending=[False, True, True], kind="stable")
        places = {constraint.name: place for place, constraint in reversed(constraints)}
        lifts = as_records(table.drop(columns="factual"))
        for lift in lifts:
            own = lift["kind"] == "constraint"
            lift["rule"] = places.get(lift["lifted"]) if own else None
        return lifts

    def _variant(self, search: str | None, n_counterfactuals: int | None) -> MCCE:
        """The explainer with other parameters; what it learned is shared."""
        given: dict[str, Any] = {"search": search, "n_counterfactuals": n_counterfactuals}
        changed = {name: value for name, value in given.items() if value is not None}
        return copy.copy(self.explainer).set_params(**changed) if changed else self.explainer

    def _can_search(self, name: str, no_people: pd.DataFrame) -> bool:
        try:
            self._variant(name, None).explain(no_people)
        except McceError:
            return False
        return True


def _explainer_checksum(explainer: MCCE) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "explainer.mcce")
        explainer.save(path)
        return checksum(path)


def _no_people(explainer: MCCE) -> pd.DataFrame:
    """No people, in the columns of an explainer."""
    tables = {feature.name: feature.table for feature in explainer.schema_.features}
    return pd.DataFrame({name: table.iloc[:0] for name, table in tables.items()})


def _ranges_by_answer(table: Any) -> dict[tuple[int, int], list[Record]]:
    """The rows of a table of ranges, by person and rank."""
    by_answer: dict[tuple[int, int], list[Record]] = {}
    for row in as_records(table):
        by_answer.setdefault((row.pop("factual"), row.pop("rank")), []).append(row)
    return by_answer


def describe(
    answerer: Answerer,
    kinds: Mapping[str, CellKind],
    settings: ServiceSettings,
    language: str | None,
) -> dict[str, Any]:
    """What the service explains, in the words of a language."""
    explainer, labels = answerer.explainer, settings.words(language)
    requirements, mutable = requirements_of(explainer), explainer.schema_.mutable
    frozen = requirements.constraints.frozen_for_everybody
    following = {int(mutable[target.place]) for target in requirements.computed}
    accepted = _accepted(explainer.fitted_)
    return {
        "name": settings.name,
        "version": __version__,
        "fingerprint": answerer.fingerprint,
        # A text, since browsers round whole numbers beyond 2**53.
        "seed": str(explainer.seed_),
        "desired": _desired(explainer.decision_.desired),
        "title": settings.title,
        "language": labels.language.code,
        "languages": languages(),
        "labelled": list(settings.labels),
        "features": [
            _feature(
                feature,
                kinds[str(feature.name)],
                labels,
                accepted=None if accepted is None else accepted.iloc[:, at],
                frozen=feature.name in frozen,
                follows=at in following,
            )
            for at, feature in enumerate(explainer.schema_.features)
        ],
        "search": _search_name(explainer),
        "searches": list(answerer.searches),
        "n_counterfactuals": explainer.n_counterfactuals,
        "limits": {name: getattr(settings.limits, name) for name in LIMITS} | {"rules": MAX_RULES},
        "people": None if settings.people is None else len(settings.people),
    }


def _search_name(explainer: MCCE) -> str | None:
    """The name of the search; None if it has limits of its own."""
    search = find_search(explainer.search, private=is_private(explainer.fitted_.generator))
    return next((name for name, preset in PRESETS.items() if preset == search), None)


def _desired(desired: Interval | tuple[Hashable, ...]) -> dict[str, Any]:
    """The desired scores, where None is an end that does not matter, or the desired labels."""
    if not isinstance(desired, Interval):
        labels = [plain_value(label) for label in desired]
        return {"low": None, "high": None, "closed": None, "labels": labels}
    low, high = (end if math.isfinite(end) else None for end in (desired.low, desired.high))
    return {"low": low, "high": high, "closed": desired.closed, "labels": None}


def _feature(
    feature: Feature,
    kind: CellKind,
    labels: Labels,
    *,
    accepted: pd.Series[Any] | None,
    frozen: bool,
    follows: bool,
) -> dict[str, Any]:
    words, label = Words(labels), labels.of(feature.name)
    low, high = _ends(feature)
    return {
        "name": str(feature.name),
        "label": words.title(feature.name),
        # How a number is written with its unit, if it has one.
        "unit": None if label.unit[1] == "{number}" else label.unit[1],
        "scale": label.scale,
        "grouping": label.grouping,
        "kind": feature.kind,
        "type": kind.type,
        "immutable": feature.immutable,
        "ordered": feature.ordered,
        "missing": feature.has_missing,
        "levels": _levels(feature, kind, words),
        "low": low,
        "high": high,
        "step": _step(feature, kind),
        "histogram": None if accepted is None else _histogram(feature, kind, accepted),
        "frozen": frozen,
        "follows": follows,
    }


def _levels(feature: Feature, kind: CellKind, words: Words) -> list[dict[str, Any]] | None:
    """The levels of a category, and the values of a number that have words of their own."""
    if kind.levels is None and not words.labels.of(feature.name).levels:
        return None
    levels = plain(feature.known)[:MAX_LEVELS]
    shown = words.values(feature.name, list(levels))
    pairs = zip(levels, shown, strict=True)
    return [{"value": plain_value(level), "label": label} for level, label in pairs]


def _ends(feature: Feature) -> tuple[Any, Any]:
    """The smallest and largest training value; None without an order or without values."""
    if feature.kind != "numeric" or not len(feature.known):
        return None, None
    values = plain(feature.known)
    return plain_value(values[0]), plain_value(values[-1])


def _step(feature: Feature, kind: CellKind) -> float | None:
    """The unit of the last decimal place; None if there is none."""
    if kind.type not in ("integer", "number") or feature.kind != "numeric":
        return None
    return feature.resolution or None


def _accepted(fitted: Fitted) -> pd.DataFrame | None:
    """Accepted people of training; None if fit kept none."""
    if fitted.plausibility is None:
        return None
    return EncodedRows.from_codes(fitted.schema, fitted.plausibility.codes_).frame


def _histogram(feature: Feature, kind: CellKind, accepted: pd.Series[Any]) -> dict[str, Any] | None:
    """Counts of accepted people by value; small counts are shown as 0."""
    if feature.kind == "categorical":
        if kind.levels is None:
            return None
        counts = accepted.value_counts()
        levels = plain(feature.known)[:MAX_LEVELS]
        shown = [_at_least(int(counts.get(level, 0))) for level in levels]
        return {"edges": [plain_value(level) for level in levels], "accepted": shown}
    if kind.type not in ("integer", "number"):
        return None
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        return None
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    values = accepted.to_numpy(dtype=np.float64, na_value=np.nan)
    n_bins = min(N_BINS, max(1, int(high - low) + 1)) if kind.type == "integer" else N_BINS
    edges = np.linspace(low, high, n_bins + 1)
    heights, _ = np.histogram(values[~np.isnan(values)], edges)
    return {"edges": edges.tolist(), "accepted": [_at_least(int(n)) for n in heights]}


def _at_least(count: int) -> int:
    return count if count >= MIN_SHOWN_COUNT else 0
