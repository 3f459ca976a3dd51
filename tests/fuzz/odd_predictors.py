"""Ways in which a predictor may fail, each as a wrapper of one that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Predictor = Callable[[Any], Any]


class Failing:
    """A predictor that works until a call, fails in its way from then on, and can be repaired."""

    def __init__(self, predictor: Predictor, way: Callable[..., Any], call: int) -> None:
        self.predictor, self.way, self.call = predictor, way, call
        self.n_calls = 0
        self.broken = True
        # What the predictor may call back, set by the test.
        self.back: Callable[[], Any] = lambda: None

    def __call__(self, rows: Any) -> Any:
        self.n_calls += 1
        if not self.broken or self.n_calls <= self.call:
            return self.predictor(rows)
        return self.way(self, rows, np.asarray(self.predictor(rows.copy())))


class Unreadable:
    """Something that NumPy cannot read."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("no array")


class Liar:
    """Says it has other rows than it has."""

    shape = (3,)
    __array_interface__ = {"shape": (2,), "typestr": "<f8", "data": None, "version": 3}  # noqa: RUF012


def _raises(error: type[BaseException]) -> Callable[..., Any]:
    def way(self: Failing, rows: Any, scores: np.ndarray) -> Any:
        raise error("the predictor fails")

    return way


def _returns(make: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    return lambda self, rows, scores: make(scores)


def _writes_cells(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    for place in range(rows.shape[1]):
        rows.isetitem(place, rows.iloc[::-1, place].to_numpy())
    rows.drop(rows.index[:1], inplace=True)  # noqa: PD002
    return scores


def _writes_arrays(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    for name in rows:
        array = rows[name].array
        for target in (array, getattr(array, "_ndarray", None), getattr(array, "_data", None)):
            try:
                target[...] = target[0]  # type: ignore[index]
            except (TypeError, ValueError, IndexError, AttributeError, KeyError):
                continue
    return scores


def _writes_names(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    rows.columns = [f"other {place}" for place in range(rows.shape[1])]
    rows.index = pd.Index(["same"] * len(rows))
    return pd.Series(scores, index=rows.index)


def _changes_its_mind(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    return scores + np.random.default_rng(self.n_calls).normal(0, 0.5, scores.shape)


def _alternates(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    return scores if self.n_calls % 2 else scores.max() - scores


def _depends_on_company(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    return scores - scores.mean()


def _keeps_its_output(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    """Returns one array again and again, and writes into it later."""
    kept = self.__dict__.setdefault("kept", np.zeros(1_000_000))
    kept[: scores.size] = scores
    return kept[: scores.size]


def _calls_back(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    if not self.__dict__.get("inside"):
        self.__dict__["inside"] = True
        try:
            self.back()
        finally:
            self.__dict__["inside"] = False
    return scores


def _recurses(self: Failing, rows: Any, scores: np.ndarray) -> Any:
    return _recurses(self, rows, scores)


def _masked(scores: np.ndarray) -> Any:
    return np.ma.masked_array(scores, mask=np.arange(scores.size) % 2 == 0)


RAISE = [
    *(ValueError, KeyError, MemoryError, RecursionError, StopIteration, OSError, AssertionError),
    *(KeyboardInterrupt, UnicodeError, ArithmeticError, Warning),
]
WAYS: dict[str, Callable[..., Any]] = {
    **{f"raises {error.__name__}": _raises(error) for error in RAISE},
    "NaN": _returns(lambda s: np.where(s > np.median(s), np.nan, s)),
    "infinity": _returns(lambda s: np.where(s > np.median(s), np.inf, -np.inf)),
    "a mask": _returns(_masked),
    "all masked": _returns(lambda s: np.ma.masked_all(s.shape)),
    "one masked": _returns(lambda s: np.ma.masked),
    "one less": _returns(lambda s: s[:-1]),
    "one more": _returns(lambda s: np.append(s, s[:1])),
    "none": _returns(lambda s: s[:0]),
    "a scalar": _returns(lambda s: 0.5),
    "None": _returns(lambda s: None),
    "nothing but None": _returns(lambda s: [None] * s.size),
    "a column": _returns(lambda s: s[:, None]),
    "two columns": _returns(lambda s: np.stack([s, s], axis=1)),
    "three dimensions": _returns(lambda s: s[:, None, None]),
    "ragged lists": _returns(lambda s: [[1.0]] * (s.size - 1) + [[1.0, 2.0]]),
    "strings": _returns(lambda s: s.astype(str)),
    "words": _returns(lambda s: np.array(["yes", "no"])[(s > 0.5).astype(int)]),
    "surrogates": _returns(lambda s: np.array(["\ud800"] * s.size, dtype=object)),
    "bytes": _returns(lambda s: s.astype("S8")),
    "objects": _returns(lambda s: np.array([object() for _ in s], dtype=object)),
    "numbers as objects": _returns(lambda s: s.astype(object)),
    "big integers": _returns(lambda s: np.array([10**400] * s.size, dtype=object)),
    "complex numbers": _returns(lambda s: s + 1j),
    "dates": _returns(lambda s: s.astype("datetime64[s]")),
    "float16": _returns(lambda s: s.astype("float16")),
    "longdouble": _returns(lambda s: s.astype(np.longdouble)),
    "other byte order": _returns(lambda s: s.astype(">f8")),
    "read-only": _returns(lambda s: np.broadcast_to(s[0], s.shape)),
    "a record": _returns(lambda s: s.astype([("score", "f8")])),
    "NA": _returns(lambda s: pd.array([None, *s[1:]], dtype="Float64")),
    "a sparse series": _returns(lambda s: pd.Series(s).astype("Sparse[float]")),
    "a category": _returns(lambda s: pd.Series(s).astype("category")),
    "a series of other labels": _returns(lambda s: pd.Series(s, index=["x"] * s.size)),
    "a frame": _returns(lambda s: pd.DataFrame({"a": s, "b": s})),
    "a dict": _returns(lambda s: {"score": s}),
    "a set": _returns(lambda s: set(s.tolist())),
    "a generator": _returns(lambda s: (x for x in s)),
    "a function": _returns(lambda s: lambda: s),
    "unreadable": _returns(lambda s: Unreadable()),
    "a liar": _returns(lambda s: Liar()),
    "an error as a value": _returns(lambda s: ValueError("returned")),
    "writes cells": _writes_cells,
    "writes arrays": _writes_arrays,
    "writes names": _writes_names,
    "changes its mind": _changes_its_mind,
    "alternates": _alternates,
    "depends on company": _depends_on_company,
    "keeps its output": _keeps_its_output,
    "calls back": _calls_back,
    "recurses": _recurses,
}
# They score rows as before: the answers must be those of a predictor that works.
HARMLESS = {"writes cells", "writes arrays", "a column", "numbers as objects", "keeps its output"}
