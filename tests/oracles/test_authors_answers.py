"""The same work as the authors' code: as sparse and as near, on the same rows and people."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import reference
from mcce import MCCE
from searches import bounded

THEIR_TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=["adult", "german"])
def work(request, reference_folder):
    return reference.load(reference_folder / request.param)


def test_the_black_box_scores_as_stated(work):
    assert np.abs(work.network(work.people) - work.stated_scores).max() < 1e-12


def test_answers_are_as_sparse_and_as_near_as_the_authors(work):
    costs = []
    for seed in range(2):
        explainer = MCCE(
            work.network,
            (0.5, 1.0),
            immutable=work.meta["immutables"],
            n_samples=work.meta["K"],
            search=bounded(tolerance=THEIR_TOLERANCE),
            random_state=seed,
        ).fit(work.train)
        result = explainer.explain(work.people)
        assert (result.people["status"] == "answered").all()
        own = work.people[work.meta["immutables"]].set_axis(result.frame.index)
        pd.testing.assert_frame_equal(result.frame[own.columns], own)
        assert (work.network(result.frame) >= 0.5).all()
        costs.append(result.measures[["sparsity", "l1"]].mean())

    sparsity, l1 = pd.DataFrame(costs).mean()

    assert sparsity <= 1.03 * work.answers["L0"].mean()
    assert l1 <= 1.08 * work.answers["L1"].mean()
