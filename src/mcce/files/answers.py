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
from ..counterfactuals.people import changed_in
from ..errors import ParameterError, shorten
from ..kernels import IntArray
from .people import People, PeopleReader

FIRST = {"factual": "Int64"}
BEFORE = {"rank": "Int64", "status": "object", "reason": "object", "score_before": "float64"}
CHANGED = {"changed": "object"}
_ABOUT_PEOPLE = ("status", "reason", "score_before")
# Where a row's person is in the block; no column of the table.
PLACE = object()


@dataclass(frozen=True)
class Layout:
    """The columns of the table of answers, with their dtypes, in order."""

    own: Mapping[str, Any]
    kept: Mapping[str, Any]
    features: Mapping[Any, Any]
    prefix: str = ""

    @classmethod
    def plan(
        cls,
        reader: PeopleReader,
        result: Counterfactuals[Any],
        prefix: str = "",
        *,
        numbered: bool = True,
    ) -> Layout:
        """The columns of answers to people who are read in this way."""
        both = [name for name in reader.kept if name in reader.readers]
        if both:
            raise ParameterError(
                f"Columns to keep are features already: {shorten(both, 200)}. Name only columns "
                "that the explainer does not know, such as a customer number; factual is the row "
                "of the person."
            )
        measures = _measures(result.to_pandas())
        measured = {str(name): _output_dtype(dtype) for name, dtype in measures.dtypes.items()}
        own: dict[str, Any] = {**(FIRST if numbered else {}), **BEFORE, **measured}
        features = {
            r.name: pd.BooleanDtype() if r.truths else _output_dtype(r.dtype)
            for r in reader.readers.values()
        }
        if result.anonymous is not None:
            features |= dict.fromkeys(result.anonymous.quasi_identifiers, np.dtype(object))
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
        first = {n: ours[n] for n in (f"{self.prefix}{name}" for name in FIRST) if n in ours}
        features = {str(name): dtype for name, dtype in self.features.items()}
        return {**first, **self.kept, **ours, **features}

    def table(
        self, people: People, results: Iterable[tuple[IntArray, Counterfactuals[Any]]]
    ) -> pd.DataFrame:
        """The table of answers to a block of people."""
        parts = [self._part(people, positions, result.to_pandas()) for positions, result in results]
        nobody = pd.DataFrame({n: pd.Series([], dtype=t) for n, t in self.dtypes.items()})
        if not parts:
            return nobody
        table = pd.concat(parts, ignore_index=True)
        order = np.argsort(table[PLACE].to_numpy(), kind="stable")
        return table.iloc[order][list(self.dtypes)].reset_index(drop=True)

    def _part(
        self, people: People, positions: IntArray, result: Counterfactuals[pd.DataFrame]
    ) -> pd.DataFrame:
        """Rows of the table, by rank, for some people; answers first, then people without any."""
        found = result.people
        without = np.flatnonzero(found["n_counterfactuals"].to_numpy() == 0)
        whose = np.concatenate([result.owner, without])
        answers = np.concatenate([np.arange(result.owner.size), np.full(without.size, -1)])
        place = positions[whose]
        ranks = result.frame.index.get_level_values("rank").to_series()
        own = {
            "factual": pd.Series(place + people.first),
            "rank": ranks,
            "status": found["status"],
            "reason": found["reason"],
            "score_before": found["score"],
            **dict(_measures(result).items()),
            "changed": pd.Series(_changed(result), dtype=object),
        }
        about = {"factual": np.arange(whose.size), **dict.fromkeys(_ABOUT_PEOPLE, whose)}
        columns = {
            f"{self.prefix}{name}": _take(own[name], about.get(name, answers), dtype)
            for name, dtype in self.own.items()
        }
        frame = result.frame if result.anonymous is None else result.anonymous.frame
        for name, dtype in self.features.items():
            columns[str(name)] = _take(frame[name], answers, dtype)
        for name, dtype in self.kept.items():
            cells = people.kept[name]
            here = pd.Series([cells[at] for at in place.tolist()], dtype=object)
            columns[name] = _take(here, np.arange(place.size), dtype)
        rows = pd.DataFrame(columns)
        rows[PLACE] = place
        return rows


def _measures(result: Counterfactuals[pd.DataFrame]) -> pd.DataFrame:
    """What is measured of answers; of anonymous ones nothing that depends on exact values."""
    if result.anonymous is None:
        return result.measures
    return result.measures[["sparsity"]].join(result.anonymous.measures)


def count_status(table: pd.DataFrame, prefix: str = "") -> dict[str, int]:
    """How many people of a table of answers have which status."""
    once = table[f"{prefix}rank"].fillna(1) == 1
    counts = table.loc[once, f"{prefix}status"].value_counts()
    return {str(name): int(count) for name, count in counts.items()}


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


def _take(cells: pd.Series[Any], places: IntArray, dtype: Any) -> Any:
    """Cells at these places in another dtype; those at -1 are missing."""
    if types.is_object_dtype(dtype):
        values = np.append(cells.astype(object).to_numpy(dtype=object), [None])
        values[np.append(cells.isna().to_numpy(), True)] = None
        return pd.Series(values[places], dtype=object)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.dtype.categories.dtype)
    return pd.Series(cells.astype(dtype).array.take(places, allow_fill=True))


def _changed(result: Counterfactuals[pd.DataFrame]) -> list[str]:
    """Names of the changed features of each answer, as a JSON list."""
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    changed = changed_in(before, result.frame.reset_index(drop=True))
    patterns, which = np.unique(changed, axis=0, return_inverse=True)
    names = np.array([str(name) for name in result.frame.columns], dtype=object)
    lists = [json.dumps(names[pattern].tolist(), ensure_ascii=False) for pattern in patterns]
    return [lists[at] for at in which.ravel().tolist()]
