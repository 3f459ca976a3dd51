"""One person and their answers: dumbbells from before to after, and a table.

Each changed feature is a line with a scale of its own. The hollow dot is the person, the full dot
the answer, and the bars behind are accepted people.

Always true: features that no shown answer changes are not drawn; texts of one line grow away from
each other, so they never overlap; a place on a line is between 0 and 1, or MISSING_PLACE, and equal
values have equal places.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals.result import Counterfactuals
from ...kernels import FloatArray
from ...parameters import check_flag
from ...tables.columns import as_numbers, is_measured
from ..changes import cells_of
from ..label_checks import level_key
from ..labels import Labels
from ..sentences import CellWords
from .style import (
    NORMAL_SIZE,
    SMALL_SIZE,
    LabelsLike,
    PersonAnswers,
    Theme,
    explain_marks,
    make_axes,
    name_rows,
    read_accepted,
    select_answers,
    wrap,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a line's height, and of a character's width.
ROW, CHARACTER = 0.8, 0.065
# Inches of the line of a feature, when there is one answer and when there are several.
WIDE_LINE, NARROW_LINE = 4.2, 1.9
# Inches between the columns of two answers.
GAP = 0.3
# Height of the bars, and how far below a line its texts stand, as shares of a line's height.
BARS, BELOW = 0.42, 0.13
# How far texts reach over their dots, as a share of a line's length.
NUDGE = 0.02
# Inches of a line of text and of a character, and between columns.
TABLE_ROW, TABLE_CHARACTER, TABLE_GAP = 0.2, 0.078, 0.35
MISSING_PLACE = -0.07
# Bars of a histogram, and distinct numbers up to which each has a bar of its own.
N_BINS, MAX_DISTINCT = 24, 12
# Share of accepted people beyond either end of a line, so that a few do not stretch it.
TAIL = 0.01


def plot_answer(
    result: Counterfactuals[Any],
    person: Hashable | None = None,
    *,
    rank: int = 1,
    accepted: Any = None,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """One answer of a person: what changes, from where to where.

    Parameters
    ----------
    result
        What ``explain`` returned.
    person
        Label of the person in the index of ``result.people``; None is the first with an answer.
    rank
        Rank of the answer.
    accepted
        People with the desired decision, such as the training rows that the predictor accepts:
        their distribution is drawn behind each feature. None draws none.
    labels
        Words for features, their values and units: :class:`mcce.report.Labels`, a labels file, or
        a dict of the same form.
    ax
        Axes to draw in; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError, SchemaError
        If there is no such person or answer, or ``accepted`` lacks a column.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> ax = plot_answer(explainer.explain(bank.iloc[[3]]), accepted=bank[bank["salary"] >= 70])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['salary']
    """
    return _draw(select_answers(result, person, [rank]), accepted, labels, ax)


def plot_answers(
    result: Counterfactuals[Any],
    person: Hashable | None = None,
    *,
    accepted: Any = None,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """All answers of a person side by side: the same features, a column for each answer.

    Parameters
    ----------
    result, person, accepted, labels, ax
        As for :func:`plot_answer`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    MissingExtraError, ParameterError, SchemaError
        As :func:`plot_answer`.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="paper")
    >>> explainer = explainer.set_params(n_counterfactuals=2, random_state=0).fit(bank)
    >>> result = explainer.explain(bank.iloc[[3]])
    >>> ax = plot_answers(result)
    >>> [text.get_text() for text in ax.texts if text.get_text().startswith("Answer")]
    ['Answer 1', 'Answer 2']
    """
    return _draw(select_answers(result, person), accepted, labels, ax)


@dataclass(frozen=True)
class _TrackText:
    """A text of a line: where it stands, to which side it grows, and how it looks."""

    x: float
    y: float
    side: str
    text: str
    kind: str

    def reach(self, line: float) -> tuple[float, float]:
        """Where it begins and ends, on a line of a given length in inches."""
        length = CHARACTER * max(map(len, self.text.split("\n"))) / line
        share = {"left": 0.0, "center": 0.5, "right": 1.0}[self.side]
        return self.x - share * length, self.x + (1 - share) * length


@dataclass(frozen=True, eq=False)
class _Row:
    """One feature of the picture: its line, and the texts of the person and the answers."""

    name: str
    track: Track
    texts: list[str]
    ends: list[str]
    changed: np.ndarray
    follows: bool

    @classmethod
    def make(
        cls,
        answers: PersonAnswers,
        feature: Hashable,
        accepted: pd.DataFrame | None,
        words: CellWords,
    ) -> _Row:
        behind = None if accepted is None else accepted[feature]
        levels = list(words.labels.of(feature).levels)
        track = Track.make(answers.rows[feature], behind, levels)
        texts = words.values(feature, cells_of(answers.rows[feature]))
        return cls(
            name=words.name(feature),
            track=track,
            texts=[wrap(text) for text in texts],
            ends=[wrap(text) for text in words.values(feature, track.ends)],
            changed=answers.changed(feature),
            follows=feature in answers.consequences,
        )

    def words(self, answer: int) -> list[_TrackText]:
        """The texts of one answer; those of the two dots grow away from each other."""
        before, after = self.track.places[0], self.track.places[answer + 1]
        own, other = self.texts[0], self.texts[answer + 1]
        # Over their own dots, but never nearer to each other than that.
        toward = min(NUDGE, abs(after - before) / 2 - NUDGE) * (1 if after > before else -1)
        sides = ("right", "left") if after > before else ("left", "right")
        texts = [_TrackText(before, -BELOW, "center", own, "own")]
        if self.changed[answer]:
            texts = [
                _TrackText(before + toward, -BELOW, sides[0], own, "own"),
                _TrackText(after - toward, -BELOW, sides[1], other, "answer"),
            ]
        for text, end, side in zip(self.ends, (0.0, 1.0), ("right", "left"), strict=False):
            # Near a dot, its own label is enough.
            if min(abs(before - end), abs(after - end)) > 0.08:
                texts.append(_TrackText(end + NUDGE * (2 * end - 1), 0, side, text, "end"))
        return texts


def _draw(answers: PersonAnswers, given: Any, labels: LabelsLike, ax: Axes | None) -> Axes:
    words, accepted = CellWords(Labels.take(labels)), read_accepted(given, answers.rows)
    rows = [_Row.make(answers, feature, accepted, words) for feature in answers.features]
    n_answers = len(answers.ranks)
    line = WIDE_LINE if n_answers == 1 else NARROW_LINE
    low, high = _reach(rows, n_answers, line)
    pitch = high - low + GAP / line
    axes, theme = make_axes(ax, 2 + n_answers * pitch * line, 1.1 + ROW * len(rows))
    for place, rank in enumerate(answers.ranks):
        left = place * pitch
        _head(axes, left, words, rank, answers.measures["score"].iloc[place], theme)
        for at, row in enumerate(rows):
            _draw_row(axes, row, place, (left, -float(at)), theme)
    axes.set(xlim=(low, low + n_answers * pitch), ylim=(0.5 - len(rows), 1.15))
    axes.set_xticks([])
    name_rows(axes, [row.name for row in rows], [-float(at) for at in range(len(rows))])
    follows = any(row.follows for row in rows)
    explain_marks(axes, _handles(words, theme, accepted is not None, follows))
    return axes


def _reach(rows: list[_Row], n_answers: int, line: float) -> tuple[float, float]:
    """How far to the left and right the texts and bars of a column reach."""
    reaches = [
        text.reach(line) for row in rows for at in range(n_answers) for text in row.words(at)
    ]
    lows, highs = zip(*reaches, strict=True) if reaches else ((0.0,), (1.0,))
    return min(-0.1, *lows), max(1.1, *highs)


def _head(axes: Axes, left: float, words: CellWords, rank: int, score: float, theme: Theme) -> None:
    """The rank of an answer and its score, above its column."""
    title, (number,) = words.say("answer_of_rank", rank=str(rank)), words.values("score", [score])
    bold: dict[str, Any] = {
        "va": "bottom",
        "size": NORMAL_SIZE,
        "weight": "bold",
        "color": theme.ink,
    }
    write_text(axes, left + 0.5, 0.86, title, ha="center", **bold)
    small: dict[str, Any] = {"va": "top", "size": SMALL_SIZE, "color": theme.muted}
    write_text(axes, left + 0.5, 0.82, words.say("score", score=number), ha="center", **small)


def _draw_row(
    axes: Axes, row: _Row, answer: int, corner: tuple[float, float], theme: Theme
) -> None:
    """One feature of one answer; ``corner`` is the left end of its line."""
    (left, y), track = corner, row.track
    bars: dict[str, Any] = {"color": theme.faint, "zorder": 1}
    axes.bar(left + track.bars, BARS * track.heights, track.width, y + 0.02, **bars)
    axes.plot([left, left + 1], [y, y], color=theme.faint, linewidth=1.2, zorder=1)
    before, after = left + track.places[0], left + track.places[answer + 1]
    if row.changed[answer]:
        stroke: dict[str, Any] = {
            "color": theme.answer,
            "linestyle": "dashed" if row.follows else "solid",
        }
        axes.plot([before, after], [y, y], linewidth=2, zorder=2, **stroke)
        axes.plot(after, y, "o", markersize=8, color=theme.answer, zorder=4)
    axes.plot(before, y, "o", markersize=7, zorder=3, mew=1.6, **_hollow(axes, theme))
    looks: dict[str, dict[str, Any]] = {
        "own": {"va": "top", "size": SMALL_SIZE, "color": theme.muted},
        "answer": {"va": "top", "size": SMALL_SIZE, "color": theme.ink},
        "end": {"va": "center", "size": SMALL_SIZE - 1, "color": theme.muted},
    }
    for text in row.words(answer):
        look = looks[text.kind]
        write_text(
            axes, left + text.x, y + text.y, text.text, ha=text.side, linespacing=1.05, **look
        )


def _hollow(axes: Axes, theme: Theme) -> dict[str, Any]:
    """A dot with the background inside."""
    from matplotlib.colors import to_rgba

    own = to_rgba(axes.get_facecolor())
    inside = own if own[3] > 0.5 else axes.figure.get_facecolor()
    return {"markerfacecolor": inside, "markeredgecolor": theme.muted}


def _handles(words: CellWords, theme: Theme, accepted: bool, follows: bool) -> list[Any]:
    """What the marks mean, for a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    dot: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    handles: list[Any] = [
        Line2D([], [], **dot, markerfacecolor="none", markeredgecolor=theme.muted,
               markeredgewidth=1.6, label=words.say("now")),
        Line2D([], [], **dot, color=theme.answer, label=words.say("answer")),
    ]  # fmt: skip
    if accepted:
        handles.append(Patch(color=theme.faint, label=words.say("accepted")))
    if follows:
        dashed = Line2D([], [], color=theme.answer, linestyle="dashed", linewidth=2)
        dashed.set_label(words.say("follows"))
        handles.append(dashed)
    return handles


def plot_table(
    result: Counterfactuals[Any],
    person: Hashable | None = None,
    *,
    only_changed: bool = False,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """A person and their answers as a table, a row for each feature; changed cells are marked.

    Parameters
    ----------
    result, person
        As for :func:`plot_answer`.
    only_changed
        Whether to leave out features that no answer changes.
    labels, ax
        As for :func:`plot_answer`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; each changed cell is bold, on a rectangle of its own.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If there is no such person.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> ax = plot_table(explainer.explain(bank.iloc[[3]]))
    >>> [text.get_text() for text in ax.texts if text.get_weight() == "bold"]
    ['now', 'Answer 1', '70']
    """
    check_flag("only_changed", only_changed)
    answers, words = select_answers(result, person), CellWords(Labels.take(labels))
    features = answers.features if only_changed else list(answers.rows.columns)
    heads = [words.say("answer_of_rank", rank=str(rank)) for rank in answers.ranks]
    rows = [["", words.say("now"), *heads]]
    marked = [np.zeros(len(rows[0]), dtype=bool)]
    for feature in features:
        texts = words.values(feature, cells_of(answers.rows[feature]))
        rows.append([wrap(text) for text in (words.name(feature), *texts)])
        marked.append(np.concatenate([[False, False], answers.changed(feature)]))
    return _draw_table(rows, marked, ax)


def _draw_table(
    rows: Sequence[Sequence[str]], marked: Sequence[np.ndarray], ax: Axes | None
) -> Axes:
    """Texts in rows and columns, the first row and column as heads."""
    lefts, tops = _edges(rows)
    axes, theme = make_axes(ax, lefts[-1], tops[-1])
    axes.set(xlim=(0, lefts[-1]), ylim=(tops[-1], 0))
    axes.set_xticks([])
    axes.set_yticks([])
    for row, (texts, marks) in enumerate(zip(rows, marked, strict=True)):
        middle = (tops[row] + tops[row + 1]) / 2
        for column, text in enumerate(texts):
            bold = row == 0 or marks[column]
            if marks[column]:
                _mark(axes, lefts[column : column + 2], tops[row : row + 2], theme.mark)
            look: dict[str, Any] = {
                "size": NORMAL_SIZE if column == 0 else SMALL_SIZE + 0.5,
                "weight": "bold" if bold else "normal",
                "color": theme.ink if bold or column == 0 else theme.muted,
            }
            if text:
                write_text(axes, lefts[column] + TABLE_GAP / 2, middle, text, va="center", **look)
        axes.axhline(tops[row + 1], color=theme.line if row == 0 else theme.faint, linewidth=0.8)
    return axes


def _edges(rows: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Where columns and rows begin, and where the last ones end, in inches."""
    widths = [
        TABLE_CHARACTER * max(len(line) for text in column for line in text.split("\n")) + TABLE_GAP
        for column in zip(*rows, strict=True)
    ]
    heights = [TABLE_ROW * max(text.count("\n") + 1 for text in row) + 0.12 for row in rows]
    return np.cumsum([0.0, *widths]), np.cumsum([0.0, *heights])


def _mark(axes: Axes, across: np.ndarray, down: np.ndarray, colour: str) -> None:
    from matplotlib.patches import Rectangle

    corner = (across[0] + 0.06, down[0] + 0.02)
    size = (across[1] - across[0] - 0.12, down[1] - down[0] - 0.04)
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="none", zorder=0))


@dataclass(frozen=True, eq=False)
class Track:
    """The line of one feature."""

    places: FloatArray
    bars: FloatArray
    heights: FloatArray
    width: float
    ends: tuple[Any, ...] = ()

    @classmethod
    def make(
        cls, cells: pd.Series[Any], accepted: pd.Series[Any] | None, words: Sequence[Hashable]
    ) -> Track:
        """The line for some cells of a column."""
        behind = cells.iloc[:0] if accepted is None else accepted
        if is_measured(cells.dtype) and is_measured(behind.dtype) and not words:
            return cls._of_numbers(cells, behind)
        return cls._of_levels(cells, behind)

    @classmethod
    def _of_numbers(cls, cells: pd.Series[Any], behind: pd.Series[Any]) -> Track:
        values, others = as_numbers(cells), as_numbers(behind, cells.dtype)
        others = others[np.isfinite(others)]
        own = values[np.isfinite(values)]
        inner = np.quantile(others, [TAIL, 1 - TAIL], method="nearest") if others.size else others
        known = np.concatenate([own, inner])
        if not known.size:
            return cls(np.full(values.size, MISSING_PLACE), np.empty(0), np.empty(0), 0.0)
        low, high = float(known.min()), float(known.max())
        shown = others[(others >= low) & (others <= high)]
        distinct, counts = np.unique(shown, return_counts=True)
        if distinct.size > MAX_DISTINCT:
            counts, edges = np.histogram(_place(shown, low, high), N_BINS, (0.0, 1.0))
            bars, width = (edges[1:] + edges[:-1]) / 2, 1 / N_BINS
        else:
            bars = _place(distinct, low, high)
            width = 0.8 * min([0.12, *np.diff(bars)])
        ends = tuple(_cell_at([cells, behind], number) for number in (low, high) if low < high)
        places = np.where(np.isnan(values), MISSING_PLACE, _place(values, low, high))
        return cls(places, bars, _share(counts), width, ends)

    @classmethod
    def _of_levels(cls, cells: pd.Series[Any], behind: pd.Series[Any]) -> Track:
        shown, others = cells_of(cells), cells_of(behind)
        order = level_order([cells, behind], [*shown, *others])
        counts = np.zeros(len(order))
        for key, count in pd.Series([level_key(cell) for cell in others]).value_counts().items():
            if key in order:
                counts[order[key]] = count
        bars = np.linspace(0, 1, len(order)) if len(order) > 1 else np.full(len(order), 0.5)
        places = np.array(
            [MISSING_PLACE if cell is None else bars[order[level_key(cell)]] for cell in shown]
        )
        return cls(places, bars, _share(counts), min(0.12, 0.8 / max(1, len(order) - 1)))


def _place(values: FloatArray, low: float, high: float) -> FloatArray:
    """Numbers on a line from 0 to 1."""
    if low == high:
        return np.where(np.isnan(values), np.nan, 0.5)
    # Halves, since the difference of two large floats may be infinite.
    return np.clip((values / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0)


def _share(counts: np.ndarray) -> FloatArray:
    return counts / max(1.0, float(counts.max(initial=0.0)))


def _cell_at(columns: Sequence[pd.Series[Any]], number: float) -> Any:
    """A cell with the given number, as it came."""
    for column in columns:
        places = np.flatnonzero(as_numbers(column, columns[0].dtype) == number)
        if places.size:
            return column.iloc[int(places[0])]
    raise AssertionError("the ends of a line are numbers of its cells")


def level_order(columns: Sequence[pd.Series[Any]], cells: Sequence[Any]) -> dict[str, int]:
    """The place of each level that occurs: that of a category, otherwise sorted."""
    known = {level_key(cell): cell for cell in cells if cell is not None}
    listed = [
        level_key(level)
        for column in columns
        if isinstance(column.dtype, pd.CategoricalDtype)
        for level in column.dtype.categories
    ]
    try:
        rest = sorted(known, key=lambda key: known[key])
    except TypeError:
        rest = sorted(known)
    keys = dict.fromkeys([*(key for key in listed if key in known), *rest])
    return {key: place for place, key in enumerate(keys)}
