"""A table of a person and their answers, with changed cells marked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...counterfactuals import Counterfactuals
from ...parameters import check_flag
from ..cells import CellWords, cells_of
from ..labels import Labels
from .dumbbells import LabelsLike
from .selecting import select_answers
from .style import NORMAL, SMALL, make_axes, theme_of, wrap, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a line of text and of a character, and between columns.
ROW, CHARACTER, GAP = 0.2, 0.078, 0.35


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
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
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
    return _draw(rows, marked, ax)


def _draw(rows: Sequence[Sequence[str]], marked: Sequence[np.ndarray], ax: Axes | None) -> Axes:
    """Texts in rows and columns, the first row and column as heads."""
    lefts, tops = _edges(rows)
    axes = make_axes(ax, lefts[-1], tops[-1])
    theme = theme_of(axes)
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
                "size": NORMAL if column == 0 else SMALL + 0.5,
                "weight": "bold" if bold else "normal",
                "color": theme.ink if bold or column == 0 else theme.muted,
            }
            if text:
                write(axes, lefts[column] + GAP / 2, middle, text, va="center", **look)
        axes.axhline(tops[row + 1], color=theme.line if row == 0 else theme.faint, linewidth=0.8)
    return axes


def _edges(rows: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Where columns and rows begin, and where the last ones end, in inches."""
    widths = [
        CHARACTER * max(len(line) for text in column for line in text.split("\n")) + GAP
        for column in zip(*rows, strict=True)
    ]
    heights = [ROW * max(text.count("\n") + 1 for text in row) + 0.12 for row in rows]
    return np.cumsum([0.0, *widths]), np.cumsum([0.0, *heights])


def _mark(axes: Axes, across: np.ndarray, down: np.ndarray, colour: str) -> None:
    from matplotlib.patches import Rectangle

    corner = (across[0] + 0.06, down[0] + 0.02)
    size = (across[1] - across[0] - 0.12, down[1] - down[0] - 0.04)
    axes.add_patch(Rectangle(corner, *size, facecolor=colour, edgecolor="none", zorder=0))
