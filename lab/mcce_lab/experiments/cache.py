"""A cache of trained models: files that are made on first use.

Takes a folder, by default that of the environment variable ``MCCE_CACHE``. Always true: a file is
there as a whole or not at all, and one that cannot be read is made again.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from mcce.errors import ParameterError


def cache_folder(cache: Path | None) -> Path:
    """The cache folder, created if needed."""
    default = os.environ.get("MCCE_CACHE") or Path("~/.cache/mcce").expanduser()
    folder = Path(default if cache is None else cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"The cache of trained models, {str(folder)!r}, cannot be created "
            f"({error.strerror}). Set the environment variable MCCE_CACHE to another folder."
        ) from error
    return folder


@dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache, made on first use."""

    path: Path

    def arrays(self, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Arrays, as a NumPy file."""
        path = self.path.with_suffix(".npz")
        try:
            with path.open("rb") as file, np.load(file) as saved:
                return {name: saved[name] for name in saved.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            arrays = make()
            self._put(path, lambda file: np.savez(file, allow_pickle=False, **arrays))
            return arrays

    def pickled(self, make: Callable[[], Any]) -> Any:
        """Any object, as a joblib file."""
        path = self.path.with_suffix(".joblib")
        try:
            return joblib.load(path)
        except (OSError, ValueError, EOFError, KeyError, pickle.UnpicklingError, zlib.error):
            made = make()
            self._put(path, lambda file: joblib.dump(made, file, compress=1))
            return made

    def _put(self, path: Path, dump: Callable[[Any], Any]) -> None:
        """Write a file atomically."""
        try:
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                dump(file)
            os.replace(file.name, path)
        except OSError as error:
            raise ParameterError(
                f"The cache of trained models, {str(path.parent)!r}, cannot be written to "
                f"({error.strerror}). Set the environment variable MCCE_CACHE to another folder."
            ) from error
