"""Which format a file has: by its extension, or as the user says."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal, get_args

from ..errors import MissingExtraError, ParameterError, shorten

Format = Literal["csv", "parquet", "arrow", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
STANDARD = "-"


def find_format(path: str, given: str | None = None, *, option: str = "--format") -> Format:
    """The format of a file.

    Examples
    --------
    >>> find_format("people.parquet"), find_format("people.csv.gz"), find_format("-", "jsonl")
    ('parquet', 'csv', 'jsonl')
    """
    if given is not None:
        if given not in FORMATS:
            raise ParameterError(f"{option} must be one of {FORMATS!r}, got {shorten(given)}.")
        return given
    plain = PurePath(path)
    plain = plain.with_suffix("") if plain.suffix.lower() == ".gz" else plain
    found = EXTENSIONS.get(plain.suffix.lower())
    if found is None:
        raise ParameterError(
            f"The format of {shorten(path)} is not clear from its name. Say it with {option}: "
            f"{', '.join(FORMATS)}. Known extensions are {', '.join(EXTENSIONS)}."
        )
    return found


def check_delimiter(delimiter: str) -> str:
    """What separates the cells of a CSV file, if it can.

    Examples
    --------
    >>> check_delimiter(";")
    ';'
    """
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise ParameterError(
            f"--delimiter must be one character, such as ; or a tab ($'\\t' in most shells), got "
            f"{shorten(delimiter)}."
        )
    return delimiter


def require_pyarrow(path: str) -> Any:
    """The library pyarrow, which Parquet and Arrow files need."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            f"{shorten(path)} needs pyarrow, which is not installed: "
            'pip install "mcce[parquet]". CSV and JSON lines need no other library.'
        ) from error
    return pyarrow
