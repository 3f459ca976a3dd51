"""Why people have no counterfactual, and which candidate came nearest.

Only here does the predictor score candidates that a filter excludes. Takes a validation that has
ended; gives a reason and a nearest miss for everybody without an answer.
"""

from __future__ import annotations

import numpy as np

from ..kernels import BoolArray, IntArray, Listing
from .answers import Answers
from .ranking import RankedCandidates
from .validation import LazyValidation, Selection


def explain_misses(validation: LazyValidation) -> tuple[Answers, dict[int, str]]:
    """Why people without a valid candidate have none."""
    ranked, cache = validation.ranked, validation.cache
    person = np.flatnonzero(validation.settled & (validation.n_valid == 0))
    listing = ranked.list_all(person)
    n_draws = listing.draw.shape[1]
    listed = np.arange(n_draws) < listing.n_allowed[:, None]
    who, at = np.nonzero(listed)
    cache.validate(person[who], listing.draw[who, at])
    group = ranked.candidates.group[person][:, None]
    valid = cache.valid[group, listing.draw] & listed
    shortfall = cache.decision.shortfall(cache.score[group, listing.draw])
    nearest = np.lexsort((shortfall, ~valid, ~listed), axis=-1)[:, 0]
    rows = np.arange(person.size)
    selection = Selection(
        person,
        listing.draw[rows, nearest],
        np.zeros_like(person),
        listing.sparsity[rows, nearest],
        listing.gower[rows, nearest],
    )
    reasons = [
        f"all {n_valid} valid candidates among {drawn} are excluded by {named}"
        if n_valid
        else f"no valid candidate among {drawn}"
        for n_valid, drawn, named in describe_draws(ranked, person, listing, valid)
    ]
    positions = ranked.candidates.people[person].tolist()
    return selection.to_answers(cache), dict(zip(positions, reasons, strict=True))


def describe_draws(
    ranked: RankedCandidates, person: IntArray, listing: Listing, valid: BoolArray
) -> list[tuple[int, str, str]]:
    """What became of people's candidates."""
    ranking = ranked.ranking
    excluded = {
        name: ~np.take_along_axis(kept[person], listing.draw.astype(np.int64), axis=1)
        for name, kept in ranked.passed.items()
    }
    for check in ranking.checks:
        who, at = np.nonzero(valid)
        selected = ranked.candidates.select(person[who], listing.draw[who, at])
        excluded[check.name] = np.zeros_like(valid)
        excluded[check.name][who, at] = ~check.keeps(selected)
    if ranking.max_sparsity is not None:
        excluded[f"max_sparsity={ranking.max_sparsity}"] = listing.sparsity > ranking.max_sparsity
    if ranking.max_distance is not None:
        excluded[f"max_distance={ranking.max_distance}"] = listing.distance > ranking.max_distance
    allowed = np.arange(valid.shape[1]) < listing.n_allowed[:, None]
    for out in excluded.values():
        allowed &= ~out
    described = []
    for row, n_valid in enumerate(valid.sum(axis=1)):
        n_distinct, n_allowed = listing.n_allowed[row], int(allowed[row].sum())
        drawn = f"{valid.shape[1]} draws ({n_distinct} distinct, {n_allowed} allowed)"
        counts = {name: int((out[row] & valid[row]).sum()) for name, out in excluded.items()}
        named = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
        described.append((int(n_valid), drawn, named))
    return described
