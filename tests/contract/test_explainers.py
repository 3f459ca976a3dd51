"""Every explainer keeps the promises of the protocol: MCCE with each search, each baseline."""

from __future__ import annotations

from functools import partial

import pytest

from mcce import MCCE
from mcce.baselines import FACE, NICE, GrowingSpheres, NearestUnlike
from mcce.testing import check_explainer

SEARCHES = ["paper", "balanced", "sparse", "plausible", "near", "fast", "exact"]
BASELINES = {
    "nearest": NearestUnlike,
    "nice": NICE,
    "spheres": partial(GrowingSpheres, n_samples=60),
    "face": FACE,
}


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
