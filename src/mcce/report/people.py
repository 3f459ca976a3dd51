"""What a report says about each declined person, as plain texts and small pictures.

A file of people may give several results, one for each set of dtypes, and the predictor sees each
as ``explain`` did. Pictures of changes are numbers for an SVG of a few hundred bytes; all changes
of a feature share one axis, and the accepted people behind it.

Always true: people are identified by position, so labels may repeat; a table of changes shows the
same final row as the letter above it; a person's fingerprint depends on their own row and answers,
never on others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..counterfactuals.anonymous import AnonymousAnswers
from ..counterfactuals.parts import ALREADY, ANSWERED
from ..counterfactuals.result import Counterfactuals
from ..explainer import MCCE, requirements_of
from ..fitted import Fitted
from ..tables.text import short_line
from ..version import __version__
from .changes import Change, cells_by_answer, cells_of, read_changes, shown_share
from .letters import write_letters
from .page import checksum_of
from .plots.tracks import Track
from .words import Words

MAX_NAME, MAX_REASON, MAX_LETTER = 60, 300, 4_000
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
    """An answer: its rank, figures, remarks and changes."""

    rank: int
    figures: list[str]
    remarks: list[str]
    changes: list[ChangeView]
    n_left_out: int


@dataclass(frozen=True)
class PersonView:
    """A person, as the page shows them."""

    row: int
    name: str
    answered: bool
    score: str
    letter: list[str]
    answers: list[AnswerView]
    n_left_out: int
    held: str
    cells: list[tuple[str, str]]
    reason: str
    fingerprint: str


@dataclass(frozen=True, eq=False)
class PeopleSettings:
    """How people are shown."""

    explainer: MCCE
    constraints: Any
    words: Words
    names: Mapping[int, str]
    axes: Axes
    n_answers: int


class PeopleSection:
    """The declined people of one numbered, final result, for the template."""

    def __init__(self, result: Counterfactuals[pd.DataFrame], settings: PeopleSettings) -> None:
        explainer, constraints = settings.explainer, settings.constraints
        required = requirements_of(explainer, constraints)
        self.result, self.settings, self.words = result, settings, settings.words
        self.schema, self.anonymous = explainer.schema_, result.anonymous
        self.own, self.new = _columns(result.factuals), _columns(result.frame)
        self.people, self.measures = (
            table.to_dict("records") for table in (result.people, result.measures)
        )
        self.rows = result.people.index.tolist()
        self.answers: list[list[int]] = [[] for _ in self.rows]
        for answer, place in enumerate(result.owner.tolist()):
            self.answers[place].append(answer)
        exact = read_changes(replace(result, anonymous=None), self.schema, required.following)
        self.changes = [[*answer.actions, *answer.consequences] for answer in exact]
        self.yes, _ = self.words.verdicts(explainer.decision_)
        labels = self.words.labels
        letters = write_letters(explainer, result, labels, ranges=True, constraints=constraints)
        self.letters = letters.people["text"].tolist()
        frozen = required.constraints.frozen(self.schema.encode(result.factuals))
        self.free = np.zeros(len(self.rows), dtype=bool)
        self.frozen = {self.schema.names[position]: whose for position, whose in frozen.items()}

    def views(self) -> Iterator[PersonView]:
        """Everybody who is declined, as the page shows them."""
        declined = [at for at, about in enumerate(self.people) if about["status"] != ALREADY]
        return map(self._person, declined)

    def _person(self, place: int) -> PersonView:
        words, row, about = self.words, self.rows[place], self.people[place]
        answers = self.answers[place][: self.settings.n_answers]
        letter, titles = self.letters[place], self._held(place)
        letter = letter if len(letter) <= MAX_LETTER else f"{letter[:MAX_LETTER]}…"
        n_more = max(0, len(titles) - MAX_SHOWN_CELLS)
        own = list(self.own.items())[:MAX_SHOWN_CELLS]
        return PersonView(
            row=row,
            name=words.say("report.person", name=self.settings.names[row]),
            answered=about["status"] == ANSWERED,
            score=words.figure(about["score"]),
            letter=letter.split("\n\n"),
            answers=[self._answer(answer, place) for answer in answers],
            n_left_out=len(self.answers[place]) - len(answers),
            held=", ".join(titles[:MAX_SHOWN_CELLS]) + (f", … +{n_more}" if n_more else ""),
            cells=[(words.title(n), words.values(n, [cells[place]])[0]) for n, cells in own],
            reason=short_line(about["reason"], MAX_REASON),
            fingerprint=self._fingerprint(place)[:FINGERPRINT_DIGITS],
        )

    def _held(self, place: int) -> list[str]:
        """Features that stay as they are, for everybody or for this person."""
        return [
            self.words.title(feature.name)
            for feature in self.schema.features
            if feature.immutable or self.frozen.get(feature.name, self.free)[place]
        ]

    def _answer(self, answer: int, place: int) -> AnswerView:
        words, measures, listed = self.words, self.measures[answer], self.changes[answer]
        figures = [words.say("report.of_score", score=words.figure(measures["score"]))]
        if word := measures.get("margin_word"):
            figures.append(words.say("report.of_margin", word=words.say(f"report.sure_{word}")))
        if "survival" in measures:
            share = words.language.percent(measures["survival"])
            figures.append(words.say("report.of_survival", share=share))
        if "plausibility" in measures:
            usual = words.say(f"report.usual_{how_usual(measures['plausibility'])}")
            figures.append(words.say("report.of_plausibility", word=usual))
        remarks = [
            words.say(f"report.remark_{key}", yes=self.yes)
            for key in ("no_reference_group", "proven")
            if measures.get(key) is True
        ]
        if self.anonymous is not None:
            remarks.append(self._widened(answer, self.anonymous))
        changes = [self._change(one, answer, place) for one in listed[:MAX_SHOWN_CHANGES]]
        rank = self.result.frame.index[answer][1]
        return AnswerView(rank, figures, remarks, changes, len(listed) - len(changes))

    def _widened(self, answer: int, anonymous: AnonymousAnswers[pd.DataFrame]) -> str:
        """What an anonymous answer says, and how many people it fits."""
        measures = anonymous.measures.iloc[answer]
        return self.words.say(
            "report.remark_anonymous",
            cells=self.words.row(cells_by_answer(anonymous)[answer]),
            crowd=str(measures["crowd"]),
            share=self.words.language.percent(shown_share(measures["pureness"])),
        )

    def _change(self, change: Change, answer: int, place: int) -> ChangeView:
        words, name, found = self.words, change.feature, change.found
        ends = [] if found.get("low") is None else [found["low"], found["high"]]
        before, after = words.values(name, [change.before, change.after])
        if ends:
            # A number that a person would have to reach is not rounded.
            after = words.cell(name, change.after)
        axis = self.settings.axes.of(name)
        cells = (self.result.factuals[name].iloc[[place]], self.result.frame[name].iloc[[answer]])
        places = [at for column in (*cells, pd.Series(ends)) for at in axis.places(column)]
        others = self._others(name, found) if found else ""
        return ChangeView(words.title(name), before, after, others, change.follows, axis, places)

    def _others(self, name: Hashable, found: Mapping[str, Any]) -> str:
        """Which other values would do."""
        words, others = self.words, found["others"]
        low, high = (None if found[f"{end}_open"] else found[end] for end in ("low", "high"))
        if found["low"] is not None and found["low"] != found["high"]:
            if low is None and high is None:
                return words.say("report.any_value")
            return words.between(name, low, high)
        if found["kind"] != "categorical":
            return ""
        if not others:
            return words.say("report.only_this")
        shown = ", ".join(words.values(name, list(others[:MAX_SHOWN_LEVELS])))
        n_more = len(others) - MAX_SHOWN_LEVELS
        return f"{shown} {words.say('report.more_levels', n=str(n_more))}" if n_more > 0 else shown

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


def how_usual(plausibility: float | None) -> str:
    """A word for the share of real people who look at least as unusual, if it is known."""
    if plausibility is None:
        return "unknown"
    return "common" if plausibility >= 0.25 else "uncommon" if plausibility >= 0.05 else "rare"


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
            label = self._words.labels.of(name)
            # Training values that nobody accepted has would stretch the line of a number.
            is_line = accepted is not None and feature.kind == "numeric" and not label.levels
            cells = feature.known.iloc[:0] if is_line else feature.known
            track = Track.make(cells, accepted, label)
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
    """The bars as one path."""
    width = (RIGHT - LEFT) * track.width
    return "".join(
        f"M{LEFT + (RIGHT - LEFT) * place - width / 2:.4g} {BASE}"
        f"V{BASE - max(1, round(BARS * height))}h{width:.3g}V{BASE}"
        for place, height in zip(track.bars.tolist(), track.heights.tolist(), strict=True)
        if height
    )
