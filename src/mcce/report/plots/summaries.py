"""All people of a result: how often features change, what recourse costs by group, and the front.

Always true: intervals are the same on every call, and those of a group do not depend on others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals.parts import UNANSWERED
from ...counterfactuals.result import Counterfactuals
from ...errors import ParameterError, shorten
from ...kernels import BoolArray, FloatArray, IntArray
from ...parameters import check_count, check_real, check_whole
from ...tables.columns import is_measured
from ...tables.text import short_line
from ..changes import cells_of
from ..labels import Labels, level_key
from ..words import Words
from .style import (
    SMALL_SIZE,
    LabelsLike,
    Theme,
    best_answers,
    check_result,
    explain_marks,
    literal,
    make_axes,
    name_axes,
    name_rows,
    select_answers,
    wrap,
    write_text,
)
from .tracks import level_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIRECTIONS = ("more", "less", "other")
# Patterns, for those who cannot tell the colours apart.
HATCHES = {"more": "", "less": "////", "other": "...."}
# Inches of a bar.
BAR = 0.36
# Numbers drawn at once for an interval.
DRAWS_AT_ONCE = 1_000_000


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
    words, (changes, n_people) = Words(Labels.take(labels)), _count(check_result(result))
    shown = changes[:n_features]
    axes, theme = make_axes(ax, 6.5, 1.2 + BAR * len(shown))
    shares = np.array([counts for _, counts in shown]) / n_people
    places = -np.arange(len(shown), dtype=float)
    handles = _draw_bars(axes, shares, places, words, theme)
    ends = shares.sum(axis=1)
    for y, end in zip(places, ends, strict=True):
        share = words.language.percent(end)
        write_text(axes, end + 0.01, y, share, va="center", size=SMALL_SIZE, color=theme.muted)
    name_rows(axes, [words.title(feature) for feature, _ in shown])
    axes.set(xlim=(0, 1.1 * ends.max()), ylim=(places[-1] - 0.5, 0.5))
    axes.set_xticks([])
    left_out = len(changes) - len(shown)
    note = f" ({words.say('pictures.left_out', n=str(left_out))})" if left_out else ""
    name_axes(axes, f"{words.say('pictures.share')}{note}")
    explain_marks(axes, handles, above=True)
    return axes


def _draw_bars(
    axes: Axes, shares: FloatArray, places: FloatArray, words: Words, theme: Theme
) -> list[Any]:
    """Draw stacked bars and return what the legend shows."""
    colours = {"more": theme.answer, "less": theme.less, "other": theme.other}
    start, handles = np.zeros(len(shares)), []
    for direction, width in zip(DIRECTIONS, shares.T, strict=True):
        look: dict[str, Any] = {"facecolor": colours[direction], "hatch": HATCHES[direction]}
        bars = axes.barh(places, width, 0.62, start, edgecolor=theme.hatch, linewidth=0, **look)
        if width.any():
            bars.set_label(words.say(f"pictures.{direction}"))
            handles.append(bars)
        start = start + width
    return handles


def _count(
    result: Counterfactuals[pd.DataFrame],
) -> tuple[list[tuple[Hashable, list[int]]], int]:
    """How many of people's best answers change a feature: to more, to less, and otherwise.

    The features that change most often come first; the second value is how many answers there are.
    """
    best = best_answers(result)
    if not best.size:
        raise ParameterError("Nobody in the result has an answer, so there is nothing to count.")
    changes, counts = result.changes(), dict[Hashable, list[int]]()
    first = changes[changes["rank"] == 1]
    for name, before, after in zip(first["feature"], first["before"], first["after"], strict=True):
        known = is_measured(result.frame[name].dtype) and not pd.isna([before, after]).any()
        at = 2 if not known else 0 if after > before else 1
        counts.setdefault(name, [0, 0, 0])[at] += 1
    listed: dict[Hashable, list[int]] = {n: counts[n] for n in result.frame if n in counts}
    ordered = sorted(listed.items(), key=lambda change: -sum(change[1]))
    return ordered, best.size


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
    inside, words = check_result(result), Words(Labels.take(labels))
    listed = _by_group(inside, groups, measure, words)
    axes, theme = make_axes(ax, 6.5, 1.0 + 0.42 * len(listed))
    beside: dict[str, Any] = {"va": "center", "transform": axes.get_yaxis_transform()}
    for y, (_, costs, n_without) in zip(count(0, -1), listed, strict=False):
        mean, low, high = mean_interval(costs, confidence, n_resamples, random_state)
        axes.plot([low, high], [y, y], color=theme.answer, linewidth=2.2, alpha=0.55)
        axes.plot(mean, y, "o", color=theme.answer, markersize=7)
        n_people = costs.size + n_without
        text = words.say(f"pictures.{'person' if n_people == 1 else 'people'}", n=str(n_people))
        if n_without:
            text += f", {words.say('pictures.without', n=str(n_without))}"
        write_text(axes, 1.02, y, text, size=SMALL_SIZE, color=theme.muted, **beside)
    name_rows(axes, [name for name, _, _ in listed])
    axes.set(xlim=(0, None), ylim=(0.4 - len(listed), 0.6))
    axes.grid(True, axis="x", color=theme.faint, linewidth=0.8)
    axes.set_axisbelow(True)
    named = {"gower": words.say("pictures.distance"), "sparsity": words.say("pictures.sparsity")}
    shown = {"measure": named.get(measure, measure), "share": f"{100 * confidence:g}"}
    name_axes(axes, words.say("pictures.mean", **shown))
    return axes


def mean_interval(
    costs: FloatArray, confidence: float = 0.95, n_resamples: int = 2_000, seed: int = 0
) -> tuple[float, float, float]:
    """A mean and the ends of its bootstrap interval; NaN where there is none."""
    if costs.size < 2:
        return (float(costs.mean()) if costs.size else np.nan), np.nan, np.nan
    chance = np.random.default_rng(seed)
    at_once = max(1, DRAWS_AT_ONCE // costs.size)
    sizes = [min(at_once, n_resamples - start) for start in range(0, n_resamples, at_once)]
    draws = [costs[chance.integers(costs.size, size=(n, costs.size))].mean(axis=1) for n in sizes]
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(draws), [tail, 1 - tail]).tolist()
    return float(costs.mean()), low, high


def _by_group(
    result: Counterfactuals[pd.DataFrame], groups: Any, measure: str, words: Words
) -> list[tuple[str, FloatArray, int]]:
    """By group: its name, what its people's best answers cost, and how many have none."""
    if not isinstance(measure, str) or measure not in result.measures:
        raise ParameterError(
            f"measure must be a column of result.measures, {list(result.measures.columns)!r}, got "
            f"{shorten(measure)}."
        )
    column, best = _group_column(result, groups), best_answers(result)
    if not best.size:
        raise ParameterError("Nobody in the result has an answer, so there are no costs.")
    costs = np.full(len(column), np.nan)
    costs[result.owner[best]] = result.measures[measure].to_numpy(dtype=float)[best]
    without = (result.people["status"] == UNANSWERED).to_numpy()
    listed = [
        (text, costs[at][~np.isnan(costs[at])], int(without[at].sum()))
        for text, at in people_by_level(column, words).items()
    ]
    return [group for group in listed if group[1].size or group[2]]


def people_by_level(column: pd.Series[Any], words: Words) -> dict[str, IntArray]:
    """The people of each level by its words, in the order of the levels, missing ones last."""
    cells = cells_of(column)
    order = level_order([column], cells, words.labels.of(column.name))
    numbers = np.array([len(order) if c is None else order[level_key(c)] for c in cells], np.int64)
    members = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    texts = words.values(column.name, [cells[at[0]] for at in members])
    joined: dict[str, IntArray] = {}
    for text, at in zip(texts, members, strict=True):
        # Long levels may look alike; such groups are shown as one.
        joined[text] = np.union1d(joined.get(text, at), at)
    return joined


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


def plot_front(
    results: Counterfactuals[Any] | Mapping[str, Counterfactuals[Any]],
    person: Hashable | None = None,
    *,
    labels: LabelsLike = None,
    ax: Axes | None = None,
) -> Axes:
    """How many features change against how far, and which points no other beats in both.

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
    words = Words(Labels.take(labels))
    names, points = _points(results, person, words)
    axes, theme = make_axes(ax, 5.5, 3.8)
    best, (right, top) = unbeaten(points), 1.12 * points.max(axis=0)
    front = points[best][np.argsort(points[best, 0], kind="stable")]
    axes.step(front[:, 0], front[:, 1], where="post", color=theme.line, linewidth=1.2, zorder=1)
    # Names stand one above the other beside the axes, each joined to its point.
    y = -1.0
    for at in np.argsort(points[:, 1], kind="stable"):
        colour = theme.answer if best[at] else theme.muted
        inside = colour if best[at] else "none"
        axes.plot(*points[at], "o", color=colour, markerfacecolor=inside, markersize=7, zorder=3)
        y = max(y + 0.06, points[at, 1] / (top or 1))
        look: dict[str, Any] = {"va": "center", "size": SMALL_SIZE, "color": theme.ink}
        look["arrowprops"] = {"arrowstyle": "-", "color": theme.line, "linewidth": 0.8}
        look |= {"textcoords": "axes fraction", "annotation_clip": False}
        literal(axes.annotate(wrap(names[at], 30, 1), points[at], (1.03, y), **look))
    axes.set(xlim=(0, right or 1), ylim=(0, top or 1))
    axes.locator_params(axis="x", integer=bool((points[:, 0] % 1 == 0).all()))
    name_axes(axes, words.say("pictures.sparsity"), words.say("pictures.distance"))
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


def _points(results: Any, person: Hashable | None, words: Words) -> tuple[list[str], FloatArray]:
    """The points of a front and their names; equal points share one."""
    if isinstance(results, Mapping):
        if person is not None:
            raise ParameterError("person is for a single result. Leave it out for several.")
        named = {short_line(name): _mean_costs(name, result) for name, result in results.items()}
    else:
        answers = select_answers(results, person)
        costs = answers.measures[["sparsity", "gower"]].to_numpy(dtype=float)
        titles = [words.say("pictures.answer_of_rank", rank=str(rank)) for rank in answers.ranks]
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
