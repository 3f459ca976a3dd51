"""Stand-ins for the packages NICEx and dice-ml: as much of their interface as the adapters use."""

from __future__ import annotations

import random
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd


class FakeNICE:
    """The greedy walk of NICEx with the reward sparsity, one person at a time."""

    def __init__(self, predict_fn, rows, cat_feat, *, justified_cf):
        assert justified_cf is False
        self.predict, self.rows, self.levels = predict_fn, rows, set(cat_feat)
        accepted = predict_fn(rows).argmax(axis=1) == 1
        self.data = SimpleNamespace(candidates_mask=accepted)
        self.ranges = np.maximum(np.ptp(rows, axis=0), 1e-11)

    def explain(self, person):
        assert self.predict(person).argmax() == 0
        candidates = self.rows[self.data.candidates_mask]
        gaps = np.abs(candidates - person) / self.ranges
        for at in self.levels:
            gaps[:, at] = candidates[:, at] != person[:, at]
        goal, now = candidates[gaps.sum(axis=1).argmin()], person.copy()
        while self.predict(now).argmax() == 0:
            left = np.flatnonzero(now[0] != goal)
            tried = np.repeat(now, left.size, axis=0)
            tried[np.arange(left.size), left] = goal[left]
            now = tried[[self.predict(tried)[:, 1].argmax()]]
        return now


class FakeDice:
    """A random search over the values of the training frame; it uses the global random state."""

    calls: ClassVar[list] = []

    def __init__(self, data, model, method):
        self.data, self.model, self.method = data, model.model, method
        self.order = np.random.permutation(len(data.dataframe))  # noqa: NPY002

    def generate_counterfactuals(
        self,
        query,
        *,
        total_CFs,  # noqa: N803
        desired_class,
        features_to_vary,
        verbose,
        **settings,
    ):
        FakeDice.calls.append({"features_to_vary": features_to_vary, **settings})
        assert desired_class == 1
        assert verbose is False
        frame = self.data.dataframe
        if not set(query["c0"]) <= set(frame["c0"]):
            raise ValueError("c0 is out of range")
        own, values = query.iloc[0].to_dict(), {n: frame[n].tolist() for n in features_to_vary}
        names = [random.choice(features_to_vary) for _ in range(100)]
        rows = [own | {name: random.choice(values[name])} for name in names]
        tried = pd.DataFrame(rows).astype(query.dtypes)
        found = tried[self.model.predict(tried) == 1].head(total_CFs)
        answers = found.assign(outcome=1) if len(found) else None
        return SimpleNamespace(cf_examples_list=[SimpleNamespace(final_cfs_df=answers)])


def fake_nice():
    """A module that can be imported as ``nice``."""
    module = ModuleType("nice")
    module.NICE = FakeNICE
    return module


def fake_dice():
    """A module that can be imported as ``dice_ml``."""
    module = ModuleType("dice_ml")
    module.Data = SimpleNamespace
    module.Model = SimpleNamespace
    module.Dice = FakeDice
    return module
