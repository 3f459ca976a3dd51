"""How many draws are valid, and how many of those are not repeats.

Paper, appendix on leaving out the decision, which compares the share of unique and valid samples
with and without it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mcce import TreeChain
from mcce.candidates import CandidateRows
from mcce.protocols import DrawRequest, person_keys
from mcce.tables.schema import Schema

from .case import Case, authors_visit_order


def share_of_valid_draws(
    case: Case, seed: int, *, n_samples: int, condition_on_decision: bool
) -> dict[str, float]:
    """Draws with the desired decision, and the distinct ones among them, in % of all draws.

    People with the same immutable values share their draws, so each set of draws is scored once
    and counts as often as there are people.

    Parameters
    ----------
    case : Case
    seed : int
        Seed of the draws.
    n_samples : int
        Draws per person.
    condition_on_decision : bool
        As for :class:`mcce.TreeChain`.

    Returns
    -------
    dict
        ``valid_%`` and ``valid_and_unique_%``, means over people.
    """
    rows = Schema.learn_rows(case.train, immutable=case.immutable)
    chain = TreeChain(
        visit_order=authors_visit_order(case), condition_on_decision=condition_on_decision
    ).fit(rows, case.decide(case.train), n_jobs=1)
    group = case.factuals.groupby(case.immutable, observed=True, sort=False).ngroup()
    people = rows.schema.encode(case.factuals[~group.duplicated()])
    keys = person_keys(seed, np.ascontiguousarray(people.descent[rows.schema.immutable].T))
    codes = chain.sample(DrawRequest(people.descent, keys, np.arange(n_samples))).codes
    codes = codes.reshape(len(codes), -1)
    owner = np.repeat(np.arange(len(people)), n_samples)
    valid = case.decide(CandidateRows(people, owner, codes, rows.tables).as_given())
    repeated = pd.DataFrame(np.vstack([owner[None, :], codes]).T).duplicated().to_numpy()
    shares = {"valid_%": valid, "valid_and_unique_%": valid & ~repeated}
    weight = np.bincount(group, minlength=len(people)) / len(group)
    return {
        name: 100 * float(weight @ kept.reshape(len(people), n_samples).mean(axis=1))
        for name, kept in shares.items()
    }
