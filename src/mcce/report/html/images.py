"""Pictures of the run, drawn by matplotlib for light and dark pages, as data URIs."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from ...errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Backgrounds of the page, as in its style sheet.
PAPER = {"light": "#ffffff", "dark": "#1d2328"}
SALT = "mcce"


@dataclass(frozen=True)
class Image:
    """A picture for a light and a dark page, and what it shows in words."""

    light: str
    dark: str
    alt: str


def make_image(draw: Callable[[Axes], Axes], height: float, alt: str) -> Image:
    """A picture on backgrounds of both kinds."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError('Reports need matplotlib: pip install "mcce[report]".') from error
    uris = {}
    # The same salt and no date: the same pictures have the same bytes.
    with mpl.rc_context({"svg.hashsalt": SALT, "svg.fonttype": "path"}):
        for name, paper in PAPER.items():
            figure = Figure(figsize=(7.5, height), facecolor=paper, layout="constrained")
            FigureCanvasSVG(figure)
            axes = figure.add_subplot()
            axes.set_facecolor(paper)
            draw(axes)
            content = BytesIO()
            figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
            code = b64encode(content.getvalue()).decode("ascii")
            uris[name] = f"data:image/svg+xml;base64,{code}"
    return Image(uris["light"], uris["dark"], alt)
