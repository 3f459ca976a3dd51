"""Rows as inputs of a network or forest: numbers from 0 to 1, levels as indicators.

The paper's text says that numbers are standardised; the authors' script scales them to the range
of the whole file, as is done here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class _Number:
    """A numeric column: its minimum and its range."""

    name: str
    least: float
    spread: float

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        inputs[0] = (column.to_numpy(dtype=np.float64) - self.least) / self.spread


@dataclass(frozen=True, eq=False)
class _Levels:
    """A categorical column; its first level has no indicator."""

    name: str
    levels: pd.Index[Any]

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        codes = pd.Categorical(column, categories=self.levels).codes
        inputs[:] = codes == np.arange(1, len(self.levels))[:, None]


@dataclass(frozen=True, eq=False)
class Design:
    """The encoding of the columns of a frame as model inputs.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": [20, 40], "job": pd.Categorical(["a", "b"])})
    >>> Design.learn(rows)(rows)
    array([[0., 0.],
           [1., 1.]])
    """

    columns: tuple[_Number | _Levels, ...]

    @classmethod
    def learn(cls, features: pd.DataFrame) -> Design:
        """Learn the encoding of a frame of numbers and categories."""
        columns: list[_Number | _Levels] = []
        for name, column in features.items():
            if isinstance(column.dtype, pd.CategoricalDtype):
                columns.append(_Levels(str(name), column.dtype.categories))
            else:
                least, most = float(column.min()), float(column.max())
                columns.append(_Number(str(name), least, (most - least) or 1.0))
        return cls(tuple(columns))

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The inputs of each row, shape (n_rows, n_inputs)."""
        widths = [len(c.levels) - 1 if isinstance(c, _Levels) else 1 for c in self.columns]
        inputs = np.empty((sum(widths), len(frame)))
        start = 0
        for column, width in zip(self.columns, widths, strict=True):
            column.fill(inputs[start : start + width], frame[column.name])
            start += width
        return inputs.T
