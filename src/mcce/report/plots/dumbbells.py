"""From a person to an answer: before → after for every changed feature, in its own units.

Each feature is a line with a scale of its own. The hollow dot is the person, the full dot the
answer, and the bars behind are accepted people.

Always true: nothing is drawn of a feature that no shown answer changes; texts grow away from each
other, so those of one line never overlap.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals import Counterfactuals
from ..cells import CellWords, cells_of
from ..labels import Labels
from .selecting import PersonAnswers, read_accepted, select_answers
from .style import NORMAL, SMALL, Theme, explain_marks, make_axes, name_rows, theme_of, wrap, write
from .tracks import Track

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LabelsLike = Labels | Mapping[str, Any] | str | os.PathLike[str] | None

# Inches of a line's height, and of a character's width.
ROW, CHARACTER = 0.8, 0.065
# Inches of the line of a feature, when there is one answer and when there are several.
WIDE, NARROW = 4.2, 1.9
# Inches between the columns of two answers.
GAP = 0.3
# Height of the bars, and how far below a line its texts stand, as shares of a line's height.
BARS, BELOW = 0.42, 0.13
# How far texts reach over their dots, as a share of a line's length.
NUDGE = 0.02


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
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
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
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), n_counterfactuals=2)
    >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank.iloc[[3]])
    >>> ax = plot_answers(result)
    >>> [text.get_text() for text in ax.texts if text.get_text().startswith("Answer")]
    ['Answer 1', 'Answer 2']
    """
    return _draw(select_answers(result, person), accepted, labels, ax)


@dataclass(frozen=True)
class _Words:
    """A text of a line: where it stands, to which side it grows, and how it looks."""

    x: float
    y: float
    side: str
    text: str
    kind: str

    def reach(self, line: float) -> tuple[float, float]:
        """Where it begins and ends, on a line of so many inches."""
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

    def words(self, answer: int) -> list[_Words]:
        """The texts of one answer; those of the two dots grow away from each other."""
        before, after = self.track.places[0], self.track.places[answer + 1]
        own, other = self.texts[0], self.texts[answer + 1]
        # Over their own dots, but never nearer to each other than that.
        toward = min(NUDGE, abs(after - before) / 2 - NUDGE) * (1 if after > before else -1)
        sides = ("right", "left") if after > before else ("left", "right")
        texts = [_Words(before, -BELOW, "center", own, "own")]
        if self.changed[answer]:
            texts = [
                _Words(before + toward, -BELOW, sides[0], own, "own"),
                _Words(after - toward, -BELOW, sides[1], other, "answer"),
            ]
        for text, end, side in zip(self.ends, (0.0, 1.0), ("right", "left"), strict=False):
            # Where a dot stands, its own text says it.
            if min(abs(before - end), abs(after - end)) > 0.08:
                texts.append(_Words(end + NUDGE * (2 * end - 1), 0, side, text, "end"))
        return texts


def _draw(answers: PersonAnswers, given: Any, labels: LabelsLike, ax: Axes | None) -> Axes:
    words, accepted = CellWords(Labels.take(labels)), read_accepted(given, answers.rows)
    rows = [_Row.make(answers, feature, accepted, words) for feature in answers.features]
    n_answers = len(answers.ranks)
    line = WIDE if n_answers == 1 else NARROW
    low, high = _reach(rows, n_answers, line)
    pitch = high - low + GAP / line
    axes = make_axes(ax, 2 + n_answers * pitch * line, 1.1 + ROW * len(rows))
    theme = theme_of(axes)
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
    bold: dict[str, Any] = {"va": "bottom", "size": NORMAL, "weight": "bold", "color": theme.ink}
    write(axes, left + 0.5, 0.86, title, ha="center", **bold)
    small: dict[str, Any] = {"va": "top", "size": SMALL, "color": theme.muted}
    write(axes, left + 0.5, 0.82, words.say("score", score=number), ha="center", **small)


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
        "own": {"va": "top", "size": SMALL, "color": theme.muted},
        "answer": {"va": "top", "size": SMALL, "color": theme.ink},
        "end": {"va": "center", "size": SMALL - 1, "color": theme.muted},
    }
    for text in row.words(answer):
        look = looks[text.kind]
        write(axes, left + text.x, y + text.y, text.text, ha=text.side, linespacing=1.05, **look)


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
