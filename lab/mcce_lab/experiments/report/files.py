"""Reports as files: CSV for tables, PNG and SVG for figures, and one Markdown page.

Always true: the page is written from the files alone, so :func:`markdown` gives it again.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.errors import ParameterError
from mcce.version import __version__

from ..experiment import Described, Report, Tables
from .figures import save

PUBLISHED = "published"  # the table of published figures and ours
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
        tables[PUBLISHED] = report.comparison
    for name, table in tables.items():
        table.to_csv(out / f"{report.name}-{name}.csv", index=False)
    for name, figure in report.figures.items():
        save(figure, out / f"{report.name}-{name}")
    manifest = {
        "machine": machine(),
        "seeds": report.seeds,
        "tables": list(tables),
        "figures": {name: report.captions.get(name, "") for name in report.figures},
        "published": _places(report),
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (out / f"{report.name}.json").write_text(f"{text}\n", encoding="utf-8")
    page = out / f"{report.name}.md"
    page.write_text(markdown(report, out), encoding="utf-8")
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


def read_manifest(name: str, folder: Path) -> dict[str, Any]:
    """The tables and figures of a report, the machine it was made on and the number of seeds."""
    manifest: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return manifest


def read_tables(name: str, folder: Path) -> Tables:
    """The tables of a report, read from its files."""
    names = read_manifest(name, folder)["tables"]
    return {table: _read_table(folder / f"{name}-{table}.csv") for table in names}


def _read_table(path: Path) -> pd.DataFrame:
    """A table; whole numbers stay whole where other cells are empty."""
    table, texts = pd.read_csv(path), pd.read_csv(path, dtype=str)
    for name in table.select_dtypes("float").columns:
        # Older versions of pandas read numbers not to the last bit, and ties are rounded otherwise.
        table[name] = [float(text) for text in texts[name]]
        written = texts[name].dropna()
        if len(written) and not written.str.contains(r"[^\d-]").any():
            table[name] = table[name].astype("Int64")
    return table


def markdown(report: Described, folder: Path) -> str:
    """The Markdown page of a report, from its files in a folder."""
    manifest, tables = read_manifest(report.name, folder), read_tables(report.name, folder)
    parts = [f"# {report.title}", report.about, f"Machine: {manifest['machine']}."]
    if manifest.get("seeds"):
        parts.append(f"Seeds: {manifest['seeds']}, unless a table says otherwise.")
    if PUBLISHED in tables:
        theirs = "published" if manifest["published"] else "theirs"
        shown = tables[PUBLISHED].rename(columns={PUBLISHED: theirs})
        parts += [f"## {theirs.capitalize()} and ours", to_markdown(shown)]
        parts += [f"Published: {where}." for where in manifest["published"]]
    remarks = report.remarks(tables)
    if remarks:
        parts += ["## Remarks", "\n".join(f"- {remark}" for remark in remarks)]
    for name, caption in manifest["figures"].items():
        file = f"{report.name}-{name}"
        parts += [f"![{name}]({file}.png)", caption, f"[as SVG]({file}.svg)"]
    for name in (name for name in tables if name != PUBLISHED):
        heading = name.replace("_", " ").replace("-", " ")
        parts += [f"## {heading[0].upper()}{heading[1:]}", to_markdown(tables[name])]
        parts.append(f"[as CSV]({report.name}-{name}.csv)")
    return "\n\n".join(part for part in parts if part) + "\n"


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
