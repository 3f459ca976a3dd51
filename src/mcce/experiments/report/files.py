"""Reports as files: CSV for tables, PNG and SVG for figures, and one Markdown page."""

from __future__ import annotations

import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...version import __version__
from ..experiment import Report
from .figures import save

LIBRARIES = ("numpy", "pandas", "scikit-learn")


def write_report(report: Report, out: Path) -> Path:
    """Write a report into a folder.

    Parameters
    ----------
    report : Report
    out : Path
        Folder, created if needed.

    Returns
    -------
    Path
        The Markdown page.

    Raises
    ------
    ParameterError
        If the folder cannot be written to.
    """
    ensure_folder(out)
    tables = dict(report.tables)
    if len(report.comparison):
        tables["published"] = report.comparison
    page = out / f"{report.name}.md"
    for name, table in tables.items():
        table.to_csv(out / f"{report.name}-{name}.csv", index=False)
    for name, figure in report.figures.items():
        save(figure, out / f"{report.name}-{name}")
    page.write_text(markdown(report), encoding="utf-8")
    return page


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


def markdown(report: Report) -> str:
    """The Markdown page of a report."""
    parts = [f"# {report.title}", report.about, f"Machine: {machine()}."]
    if len(report.comparison):
        parts += ["## Published and ours", to_markdown(report.comparison)]
        parts += [f"Published: {where}." for where in _places(report)]
    if report.remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in report.remarks)]
    for name in report.figures:
        file = f"{report.name}-{name}"
        parts += [f"![{name}]({file}.png)", f"[as SVG]({file}.svg)"]
    for name, table in report.tables.items():
        heading = name.replace("_", " ").replace("-", " ")
        parts += [f"## {heading[0].upper()}{heading[1:]}", to_markdown(table)]
        parts.append(f"[as CSV]({report.name}-{name}.csv)")
    return "\n\n".join(part for part in parts if part) + "\n"


def to_markdown(table: pd.DataFrame) -> str:
    """A frame as a Markdown table; ``x_sd`` follows ``x`` in brackets."""
    names = [str(name) for name in table.columns]
    shown = [name for name in names if not (name.endswith("_sd") and name[:-3] in names)]
    columns = {name: _cells(table, name) for name in shown}
    marks = ["--:" if pd.api.types.is_numeric_dtype(table[name].dtype) else ":--" for name in shown]
    lines = [shown, marks, *zip(*columns.values(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(table: pd.DataFrame, name: str) -> list[str]:
    """A column as text, with its standard deviations."""
    cells = [_cell(value) for value in table[name]]
    sd_name = f"{name}_sd"
    if sd_name not in table.columns:
        return cells
    spreads = [_cell(value) for value in table[sd_name]]
    both = zip(cells, spreads, strict=True)
    return [f"{cell} ({spread})" if spread else cell for cell, spread in both]


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


def _places(report: Report) -> list[str]:
    """Where the published figures are printed, without repeats."""
    return list(dict.fromkeys(published.where for published in report.published.values()))


def _processor() -> str:
    """The name of the processor, if the system knows it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
