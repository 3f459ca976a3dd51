"""What a report says about each person, as plain texts and small pictures for a template.

A file of people may give several results, one for each set of dtypes, and the predictor sees each
as ``explain`` did. Pictures of changes are numbers for an SVG of a few hundred bytes; all changes
of a feature share one axis, and the accepted people behind it.

Always true: people are identified by position, so labels may repeat; a table of changes shows the
same final row as the letter above it; a person's fingerprint depends on their own row and answers,
never on others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..counterfactuals.parts import ALREADY, ANSWERED, UNANSWERED
from ..counterfactuals.result import Counterfactuals
from ..explainer import MCCE, requirements_of
from ..fitted import Fitted
from ..tables.features import Feature
from ..tables.text import short_line
from ..version import __version__
from .changes import Change, cells_by_answer, cells_of, read_changes, shown_share
from .letters import write_letters
from .page import checksum_of
from .plots.tracks import Track
from .words import Words

# Keys of their words, in the order of the page.
STATUS = {ANSWERED: "answered", UNANSWERED: "no_answer", ALREADY: "already_desired"}
MAX_NAME, MAX_REASON, MAX_LETTER = 60, 600, 4_000
# Other levels that are listed.
MAX_SHOWN_LEVELS = 6
# So that the page of a wide table stays small: cells of a person, and changes of an answer.
MAX_SHOWN_CELLS, MAX_SHOWN_CHANGES = 40, 12
# Hexadecimal digits of a person's fingerprint.
FINGERPRINT_DIGITS = 16
# Pixels: the whole picture, the line inside it, its height, and the bars above it.
WIDTH, LEFT, RIGHT, BASE, BARS = 230, 22, 208, 26, 20
# Accepted people of whom the bars are made.
MAX_ACCEPTED_PEOPLE = 1_000


@dataclass(frozen=True)
class ChangeView:
    """A changed cell: texts, and where its picture has what, in pixels."""

    name: str
    before: str
    after: str
    others: str
    follows: bool
    axis: Axis
    places: list[float]


@dataclass(frozen=True)
class AnswerView:
    """An answer: its rank, figures as pairs of term and text, remarks and changes."""

    rank: int
    figures: list[tuple[str, str]]
    remarks: list[str]
    changes: list[ChangeView]
    n_left_out: int


@dataclass(frozen=True)
class PersonView:
    """A person, as the page shows them."""

    row: int
    name: str
    status: str
    score: str
    letter: str
    reason: str
    remarks: list[str]
    answers: list[AnswerView]
    n_left_out: int
    held: list[tuple[str, str]]
    unchanged: list[tuple[str, str]]
    n_unchanged: int
    fingerprint: str


@dataclass(frozen=True, eq=False)
class PeopleSettings:
    """How people are shown."""

    explainer: MCCE
    constraints: Any
    words: Words
    names: Mapping[int, Any]
    axes: Axes
    n_answers: int


class PeopleSection:
    """The people of one numbered, final result, for the template."""

    def __init__(self, result: Counterfactuals[pd.DataFrame], settings: PeopleSettings) -> None:
        explainer, constraints = settings.explainer, settings.constraints
        required = requirements_of(explainer, constraints)
        self.settings, self.words, self.schema = settings, settings.words, explainer.schema_
        self.result = result
        self.own, self.new = _columns(result.factuals), _columns(result.frame)
        self.people = result.people.to_dict("records")
        self.rows = result.people.index.tolist()
        self.measures = result.measures.to_dict("records")
        self.ranks = result.frame.index.get_level_values("rank").tolist()
        self.answers: list[list[int]] = [[] for _ in self.rows]
        for answer, place in enumerate(result.owner.tolist()):
            self.answers[place].append(answer)
        follow = [column.feature.name for column in required.computed]
        self.changes = [
            [*answer.actions, *answer.consequences]
            for answer in read_changes(replace(result, anonymous=None), self.schema, follow)
        ]
        self.anonymous = result.anonymous
        labels = self.words.labels
        letters = write_letters(explainer, result, labels, ranges=True, constraints=constraints)
        self.letters = letters.people["text"].tolist()
        robustness = explainer.robustness(result, constraints=constraints)
        self.robustness = robustness.to_dict("records")
        frozen = required.constraints.frozen(self.schema.encode(result.factuals))
        self.frozen = {self.schema.names[position]: whose for position, whose in frozen.items()}

    def views(self) -> Iterator[PersonView]:
        """Everybody, as the page shows them."""
        return map(self._person, range(len(self.rows)))

    def _person(self, place: int) -> PersonView:
        row, about, answers = self.rows[place], self.people[place], self.answers[place]
        shown = answers[: self.settings.n_answers]
        touched = {change.feature for answer in shown for change in self.changes[answer]}
        held = [feature.name for feature in self.schema.features if self._is_held(feature, place)]
        same = [name for name in self.own if name not in touched and name not in held]
        name = short_line(self.settings.names.get(row, row), MAX_NAME)
        letter = self.letters[place]
        return PersonView(
            row=row,
            name=self.words.say("report.person", name=name),
            status=STATUS[about["status"]],
            score=self.words.figure(about["score"]),
            letter=letter if len(letter) <= MAX_LETTER else f"{letter[:MAX_LETTER]}…",
            reason=short_line(about["reason"], MAX_REASON),
            remarks=self._remarks(about),
            answers=[self._answer(answer, place) for answer in shown],
            n_left_out=len(answers) - len(shown),
            held=self._cells(held[:MAX_SHOWN_CELLS], place),
            unchanged=self._cells(same[: max(0, MAX_SHOWN_CELLS - len(held))], place),
            n_unchanged=len(held) + len(same),
            fingerprint=self._fingerprint(place)[:FINGERPRINT_DIGITS],
        )

    def _is_held(self, feature: Feature, place: int) -> bool:
        frozen = self.frozen.get(feature.name)
        return feature.immutable or (frozen is not None and bool(frozen[place]))

    def _cells(self, names: Sequence[Hashable], place: int) -> list[tuple[str, str]]:
        words = self.words
        return [(words.title(n), words.values(n, [self.own[n][place]])[0]) for n in names]

    def _remarks(self, about: Mapping[Hashable, Any]) -> list[str]:
        remarks = []
        if about["unseen_immutable"]:
            names = short_line(about["unseen_immutable"], 200)
            remarks.append(self.words.say("report.unseen", names=names))
        if not np.isnan(about["nearest_score"]):
            score = self.words.figure(about["nearest_score"])
            remarks.append(self.words.say("report.nearest", score=score))
        return remarks

    def _answer(self, answer: int, place: int) -> AnswerView:
        listed, measures = (
            self.changes[answer],
            {**self.measures[answer], **self.robustness[answer]},
        )
        shown = listed[:MAX_SHOWN_CHANGES]
        remarks = [
            self.words.say(f"report.remark_{key}")
            for key in ("no_reference_group", "proven")
            if measures.get(key) is True
        ]
        if self.anonymous is not None:
            remarks.append(self._widened(answer))
        changes, n_left_out = (
            [self._change(c, answer, place) for c in shown],
            len(listed) - len(shown),
        )
        return AnswerView(self.ranks[answer], self._figures(measures), remarks, changes, n_left_out)

    def _widened(self, answer: int) -> str:
        """What an anonymous answer says, and how many people it fits."""
        assert self.anonymous is not None
        measures = self.anonymous.measures.iloc[answer]
        return self.words.say(
            "report.remark_anonymous",
            cells=self.words.row(cells_by_answer(self.anonymous)[answer]),
            crowd=str(measures["crowd"]),
            share=self.words.language.percent(shown_share(measures["pureness"])),
        )

    def _figures(self, measures: Mapping[Hashable, Any]) -> list[tuple[str, str]]:
        words, word = self.words, measures.get("margin_word")
        margin = words.figure(measures["margin"])
        figures = {
            "score": words.figure(measures["score"]),
            "sparsity": words.figure(measures["sparsity"]),
            "distance": words.figure(measures["gower"]),
            "plausibility": words.figure(measures.get("plausibility"), 2),
            "margin": f"{margin} ({words.say(f'report.margin_{word}')})" if word else margin,
            "stability": words.language.percent(measures["stability"]),
            "minimal": words.flag(measures["minimal"]),
        }
        return [(words.say(f"report.{key}"), text) for key, text in figures.items()]

    def _change(self, change: Change, answer: int, place: int) -> ChangeView:
        words, name, found = self.words, change.feature, change.found
        low, high = found.get("low"), found.get("high")
        others = ""
        if low is not None:
            others = self._interval(change)
        elif found.get("others") is not None and found["kind"] == "categorical":
            others = self._levels(name, found["others"])
        ends = [] if low is None else [low, high]
        before, after = words.values(name, [change.before, change.after])
        if change.is_number and change.after is not None:
            after = words.cell(name, change.after)
        axis = self.settings.axes.of(name)
        cells = (self.result.factuals[name].iloc[[place]], self.result.frame[name].iloc[[answer]])
        places = [at for column in (*cells, pd.Series(ends)) for at in axis.places(column)]
        return ChangeView(words.title(name), before, after, others, change.follows, axis, places)

    def _interval(self, change: Change) -> str:
        found = change.found
        low, high = (None if found[f"{e}_open"] else found[e] for e in ("low", "high"))
        if low is None and high is None:
            return self.words.say("report.any_value")
        if low == high:
            return self.words.say("report.only_this")
        return self.words.between(change.feature, low, high)

    def _levels(self, name: Hashable, others: Sequence[Any]) -> str:
        if not others:
            return self.words.say("report.only_this")
        shown = ", ".join(self.words.values(name, list(others[:MAX_SHOWN_LEVELS])))
        n_more = len(others) - MAX_SHOWN_LEVELS
        more = f" {self.words.say('report.more_levels', n=str(n_more))}" if n_more > 0 else ""
        return f"{self.words.say('report.also', levels=shown)}{more}"

    def _fingerprint(self, place: int) -> str:
        rows = [{str(name): cells[place] for name, cells in self.own.items()}]
        rows += [
            {str(name): cells[answer] for name, cells in self.new.items()}
            for answer in self.answers[place]
        ]
        seed, status = self.settings.explainer.seed_, self.people[place]["status"]
        return checksum_of([__version__, seed, status, rows])


def _columns(frame: pd.DataFrame) -> dict[Hashable, list[Any]]:
    """Cells by column, None if missing."""
    return {name: cells_of(column) for name, column in frame.items()}


def join_results(
    results: Sequence[Counterfactuals[pd.DataFrame]],
) -> Counterfactuals[pd.DataFrame]:
    """The results of all people as one, in their order; for counting, not for the predictor."""
    first = results[0]
    if len(results) == 1:
        return first
    tables = {
        name: pd.concat([getattr(result, name) for result in results]).sort_index(kind="stable")
        for name in ("factuals", "people", "frame", "measures", "nearest_misses")
    }
    owner = tables["people"].index.get_indexer(tables["frame"].index.get_level_values("factual"))
    return replace(
        first,
        **tables,
        owner=np.asarray(owner, dtype=np.int64),
        n_evaluated=sum(result.n_evaluated for result in results),
        n_unstable=sum(result.n_unstable for result in results),
        stopped=any(result.stopped for result in results),
        anonymous=None,
        _ranges=None,
    )


@dataclass(frozen=True)
class Axis:
    """The line of a feature: its number on the page, its bars as a path, and its ends in words."""

    number: int
    track: Track
    bars: str
    ends: list[str]

    def places(self, cells: pd.Series[Any]) -> list[float]:
        """Where cells stand, in pixels."""
        return [round(LEFT + (RIGHT - LEFT) * at, 1) for at in self.track.places(cells).tolist()]


class Axes:
    """The lines of features whose changes are shown; all people share them."""

    # Where the lines of all pictures stand, for the template.
    frame: ClassVar = {"width": WIDTH, "left": LEFT, "right": RIGHT, "base": BASE}

    def __init__(self, fitted: Fitted, words: Words) -> None:
        self._fitted, self._words = fitted, words
        self._features = {feature.name: feature for feature in fitted.schema.features}
        self._made: dict[Hashable, Axis] = {}

    @property
    def shows_accepted(self) -> bool:
        """Whether accepted people stand behind the lines."""
        return self._fitted.plausibility is not None

    def __iter__(self) -> Iterator[Axis]:
        return iter(self._made.values())

    def of(self, name: Hashable) -> Axis:
        """The line of a feature."""
        if name not in self._made:
            feature, accepted = self._features[name], self._accepted(name)
            has_words = bool(self._words.labels.of(name).levels)
            # Training values that nobody accepted has would stretch the line of a number.
            is_line = accepted is not None and feature.kind == "numeric" and not has_words
            cells = feature.known.iloc[:0] if is_line else feature.known
            track = Track.make(cells, accepted, has_words)
            ends = self._words.values(name, list(track.ends)) if track.ends else []
            self._made[name] = Axis(len(self._made), track, _bars(track), ends)
        return self._made[name]

    def _accepted(self, name: Hashable) -> pd.Series[Any] | None:
        if self._fitted.plausibility is None:
            return None
        codes = self._fitted.plausibility.codes_[self._fitted.schema.names.index(name)]
        codes = codes[:: max(1, codes.size // MAX_ACCEPTED_PEOPLE)]
        return self._features[name].table.iloc[codes].reset_index(drop=True)


def _bars(track: Track) -> str:
    """The bars as one path; neighbours share their sides."""
    width = (RIGHT - LEFT) * track.width
    path, end = list[str](), -1.0
    for place, height in zip(track.bars.tolist(), track.heights.tolist(), strict=True):
        start = LEFT + (RIGHT - LEFT) * place - width / 2
        if not height:
            continue
        if abs(start - end) > 0.01:
            path.append(f"{f'V{BASE}' if path else ''}M{start:.4g} {BASE}")
        path.append(f"V{BASE - max(1, round(BARS * height))}h{width:.3g}")
        end = start + width
    return "".join([*path, f"V{BASE}"] if path else path)
