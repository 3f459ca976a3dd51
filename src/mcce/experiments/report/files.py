"""Reports as files: CSV per table, PNG and SVG per figure, one Markdown page."""

from __future__ import annotations

import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ParameterError
from ...version import __version__
from ..experiment import Report
from .figures import save

LIBRARIES = ("numpy", "pandas", "scikit-learn")


def write(report: Report, out: Path) -> Path:
    """Put a report into a folder; the path of its page comes back."""
    made_folder(out)
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


def made_folder(out: Path) -> Path:
    """The folder, made if need be, in which files can be written; else an error."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return out
    except OSError as error:
        raise ParameterError(
            f"Reports need a folder that can be written to, got {str(out)!r} "
            f"({error.strerror}). Name another with --out."
        ) from error


def machine() -> str:
    """The processor, its cores, and the libraries, in one line."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    python = f"Python {platform.python_version()}"
    cores = f"{os.cpu_count()} cores, {platform.system()}"
    return f"{_processor()}, {cores}; {python}, {libraries}, mcce {__version__}"


def markdown(report: Report) -> str:
    """The page of a report."""
    parts = [f"# {report.title}", report.about, f"Machine: {machine()}."]
    if len(report.comparison):
        parts += ["## Published and ours", table_text(report.comparison)]
        parts += [f"Published: {where}." for where in _places(report)]
    if report.remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in report.remarks)]
    for name in report.figures:
        file = f"{report.name}-{name}"
        parts += [f"![{name}]({file}.png)", f"[as SVG]({file}.svg)"]
    for name, table in report.tables.items():
        heading = name.replace("_", " ").replace("-", " ")
        parts += [f"## {heading[0].upper()}{heading[1:]}", table_text(table)]
        parts.append(f"[as CSV]({report.name}-{name}.csv)")
    return "\n\n".join(part for part in parts if part) + "\n"


def table_text(table: pd.DataFrame) -> str:
    """A frame as a Markdown table; ``x_sd`` stands in brackets after ``x``."""
    names = [str(name) for name in table.columns]
    shown = [name for name in names if not (name.endswith("_sd") and name[:-3] in names)]
    columns = {name: _told(table, name) for name in shown}
    marks = ["--:" if pd.api.types.is_numeric_dtype(table[name].dtype) else ":--" for name in shown]
    lines = [shown, marks, *zip(*columns.values(), strict=True)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _told(table: pd.DataFrame, name: str) -> list[str]:
    """A column as texts, with the standard deviations that belong to it."""
    cells = [_cell(value) for value in table[name]]
    beside = f"{name}_sd"
    if beside not in table.columns:
        return cells
    spreads = [_cell(value) for value in table[beside]]
    both = zip(cells, spreads, strict=True)
    return [f"{cell} ({spread})" if spread else cell for cell, spread in both]


def _cell(value: Any) -> str:
    """A value as text; nothing for a missing one."""
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
    """Where the published figures are printed, each place once."""
    return list(dict.fromkeys(published.where for published in report.published.values()))


def _processor() -> str:
    """The name of the processor, as far as the system tells."""
    told = Path("/proc/cpuinfo")
    if told.is_file():
        for line in told.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
