"""Thousands of broken calls: each ends in an error of ours or is answered well.

``MCCE_FUZZ=20000`` tries so many; the usual number keeps the tests short.
"""

from __future__ import annotations

import copy
import os
import warnings

import numpy as np
import pandas as pd
import pytest

from broken_calls import broken_call
from mcce import MCCE, McceError, McceWarning

N_CALLS = int(os.environ.get("MCCE_FUZZ", "600"))
N_PARTS = 12


def unchanged(before, after):
    if isinstance(before, pd.DataFrame):
        same = before.shape == after.shape and before.columns.equals(after.columns)
        return same and list(before.dtypes) == list(after.dtypes) and before.equals(after)
    return True


def check(call, explainer, result):
    """What is said of every answer."""
    result = result.to_pandas()
    if not len(result.frame):
        return
    decision = explainer.decision_
    if result.n_unstable == 0 and "another mind" not in str(call.broken):
        assert decision.score(result.frame).valid.all(), "an answer is not valid"
    fixed = [explainer.schema_.names[at] for at in explainer.schema_.immutable]
    own = result.factuals.iloc[result.owner]
    for name in fixed:
        ours, theirs = result.frame[name], own[name]
        assert list(ours.isna()) == list(theirs.isna())
        present = ~ours.isna().to_numpy()
        assert ours[present].tolist() == theirs[present].tolist(), f"{name} changed"
    assert len(result.people) == len(result.factuals)


def run(seed):
    """What is wrong with the outcome of a call, or None."""
    call = broken_call(seed)
    if call.crash is not None:
        return f"{call.broken}: {type(call.crash).__name__}: {call.crash}"
    settings = {"n_samples": 30, "random_state": 1, "immutable": ["sex"]} | call.settings
    if call.constraints is not None:
        settings["constraints"] = call.constraints
    inputs = [copy.deepcopy(call.train), copy.deepcopy(call.people)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", McceWarning)
            explainer = MCCE(call.predictor, **({"desired": (0.8, 10)} | settings))
            result = explainer.fit(call.train).explain(call.people)
        check(call, explainer, result)
    except McceError as error:
        if len(str(error)) < 15:
            return f"{call.broken}: says only {error!r}"
    except AssertionError as error:
        return f"{call.broken}: {error}"
    except Exception as error:
        return f"{call.broken}: {type(error).__name__}: {str(error)[:200]}"
    for before, after in zip(inputs, (call.train, call.people), strict=True):
        if not unchanged(before, after):
            return f"{call.broken}: the input was changed"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_PARTS))
def test_a_broken_call_ends_in_an_error_of_ours_or_in_a_good_answer(part):
    with np.errstate(all="ignore"):
        messages = {seed: run(seed) for seed in range(part, N_CALLS, N_PARTS)}

    wrong = {seed: message for seed, message in messages.items() if message is not None}
    assert not wrong
