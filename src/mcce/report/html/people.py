"""What a report says about each person, as plain texts for a template.

Always true: a table of changes shows the answer exactly as it was found; the letter above it is
rounded, and was checked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...counterfactuals import ALREADY, ANSWERED, UNANSWERED
from ...tables.schema import Schema
from ...tables.text import plain
from ...version import __version__
from ..cells import cells_of
from ..widened import cells_by_answer, say_cells, shown_share
from .assessed import Assessment
from .dumbbells import Dumbbell, Dumbbells
from .provenance import FINGERPRINT_DIGITS, Provenance, fingerprint
from .words import PageWords

# Keys of their words, in the order of the page.
STATUS = {ANSWERED: "answered", UNANSWERED: "no_answer", ALREADY: "already_desired"}
MAX_NAME, MAX_REASON, MAX_LETTER = 60, 600, 4_000
# Other levels that are listed.
MOST_LEVELS = 6
# So that a page stays small: unchanged features over all people, and at least for each of them;
# changes over all answers, and at least for each of them where there are more.
MOST_CELLS, LEAST_CELLS = 30_000, 20
MOST_CHANGES, LEAST_CHANGES = 8_000, 3


@dataclass(frozen=True)
class ChangeView:
    """A changed cell: texts, and the picture if there is one."""

    name: str
    before: str
    after: str
    others: str
    together: str
    follows: bool
    picture: Dumbbell | None


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
    command: str


@dataclass(frozen=True)
class PeopleSettings:
    """How people are shown."""

    words: PageWords
    schema: Schema
    names: Mapping[int, Any]
    n_answers: int
    most_cells: int
    most_changes: int
    seed: int
    provenance: Provenance


def limits(n_people: int, n_answers: int, n_changes: int) -> tuple[int, int]:
    """The most unchanged features of a person and changes of an answer, so that a page stays small.

    Examples
    --------
    >>> limits(100, 300, 900)
    (300, 900)
    >>> limits(1_000, 2_000, 50_000)
    (30, 4)
    """
    most_cells = max(LEAST_CELLS, MOST_CELLS // max(1, n_people))
    if n_changes <= MOST_CHANGES:
        return most_cells, n_changes
    return most_cells, max(LEAST_CHANGES, MOST_CHANGES // max(1, n_answers))


def view_people(
    part: Assessment, settings: PeopleSettings, dumbbells: Dumbbells
) -> Iterator[PersonView]:
    """The views of the people of a result."""
    viewer = _Viewer(part, settings, dumbbells)
    for place in range(len(part.result.people)):
        yield viewer.person(place)


class _Viewer:
    """Makes the views of the people of one result."""

    def __init__(self, part: Assessment, settings: PeopleSettings, dumbbells: Dumbbells) -> None:
        result = part.result
        self.part, self.settings, self.dumbbells = part, settings, dumbbells
        self.words, self.schema = settings.words, settings.schema
        self.own = _columns(result.factuals)
        self.new = _columns(result.frame)
        self.people = result.people.to_dict("list")
        self.rows = result.people.index.tolist()
        self.measures = result.measures.to_dict("records")
        self.robustness = part.robustness.to_dict("records")
        self.ranks = result.frame.index.get_level_values("rank").tolist()
        self.answers: list[list[int]] = [[] for _ in self.rows]
        for answer, place in enumerate(result.owner.tolist()):
            self.answers[place].append(answer)
        changes = result.changes()
        changed: dict[int, dict[Hashable, str]] = {at: {} for at in range(len(self.ranks))}
        number = {pair: at for at, pair in enumerate(result.frame.index.tolist())}
        for factual, rank, feature, kind in zip(
            *(changes[name] for name in ("factual", "rank", "feature", "kind")), strict=True
        ):
            changed[number[factual, rank]][feature] = kind
        self.changed = changed
        self.widened = None if result.anonymous is None else cells_by_answer(result.anonymous)

    def person(self, place: int) -> PersonView:
        row, answers = self.rows[place], self.answers[place]
        shown = answers[: self.settings.n_answers]
        touched = {name for answer in shown for name in self.changed[answer]}
        held = [name for name in self.own if self._is_held(name, place)]
        same = [name for name in self.own if name not in touched and name not in held]
        most = self.settings.most_cells
        name = plain(self.settings.names.get(row, row), MAX_NAME)
        return PersonView(
            row=row,
            name=self.words.say("person", name=name),
            status=STATUS[self.people["status"][place]],
            score=self.words.number(self.people["score"][place]),
            letter=_cut(self.part.letters.iloc[place]),
            reason=plain(self.people["reason"][place], MAX_REASON),
            remarks=self._remarks(place),
            answers=[self._answer(answer, place) for answer in shown],
            n_left_out=len(answers) - len(shown),
            held=self._cells(held[:most], place),
            unchanged=self._cells(same[: max(0, most - len(held))], place),
            n_unchanged=len(held) + len(same),
            fingerprint=self._fingerprint(place)[:FINGERPRINT_DIGITS],
            command=self.settings.provenance.of_person(row),
        )

    def _is_held(self, name: Hashable, place: int) -> bool:
        immutable = self.schema.features[self.schema.names.index(name)].immutable
        frozen = self.part.frozen.get(name)
        return immutable or (frozen is not None and bool(frozen[place]))

    def _cells(self, names: Sequence[Hashable], place: int) -> list[tuple[str, str]]:
        cells = self.words.cells
        return [(cells.name(n), cells.values(n, [self.own[n][place]])[0]) for n in names]

    def _remarks(self, place: int) -> list[str]:
        unseen = self.people["unseen_immutable"][place]
        nearest = self.people["nearest_score"][place]
        said = []
        if unseen:
            said.append(self.words.say("unseen", names=plain(unseen, 200)))
        if nearest == nearest:
            said.append(self.words.say("nearest", score=self.words.number(nearest)))
        return said

    def _answer(self, answer: int, place: int) -> AnswerView:
        listed = list(self.changed[answer].items())
        shown = listed[: self.settings.most_changes]
        changes = [self._change(name, kind, answer, place) for name, kind in shown]
        measures = {**self.measures[answer], **self.robustness[answer]}
        remarks = [
            self.words.say(f"remark_{key}")
            for key in ("no_reference_group", "proven")
            if measures.get(key) is True
        ]
        if not measures["valid"]:
            remarks.append(self.words.say("remark_withdrawn"))
        if self.widened is not None:
            remarks.append(self._anonymous(answer))
        figures, n_left_out = self._figures(measures), len(listed) - len(shown)
        return AnswerView(self.ranks[answer], figures, remarks, changes, n_left_out)

    def _anonymous(self, answer: int) -> str:
        """What an anonymous answer says, and how many people it fits."""
        assert self.widened is not None
        assert self.part.result.anonymous is not None
        measures = self.part.result.anonymous.measures.iloc[answer]
        return self.words.say(
            "remark_anonymous",
            cells=say_cells(self.words.cells, self.widened[answer]),
            crowd=str(measures["crowd"]),
            share=self.words.percent(shown_share(measures["pureness"])),
        )

    def _figures(self, measures: Mapping[Hashable, Any]) -> list[tuple[str, str]]:
        words = self.words
        figures = [
            ("score", words.number(measures["score"])),
            ("sparsity", words.number(measures["sparsity"])),
            ("distance", words.number(measures["gower"])),
        ]
        if "plausibility" in measures:
            figures.append(("plausibility", words.number(measures["plausibility"], 2)))
        figures += [
            ("margin", words.number(measures["margin"])),
            ("stability", words.percent(measures["stability"])),
            ("minimal", words.flag(measures["minimal"])),
        ]
        return [(words.say(key), text) for key, text in figures]

    def _change(self, name: Hashable, kind: str, answer: int, place: int) -> ChangeView:
        cells = [self.own[name][place], self.new[name][answer]]
        found = self.part.ranges.get((self.rows[place], self.ranks[answer], name), {})
        ends = [] if found.get("low") is None else [found["low"], found["high"]]
        boxed = [] if found.get("box_low") is None else [found["box_low"], found["box_high"]]
        before, after, *rest = self.words.cells.values(name, [*cells, *ends, *boxed])
        others = ""
        if ends:
            others = self._interval(rest[0], rest[1], found["low_open"], found["high_open"])
        elif found.get("others") is not None and found["kind"] == "categorical":
            others = self._levels(name, found["others"])
        together = ""
        if boxed:
            low, high = rest[-2:]
            tried, held = found["box_tried"], found["box_held"]
            together = self.words.say(
                "together", low=low, high=high, held=str(held), tried=str(tried)
            )
        return ChangeView(
            name=self.words.cells.name(name),
            before=before,
            after=after,
            others=others,
            together=together,
            follows=kind == "consequence",
            picture=self.dumbbells.draw(name, cells, ends),
        )

    def _interval(self, low: str, high: str, low_open: bool, high_open: bool) -> str:
        if low_open and high_open:
            return self.words.say("any_value")
        if low == high:
            return self.words.say("only_this")
        if low_open or high_open:
            key = "values.at_most" if low_open else "values.at_least"
            return self.words.language.say(key, value=high if low_open else low)
        return self.words.language.say("values.between", low=low, high=high)

    def _levels(self, name: Hashable, others: Sequence[Any]) -> str:
        if not others:
            return self.words.say("only_this")
        shown = ", ".join(self.words.cells.values(name, list(others[:MOST_LEVELS])))
        n_more = len(others) - MOST_LEVELS
        more = f" {self.words.say('more_levels', n=str(n_more))}" if n_more > 0 else ""
        return f"{self.words.say('also', levels=shown)}{more}"

    def _fingerprint(self, place: int) -> str:
        rows = [{str(name): cells[place] for name, cells in self.own.items()}]
        rows += [
            {str(name): cells[answer] for name, cells in self.new.items()}
            for answer in self.answers[place]
        ]
        return fingerprint([__version__, self.settings.seed, self.people["status"][place], rows])


def _cut(letter: str) -> str:
    """The beginning of a letter that is too long."""
    return letter if len(letter) <= MAX_LETTER else f"{letter[:MAX_LETTER]}…"


def _columns(frame: pd.DataFrame) -> dict[Hashable, list[Any]]:
    """Cells by column, None if missing."""
    return {name: cells_of(column) for name, column in frame.items()}
