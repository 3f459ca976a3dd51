"""Files: written whole or not at all, with errors that say why, and their checksums."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import McceError, WriteError, shorten

DRAFT = ".mcce-"


@contextmanager
def replacing(destination: Path, draft_folder: Path | None = None) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of a file when the block ends.

    Readers see the old file or the whole new one. If the block raises, the old one stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "answers.csv")
    ...     with replacing(file) as stream:
    ...         _ = stream.write(b"age")
    ...     file.read_text()
    'age'
    """
    destination = Path(os.path.realpath(destination))
    replaced = destination.stat() if destination.exists() else None
    if replaced is not None:
        check_regular(replaced)
    draft = (draft_folder or destination.parent) / f"{DRAFT}{secrets.token_hex(8)}"
    try:
        with draft.open("xb") as stream:
            # Users who could not read the old file must not read the new one, nor its draft.
            if replaced is not None:
                draft.chmod(stat.S_IMODE(replaced.st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(destination)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError inside into a WriteError about this file or folder.

    A closed pipe is not an error of writing, and errors of mcce explain themselves.
    """
    try:
        yield
    except (McceError, BrokenPipeError):
        raise
    except OSError as error:
        raise WriteError(
            f"Cannot write to {shorten(path, 200)}: {error.strerror or error}."
        ) from error


def check_regular(status: os.stat_result) -> None:
    """Raise an OSError unless this is the status of a plain file."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is no plain file")


def checksum(path: str | Path) -> str:
    """The SHA-256 checksum of a file, read piece by piece."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
