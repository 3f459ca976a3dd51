"""More draws than fit into memory are an error of ours, before or after trying."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce import MCCE, ParameterError
from mcce.search import explain


@pytest.fixture
def people() -> pd.DataFrame:
    return pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})


def fitted(people: pd.DataFrame, **settings) -> MCCE:
    settings = {"immutable": ["age"], "random_state": 0} | settings
    return MCCE(lambda frame: frame["salary"] / 100, (0.7, 1.0), **settings).fit(people)


@pytest.mark.parametrize("search", ["paper", "balanced", "fast"])
def test_more_draws_than_the_machine_has_memory_for_are_refused_at_once(
    people, monkeypatch, search
):
    monkeypatch.setattr(explain, "physical_memory", lambda: 2.0**30)
    explainer = fitted(people, n_samples=2**31 - 1, search=search)

    with pytest.raises(ParameterError, match=r"n_samples=2147483647 draws need about 144 GiB"):
        explainer.explain(people)


def test_memory_that_runs_out_is_an_error_that_says_what_to_lower(people, monkeypatch):
    def run_out(*args, **options):
        raise MemoryError

    monkeypatch.setattr(explain, "search", run_out)

    with pytest.raises(ParameterError, match=r"n_samples=1000 .* memory=256.0 .* Lower one"):
        fitted(people).explain(people)
