"""Every explainer keeps the promises of the protocol: MCCE with each search, each baseline."""

from __future__ import annotations

import re
from functools import partial

import pandas as pd
import pytest

import mcce_lab.baselines
from mcce import MCCE, ParameterError
from mcce.testing import check_explainer
from mcce_lab.baselines import (
    FACE,
    NICE,
    GrowingSpheres,
    NearestUnlike,
)

SEARCHES = ["paper", "balanced", "sparse", "plausible", "near", "nearest", "exact"]
BASELINES = {
    "nearest": NearestUnlike,
    "nice": NICE,
    "spheres": partial(GrowingSpheres, n_samples=60),
    "face": FACE,
}


def test_every_name_is_checked():
    with pytest.raises(ParameterError) as refused:
        MCCE(len, search="none").fit(pd.DataFrame({"age": [1.0, 2.0]}))
    kinds = {getattr(one, "func", one) for one in BASELINES.values()}
    with_networks = {"CCHVAE", "CEM", "CLUE", "CRUDS", "LiCE", "REViSE", "Wachter"}  # lab/tests

    assert set(re.findall(r"'(\w+)'", str(refused.value))) - {"none"} == set(SEARCHES)
    assert {kind.__name__ for kind in kinds} | with_networks == set(mcce_lab.baselines.__all__)


@pytest.mark.parametrize("search", SEARCHES)
def test_mcce_keeps_the_promises_with_every_named_search(search):
    check_explainer(
        lambda predictor, desired, immutable: MCCE(
            predictor, desired, immutable=immutable, search=search, n_samples=200, random_state=0
        )
    )


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_keeps_the_promises(name):
    check_explainer(
        lambda predictor, desired, immutable: BASELINES[name](
            predictor, desired, immutable=immutable
        )
    )
