"""What the generators of the lab share: their protocol, draws in parts, and checks of files."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from tqdm import tqdm

from mcce import Schema
from mcce.errors import SavedFileError
from mcce.protocols import BoolArray, Capabilities, Codes, DrawRequest, Draws, EncodedRows

from ..parameters import check_parameters


class LabGenerator(BaseEstimator):
    """A generator whose parameters are fields; see :class:`mcce.protocols.CapableGenerator`."""

    array_names: ClassVar[tuple[str, ...]]
    capabilities: ClassVar[Capabilities]
    schema_: Schema

    def fit(
        self,
        rows: EncodedRows,
        is_desired: BoolArray,
        *,
        seed: int = 0,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> Self:
        """Learn from training rows.

        Parameters
        ----------
        rows, is_desired
            As for :meth:`mcce.protocols.Generator.fit`.
        seed, n_jobs, verbose
            Seed of all randomness, ignored, and whether to show a progress bar.

        Returns
        -------
        Generator
            Itself.

        Raises
        ------
        MissingExtraError
            If it trains networks and torch is not installed.
        """
        check_parameters(self)
        self.schema_ = rows.schema
        self._learn(rows, is_desired, seed, verbose)
        return self

    def sample(self, request: DrawRequest) -> Draws:
        """Draws for each group, within its limits.

        Parameters
        ----------
        request
            For whom to draw, and within which limits.

        Returns
        -------
        Draws
            Codes of shape (n_mutable, n_groups, n_draws).
        """
        n_mutable, n_rows = self.schema_.mutable.size, self._rows_at_once()
        codes = np.empty((n_mutable, request.keys.size, request.draws.size), dtype=np.int32)
        n_draws = max(1, min(request.draws.size, n_rows))
        n_groups = max(1, n_rows // n_draws)
        for group in range(0, request.keys.size, n_groups):
            for first in range(0, request.draws.size, n_draws):
                some = slice(group, group + n_groups), slice(first, first + n_draws)
                part = codes[:, *some]
                part[...] = self._draw(request.part(*some)).reshape(part.shape)
        return Draws(codes, self._tables())

    def to_arrays(self) -> dict[str, Any]:
        """What was learned.

        Returns
        -------
        dict
            Arrays, and lists and dicts of arrays, by the names in ``array_names``.
        """
        return self._pack()

    def from_arrays(self, arrays: Mapping[str, Any], schema: Schema) -> Self:
        """Take what :meth:`to_arrays` gave, checked; needs no torch.

        Parameters
        ----------
        arrays
            What :meth:`to_arrays` gave.
        schema
            The columns of the training data.

        Returns
        -------
        Generator
            Itself, as if fitted.
        """
        check_parameters(self)
        self.schema_ = schema
        self._unpack(arrays, schema)
        return self

    @abstractmethod
    def _learn(self, rows: EncodedRows, is_desired: BoolArray, seed: int, verbose: bool) -> None:
        """Learn from training rows, with parameters that were checked."""

    @abstractmethod
    def _rows_at_once(self) -> int:
        """How many rows are drawn at a time, which changes nothing but the memory."""

    @abstractmethod
    def _draw(self, request: DrawRequest) -> Codes:
        """Codes of some rows, shape (n_mutable, n_rows)."""

    def _tables(self) -> list[pd.Series[Any]] | None:
        """The values that can be drawn, if they are not those of training."""
        return None

    @abstractmethod
    def _pack(self) -> dict[str, Any]:
        """What was learned, as arrays."""

    @abstractmethod
    def _unpack(self, arrays: Mapping[str, Any], schema: Schema) -> None:
        """Take these arrays, if they could have been learned of these columns."""


@contextmanager
def progress(total: int, what: str, verbose: bool) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, moved by a function of the amount of work done so far."""
    hidden = not verbose or not sys.stderr.isatty()
    with tqdm(total=total, desc=what, leave=False, disable=hidden) as bar:
        yield lambda n_done: bar.update(n_done - bar.n)


def demand(sound: Any, why: str) -> None:
    """Raise SavedFileError unless what was read could have been learned."""
    if not sound:
        raise SavedFileError(why)


def take(plain: Any, what: str, **dtypes: Any) -> list[np.ndarray]:
    """The vectors of a mapping, each with its dtype."""
    demand(isinstance(plain, Mapping) and set(plain) == set(dtypes), f"{what} has other parts")
    for name, dtype in dtypes.items():
        sound = isinstance(plain[name], np.ndarray) and plain[name].dtype == dtype
        demand(sound and plain[name].ndim == 1, f"{what} has other dtypes or shapes")
    return [plain[name] for name in dtypes]


def listed(plain: Any, n_items: int, what: str) -> list[Any]:
    """A list of as many items."""
    demand(
        isinstance(plain, list) and len(plain) == n_items, f"{what} are not those of its columns"
    )
    return list(plain)
