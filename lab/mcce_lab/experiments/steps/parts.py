"""Rows of a case in three parts, and rows that a generator makes from one of them.

Always true: nobody is in two parts, and the same seed gives the same parts to every generator and
every distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from mcce.candidates import CandidateRows
from mcce.generate import value_tables
from mcce.model import encode_training
from mcce.protocols import BoolArray, DrawRequest, Generator, person_keys
from mcce.tables.schema import EncodedRows

from ..case import Case, prepare_case
from ..experiment import Options, ProgressLine

MOST_ROWS, MOST_ROWS_QUICK = 4000, 300
N_FACTUALS, N_FACTUALS_QUICK = 100, 20


@dataclass(frozen=True, eq=False)
class Parts:
    """Training rows, as many held-out rows, and as many of a reference.

    Generators and distances learn from the first. The second are compared with what they make, and
    the declined people among them are explained. Judges and attackers know the third.
    """

    training: pd.DataFrame
    holdout: pd.DataFrame
    reference: pd.DataFrame
    factuals: pd.DataFrame

    @classmethod
    def draw(cls, case: Case, seed: int, *, quick: bool) -> Parts:
        """Three parts of the rows of a case, drawn at random.

        Parameters
        ----------
        case : Case
        seed : int
            Seed of the draw.
        quick : bool
            Whether small parts will do.

        Returns
        -------
        Parts
        """
        most = MOST_ROWS_QUICK if quick else MOST_ROWS
        size = min(most, len(case.train) // 3)
        order = np.random.default_rng(seed).permutation(len(case.train))[: 3 * size]
        training, holdout, reference = (case.train.iloc[some] for some in np.split(order, 3))
        declined = holdout[~case.decide(holdout)]
        factuals = declined.head(N_FACTUALS_QUICK if quick else N_FACTUALS)
        return cls(training, holdout, reference, factuals)


def draw_all(options: Options, progress: ProgressLine) -> Iterator[tuple[Case, int, Parts]]:
    """Every data set with every seed, and the parts of its rows.

    Parameters
    ----------
    options : Options
        Data sets and seeds.
    progress : ProgressLine
        One step for each data set.

    Yields
    ------
    tuple
        The case, the seed, and the parts.
    """
    for dataset in options.datasets:
        progress.step(f"{dataset}: rows and predictor")
        case = prepare_case(dataset, options)
        for seed in range(options.seeds):
            yield case, seed, Parts.draw(case, seed, quick=options.quick)


def fit_for_both(generator: Generator, rows: EncodedRows, decision: BoolArray, seed: int) -> Any:
    """A copy of a generator, fitted to draw rows with either decision.

    Parameters
    ----------
    generator : Generator
        It stays as it is.
    rows : EncodedRows
        The training rows.
    decision : (n_train,)
        Their decisions.
    seed : int
        Seed of the fit.

    Returns
    -------
    Generator
        Its ``sample`` and ``log_likelihood`` take a decision.
    """
    copy: Any = clone(generator)
    if "decisions" in copy.get_params():
        copy.set_params(decisions=(False, True))
    return copy.fit(rows, decision, seed=seed, n_jobs=1, verbose=False)


def rows_like(
    generator: Generator, case: Case, parts: Parts, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One generated row for each training row and for each reference row.

    Each has the immutable values and the decision of the real one, so that the mix of people is the
    real one.

    Parameters
    ----------
    generator : Generator
        It stays as it is.
    case : Case
    parts : Parts
    seed : int
        Seed of the fit and of the draws.

    Returns
    -------
    tuple of DataFrame
        Rows like those of training, and like those of the reference.
    """
    training = encode_training(generator, parts.training, immutable=case.immutable)
    fitted = fit_for_both(generator, training, case.decide(parts.training), seed)
    made = []
    for like in (parts.training, parts.reference):
        rows = training.schema.encode(like)
        made.append(_draw(fitted, rows, case.decide(like), seed))
    return made[0], made[1]


def rows_for_desired(generator: Generator, case: Case, parts: Parts, seed: int) -> pd.DataFrame:
    """A generated row with the desired decision for each row of the reference.

    Parameters
    ----------
    generator : Generator
        It stays as it is.
    case : Case
    parts : Parts
    seed : int
        Seed of the fit and of the draws.

    Returns
    -------
    DataFrame
    """
    training = encode_training(generator, parts.training, immutable=case.immutable)
    decision = case.decide(parts.training)
    fitted: Any = clone(generator)
    fitted.fit(training, decision, seed=seed, n_jobs=1, verbose=False)
    return _draw(fitted, training.schema.encode(parts.reference), None, seed)


def _draw(fitted: Any, rows: EncodedRows, decision: BoolArray | None, seed: int) -> pd.DataFrame:
    """A row like each of these, in their order."""
    number = np.arange(len(rows), dtype=np.int32)
    # Rows with equal immutable values would share their draws; the row number separates them.
    keys = person_keys(seed, np.vstack([rows.descent[rows.schema.immutable], number]).T)
    first = np.zeros(1, dtype=np.int64)
    drawn = fitted.sample(DrawRequest(rows.descent, keys, first, decision=decision))
    tables, owner = value_tables(rows, drawn), number.astype(np.int64)
    return CandidateRows(rows, owner, drawn.codes[:, :, 0], tables).as_given()
