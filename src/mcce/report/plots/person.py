"""One person and their answers: dumbbells from before to after, and a table.

Each changed feature is a line with a scale of its own. The hollow dot is the person, the full dot
the answer, and the bars behind are accepted people.

Always true: features that no shown answer changes are not drawn; texts of one line grow away from
each other, so they never overlap.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ...counterfactuals.result import Counterfactuals
from ..changes import cells_of
from ..labels import Labels
from ..words import Words
from .style import (
    NORMAL_SIZE,
    SMALL_SIZE,
    LabelsLike,
    PersonAnswers,
    Theme,
    explain_marks,
    make_axes,
    name_rows,
    painted,
    read_accepted,
    select_answers,
    wrap,
    write_text,
)
from .tracks import Track

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
class _Text:
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


class _Row:
    """One feature of the picture: its line, and where the person and the answers stand on it."""

    def __init__(
        self,
        answers: PersonAnswers,
        feature: Hashable,
        accepted: pd.DataFrame | None,
        words: Words,
    ) -> None:
        cells, behind = answers.rows[feature], None if accepted is None else accepted[feature]
        self.track = Track.make(cells, behind, words.labels.of(feature))
        self.name, self.places = words.title(feature), self.track.places(cells)
        self.texts = [wrap(text) for text in words.values(feature, cells_of(cells))]
        self.ends = [wrap(text) for text in words.values(feature, self.track.ends)]
        self.changed = answers.changed(feature)
        self.follows = feature in answers.consequences

    def texts_of(self, answer: int) -> list[_Text]:
        """The texts of one answer; those of the two dots grow away from each other."""
        before, after = self.places[0], self.places[answer + 1]
        own, other = self.texts[0], self.texts[answer + 1]
        # Over their own dots, but never nearer to each other than that.
        toward = min(NUDGE, abs(after - before) / 2 - NUDGE) * (1 if after > before else -1)
        sides = ("right", "left") if after > before else ("left", "right")
        texts = [_Text(before, -BELOW, "center", own, "own")]
        if self.changed[answer]:
            texts = [
                _Text(before + toward, -BELOW, sides[0], own, "own"),
                _Text(after - toward, -BELOW, sides[1], other, "answer"),
            ]
        for text, end, side in zip(self.ends, (0.0, 1.0), ("right", "left"), strict=False):
            # Near a dot, its own label is enough.
            if min(abs(before - end), abs(after - end)) > 0.08:
                texts.append(_Text(end + NUDGE * (2 * end - 1), 0, side, text, "end"))
        return texts


def _draw(answers: PersonAnswers, given: Any, labels: LabelsLike, ax: Axes | None) -> Axes:
    words, accepted = Words(Labels.take(labels)), read_accepted(given, answers.rows)
    rows = [_Row(answers, feature, accepted, words) for feature in answers.features]
    columns = range(len(answers.ranks))
    line = WIDE_LINE if len(columns) == 1 else NARROW_LINE
    # How far to the left and right the texts and bars of a column reach.
    texts = [text for row in rows for at in columns for text in row.texts_of(at)]
    lows, highs = zip((-0.1, 1.1), *(text.reach(line) for text in texts), strict=True)
    low, pitch = min(lows), max(highs) - min(lows) + GAP / line
    axes, theme = make_axes(ax, 2 + len(columns) * pitch * line, 1.1 + ROW * len(rows))
    for at, rank in enumerate(answers.ranks):
        (score,) = words.values("score", [answers.measures["score"].iloc[at]])
        title, said = (
            words.say("pictures.answer_of_rank", rank=str(rank)),
            words.say("pictures.score", score=score),
        )
        bold: dict[str, Any] = {"va": "bottom", "weight": "bold", "color": theme.ink}
        write_text(axes, at * pitch + 0.5, 0.86, title, ha="center", size=NORMAL_SIZE, **bold)
        small: dict[str, Any] = {"va": "top", "size": SMALL_SIZE, "color": theme.muted}
        write_text(axes, at * pitch + 0.5, 0.82, said, ha="center", **small)
        for place, row in enumerate(rows):
            _draw_row(axes, row, at, (at * pitch, -float(place)), theme)
    axes.set(xlim=(low, low + len(columns) * pitch), ylim=(0.5 - len(rows), 1.15))
    axes.set_xticks([])
    name_rows(axes, [row.name for row in rows])
    follows = any(row.follows for row in rows)
    explain_marks(axes, _handles(words, theme, accepted is not None, follows))
    return axes


def _draw_row(
    axes: Axes, row: _Row, answer: int, corner: tuple[float, float], theme: Theme
) -> None:
    """One feature of one answer; ``corner`` is the left end of its line."""
    (left, y), track = corner, row.track
    bars: dict[str, Any] = {"color": theme.faint, "zorder": 1}
    axes.bar(left + track.bars, BARS * track.heights, track.width, y + 0.02, **bars)
    axes.plot([left, left + 1], [y, y], color=theme.faint, linewidth=1.2, zorder=1)
    before, after = left + row.places[0], left + row.places[answer + 1]
    if row.changed[answer]:
        stroke: dict[str, Any] = {
            "color": theme.answer,
            "linestyle": "dashed" if row.follows else "solid",
        }
        axes.plot([before, after], [y, y], linewidth=2, zorder=2, **stroke)
        axes.plot(after, y, "o", markersize=8, color=theme.answer, zorder=4)
    paper = painted(axes) or "none"
    hollow: dict[str, Any] = {"markerfacecolor": paper, "markeredgecolor": theme.muted, "mew": 1.6}
    axes.plot(before, y, "o", markersize=7, zorder=3, **hollow)
    looks: dict[str, dict[str, Any]] = {
        "own": {"va": "top", "size": SMALL_SIZE, "color": theme.muted},
        "answer": {"va": "top", "size": SMALL_SIZE, "color": theme.ink},
        "end": {"va": "center", "size": SMALL_SIZE - 1, "color": theme.muted},
    }
    for text in row.texts_of(answer):
        look = {"ha": text.side, "linespacing": 1.05, **looks[text.kind]}
        write_text(axes, left + text.x, y + text.y, text.text, **look)


def _handles(words: Words, theme: Theme, accepted: bool, follows: bool) -> list[Any]:
    """What the marks mean, for a legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    dot: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": theme.muted, "mew": 1.6}
    handles: list[Any] = [
        Line2D([], [], **dot, **hollow, label=words.say("pictures.now")),
        Line2D([], [], **dot, color=theme.answer, label=words.say("pictures.answer")),
    ]
    if accepted:
        handles.append(Patch(color=theme.faint, label=words.say("pictures.accepted")))
    if follows:
        dashed: dict[str, Any] = {"color": theme.answer, "linestyle": "dashed", "linewidth": 2}
        handles.append(Line2D([], [], **dashed, label=words.say("pictures.follows")))
    return handles
