"""Releases that tell nothing: figures call chance a leak as rarely as three standard errors do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from mcce import SchemaError, privacy

N_AUDITS = 12


def draw(n, rng):
    """People with few values, so that distances and classes are few, too."""
    return pd.DataFrame(
        {
            "months": rng.integers(0, 30, n),
            "debt": rng.poisson(rng.gamma(1, 8, n)),
            "job": rng.choice(["a", "b", "c"], n),
        }
    )


def count_leaks(n_released, names):
    found = Counter()
    for seed in range(N_AUDITS):
        rng = np.random.default_rng([seed, n_released])
        sets = [draw(n, rng) for n in (n_released, 200, 200, 100)]
        audit = privacy.audit_rows(*sets, quasi_identifiers={"months": 2, "debt": 3})
        found.update(name for name in names if audit[name].finding == "leak")
    return found


@pytest.mark.parametrize("n_released", [1, 60])
def test_quantiles_and_wide_classes_call_chance_no_leak(n_released):
    names = ["closest_median", "closest_q05", "linkage_unique", "linkage_small"]

    assert sum(count_leaks(n_released, names).values()) <= 1


def test_close_records_are_still_found():
    rng = np.random.default_rng(0)
    training, holdout, reference = (draw(300, rng).assign(x=rng.random(300)) for _ in range(3))

    found = privacy.audit_rows(training.assign(x=training.x + 1e-4), training, holdout, reference)

    assert found["closest_median"].finding == found["closest_q05"].finding == "leak"


def people(n, seed):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 2)), columns=["a", "b"])


def test_a_holdout_inside_a_much_larger_training_set_is_refused():
    training = people(20_000, 0)

    with pytest.raises(SchemaError, match="holdout and training share rows: 100 of 100"):
        privacy.audit_rows(people(50, 1), training, training[:100], people(50, 2))


def test_training_inside_a_much_larger_holdout_is_refused():
    holdout = people(20_000, 0)

    with pytest.raises(SchemaError, match="100 of 100 rows of training are in both"):
        privacy.audit_rows(people(50, 1), holdout[:100], holdout, people(50, 2))
