"""Searches with some of their parameters changed, and what they find."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import settings

from mcce import MCCE, Counterfactuals, ExactSearch, McceWarning, Search


def examples(share: float) -> settings:
    """A share of the examples that the profile says, for properties that cost more."""
    return settings(max_examples=max(1, int(share * settings().max_examples)))


def slow(*values: Any) -> list[Any]:
    """Parameters that `make test` leaves to `make test-slow`."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def bounded(search: Any = "paper", **changes: Any) -> Search | ExactSearch:
    """A search, by name or as an object, with some parameters changed."""
    if isinstance(search, str):
        search = ExactSearch() if search == "exact" else Search(search)
    return replace(search, **changes)


def explain(explainer: MCCE, people: Any, **more: Any) -> Counterfactuals:
    """What a search finds, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(people, **more)


def assert_same(one: Counterfactuals, other: Counterfactuals) -> None:
    """The same answers for the same people, to the bit."""
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    pd.testing.assert_frame_equal(one.measures, other.measures, check_exact=True)
    pd.testing.assert_frame_equal(one.people, other.people, check_exact=True)


def altered(explainer: MCCE, **settings: Any) -> MCCE:
    """The same fitted explainer with other settings; the one that is given keeps its own."""
    return copy(explainer).set_params(**settings)


def texts(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Each row as a tuple of texts."""
    return [tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False)]


def own_rows(result: Counterfactuals) -> pd.DataFrame:
    """The person of each counterfactual, with the index of the counterfactuals."""
    return result.factuals.iloc[result.owner].set_axis(result.frame.index)
