"""Sparsity against distance: which answers, or which searches, nothing beats in both."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...counterfactuals import Counterfactuals
from ...errors import ParameterError, shorten
from ...kernels import BoolArray, FloatArray
from ...tables.text import plain
from ..cells import CellWords
from ..labels import Labels
from .dumbbells import LabelsLike
from .selecting import best_answers, check_result, select_answers
from .style import NORMAL, SMALL, literal, make_axes, name_axis, theme_of, wrap, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_front(
    results: Counterfactuals[Any] | Mapping[str, Counterfactuals[Any]],
    person: Hashable | None = None,
    *,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """How many features change against how far, and which of them nothing beats in both.

    Parameters
    ----------
    results
        A result: each answer of a person is a point. Or several by name, such as those of several
        searches for the same people: each is a point at the means of people's best answers.
    person
        Label of the person in the index of ``people``; None is the first with an answer. Only for
        a single result.
    labels
        Words of the picture, as for :func:`plot_answer`.
    ax
        Axes to draw in; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; full dots are those that nothing beats in both, joined by a line.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If there is no such person, or one of the results has no answer.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), n_counterfactuals=2)
    >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank.iloc[[3]])
    >>> ax = plot_front(result)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('changed features', 'Gower distance')
    """
    words = CellWords(Labels.take(labels))
    names, points = _points(results, person, words)
    axes = make_axes(ax, 5.5, 3.8)
    theme = theme_of(axes)
    best = unbeaten(points)
    front = points[best][np.argsort(points[best, 0], kind="stable")]
    axes.step(front[:, 0], front[:, 1], where="post", color=theme.line, linewidth=1.2, zorder=1)
    for point, is_best in zip(points, best, strict=True):
        colour = theme.answer if is_best else theme.muted
        inside = colour if is_best else "none"
        axes.plot(*point, "o", color=colour, markerfacecolor=inside, markersize=7, zorder=3)
    axes.spines[["left", "bottom"]].set_visible(True)
    axes.spines[["left", "bottom"]].set_color(theme.line)
    _set_limits(axes, points)
    _name_points(axes, points, names)
    name_axis(axes, words.say("sparsity"))
    literal(axes.set_ylabel(words.say("distance"), color=theme.ink, size=NORMAL))
    return axes


def unbeaten(points: FloatArray) -> BoolArray:
    """Which points no other one is at most as large as in every coordinate, and smaller in one.

    Examples
    --------
    >>> unbeaten(np.array([[1, 0.4], [2, 0.1], [2, 0.5]]))
    array([ True,  True, False])
    """
    others, own = points[None], points[:, None]
    beats = np.all(others <= own, axis=2) & np.any(others < own, axis=2)
    return np.asarray(~beats.any(axis=1))


def _points(
    results: Any, person: Hashable | None, words: CellWords
) -> tuple[list[str], FloatArray]:
    """The points of a front and their names; equal points share one."""
    if isinstance(results, Mapping):
        if person is not None:
            raise ParameterError("person is for a single result. Leave it out for several.")
        named = {plain(name): _mean_costs(name, result) for name, result in results.items()}
    else:
        answers = select_answers(results, person)
        costs = answers.measures[["sparsity", "gower"]].to_numpy(dtype=float)
        titles = [words.say("answer_of_rank", rank=str(rank)) for rank in answers.ranks]
        named = dict(zip(titles, map(tuple, costs.tolist()), strict=True))
    if not named:
        raise ParameterError("results must hold at least one result, got an empty mapping.")
    together: dict[tuple[float, float], list[str]] = {}
    for name, point in named.items():
        together.setdefault(point, []).append(name)
    return [", ".join(names) for names in together.values()], np.array(list(together))


def _mean_costs(name: str, result: Any) -> tuple[float, float]:
    inside = check_result(result)
    best = inside.measures.iloc[best_answers(inside)]
    if not len(best):
        raise ParameterError(f"Nobody in the result {shorten(name)} has an answer. Leave it out.")
    return float(best["sparsity"].mean()), float(best["gower"].mean())


def _set_limits(axes: Axes, points: FloatArray) -> None:
    """Room around the points, most at the right, where their names stand; whole numbers as such."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = np.where(high > low, high - low, np.maximum(0.2 * np.abs(high), 0.1))
    if (points[:, 0] % 1 == 0).all():
        room[0] = max(room[0], 1.0)
        axes.set_xticks(np.unique(np.linspace(low[0], high[0], 10).round()))
    axes.set_xlim(low[0] - 0.2 * room[0], high[0] + 0.6 * room[0])
    axes.set_ylim(low[1] - 0.15 * room[1], high[1] + 0.2 * room[1])


def _name_points(axes: Axes, points: FloatArray, names: Sequence[str]) -> None:
    """Names at the right of points, moved up where they would stand on each other."""
    theme = theme_of(axes)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    placed: list[tuple[float, float, float]] = []
    for at in np.lexsort((points[:, 0], points[:, 1])):
        text = wrap(names[at], 30)
        x = (points[at, 0] - left) / (right - left) + 0.02
        y = own = (points[at, 1] - bottom) / (top - bottom)
        length = 0.013 * max(map(len, text.split("\n")))
        height = 0.05 * (text.count("\n") + 1)
        while any(_overlap((x, x + length, y), other, height) for other in placed):
            y += 0.01
        placed.append((x, x + length, y))
        if y > own + 0.02:
            leader: dict[str, Any] = {"transform": axes.transAxes, "color": theme.line}
            axes.plot([x - 0.008, x - 0.002], [own + 0.02, y], linewidth=0.8, **leader)
        where: dict[str, Any] = {"transform": axes.transAxes, "va": "center"}
        write(axes, x, y, text, size=SMALL, color=theme.ink, **where)


def _overlap(
    one: tuple[float, float, float], other: tuple[float, float, float], height: float
) -> bool:
    """Whether two texts of some height stand on each other; each is its start, end and middle."""
    return one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < height
