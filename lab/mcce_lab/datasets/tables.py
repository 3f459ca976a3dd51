"""Tables of data sets: read from a folder, the package or OpenML, and checked against a card.

If a folder is passed, no other place is tried. Otherwise the folder in the environment variable
``MCCE_DATA`` comes first, then the package, then OpenML. A checked table has the columns of its
card in their order: whole numbers as int64, others as float64, categories with the declared levels,
the target unchanged. What does not fit is an error, never a silent cast.
"""

from __future__ import annotations

import hashlib
import os
import warnings
import zlib
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mcce.errors import McceError, McceWarning, ParameterError, shorten

from .cards import NAMES, card

VARIABLE = "MCCE_DATA"


class DatasetError(McceError, OSError, ValueError):
    """A data set cannot be found or read, or is not what its card says."""


def find(of: Mapping[str, Any], folder: str | os.PathLike[str] | None) -> tuple[pd.DataFrame, str]:
    """The table of a card, from the first place that has it, and where that is."""
    place = _folder(folder)
    path = None if place is None else _path(place, of["file"])
    if path is not None:
        return read(path), str(path)
    if folder is not None:
        raise DatasetError(
            f"There is no {_either(of['file'])} in {str(place)!r}, which holds {_listed(place)}."
        )
    if "bundled" in of:
        with as_file(files("mcce.datasets").joinpath(of["bundled"])) as bundled:
            return read(bundled), "the package"
    return _fetch(of, place)


def read(path: Path) -> pd.DataFrame:
    """The table in a CSV file, gzipped or not; only empty cells and NA are missing."""
    try:
        return pd.read_csv(path, keep_default_na=False, na_values=["", "NA"], low_memory=False)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read as a CSV file ({type(error).__name__}). "
            "It may be damaged or truncated: copy it again."
        ) from None


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder to read from, or None if the user named none."""
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise ParameterError(f"folder must be a path or None, got {shorten(folder)}.")
    named = os.environ.get(VARIABLE) if folder is None else folder
    if not named:
        if folder is not None:
            raise ParameterError(f"folder must be a path or None, got {shorten(folder)}.")
        return None
    place = Path(named).expanduser()
    if not place.is_dir():
        name = VARIABLE if folder is None else "folder"
        raise DatasetError(f"{name} must be a folder that holds data files, got {str(place)!r}.")
    return place


def _path(folder: Path, file: str) -> Path | None:
    """The file, compressed or not, if the folder has it."""
    for path in (folder / file, folder / file.removesuffix(".gz")):
        if path.is_file():
            return path
    return None


def _either(file: str) -> str:
    return f"{file} or {file.removesuffix('.gz')}"


def _listed(folder: Path | None) -> str:
    """Some of the files in a folder, for an error."""
    names = sorted(path.name for path in folder.iterdir()) if folder is not None else []
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return listed or "nothing"


def _fetch(of: Mapping[str, Any], tried: Path | None) -> tuple[pd.DataFrame, str]:
    """The table from OpenML, its target renamed; scikit-learn caches the download."""
    from sklearn.datasets import fetch_openml

    there = of["openml"]
    where = f"OpenML {there['id']}"
    try:
        with warnings.catch_warnings():
            # scikit-learn warns before it retries; the error below says what matters.
            warnings.simplefilter("ignore")
            table = fetch_openml(data_id=there["id"], as_frame=True, n_retries=1).frame
    except (OSError, ValueError) as error:
        not_there = "" if tried is None else f" It is not in {str(tried)!r} ({VARIABLE})."
        raise DatasetError(
            f"{of['name']} is not bundled with the package and could not be fetched as {where}: "
            f"{error}.{not_there} Without internet access, put {_either(of['file'])} into a "
            f"folder and pass folder=, or set the environment variable {VARIABLE}. "
            f"Source: {of['attribution']}"
        ) from error
    table = table.rename(columns={there["target"]: of["target"]})
    if "labels" in there and of["target"] in table:
        labels = table[of["target"]].astype(object)
        table[of["target"]] = labels.map(lambda label: there["labels"].get(label, label))
    return table, where


def conform(table: pd.DataFrame, of: Mapping[str, Any], where: str) -> pd.DataFrame:
    """The table with the columns and dtypes of a card."""
    _check_columns(table, of, where)
    columns = {}
    for column in of["columns"]:
        name, at = column["name"], f"{where}: column {column['name']!r}"
        if column["kind"] == "category":
            cells = _levels(table[name], column["levels"], of.get("unknown"), at)
            dtype = cells.dtype if name == of["target"] else pd.CategoricalDtype(column["levels"])
            columns[name] = cells.astype(dtype)
        else:
            columns[name] = _numbers(table[name], column, at)
    return pd.DataFrame(columns).reset_index(drop=True)


def check_cells(table: pd.DataFrame, of: Mapping[str, Any], where: str) -> None:
    """Raise if the counts of rows or labels differ from the card; warn if cells differ."""
    counts = {str(label): n for label, n in table[of["target"]].value_counts().items()}
    if len(table) != of["rows"] or counts != of["target_counts"]:
        raise DatasetError(
            f"{where} must hold {of['rows']} rows with {of['target_counts']} in {of['target']!r}, "
            f"but has {len(table)} with {counts}. The file may be truncated or another version. "
            "Pass verify=False to load it anyway."
        )
    if digest(table, of) != of["digest"]:
        warnings.warn(
            f"{where} has as many rows and labels as {of['name']}, but some cells differ from the "
            "version of its card, so published figures may not be reproduced. "
            "Pass verify=False to silence this warning.",
            McceWarning,
            stacklevel=3,
        )


def digest(table: pd.DataFrame, of: Mapping[str, Any]) -> str:
    """SHA-256 of the cells of a conformed table, independent of the order of its rows."""
    columns = [_as_numbers(table[column["name"]], column) for column in of["columns"]]
    cells = np.column_stack(columns).astype("<f8") + 0.0
    cells[np.isnan(cells)] = np.nan
    order = np.lexsort(cells.T[::-1])
    return hashlib.sha256(cells[order].tobytes()).hexdigest()


def _check_columns(table: pd.DataFrame, of: Mapping[str, Any], where: str) -> None:
    known = [column["name"] for column in of["columns"]]
    missing = [name for name in known if name not in table.columns]
    if missing:
        raise DatasetError(
            f"{where} must hold {of['name']} but lacks the columns {missing!r}. "
            f"Its columns are {list(table.columns)!r}{_resemblance(table)}."
        )
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()].tolist()
        raise DatasetError(f"{where} has the columns {twice!r} more than once. Keep one of each.")
    ignored = of.get("ignored", [])
    surplus = [name for name in table.columns if name not in known and name not in ignored]
    if surplus:
        raise DatasetError(
            f"{where} has the columns {surplus!r}, which {of['name']} does not have. "
            "Remove them, or use the original file."
        )


def _resemblance(table: pd.DataFrame) -> str:
    """The data set whose columns a table has, for an error."""
    for name in NAMES:
        if {column["name"] for column in card(name)["columns"]} <= set(table.columns):
            return f": those of {card(name)['name']}, load({name!r})"
    return ""


def _levels(
    cells: pd.Series[Any], levels: list[str | int], unknown: str | None, at: str
) -> pd.Series[Any]:
    """Cells as declared levels; missing ones as the level for unknown, if there is one."""
    if cells.isna().any() and unknown in levels:
        cells = cells.astype(object).where(cells.notna(), unknown)
    plain = cells.astype(object) if isinstance(cells.dtype, pd.CategoricalDtype) else cells
    unexpected = ~plain.isin(levels).to_numpy()
    if unexpected.any():
        raise DatasetError(
            f"{at} must hold only {levels!r}, but does not in {int(unexpected.sum())} rows, first "
            f"in row {int(unexpected.argmax())} (counted from 0)."
        )
    return plain.astype(np.int64) if isinstance(levels[0], int) else plain


def _numbers(cells: pd.Series[Any], column: Mapping[str, Any], at: str) -> pd.Series[Any]:
    """Cells as int64 or float64, without loss."""
    numbers = pd.to_numeric(cells.astype(object), errors="coerce").astype(np.float64)
    wrong = (numbers.isna() & cells.notna()) | np.isinf(numbers)
    kind = "numbers"
    if "n_missing" not in column:
        wrong |= cells.isna()
        kind = "numbers without missing cells"
    if column["kind"] == "whole":
        wrong |= numbers.mod(1).ne(0) & numbers.notna()
        kind = "whole " + kind
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DatasetError(
            f"{at} must hold {kind}, but does not in {int(wrong.sum())} rows, first in row {row} "
            "(counted from 0)."
        )
    return numbers.astype(np.int64 if column["kind"] == "whole" else np.float64)


def _as_numbers(cells: pd.Series[Any], column: Mapping[str, Any]) -> Any:
    if column["kind"] != "category":
        return cells.to_numpy(dtype=np.float64)
    return cells.astype(pd.CategoricalDtype(column["levels"])).cat.codes.to_numpy()
