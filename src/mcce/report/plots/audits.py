"""Pictures of a privacy audit: who is found, and how close released rows are to real ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...confidence import Z95
from ...errors import ParameterError, shorten
from ...kernels import FloatArray
from ...privacy.audit_result import PrivacyAudit
from ..labels import Labels
from ..language import Language
from .style import SMALL_SIZE, LabelsLike, Theme, literal, make_axes, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_BINS = 30


def plot_membership(
    audit: PrivacyAudit, *, labels: LabelsLike = None, ax: Axes | None = None
) -> Axes:
    """Who is found among training rows, against false alarms, for each attack.

    Parameters
    ----------
    audit
        What :func:`mcce.privacy.audit` returned.
    labels
        Words of the picture, as for :func:`plot_answer`; of these, the language counts.
    ax
        Axes to draw in; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, both logarithmic: what matters is who is found with few false alarms. A curve
        within the band is what chance gives.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ParameterError
        If the audit is none.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.privacy import audit_rows
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    >>> ax = plot_membership(audit_rows(people[:100], people[:100], people[100:200], people[200:]))
    >>> ax.get_ylabel()
    'members found'
    """
    say = _words(audit, labels)
    axes, theme = make_axes(ax, 5.5, 4.0)
    n_each = min(len(scores) for pair in audit.scores.values() for scores in pair)
    least = 0.5 / n_each
    grid = np.geomspace(1 / n_each, 1, 200)
    half = Z95 * np.sqrt(2 * grid * (1 - grid) / n_each)
    axes.fill_between(
        grid, np.maximum(grid - half, least), np.minimum(grid + half, 1), color=theme.faint
    )
    axes.plot([least, 1], [least, 1], color=theme.muted, linewidth=1.2, label=say("chance"))
    colours = theme.answer, theme.less, theme.other
    styles = zip(audit.scores, colours, ("-", "--", ":"), strict=False)
    for name, colour, dash in styles:
        alarms, found = roc(*audit.scores[name])
        axes.plot(
            np.maximum(alarms, least),
            np.maximum(found, least),
            drawstyle="steps-post",
            color=colour,
            linestyle=dash,
            linewidth=2,
            label=say(f"by_{name}"),
        )
    axes.set(xscale="log", yscale="log", xlim=(1 / n_each, 1), ylim=(least, 1.15))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{share:g}")
    axes.tick_params(which="minor", length=0, labelbottom=False, labelleft=False)
    name_axes(axes, say("false_alarms"), say("members_found"))
    _add_legend(axes, theme, loc="lower right")
    return axes


def plot_closest_records(
    audit: PrivacyAudit, *, labels: LabelsLike = None, ax: Axes | None = None
) -> Axes:
    """How far released rows are from the closest training row, and from the closest other row.

    Parameters
    ----------
    audit, labels, ax
        As for :func:`plot_membership`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Both histograms are alike if the release tells nothing of training; that they are
        does not show that it tells nothing. Distances beyond the axis are in the last bin.

    Raises
    ------
    MissingExtraError, ParameterError
        As of :func:`plot_membership`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce.privacy import audit_rows
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    >>> parts = people[:100], people[100:200], people[200:]
    >>> ax = plot_closest_records(audit_rows(people[:100], *parts))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['to training', 'to the holdout']
    """
    say = _words(audit, labels)
    axes, theme = make_axes(ax, 5.5, 3.4)
    together = np.concatenate(audit.distances)
    last = float(np.quantile(together, 0.99)) or float(together.max()) or 1.0
    edges = np.linspace(0, last, N_BINS + 1)
    inside, outside = (_shares(distances, edges) for distances in audit.distances)
    bars = axes.bar(
        edges[:-1],
        inside,
        width=np.diff(edges),
        align="edge",
        color=theme.answer,
        alpha=0.55,
        label=say("to_training"),
    )
    steps = axes.stairs(outside, edges, color=theme.less, linewidth=2, label=say("to_holdout"))
    axes.set(xlim=(0, last), ylim=(0, 1.15 * max(inside.max(), outside.max())))
    name_axes(axes, say("distance"), say("share"))
    _add_legend(axes, theme, loc="upper right", handles=[bars, steps])
    return axes


def check_audit(audit: Any, name: str = "audit") -> None:
    """Raise unless an argument is an audit."""
    if not isinstance(audit, PrivacyAudit):
        raise ParameterError(
            f"{name} must be what mcce.privacy.audit returned, got {shorten(audit)}."
        )


def roc(members: FloatArray, nonmembers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """False alarms and members found from each threshold on, the highest first.

    Examples
    --------
    >>> [part.tolist() for part in roc(np.array([2.0, 1.0]), np.array([1.0, 0.0]))]
    [[0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0]]
    """
    thresholds = np.unique(np.concatenate([members, nonmembers]))[::-1]
    found, alarms = (
        1 - np.searchsorted(np.sort(scores), thresholds, side="left") / scores.size
        for scores in (members, nonmembers)
    )
    return np.append(0.0, alarms), np.append(0.0, found)


def _shares(distances: FloatArray, edges: FloatArray) -> FloatArray:
    counts = np.histogram(np.minimum(distances, edges[-1]), edges)[0]
    return np.asarray(counts / distances.size)


def _words(audit: Any, labels: LabelsLike) -> Any:
    """A function from keys to the words of a picture."""
    check_audit(audit)
    language: Language = Labels.take(labels).language
    return lambda key: language.say(f"privacy.{key}")


def _add_legend(axes: Axes, theme: Theme, **how: Any) -> None:
    legend = axes.legend(frameon=False, fontsize=SMALL_SIZE, labelcolor=theme.ink, **how)
    for text in legend.get_texts():
        literal(text)
