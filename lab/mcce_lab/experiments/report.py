"""Reports as files: CSV for tables, PNG for figures, and one Markdown table each.

Figures have one style, legible in print and for the colour-blind. Matplotlib is imported on first
use and needs no display.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce import __version__
from mcce.errors import ParameterError

from .experiment import Experiment, Report

LIBRARIES = ("numpy", "pandas", "scikit-learn")
# The palette of Okabe and Ito is safe for all kinds of colour vision.
OURS, OTHER, PUBLISHED, GREY = "#0072B2", "#D55E00", "#000000", "#999999"
COLOURS = (OURS, OTHER, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", GREY, PUBLISHED)
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "legend.frameon": False,
}


def write_report(experiment: Experiment, report: Report, out: Path) -> Path:
    """Write the tables and figures of an experiment into a folder.

    Parameters
    ----------
    experiment : Experiment
    report : Report
    out : Path
        Folder, created if needed.

    Returns
    -------
    Path
        The file with its Markdown table and its figures.

    Raises
    ------
    ParameterError
        If the folder cannot be written to.
    """
    ensure_folder(out)
    name, tables = experiment.name, dict(report.tables)
    if len(report.comparison):
        tables["published"] = report.comparison
    for table, rows in tables.items():
        rows.to_csv(out / f"{name}-{table}.csv", index=False)
    for figure, drawn in report.figures.items():
        save(drawn, out / f"{name}-{figure}")
    made = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "seeds": report.seeds}
    (out / f"{name}.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    parts = [f"# {experiment.title}", to_markdown(next(iter(report.tables.values())))]
    parts += [f"![{figure}]({name}-{figure}.png)" for figure in report.figures]
    path = out / f"{name}.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def ensure_folder(out: Path) -> Path:
    """Create a folder if needed and check that files can be written to it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return out
    except OSError as error:
        raise ParameterError(
            f"Reports need a folder that can be written to, got {str(out)!r} "
            f"({error.strerror}). Choose another with --out."
        ) from error


def machine() -> str:
    """Processor, cores and library versions in one line."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    python = f"Python {platform.python_version()}"
    cores = f"{os.cpu_count()} cores, {platform.system()}"
    return f"{_processor()}, {cores}; {python}, {libraries}, mcce {__version__}"


def _processor() -> str:
    """The name of the processor, if the system knows it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def to_markdown(table: pd.DataFrame) -> str:
    """A frame as a Markdown table; ``x_sd`` follows ``x`` in brackets, then its interval.

    Examples
    --------
    >>> table = pd.DataFrame({"x": [0.5], "x_sd": [0.1], "x_low": [0.4], "x_high": [0.6]})
    >>> print(to_markdown(table))
    | x |
    | --: |
    | 0.50 (0.10) [0.40, 0.60] |
    """
    names = [str(name) for name in table.columns]
    shown = [name for name in names if not _belongs_to_another(name, names)]
    columns = {name: _cells(table, name) for name in shown}
    marks = ["--:" if pd.api.types.is_numeric_dtype(table[name].dtype) else ":--" for name in shown]
    lines = [shown, marks, *zip(*columns.values(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _belongs_to_another(name: str, names: list[str]) -> bool:
    stem, _, ending = name.rpartition("_")
    return ending in ("sd", "low", "high") and stem in names


def _cells(table: pd.DataFrame, name: str) -> list[str]:
    """A column as text, with its standard deviations and intervals."""
    cells = [_count(value) if name.startswith("n_") else _cell(value) for value in table[name]]
    if f"{name}_sd" in table.columns:
        spreads = [_cell(value) for value in table[f"{name}_sd"]]
        both = zip(cells, spreads, strict=True)
        cells = [f"{cell} ({spread})" if spread else cell for cell, spread in both]
    if f"{name}_low" in table.columns:
        ends = ([_cell(value) for value in table[f"{name}_{end}"]] for end in ("low", "high"))
        every = zip(cells, *ends, strict=True)
        cells = [f"{cell} [{low}, {high}]" if low else cell for cell, low, high in every]
    return cells


def _count(value: object) -> str:
    """A count as text: whole if it is, although it may be a mean over seeds."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return f"{value:,.0f}" if whole else _cell(value)


def _cell(value: object) -> str:
    """A value as text; a missing one is empty."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value).replace("|", "\\|")


def _number(value: float) -> str:
    if value.is_integer() and abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 0.05 or value == 0 else f"{value:.2g}"


def panels(n_rows: int, n_columns: int, *, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its axes, shape (n_rows, n_columns); ``size`` of each in inches."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(
            figsize=(size[0] * n_columns, size[1] * n_rows), layout="constrained", dpi=150
        )
        FigureCanvasAgg(figure)
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, axes


def legend_below(figure: Any, axes: Any, *, n_columns: int = 4, note: str | None = None) -> None:
    """One legend below all panels, under a note; equal labels appear once."""
    entries: dict[str, Any] = {}
    for panel in axes.ravel():
        handles, labels = panel.get_legend_handles_labels()
        entries |= {label: entries.get(label, h) for label, h in zip(labels, handles, strict=True)}
    figure.legend(
        entries.values(),
        entries.keys(),
        title=note,
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
    )


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG; the path has no suffix."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure.savefig(path.with_name(f"{path.name}.png"), dpi=150)
