"""Write a file whole or not at all, and say why that failed."""

from __future__ import annotations

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
def replacing(target: Path, draft_folder: Path | None = None) -> Iterator[BinaryIO]:
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
    target = Path(os.path.realpath(target))
    replaced = target.stat() if target.exists() else None
    if replaced is not None:
        check_regular(replaced)
    draft = (draft_folder or target.parent) / f"{DRAFT}{secrets.token_hex(8)}"
    try:
        with draft.open("xb") as stream:
            # Users who could not read the old file must not read the new one, nor its draft.
            if replaced is not None:
                draft.chmod(stat.S_IMODE(replaced.st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError inside into a WriteError about this file or folder.

    A broken pipe is no error of writing, and errors of mcce pass unchanged.
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
