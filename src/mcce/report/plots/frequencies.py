"""Which features change how often, over all people."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals import Counterfactuals
from ...errors import ParameterError
from ...kernels import FloatArray
from ...parameters import check_count
from ...tables.columns import as_numbers, differ, is_measured
from ..cells import CellWords
from ..labels import Labels
from .dumbbells import LabelsLike
from .selecting import best_answers, check_result
from .style import SMALL, Theme, explain_marks, make_axes, name_axis, name_rows, theme_of, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIRECTIONS = ("more", "less", "other")
# Patterns, for those who cannot tell the colours apart.
HATCHES = {"more": "", "less": "////", "other": "...."}
# Inches of a bar.
BAR = 0.36


def plot_changed_features(
    result: Counterfactuals[Any],
    *,
    n_features: int = 20,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    r"""How often each feature changes in people's best answers, and in which direction.

    Parameters
    ----------
    result
        What ``explain`` returned.
    n_features
        The most features to show; those that change most often come first.
    labels
        Words for features, as for :func:`plot_answer`.
    ax
        Axes to draw in; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; bars are shares of the people who have an answer.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If nobody has an answer.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
    >>> ax = plot_changed_features(explainer.explain(bank))
    >>> [text.get_text() for text in ax.texts]
    ['100\xa0%']
    """
    check_count("n_features", n_features)
    words, (changes, n_people) = CellWords(Labels.take(labels)), _count(check_result(result))
    shown = changes[:n_features]
    axes = make_axes(ax, 6.5, 1.2 + BAR * len(shown))
    theme = theme_of(axes)
    shares = np.array([change.counts for change in shown]) / n_people
    places = -np.arange(len(shown), dtype=float)
    handles = _draw_bars(axes, shares, places, words, theme)
    ends = shares.sum(axis=1)
    for y, end in zip(places, ends, strict=True):
        share = words.language.percent(end)
        write(axes, end + 0.01, y, share, va="center", size=SMALL, color=theme.muted)
    name_rows(axes, [words.name(change.feature) for change in shown], places.tolist())
    axes.set(xlim=(0, 1.1 * ends.max()), ylim=(places[-1] - 0.5, 0.5))
    axes.set_xticks([])
    left_out = len(changes) - len(shown)
    note = f" ({words.say('left_out', n=str(left_out))})" if left_out else ""
    name_axis(axes, f"{words.say('share')}{note}")
    explain_marks(axes, handles, above=True)
    return axes


@dataclass(frozen=True)
class _Changes:
    """How many best answers change a feature: to more, to less, and otherwise."""

    feature: Hashable
    counts: tuple[int, int, int]


def _draw_bars(
    axes: Axes, shares: FloatArray, places: FloatArray, words: CellWords, theme: Theme
) -> list[Any]:
    """Stacked bars; gives what the legend shows."""
    colours = {"more": theme.answer, "less": theme.less, "other": theme.other}
    start, handles = np.zeros(len(shares)), []
    for direction, width in zip(DIRECTIONS, shares.T, strict=True):
        look: dict[str, Any] = {"facecolor": colours[direction], "hatch": HATCHES[direction]}
        bars = axes.barh(places, width, 0.62, start, edgecolor=theme.hatch, linewidth=0, **look)
        if width.any():
            bars.set_label(words.say(direction))
            handles.append(bars)
        start = start + width
    return handles


def _count(result: Counterfactuals[pd.DataFrame]) -> tuple[list[_Changes], int]:
    """What changes in people's best answers, most often first, and how many these are."""
    best = best_answers(result)
    if not best.size:
        raise ParameterError("Nobody in the result has an answer, so there is nothing to count.")
    changes = []
    for name, column in result.frame.items():
        before = result.factuals[name].iloc[result.owner[best]].reset_index(drop=True)
        after = column.iloc[best].reset_index(drop=True)
        gap = np.full(best.size, np.nan)
        if is_measured(before.dtype) and is_measured(after.dtype):
            gap = as_numbers(after) - as_numbers(before, after.dtype)
        changed = differ(before, after)
        more, less = int((changed & (gap > 0)).sum()), int((changed & (gap < 0)).sum())
        changes.append(_Changes(name, (more, less, int(changed.sum()) - more - less)))
    ordered = sorted(changes, key=lambda change: -sum(change.counts))
    return [change for change in ordered if sum(change.counts)], best.size
