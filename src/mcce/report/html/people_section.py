"""What a report says about each person, as plain texts and small pictures for a template.

A file of people may give several results, one for each set of dtypes, and the predictor sees each
as ``explain`` did. A thousand people have thousands of changes, too many for matplotlib: their
dumbbells are numbers for an SVG of a few hundred bytes.

Always true: people are identified by position, so labels may repeat; a table of changes shows the
same final row as the letter above it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ...counterfactuals.parts import ALREADY, ANSWERED, UNANSWERED
from ...counterfactuals.result import Counterfactuals, ranges_by_answer
from ...explainer import MCCE, requirements_of
from ...fitted import Fitted
from ...tables.columns import is_measured
from ...tables.features import Feature
from ...tables.text import short_line
from ...version import __version__
from ..changes import cells_by_answer, cells_of, shown_share
from ..label_checks import level_key
from ..letters import write_letters
from ..plots.person import Track
from ..sentences import say_cells
from .page import FINGERPRINT_DIGITS, PageWords, checksum_of

# Keys of their words, in the order of the page.
STATUS = {ANSWERED: "answered", UNANSWERED: "no_answer", ALREADY: "already_desired"}
MAX_NAME, MAX_REASON, MAX_LETTER = 60, 600, 4_000
# Other levels that are listed.
MAX_SHOWN_LEVELS = 6
# So that a page stays small: the most unchanged features of all people together and the least for
# each person; the most changes of all answers together, and the least for each answer.
MAX_SHOWN_CELLS, MIN_SHOWN_CELLS = 30_000, 20
MAX_SHOWN_CHANGES, MIN_SHOWN_CHANGES = 8_000, 3
# Pixels: the whole picture, the line inside it, its height, and the bars above it.
WIDTH, LEFT, RIGHT, BASE, BARS = 230, 22, 208, 26, 20
# Accepted people of whom the bars are made.
MAX_ACCEPTED_PEOPLE = 1_000


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


@dataclass(frozen=True, eq=False)
class PeopleSettings:
    """How people are shown."""

    explainer: MCCE
    constraints: Any
    words: PageWords
    names: Mapping[int, Any]
    dumbbells: Dumbbells
    n_answers: int
    most_cells: int
    most_changes: int


def page_limits(
    result: Counterfactuals[pd.DataFrame], n_answers: int, max_people: int
) -> tuple[int, int]:
    """The most unchanged features of a person and changes of an answer, so that a page is small."""
    ranks = result.frame.index.get_level_values("rank")
    shown = (result.owner < max_people) & (ranks <= n_answers)
    n_changes = int(result.measures["sparsity"].to_numpy()[shown].sum())
    n_people = max(1, min(len(result.people), max_people))
    if n_changes > MAX_SHOWN_CHANGES:
        n_changes = max(MIN_SHOWN_CHANGES, MAX_SHOWN_CHANGES // max(1, int(shown.sum())))
    return max(MIN_SHOWN_CELLS, MAX_SHOWN_CELLS // n_people), n_changes


class PeopleSection:
    """The people of one numbered result, for the template."""

    def __init__(self, result: Counterfactuals[pd.DataFrame], settings: PeopleSettings) -> None:
        explainer, constraints = settings.explainer, settings.constraints
        self.settings, self.anonymous = settings, result.anonymous
        self.words, self.schema = settings.words, explainer.schema_
        self.own = _columns(result.factuals)
        self.new = _columns(result.frame)
        self.people = result.people.to_dict("list")
        self.rows = result.people.index.tolist()
        self.measures = result.measures.to_dict("records")
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
        labels = self.words.cells.labels
        letters = write_letters(explainer, result, labels, ranges=True, constraints=constraints)
        self.letters = letters.people["text"]
        self.ranges = [{row["feature"]: row for row in rows} for rows in ranges_by_answer(result)]
        robustness = explainer.robustness(result, constraints=constraints)
        self.robustness = robustness.to_dict("records")
        rules = requirements_of(explainer, constraints).constraints
        frozen = rules.frozen(self.schema.encode(result.factuals))
        self.frozen = {self.schema.names[position]: whose for position, whose in frozen.items()}

    def views(self) -> Iterator[PersonView]:
        """Everybody, as the page shows them."""
        return map(self._person, range(len(self.rows)))

    def _person(self, place: int) -> PersonView:
        row, answers = self.rows[place], self.answers[place]
        shown = answers[: self.settings.n_answers]
        touched = {name for answer in shown for name in self.changed[answer]}
        held = [name for name in self.own if self._is_held(name, place)]
        same = [name for name in self.own if name not in touched and name not in held]
        most = self.settings.most_cells
        name = short_line(self.settings.names.get(row, row), MAX_NAME)
        return PersonView(
            row=row,
            name=self.words.say("person", name=name),
            status=STATUS[self.people["status"][place]],
            score=self.words.number(self.people["score"][place]),
            letter=_cut(self.letters.iloc[place]),
            reason=short_line(self.people["reason"][place], MAX_REASON),
            remarks=self._remarks(place),
            answers=[self._answer(answer, place) for answer in shown],
            n_left_out=len(answers) - len(shown),
            held=self._written_cells(held[:most], place),
            unchanged=self._written_cells(same[: max(0, most - len(held))], place),
            n_unchanged=len(held) + len(same),
            fingerprint=self._fingerprint(place)[:FINGERPRINT_DIGITS],
        )

    def _is_held(self, name: Hashable, place: int) -> bool:
        immutable = self.schema.features[self.schema.names.index(name)].immutable
        frozen = self.frozen.get(name)
        return immutable or (frozen is not None and bool(frozen[place]))

    def _written_cells(self, names: Sequence[Hashable], place: int) -> list[tuple[str, str]]:
        cells = self.words.cells
        return [(cells.name(n), cells.values(n, [self.own[n][place]])[0]) for n in names]

    def _remarks(self, place: int) -> list[str]:
        unseen = self.people["unseen_immutable"][place]
        nearest = self.people["nearest_score"][place]
        remarks = []
        if unseen:
            remarks.append(self.words.say("unseen", names=short_line(unseen, 200)))
        if nearest == nearest:
            remarks.append(self.words.say("nearest", score=self.words.number(nearest)))
        return remarks

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
        if self.widened is not None:
            remarks.append(self._anonymous(answer))
        figures, n_left_out = self._figures(measures), len(listed) - len(shown)
        return AnswerView(self.ranks[answer], figures, remarks, changes, n_left_out)

    def _anonymous(self, answer: int) -> str:
        """What an anonymous answer says, and how many people it fits."""
        assert self.widened is not None
        assert self.anonymous is not None
        measures = self.anonymous.measures.iloc[answer]
        return self.words.say(
            "remark_anonymous",
            cells=say_cells(self.words.cells, self.widened[answer]),
            crowd=str(measures["crowd"]),
            share=self.words.language.percent(shown_share(measures["pureness"])),
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
            ("margin", self._margin(measures)),
            ("stability", words.language.percent(measures["stability"])),
            ("minimal", words.flag(measures["minimal"])),
        ]
        return [(words.say(key), text) for key, text in figures]

    def _margin(self, measures: Mapping[Hashable, Any]) -> str:
        """The margin, and the word for it if there is one."""
        number, word = self.words.number(measures["margin"]), measures.get("margin_word")
        return f"{number} ({self.words.say(f'margin_{word}')})" if word else number

    def _change(self, name: Hashable, kind: str, answer: int, place: int) -> ChangeView:
        cells = [self.own[name][place], self.new[name][answer]]
        found = self.ranges[answer].get(name, {})
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
            picture=self.settings.dumbbells.draw(name, cells, ends),
        )

    def _interval(self, low: str, high: str, low_open: bool, high_open: bool) -> str:
        if low_open and high_open:
            return self.words.say("any_value")
        if low == high:
            return self.words.say("only_this")
        return self.words.language.between(None if low_open else low, None if high_open else high)

    def _levels(self, name: Hashable, others: Sequence[Any]) -> str:
        if not others:
            return self.words.say("only_this")
        shown = ", ".join(self.words.cells.values(name, list(others[:MAX_SHOWN_LEVELS])))
        n_more = len(others) - MAX_SHOWN_LEVELS
        more = f" {self.words.say('more_levels', n=str(n_more))}" if n_more > 0 else ""
        return f"{self.words.say('also', levels=shown)}{more}"

    def _fingerprint(self, place: int) -> str:
        rows = [{str(name): cells[place] for name, cells in self.own.items()}]
        rows += [
            {str(name): cells[answer] for name, cells in self.new.items()}
            for answer in self.answers[place]
        ]
        seed, status = self.settings.explainer.seed_, self.people["status"][place]
        return checksum_of([__version__, seed, status, rows])


def _cut(letter: str) -> str:
    """The beginning of a letter that is too long."""
    return letter if len(letter) <= MAX_LETTER else f"{letter[:MAX_LETTER]}…"


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
class Dumbbell:
    """Where everything stands in the picture of one change, in pixels."""

    before: float
    after: float
    low: float | None
    high: float | None
    bars: str
    ends: tuple[str, ...]


class Dumbbells:
    """Draws changes."""

    def __init__(self, fitted: Fitted, words: PageWords) -> None:
        self._fitted, self._words = fitted, words
        self._features = {feature.name: feature for feature in fitted.schema.features}
        self._accepted: dict[Hashable, pd.Series[Any] | None] = {}
        self._drawn: dict[tuple[Any, ...], Dumbbell] = {}

    @property
    def shows_accepted(self) -> bool:
        """Whether accepted people stand behind the lines."""
        return self._fitted.plausibility is not None

    @property
    def frame(self) -> dict[str, int]:
        """Where the lines of all pictures stand, for the template."""
        return {"width": WIDTH, "left": LEFT, "right": RIGHT, "base": BASE}

    def draw(self, name: Hashable, cells: Sequence[Any], ends: Sequence[Any]) -> Dumbbell:
        """The picture of a change."""
        key = (name, *map(level_key, (*cells, *ends)))
        if key not in self._drawn:
            self._drawn[key] = self._draw(self._features[name], [*cells, *ends])
        return self._drawn[key]

    def _draw(self, feature: Feature, cells: Sequence[Any]) -> Dumbbell:
        if feature.name not in self._accepted:
            self._accepted[feature.name] = self._accepted_cells(feature)
        words = self._words.cells
        levels = list(words.labels.of(feature.name).levels)
        track = Track.make(_column(feature, cells), self._accepted[feature.name], levels)
        places = [_pixel(place) for place in track.places.tolist()]
        before, after, *reach = places
        low, high = reach or (None, None)
        named = words.values(feature.name, list(track.ends)) if track.ends else []
        return Dumbbell(before, after, low, high, _bars(track), tuple(named))

    def _accepted_cells(self, feature: Feature) -> pd.Series[Any] | None:
        plausibility = self._fitted.plausibility
        if plausibility is None:
            return None
        position = self._fitted.schema.names.index(feature.name)
        codes = plausibility.codes_[position]
        codes = codes[:: max(1, codes.size // MAX_ACCEPTED_PEOPLE)]
        return feature.table.iloc[codes].reset_index(drop=True)


def _column(feature: Feature, cells: Sequence[Any]) -> pd.Series[Any]:
    """Cells as a column that has the kind of its feature."""
    if feature.kind == "numeric":
        column = pd.Series(list(cells))
        return column if is_measured(column.dtype) else column.astype(feature.table.dtype)
    if isinstance(feature.table.dtype, pd.CategoricalDtype):
        levels = list(feature.table.dtype.categories)
        known = dict.fromkeys([*levels, *(cell for cell in cells if cell is not None)])
        return pd.Series(pd.Categorical(list(cells), categories=list(known)))
    return pd.Series(list(cells), dtype=object)


def _pixel(place: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * place, 1)


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
