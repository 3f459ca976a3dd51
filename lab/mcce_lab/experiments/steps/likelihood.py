"""How likely held-out rows are by a generator, for those that know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mcce import Domain
from mcce.model import encode_training, is_private
from mcce.model.leaves import LeafChain
from mcce.protocols import Generator

from ..case import Case
from ..visit_order import bin_numbers, log_likelihood
from .parts import Parts, fit_for_both


def heldout_log_likelihood(generator: Generator, case: Case, parts: Parts, seed: int) -> float:
    """Mean log-likelihood of held-out rows in nats, NaN for a generator that has none.

    Numbers are replaced by deciles of the training rows, in training too. A leaf of a tree gets one
    more row, spread as in all of training; the other generators give every value some probability.

    Parameters
    ----------
    generator : Generator
        It stays as it is.
    case : Case
    parts : Parts
    seed : int
        Seed of the fit.

    Returns
    -------
    float
    """
    if not generator.capabilities.density:
        return np.nan
    binned = bin_numbers(parts.training, parts.holdout, case.immutable)
    if is_private(generator):
        generator = _with_deciles(generator, case, binned[0])
    rows = encode_training(generator, binned[0], immutable=case.immutable)
    heldout = rows.schema.encode(binned[1])
    decision = case.decide(parts.holdout)
    fitted = fit_for_both(generator, rows, case.decide(parts.training), seed)
    if isinstance(fitted, LeafChain):
        return float(log_likelihood(fitted, rows, heldout, decision).mean())
    total = np.zeros(len(heldout))
    for wanted in (True, False):
        at = np.flatnonzero(decision == wanted)
        total[at] = fitted.log_likelihood(heldout.take(at), decision=wanted)
    return float(total.mean()) if np.isfinite(total).all() else np.nan


def _with_deciles(generator: Generator, case: Case, binned: pd.DataFrame) -> Generator:
    """Private trees for numbers that are replaced by deciles."""
    copy: Any = clone(generator)
    numbers = binned[case.mutable].select_dtypes("number").columns
    deciles = {
        name: Domain(low=0, high=max(int(binned[name].max()), 1), step=1) for name in numbers
    }
    private: Generator = copy.set_params(domains=copy.domains | deciles)
    return private
