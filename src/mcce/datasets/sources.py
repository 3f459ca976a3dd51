"""Where tables come from: a folder, the package itself, or OpenML.

A folder that is passed is the only place looked in. Without one, the folder that the environment
variable ``MCCE_DATA`` names is looked in first, then the package, then OpenML. Cells come out as
they were found; ``checking`` makes them what the card says.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DatasetError, ParameterError

VARIABLE = "MCCE_DATA"


@dataclass(frozen=True, eq=False)
class Outcome:
    """A table as it was found, and where; ``folder`` is None unless it was a user's own."""

    table: pd.DataFrame
    where: str
    folder: Path | None = None


def find(of: Mapping[str, Any], folder: str | os.PathLike[str] | None) -> Outcome:
    """The table of a card."""
    place = _folder(folder)
    path = None if place is None else _path(place, of["file"])
    if path is not None:
        return Outcome(read(path), str(path), place)
    if folder is not None:
        raise DatasetError(
            f"there is no {_either(of['file'])} in {str(place)!r}. It holds {_listed(place)}."
        )
    if "bundled" in of:
        with as_file(files(__package__).joinpath(of["bundled"])) as bundled:
            return Outcome(read(bundled), "the package")
    return _fetch(of, place)


def listed_rows(of: Mapping[str, Any], found: Outcome, n_rows: int) -> list[int]:
    """Row numbers that a file beside the table lists, from 0."""
    file = of["quarter_file"]
    if found.folder is None:
        raise DatasetError(
            f"rows='quarter' needs {of['file']} and {file} in one folder, since row numbers mean "
            f"nothing in a download. Pass it as folder= or set {VARIABLE}."
        )
    path = _path(found.folder, file)
    if path is None:
        raise DatasetError(
            f"rows='quarter' needs {_either(file)}, which is not in {str(found.folder)!r}. "
            f"Choose other rows, or put it there: one row number of {of['file']}, from 0, per line."
        )
    numbers = pd.to_numeric(read(path, header=None).iloc[:, 0], errors="coerce")
    wrong = ~(numbers.ge(0) & numbers.lt(n_rows) & numbers.mod(1).eq(0)) | numbers.duplicated()
    if wrong.any():
        raise DatasetError(
            f"{str(path)!r} must list different row numbers from 0 to {n_rows - 1}, one per line, "
            f"but line {int(wrong.argmax()) + 1} does not."
        )
    return [int(number) for number in numbers]


def read(path: Path, *, header: int | None = 0) -> pd.DataFrame:
    """The table in a CSV file, gzipped or not; only empty cells and NA are missing."""
    try:
        return pd.read_csv(
            path, header=header, keep_default_na=False, na_values=["", "NA"], low_memory=False
        )
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetError(
            f"{str(path)!r} cannot be read as a CSV file: {error}. "
            "It may be damaged or cut short: copy it again."
        ) from error


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder to look in, or None where the user has named none."""
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise ParameterError(f"folder must be a path or None, got {folder!r}.")
    said = os.environ.get(VARIABLE) if folder is None else folder
    if not said:
        if folder is not None:
            raise ParameterError(f"folder must be a path or None, got {folder!r}.")
        return None
    place = Path(said).expanduser()
    if not place.is_dir():
        name = VARIABLE if folder is None else "folder"
        raise DatasetError(f"{name} must be a folder that holds data files, got {str(place)!r}.")
    return place


def _path(folder: Path, file: str) -> Path | None:
    """The file or its plain twin, if one is in the folder."""
    for path in (folder / file, folder / file.removesuffix(".gz")):
        if path.is_file():
            return path
    return None


def _either(file: str) -> str:
    return f"{file} or {file.removesuffix('.gz')}"


def _listed(folder: Path | None) -> str:
    """Some of what is in a folder, for an error."""
    names = sorted(path.name for path in folder.iterdir()) if folder is not None else []
    told = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return told or "nothing"


def _fetch(of: Mapping[str, Any], looked: Path | None) -> Outcome:
    """The table from OpenML, with our names for its target; scikit-learn keeps the download."""
    from sklearn.datasets import fetch_openml

    there = of["openml"]
    where = f"OpenML {there['id']}"
    try:
        with warnings.catch_warnings():
            # scikit-learn warns before it tries again; what counts is said below.
            warnings.simplefilter("ignore")
            table = fetch_openml(data_id=there["id"], as_frame=True, n_retries=1).frame
    except (OSError, ValueError) as error:
        tried = "" if looked is None else f" It is not in {str(looked)!r} ({VARIABLE})."
        raise DatasetError(
            f"{of['name']} does not come with the package and could not be fetched as {where}: "
            f"{error}.{tried} Without internet, put {_either(of['file'])} into a folder and pass "
            f"folder=, or name the folder in the environment variable {VARIABLE}. "
            f"Source: {of['attribution']}"
        ) from error
    table = table.rename(columns={there["target"]: of["target"]})
    if "labels" in there and of["target"] in table:
        labels = table[of["target"]].astype(object)
        table[of["target"]] = labels.map(lambda label: there["labels"].get(label, label))
    return Outcome(table, where)
