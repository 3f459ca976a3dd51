"""The look of pictures, and which person and answers they show.

Matplotlib is imported on first use. The colours are those of Okabe and Ito, which are safe for all
kinds of colour vision; what a colour says, a shape, a pattern or a word says too.

Always true: text from data is shown as it is, never read as mathematics or TeX.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...counterfactuals.result import Counterfactuals
from ...errors import ParameterError, SchemaError, missing_extra, shorten
from ...kernels import BoolArray, IntArray
from ...tables.columns import differ
from ...tables.frames import read_frame
from ...tables.text import short_line
from ..labels import Labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

SMALL_SIZE, NORMAL_SIZE = 8.0, 9.5
# Characters of a line, and lines, that a name or value may take.
LINE, LINES = 24, 2
LabelsLike = Labels | Mapping[str, Any] | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Theme:
    """Colours that can be read on a background."""

    ink: str
    muted: str
    line: str
    faint: str
    answer: str
    less: str
    other: str
    hatch: str


LIGHT = Theme(
    ink="#1b242c",
    muted="#5a6670",
    line="#9aa5ae",
    faint="#d9e0e5",
    answer="#0072b2",
    less="#d55e00",
    other="#b3659b",
    hatch="#ffffff",
)


DARK = Theme(
    ink="#f2f4f5",
    muted="#b4bec6",
    line="#77828b",
    faint="#3d464d",
    answer="#56b4e9",
    less="#e69f00",
    other="#de9cc4",
    hatch="#20262a",
)


def theme_of(axes: Axes) -> Theme:
    """The colours for the background of some axes."""
    import matplotlib

    colour = painted(axes)
    if colour is None:
        # Nothing is painted: the default text colour was chosen for the background.
        return DARK if _luminance(matplotlib.rcParams["text.color"]) > 0.4 else LIGHT
    return LIGHT if _luminance(colour) > 0.4 else DARK


def painted(axes: Axes) -> Any:
    """The colour that is painted behind some axes; None if there is none."""
    from matplotlib.colors import to_rgba

    patches = (axes.patch, axes.figure.patch, axes.figure.figure.patch)
    colours = (to_rgba(patch.get_facecolor()) for patch in patches if patch.get_visible())
    return next((colour for colour in colours if colour[3] > 0.5), None)


def _luminance(colour: Any) -> float:
    from matplotlib.colors import to_rgb

    return float(np.dot(to_rgb(colour), (0.2126, 0.7152, 0.0722)))


def make_axes(given: Axes | None, width: float, height: float) -> tuple[Axes, Theme]:
    """The axes to draw in, without a frame: those given, or new ones of a size in inches."""
    try:
        from matplotlib.axes import Axes
    except ImportError as error:
        raise missing_extra("matplotlib", "report", "A picture") from error
    if given is None:
        import matplotlib.pyplot as plt

        given = plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(given, Axes):
        raise ParameterError(f"ax must be axes of matplotlib or None, got {shorten(given)}.")
    theme = theme_of(given)
    given.spines[:].set_visible(False)
    given.tick_params(length=0, colors=theme.muted, labelcolor=theme.ink, labelsize=NORMAL_SIZE)
    given.grid(False)
    return given, theme


def write_text(axes: Axes, x: float, y: float, text: str, **how: Any) -> Text:
    """Text as it is, at a point of some axes."""
    return literal(axes.text(x, y, text, **how))


def literal(text: Text) -> Text:
    """The text itself, in which no character has a meaning of its own."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names at the left of some axes, one for each row from 0 downwards."""
    lines = LINES
    # Names that are cut stay apart, if more lines help.
    while len({wrap(name, lines=lines) for name in names}) < len(set(names)) and lines < 2 * LINES:
        lines += 1
    axes.set_yticks(range(0, -len(names), -1), [wrap(name, lines=lines) for name in names])
    for label in axes.get_yticklabels():
        literal(label)


def name_axes(axes: Axes, below: str, beside: str | None = None) -> None:
    """What the horizontal axis shows, and the vertical one; this draws both lines."""
    theme = theme_of(axes)
    literal(axes.set_xlabel(wrap(below, 70), color=theme.ink, size=NORMAL_SIZE))
    if beside is not None:
        literal(axes.set_ylabel(beside, color=theme.ink, size=NORMAL_SIZE))
        axes.spines[["left", "bottom"]].set_visible(True)
        axes.spines[["left", "bottom"]].set_color(theme.line)


def explain_marks(axes: Axes, handles: Sequence[Any], *, above: bool = False) -> None:
    """A legend below the axes, or above them."""
    legend = axes.legend(
        handles=handles,
        loc="lower center" if above else "upper center",
        bbox_to_anchor=(0.5, 1.0 if above else 0.0),
        ncols=len(handles),
        frameon=False,
        fontsize=SMALL_SIZE,
        labelcolor=theme_of(axes).muted,
    )
    for text in legend.get_texts():
        literal(text)


def wrap(text: str, width: int = LINE, lines: int = LINES) -> str:
    r"""Text on few lines; its beginning and end if that is not enough.

    Examples
    --------
    >>> wrap("critical account or other credits elsewhere", 20)
    'critical account or\nother credits…ewhere'
    """
    broken = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    if len(broken) > lines:
        broken[lines - 1 :] = [short_line(" ".join(broken[lines - 1 :]), width)]
    return "\n".join(broken)


@dataclass(frozen=True, eq=False)
class PersonAnswers:
    """A person and some of their answers, the best first."""

    rows: pd.DataFrame
    measures: pd.DataFrame
    ranks: Sequence[int]
    consequences: Collection[Hashable]

    def changed(self, feature: Hashable) -> BoolArray:
        """Which answers change a feature."""
        column = self.rows[feature].reset_index(drop=True)
        own = column.iloc[np.zeros(len(self.ranks), dtype=np.int64)].reset_index(drop=True)
        return differ(own, column.iloc[1:].reset_index(drop=True))

    @property
    def features(self) -> list[Hashable]:
        """The features that an answer changes, in the order of the columns."""
        return [name for name in self.rows.columns if self.changed(name).any()]


def select_answers(
    result: Any, person: Hashable | None, ranks: Sequence[int] | None = None
) -> PersonAnswers:
    """The answers of a person."""
    inside = check_result(result)
    position = _position(inside, person)
    places = np.flatnonzero(inside.owner == position)
    known = inside.frame.index.get_level_values("rank")[places].tolist()
    absent = [rank for rank in ranks or () if rank not in known]
    if absent or not known:
        raise ParameterError(
            f"The person has answers of the ranks {known!r}, none of rank {absent[0]!r}."
            if known
            else "The person has no answer. result.people says why."
        )
    places = places if ranks is None else places[[known.index(rank) for rank in ranks]]
    own = inside.factuals.iloc[[position]]
    rows = pd.concat([own, inside.frame.iloc[places]], ignore_index=True)
    same = {name: dtype for name, dtype in inside.frame.dtypes.items() if own[name].dtype == dtype}
    return PersonAnswers(
        rows=rows.astype(same),
        measures=inside.measures.iloc[places],
        ranks=known if ranks is None else list(ranks),
        consequences=inside.consequences,
    )


def check_result(result: Any) -> Counterfactuals[pd.DataFrame]:
    """The result in pandas."""
    if not isinstance(result, Counterfactuals):
        raise ParameterError(
            f"result must be what explain returned, a Counterfactuals, got {shorten(result)}."
        )
    return result.to_pandas()


def best_answers(result: Counterfactuals[pd.DataFrame]) -> IntArray:
    """Places of people's best answers."""
    return np.flatnonzero(result.frame.index.get_level_values("rank") == 1)


def read_accepted(accepted: Any, rows: pd.DataFrame) -> pd.DataFrame | None:
    """Accepted people in pandas, with at least the columns of a result."""
    if accepted is None:
        return None
    frame, _ = read_frame(accepted, list(rows.columns))
    absent = [name for name in rows.columns if name not in frame.columns]
    if absent:
        raise SchemaError(
            f"accepted must have the columns of the people, but lacks {shorten(absent, 200)}. Pass "
            "training rows with the desired decision."
        )
    return frame


def _position(result: Counterfactuals[pd.DataFrame], person: Hashable | None) -> int:
    if person is None:
        if not len(result.owner):
            raise ParameterError("Nobody in the result has an answer, so there is none to draw.")
        return int(result.owner[0])
    places = np.flatnonzero(np.array([label == person for label in result.people.index]))
    if places.size != 1:
        found = "nobody" if not places.size else f"{places.size} people"
        raise ParameterError(
            f"person must be the label of one person in the index of result.people, but "
            f"{shorten(person)} is that of {found}. Explain that person alone, or pass None for "
            "the first with an answer."
        )
    return int(places[0])
