"""A random table of training rows and people, a black box, constraints and a search."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from mcce import (
    MCCE,
    ExactSearch,
    ForestChain,
    GaussianCopula,
    InferenceTreeChain,
    Search,
    TreeChain,
)
from random_columns import random_column
from random_constraints import Rule, random_rules
from random_predictors import BlackBox, as_pandas, random_box

Chance = np.random.Generator
NAMES: list[Any] = ["a", "b c", "", "æ", 0, 7, ("t", 1), "class", "0", "x" * 80, -1.5, "if`"]
PRESETS = ["paper", "sparse", "balanced", "plausible", "near", "fast", "exact"]


@dataclass(frozen=True)
class Case:
    """Everything that a call of fit and explain needs, in pandas and in the kind that is passed."""

    train: pd.DataFrame
    people: pd.DataFrame
    given_train: Any
    given_people: Any
    immutable: list[Any]
    numeric: list[bool]
    box: BlackBox
    rules: list[Rule]
    settings: dict[str, Any]

    def explainer(self, **changes: Any) -> MCCE:
        fixed = [rule.constraint for rule in self.rules if rule.whom is None]
        settings = {"constraints": fixed or None, "immutable": self.immutable} | self.settings
        return MCCE(self.box.predictor, self.box.desired, **(settings | changes))

    def call_constraints(self, people: np.ndarray) -> list[Any] | None:
        """The constraints that are written anew for a call with some people."""
        return [rule.for_people(people) for rule in self.rules if rule.whom is not None] or None


def random_case(seed: int) -> Case:
    """The case of a number."""
    chance = np.random.default_rng([4, seed])
    n_train = int(chance.choice([1, 2, 5, 12, 40, 120], p=[0.03, 0.03, 0.09, 0.2, 0.35, 0.3]))
    settings = _settings(chance)
    # The exact search lists the rows of every person by themselves, which takes longer.
    is_exact = isinstance(settings["search"], ExactSearch)
    n_people = int(chance.choice([1, 30, 80] if is_exact else [1, 50, 500, 1000]))
    columns = [random_column(chance, n_train + n_people) for _ in range(chance.integers(1, 8))]
    names = _names(chance, len(columns))
    kinds = {
        name: column.attrs["declare"]
        for name, column in zip(names, columns, strict=True)
        if "declare" in column.attrs
    }
    table = pd.DataFrame(dict(enumerate(columns)))
    table.columns = pd.Index(names, dtype=object if len({type(n) for n in names}) > 1 else None)
    train, people = table.iloc[:n_train].reset_index(drop=True), table.iloc[n_train:]
    if chance.random() < 0.3:
        train = pd.concat([train, train.iloc[: max(1, n_train // 2)]], ignore_index=True)
    people = people.set_axis(_labels(chance, n_people))
    kind = ["pandas", "pandas", "pandas", "pandas", "array", "polars", "pyarrow"]
    train, people, given_train, given_people = _given(
        train, people, kind[int(chance.integers(len(kind)))], kinds
    )
    is_recast = seed % 5 == 4 and isinstance(given_people, pd.DataFrame)
    if is_recast:
        people = given_people = recast(chance, people, kinds)
    numeric = [
        _is_numeric(train.iloc[:, at], kinds.get(name)) and not _has_dictionary(given_train, at)
        for at, name in enumerate(train.columns)
    ]
    places = chance.permutation(len(columns))
    fixed = sorted(places[: chance.integers(0, (len(columns) + 1) // 2)].tolist())
    mutable = [at for at in range(len(columns)) if at not in fixed]
    box = random_box(chance, given_train, numeric, by_value=is_recast)
    rules = random_rules(chance, train, people, mutable, numeric)
    immutable = [train.columns[at] for at in fixed]
    settings["kinds"] = kinds or None
    return Case(train, people, given_train, given_people, immutable, numeric, box, rules, settings)


def _names(chance: Chance, n_columns: int) -> list[Any]:
    if chance.random() < 0.6:
        return [f"x{place}" for place in range(n_columns)]
    names = [NAMES[place] for place in chance.permutation(len(NAMES))[:n_columns]]
    return [None, *names[1:]] if chance.random() < 0.03 else names


def _labels(chance: Chance, n_people: int) -> Any:
    how = int(chance.integers(8))
    if how == 0:
        return pd.Index([3] * n_people)
    if how == 1:
        return pd.date_range("2020", periods=n_people)
    if how == 2:
        return pd.MultiIndex.from_arrays([range(n_people), ["a"] * n_people])
    if how == 3:
        return pd.Index([None, np.nan, "x", 1, 2.5, *range(n_people)][:n_people], dtype=object)
    if how == 4:
        return pd.Index([f"person {place}" for place in range(n_people)], name="who")
    return pd.RangeIndex(n_people)


def _given(
    train: pd.DataFrame, people: pd.DataFrame, kind: str, kinds: dict[Any, str]
) -> tuple[pd.DataFrame, pd.DataFrame, Any, Any]:
    """The two tables in pandas, and in a kind of frame that can hold them."""
    plain = all(dtype == np.float64 for dtype in train.dtypes)
    if kind == "array" and plain:
        names = [f"x{place}" for place in range(train.shape[1])]
        kinds.update({f"x{list(train.columns).index(n)}": kinds.pop(n) for n in list(kinds)})
        train, people = train.set_axis(names, axis=1), people.set_axis(names, axis=1)
        people = people.reset_index(drop=True)
        return train, people, train.to_numpy(), people.to_numpy()
    named = all(isinstance(name, str) for name in train.columns)
    if kind in ("polars", "pyarrow") and named and find_spec("pyarrow") and find_spec(kind):
        made = _converted(train, people.reset_index(drop=True), kind)
        if made is not None:
            return made
    return train, people, train, people


def _converted(train: pd.DataFrame, people: pd.DataFrame, kind: str) -> Any:
    """The tables in another library and back in pandas; None if it cannot hold them."""
    import pyarrow as pa

    try:
        tables = [pa.Table.from_pandas(frame, preserve_index=False) for frame in (train, people)]
        if tables[0].schema.types != tables[1].schema.types:
            return None
        if kind == "polars":
            polars = import_module("polars")
            tables = [polars.from_arrow(table) for table in tables]
        return (*[as_pandas(table) for table in tables], *tables)
    # Libraries refuse what they cannot hold in many ways; whether mcce does is tried elsewhere.
    except Exception:
        return None


def recast(chance: Chance, people: pd.DataFrame, kinds: dict[Any, str]) -> pd.DataFrame:
    """People whose columns have other dtypes than those of training, with the same values."""
    columns = []
    for at, name in enumerate(people.columns):
        column = people.iloc[:, at]
        others: list[Any] = [object, "category"]
        others += {"i": ["Int64"], "f": ["Float64"], "b": ["boolean"]}.get(column.dtype.kind, [])
        is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM"
        if is_plain and name not in kinds and chance.random() < 0.5:
            column = column.astype(others[int(chance.integers(len(others)))])
        columns.append(column)
    table = pd.DataFrame(dict(enumerate(columns)), index=people.index)
    table.columns = people.columns
    return table


def _is_numeric(column: pd.Series, declared: str | None) -> bool:
    if declared is not None:
        return declared == "numeric"
    return not isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.kind in "iufmM"


def _has_dictionary(given: Any, at: int) -> bool:
    """Whether a column is categorical in Arrow, whatever its levels are."""
    types = getattr(getattr(given, "schema", None), "types", None)
    return types is not None and hasattr(types[at], "index_type")


def _settings(chance: Chance) -> dict[str, Any]:
    name = PRESETS[int(chance.integers(len(PRESETS)))]
    n_counterfactuals = int(chance.choice([1, 2, 5, 10]))
    settings = {
        "search": _search(chance, name),
        "n_counterfactuals": n_counterfactuals,
        "random_state": [0, 1, 2**32, 2**64 - 1][int(chance.integers(4))],
    }
    if n_counterfactuals > 1 and name != "exact" and chance.random() < 0.3:
        settings["diversity"] = float(chance.choice([0.0, 0.5, 1.0]))
    if chance.random() < 0.3:
        settings["generator"] = _generator(chance, listed=name == "exact")
    return settings


def _generator(chance: Chance, *, listed: bool) -> Any:
    """A generator other than the default; one whose rows can be listed, if that is needed."""
    few = int(chance.choice([1, 10]))
    made = [
        TreeChain(min_samples_leaf=few),
        TreeChain(max_features="sqrt", min_samples_leaf=few),
        InferenceTreeChain(min_samples_split=2, min_samples_leaf=few),
        ForestChain(n_trees=3, sampling="pool" if few == 1 else "tree_first"),
        GaussianCopula(n_sweeps=2),
    ]
    return made[int(chance.integers(3 if listed else len(made)))]


def _search(chance: Chance, name: str) -> Search | ExactSearch:
    """A named search with few draws, sometimes with bounds."""
    n_samples = int(chance.choice([5, 40]))
    bounds: dict[str, Any] = {"copies": "never"} if chance.random() < 0.1 else {}
    if chance.random() < 0.15:
        bounds = {"max_sparsity": int(chance.integers(0, 4))}
    elif chance.random() < 0.15:
        bounds = {"max_distance": float(chance.choice([0.0, 0.2, 0.5]))}
    few = {"n_samples": n_samples, "max_samples": 2 * n_samples} | bounds
    if name == "exact":
        return ExactSearch(max_rows=200, max_nodes=20_000, **few)
    return Search.preset(name, **few)  # type: ignore[arg-type]
