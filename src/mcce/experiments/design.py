"""Rows as inputs of a black box: numbers from 0 to 1, levels as indicators.

The paper's text has numbers standardised; the authors' script, whose tables these are, scales them
to the range of the whole file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class _Number:
    """A column of numbers: the least of them, and how far the others go."""

    name: str
    least: float
    spread: float

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        inputs[0] = (column.to_numpy(dtype=np.float64) - self.least) / self.spread


@dataclass(frozen=True, eq=False)
class _Levels:
    """A column of levels; the first of them is no indicator."""

    name: str
    levels: pd.Index[Any]

    def fill(self, inputs: NDArray[np.float64], column: pd.Series[Any]) -> None:
        codes = pd.Categorical(column, categories=self.levels).codes
        inputs[:] = codes == np.arange(1, len(self.levels))[:, None]


@dataclass(frozen=True, eq=False)
class Design:
    """How the columns of a frame become the inputs of a black box.

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
        """The design of a frame whose columns are numbers and categories."""
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
