"""Explanations of the bank's applicants under constraints, and what they change."""

from __future__ import annotations

import pandas as pd

from bank import bank, score
from mcce import MCCE

TRAIN = bank(400)
PEOPLE = bank(60, seed=1)


def explain(constraints, people=PEOPLE, **settings):
    """Counterfactuals under constraints."""
    explainer = MCCE(
        score, (0.8, 10), immutable=["sex"], constraints=constraints, n_samples=60, random_state=3
    )
    return explainer.set_params(**settings).fit(TRAIN).explain(people)


def before_and_after(result):
    """The factual of each counterfactual, and the counterfactual."""
    before = result.factuals.iloc[result.owner].reset_index(drop=True)
    return before, result.frame.reset_index(drop=True)


def changed(before, after):
    """Which features of each counterfactual differ from the factual."""
    same = {
        name: (before[name] == after[name]).fillna(False).to_numpy(dtype=bool)
        | (before[name].isna() & after[name].isna()).to_numpy()
        for name in before
    }
    return ~pd.DataFrame(same)
