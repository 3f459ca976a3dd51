"""The table of answers: what became of everybody, one row per answer or per person without one.

Columns are the same for every block: ours (``factual``, ``rank``, ``status``, …), those that were
copied from the file, and the features of the explainer with the values of the answer.

Always true: everybody in the block has at least one row, in the order of the file; whoever has no
answer has a ``reason``; dtypes depend on the explainer alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..counterfactuals import Counterfactuals
from ..errors import ParameterError, shorten
from ..kernels import IntArray
from .people import People, PeopleReader

FIRST = {"factual": "Int64"}
BEFORE = {"rank": "Int64", "status": "object", "reason": "object", "score_before": "float64"}
CHANGED = {"changed": "object"}


@dataclass(frozen=True)
class Layout:
    """The columns of the table of answers, with their dtypes, in order.

    Parameters
    ----------
    own
        Columns of ours, by the names that they have in a result.
    kept
        Columns that are copied from the file.
    features
        The features of the explainer, by their names in the explainer.
    prefix
        What stands before the names of our columns.
    """

    own: Mapping[str, Any]
    kept: Mapping[str, Any]
    features: Mapping[Any, Any]
    prefix: str = ""

    @classmethod
    def plan(cls, reader: PeopleReader, result: Counterfactuals[Any], prefix: str = "") -> Layout:
        """The columns of answers to people who are read in this way.

        Parameters
        ----------
        reader
            How people are read.
        result
            Any result of the explainer, also one of nobody: it says which measures there are.
        prefix
            What stands before the names of our columns.

        Raises
        ------
        ParameterError
            If two columns would have one name.
        """
        both = [name for name in reader.kept if name in reader.readers]
        if both:
            raise ParameterError(
                f"Columns to keep are features already: {shorten(both, 200)}. Name only columns "
                "that the explainer does not know, such as a customer number; factual is the row "
                "of the person."
            )
        measures = result.to_pandas().measures
        measured = {str(name): _output_dtype(dtype) for name, dtype in measures.dtypes.items()}
        own: dict[str, Any] = {**FIRST, **BEFORE, **measured}
        features = {r.name: _output_dtype(r.dtype) for r in reader.readers.values()}
        kept = {name: one.dtype for name, one in reader.kept.items()}
        layout = cls(own | CHANGED, kept, features, prefix)
        names = list(layout.dtypes)
        expected = len(own) + len(CHANGED) + len(kept) + len(features)
        if len(names) < expected:
            both = [
                n for n in map(str, [*features, *kept]) if n in {prefix + o for o in layout.own}
            ]
            raise ParameterError(
                f"Columns of the output would have the names of columns of yours: "
                f"{shorten(both, 200)}. Put something before the former with --prefix."
            )
        return layout

    @property
    def dtypes(self) -> dict[str, Any]:
        """Dtype of each column by its name in the output."""
        ours = {f"{self.prefix}{name}": dtype for name, dtype in self.own.items()}
        first = f"{self.prefix}factual"
        features = {str(name): dtype for name, dtype in self.features.items()}
        return {first: ours[first], **self.kept, **ours, **features}

    def table(
        self, people: People, results: Iterable[tuple[IntArray, Counterfactuals[Any]]]
    ) -> pd.DataFrame:
        """The table of answers to a block of people.

        Parameters
        ----------
        people
            The block.
        results
            Positions in the block, and the answers to these people; each person once.

        Returns
        -------
        pandas.DataFrame
            One row per answer, and one per person without any.
        """
        parts = [self._rows(positions, result.to_pandas()) for positions, result in results]
        joined = {
            name: [cell for part in parts for cell in part[name]]
            for name in [*self.own, *(("feature", name) for name in self.features)]
        }
        places = np.array(joined["factual"], dtype=np.int64)
        order = np.lexsort([np.array([rank or 0 for rank in joined["rank"]]), places])
        joined["factual"] = (places + people.first).tolist()
        columns = {
            **{f"{self.prefix}{name}": joined[name] for name in self.own},
            **{str(name): joined["feature", name] for name in self.features},
            **{name: [cells[at] for at in places] for name, cells in people.kept.items()},
        }
        return pd.DataFrame(
            {
                name: pd.Series([columns[name][at] for at in order], dtype=dtype)
                for name, dtype in self.dtypes.items()
            }
        )

    def _rows(self, positions: IntArray, result: Counterfactuals[pd.DataFrame]) -> dict[Any, Any]:
        """Cells of the table by column: answers first, then people without any."""
        people = result.people
        without = np.flatnonzero(people["n_counterfactuals"].to_numpy() == 0)
        whose = np.concatenate([result.owner, without])
        empty = [None] * without.size
        rows: dict[Any, Any] = {
            "factual": positions[whose].tolist(),
            "rank": result.frame.index.get_level_values("rank").tolist() + empty,
            "status": people["status"].iloc[whose].tolist(),
            "reason": people["reason"].iloc[whose].tolist(),
            "score_before": people["score"].iloc[whose].tolist(),
            "changed": _changed(result) + empty,
        }
        for name, cells in result.measures.items():
            rows[name] = _cells(cells) + empty
        for name in self.features:
            rows["feature", name] = _cells(result.frame[name]) + empty
        return rows


def count_status(table: pd.DataFrame, prefix: str = "") -> dict[str, int]:
    """How many people of a table of answers have which status."""
    status = table.drop_duplicates(f"{prefix}factual")[f"{prefix}status"]
    return {str(name): int(count) for name, count in status.value_counts().items()}


def _output_dtype(dtype: Any) -> Any:
    """The dtype of a column that may also be missing; levels are what they stand for."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if types.is_bool_dtype(dtype):
        return pd.BooleanDtype()
    if types.is_integer_dtype(dtype):
        return pd.UInt64Dtype() if dtype.kind == "u" else pd.Int64Dtype()
    if types.is_float_dtype(dtype):
        return np.dtype(f"float{8 * dtype.itemsize}")
    return dtype if dtype.kind in "mM" else np.dtype(object)


def _cells(series: pd.Series[Any]) -> list[Any]:
    """Cells as Python values, None for missing ones."""
    missing = series.isna().to_numpy()
    return [None if gone else cell for cell, gone in zip(series.tolist(), missing, strict=True)]


def _changed(result: Counterfactuals[pd.DataFrame]) -> list[str]:
    """Names of the changed features of each answer, as a JSON list."""
    changes = result.changes()
    named: dict[Any, list[str]] = {key: [] for key in result.frame.index}
    keys = zip(changes["factual"], changes["rank"], strict=True)
    for key, feature in zip(keys, changes["feature"], strict=True):
        named[key].append(str(feature))
    return [json.dumps(names, ensure_ascii=False) for names in named.values()]
