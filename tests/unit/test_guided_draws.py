"""Guided draws of the fast search: own values are kept where the model could have drawn them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, ParameterError
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from searches import explain


def test_guided_draws_keep_to_the_constraints_and_need_fewer_changes():
    rules = [c.only_up("salary"), c.frozen("education"), c.max_changes(3)]
    given_ = {"immutable": ["sex"], "constraints": rules, "n_samples": 100, "random_state": 3}
    train, people = bank(400), bank(40, seed=1)

    fast, plain = (
        explain(MCCE(score, (0.8, 10), search=search, **given_).fit(train), people)
        for search in ("fast", "paper")
    )

    before = people.iloc[fast.owner].reset_index(drop=True)
    after = fast.frame.reset_index(drop=True)
    assert len(after)
    same = before["salary"].isna() & after["salary"].isna()
    assert ((after["salary"] >= before["salary"]) | same).all()
    assert (after["education"].astype(str) == before["education"].astype(str)).all()
    assert (fast.measures["sparsity"] <= 3).all()
    assert len(fast.frame) >= len(plain.frame)
    both = fast.measures.index.intersection(plain.measures.index)
    assert fast.measures["sparsity"][both].mean() < plain.measures["sparsity"][both].mean()


class Halves:
    """A generator that cannot keep anything."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        self.n_mutable = rows.schema.mutable.size
        return self

    def sample(self, request):
        codes = np.tile(request.draws.astype(np.int32) % 2, (self.n_mutable, request.keys.size, 1))
        return Draws(codes)


class Staying(Halves):
    """One that keeps everything it can, whatever the requested probability."""

    capabilities = Capabilities(guidance=True)

    def sample(self, request):
        codes = super().sample(request).codes.copy()
        codes[0] = request.guide.own[0][:, None]
        return Draws(codes)


def test_a_generator_keeps_own_values_or_is_named():
    train = pd.DataFrame({"a": [0, 1, 2, 3] * 5, "b": [0, 1] * 10})
    cannot, can = (
        MCCE(lambda f: f["b"], (1, 1), generator=generator, search="fast").fit(train)
        for generator in (Halves(), Staying())
    )

    assert can.explain(train.iloc[[2]]).frame.to_numpy().tolist() == [[2, 1]]
    with pytest.raises(
        ParameterError, match=r"generator Halves does not declare the capability 'guidance'"
    ):
        cannot.explain(train.iloc[[0]])
