"""What recourse costs by group.

Always true: intervals are the same on every call, and those of a group do not depend on others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals import UNANSWERED, Counterfactuals
from ...errors import ParameterError, shorten
from ...kernels import FloatArray
from ...parameters import check_count, check_real, check_whole
from ..cells import CellWords, cells_of
from ..label_checks import level_key
from ..labels import Labels
from .dumbbells import LabelsLike
from .selecting import best_answers, check_result
from .style import SMALL, make_axes, name_axis, name_rows, theme_of, write
from .tracks import level_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Numbers drawn at once for an interval.
DRAWS_AT_ONCE = 1_000_000


def plot_group_costs(
    result: Counterfactuals[Any],
    groups: Any,
    *,
    measure: str = "gower",
    confidence: float = 0.95,
    n_resamples: int = 2_000,
    random_state: int = 0,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """What recourse costs by group: the mean of people's best answers, with intervals.

    Parameters
    ----------
    result
        What ``explain`` returned.
    groups
        A column of the people, or one value per person, in their order.
    measure
        A column of ``result.measures``, such as "gower", "sparsity" or "n_actions".
    confidence
        Confidence of the intervals, below 1. They are percentiles of the bootstrap over people,
        and a group of one person has none.
    n_resamples
        Samples of the bootstrap.
    random_state
        Seed of the bootstrap.
    labels
        Words for features and levels, as for :func:`plot_answer`.
    ax
        Axes to draw in; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with a dot for each group. Beside it stand how many people are in the group and
        how many of them have no answer: the mean says nothing about these.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If there is no such column or measure, or nobody has an answer.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
    >>> ax = plot_group_costs(explainer.explain(bank), "age")
    >>> [text.get_text() for text in ax.texts]
    ['3 people', '3 people', '2 people', '2 people']
    """
    check_real("confidence", confidence, "a number above 0 and below 1", zero=False, most=1 - 1e-9)
    check_count("n_resamples", n_resamples)
    check_whole("random_state", random_state, 0, 2**64 - 1)
    inside, words = check_result(result), CellWords(Labels.take(labels))
    seeds = _Bootstrap(confidence, n_resamples, random_state)
    shown = [
        (name, _Group.make(costs, seeds), n_without)
        for name, costs, n_without in _by_group(inside, groups, measure, words)
    ]
    axes = make_axes(ax, 6.5, 1.0 + 0.42 * len(shown))
    _draw_groups(axes, shown, words)
    named = {"gower": words.say("distance"), "sparsity": words.say("sparsity")}
    name_axis(
        axes, words.say("mean", measure=named.get(measure, measure), share=f"{100 * confidence:g}")
    )
    return axes


@dataclass(frozen=True)
class _Bootstrap:
    confidence: float
    n_resamples: int
    seed: int


@dataclass(frozen=True)
class _Group:
    """The mean of a group, and an interval for it; NaN where there is none."""

    n_people: int
    mean: float
    low: float
    high: float

    @classmethod
    def make(cls, costs: FloatArray, bootstrap: _Bootstrap) -> _Group:
        if costs.size < 2:
            return cls(costs.size, float(costs.mean()) if costs.size else np.nan, np.nan, np.nan)
        tail = (1 - bootstrap.confidence) / 2
        low, high = np.quantile(_resampled_means(costs, bootstrap), [tail, 1 - tail])
        return cls(costs.size, float(costs.mean()), float(low), float(high))


def _by_group(
    result: Counterfactuals[pd.DataFrame], groups: Any, measure: str, words: CellWords
) -> list[tuple[str, FloatArray, int]]:
    """By group: its name, what its people's best answers cost, and how many have none."""
    if not isinstance(measure, str) or measure not in result.measures:
        raise ParameterError(
            f"measure must be a column of result.measures, {list(result.measures.columns)!r}, got "
            f"{shorten(measure)}."
        )
    column = _group_column(result, groups)
    best = best_answers(result)
    if not best.size:
        raise ParameterError("Nobody in the result has an answer, so there are no costs.")
    costs = np.full(len(column), np.nan)
    costs[result.owner[best]] = result.measures[measure].to_numpy(dtype=float)[best]
    without = (result.people["status"] == UNANSWERED).to_numpy()
    cells = cells_of(column)
    places = level_order([column], cells)
    numbers = np.array([-1 if cell is None else places[level_key(cell)] for cell in cells])
    firsts = [int(np.flatnonzero(numbers == number)[0]) for number in np.unique(numbers)]
    texts = words.values(column.name, [cells[first] for first in firsts])
    listed = []
    for text, first in zip(texts, firsts, strict=True):
        member = numbers == numbers[first]
        known = member & ~np.isnan(costs)
        listed.append((text, costs[known], int((member & without).sum())))
    return [group for group in listed if group[1].size or group[2]]


def _group_column(result: Counterfactuals[pd.DataFrame], groups: Any) -> pd.Series[Any]:
    factuals = result.factuals
    if isinstance(groups, Hashable) and groups in factuals.columns:
        return factuals[groups].reset_index(drop=True)
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__"):
        raise ParameterError(
            "groups must be a column of the people or one value per person, got "
            f"{shorten(groups)}. The columns are {shorten(list(factuals.columns), 200)}."
        )
    if len(groups) != len(factuals):
        raise ParameterError(
            f"groups must have one value per person, {len(factuals)}, got {len(groups)}."
        )
    return pd.Series(groups).reset_index(drop=True).rename("groups")


def _draw_groups(axes: Axes, shown: Sequence[tuple[str, _Group, int]], words: CellWords) -> None:
    theme = theme_of(axes)
    places = -np.arange(len(shown), dtype=float)
    ends = np.array([[g.mean, g.low, g.high] for _, g, _ in shown])
    low, high = np.nanmin(ends), np.nanmax(ends)
    room = (high - low) or abs(high) or 1.0
    for y, (_, group, n_without) in zip(places, shown, strict=True):
        axes.plot([group.low, group.high], [y, y], color=theme.answer, linewidth=2.2, alpha=0.55)
        axes.plot(group.mean, y, "o", color=theme.answer, markersize=7)
        n_people = group.n_people + n_without
        text = words.say("people" if n_people != 1 else "person", n=str(n_people))
        if n_without:
            text += f", {words.say('without', n=str(n_without))}"
        where: dict[str, Any] = {"va": "center", "transform": axes.get_yaxis_transform()}
        write(axes, 1.02, y, text, size=SMALL, color=theme.muted, **where)
    name_rows(axes, [name for name, _, _ in shown], places.tolist())
    axes.set(xlim=(low - 0.08 * room, high + 0.08 * room), ylim=(places[-1] - 0.6, 0.6))
    axes.grid(True, axis="x", color=theme.faint, linewidth=0.8)
    axes.set_axisbelow(True)


def _resampled_means(costs: FloatArray, bootstrap: _Bootstrap) -> FloatArray:
    """Means of samples drawn with replacement."""
    chance = np.random.default_rng(bootstrap.seed)
    at_once = max(1, DRAWS_AT_ONCE // costs.size)
    sizes = [
        min(at_once, bootstrap.n_resamples - start)
        for start in range(0, bootstrap.n_resamples, at_once)
    ]
    draws = [costs[chance.integers(costs.size, size=(n, costs.size))].mean(axis=1) for n in sizes]
    return np.concatenate(draws)
