"""One random draw of factuals and training rows, and the measures of a contender on it.

``evaluate("adult", 0, explain)`` runs ``explain(case, train, factuals, seed)``, which may return a
result of ours or a :class:`rivals.ContenderResult`, and prints its measures next to NICE's. For
each seed:

- declined factuals are drawn at random, but not from the first 1,000 declined rows of the file, on
  which the searches were tuned; if too few others are left, from all;
- the accepted training rows are split at random into two halves. The search and every rival see
  the declined rows and one half, the implausibility scores the other half alone;
- factuals stay among the training rows, as in the paper; there they are declined.

Fitted scores and NICE's results are cached in ``out/bench/search`` until their code changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases import N_FACTUALS as N_TUNED
from cases import load
from implausibility import SCORES, Contradictions, ImplausibilityScores, Space
from mcce import Counterfactuals
from mcce_lab.experiments.case import Case
from mcce_lab.experiments.predictors import Floats
from predictors import cached
from rivals import CONTENDERS, ContenderResult

N_FACTUALS = 150
SOURCES = ("cases", "implausibility", "predictors", "rivals", "trials")


@dataclass(frozen=True, eq=False)
class Trial:
    """A case with one random draw of factuals and training rows.

    Parameters
    ----------
    case, seed
        The case, and the seed of the draw.
    train, factuals
        Rows that searches may use, and rows to explain, with their labels in the file.
    space, contradictions
        Encoding and contradictory pairs of all training rows.
    scores
        Implausibility, fitted on the accepted rows that are not in ``train``.
    """

    case: Case
    seed: int
    train: pd.DataFrame
    factuals: pd.DataFrame
    space: Space
    contradictions: Contradictions
    scores: ImplausibilityScores


@dataclass(frozen=True, eq=False)
class Assessment:
    """Measures of a contender: one row per counterfactual, labelled by factual, and costs."""

    rows: pd.DataFrame
    n_factuals: int
    n_scored: float
    fit_seconds: float
    seconds: float


def load_trial(name: str, seed: int = 0, n_factuals: int = N_FACTUALS) -> Trial | None:
    """The trial of a case and seed, or None if its data are missing."""
    known = _known(name)
    if known is None:
        return None
    case, space, contradictions, accepted = known
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(accepted))
    unseen = np.sort(order[: order.size // 2])
    declined = np.flatnonzero(~accepted)
    pool = declined[N_TUNED:] if has_others(name, n_factuals) else declined
    chosen = rng.choice(pool, min(n_factuals, pool.size), replace=False)
    train = case.train.drop(index=case.train.index[unseen])
    scores = _cached(
        name, seed, "scores", lambda: ImplausibilityScores.fit(space, case.train.iloc[unseen], seed)
    )
    factuals = case.train.iloc[chosen]
    return Trial(case, seed, train, factuals, space, contradictions, scores)


def has_others(name: str, n_factuals: int) -> bool:
    """Whether enough rows are declined besides those on which the searches were tuned."""
    known = _known(name)
    return known is not None and int((~known[3]).sum()) - N_TUNED >= n_factuals


def evaluate(
    name: str,
    seed: int,
    explain: Callable[
        [Case, pd.DataFrame, pd.DataFrame, int], ContenderResult | Counterfactuals[pd.DataFrame]
    ],
    n_factuals: int = N_FACTUALS,
) -> dict[str, float]:
    """Measures of a contender, printed in one line next to NICE's."""
    trial = load_trial(name, seed, n_factuals)
    if trial is None:
        raise FileNotFoundError(f"The data of {name} are missing in ../shared.")
    assessment = assess(trial, explain(trial.case, trial.train, trial.factuals, seed))
    rival = assess_nice(trial)
    values, theirs = summary(assessment, rival), summary(rival, rival)
    line = ", ".join(
        f"{key} {values[key]:.3g}" + (f" (NICE {theirs[key]:.3g})" if key in _WITH_NICE else "")
        for key in _PRINTED
    )
    scores = " ".join(f"{key} {values[f'{key} %']:+.1f}" for key in SCORES)
    mean = values["implausibility %"]
    print(f"{name} {seed}: {line} | implausibility % {mean:+.1f}: {scores}", flush=True)
    return values


def assess(trial: Trial, result: ContenderResult | Counterfactuals[pd.DataFrame]) -> Assessment:
    """Measure each counterfactual of a contender."""
    if isinstance(result, Counterfactuals):
        result = ContenderResult.of(result)
    case, space = trial.case, trial.space
    own, given = space.encode(trial.factuals)[result.owner], space.encode(result.frame)
    changed = own != given
    fixed = trial.factuals.columns.get_indexer(pd.Index(case.immutable))
    whole = space.encode(case.train)
    gaps = np.abs(space.by_range(own) - space.by_range(given)).sum(axis=1)
    rows = {
        "sparsity": changed.sum(axis=1),
        "l1": gaps,
        "valid": case.decide(result.frame),
        "violations": changed[:, fixed].sum(axis=1),
        "copies": _among(given, space.encode(trial.train)),
        "copies of all": _among(given, whole),
        "pairs": trial.contradictions(given),
    }
    index = trial.factuals.index[result.owner]
    table = pd.DataFrame(rows).join(trial.scores(result.frame)).set_axis(index)
    costs = result.n_scored, result.fit_seconds, result.seconds
    return Assessment(table, len(trial.factuals), *costs)


def assess_nice(trial: Trial) -> Assessment:
    """Measures of NICE, from the cache if possible."""
    sizes = f"nice-{len(trial.factuals)}"
    seen = trial.case, trial.train, trial.factuals, trial.seed
    return _cached(
        trial.case.name, trial.seed, sizes, lambda: assess(trial, CONTENDERS["nice"](*seen))
    )


def summary(assessment: Assessment, nice: Assessment) -> dict[str, float]:
    """Means over the counterfactuals, and differences from NICE where both have one.

    ``implausibility %`` and the scores are differences of means, in percent of NICE's mean.
    """
    rows = assessment.rows
    ours, theirs = rows.align(nice.rows, join="inner", axis=0)
    values = {name: float(rows[name].mean()) for name in rows.columns if name not in SCORES}
    values["coverage"] = len(rows) / assessment.n_factuals
    values["sparsity over nice"] = float((ours["sparsity"] - theirs["sparsity"]).mean())
    for name in SCORES:
        values[f"{name} %"] = 100 * float((ours[name] - theirs[name]).mean() / theirs[name].mean())
    values["implausibility %"] = float(np.mean([values[f"{name} %"] for name in SCORES]))
    n_rows = max(1, len(rows))
    values["rows scored"] = assessment.n_scored / n_rows
    values["CPU ms"] = 1000 * assessment.seconds / n_rows
    values["fit s"] = assessment.fit_seconds
    return values


def paired_t(assessments: Sequence[Assessment], nice: Sequence[Assessment], name: str) -> float:
    """Student's t of the differences from NICE, averaged first for each factual."""
    parts = []
    for assessment, rival in zip(assessments, nice, strict=True):
        ours, theirs = assessment.rows[name].align(rival.rows[name], join="inner")
        parts.append(ours - theirs)
    gaps = pd.concat(parts).groupby(level=0).mean()
    spread = float(gaps.std())
    return float(gaps.mean()) / (spread / np.sqrt(len(gaps))) if spread > 0 else 0.0


_WITH_NICE = ("sparsity", "l1", "pairs", "coverage")
_PRINTED = (
    *("sparsity", "sparsity over nice", "l1", "coverage", "valid", "violations"),
    *("copies", "pairs", "rows scored", "CPU ms", "fit s"),
)


@lru_cache
def _known(name: str) -> tuple[Case, Space, Contradictions, NDArray[np.bool_]] | None:
    """What all draws of a case have in common."""
    case = load(name)
    if case is None:
        return None
    space = Space.learn(case.train)
    return case, space, Contradictions.learn(space, case.train), case.decide(case.train)


def _among(given: Floats, rows: Floats) -> NDArray[np.bool_]:
    """Which rows equal one of the others."""
    known = {row.tobytes() for row in rows}
    return np.array([row.tobytes() in known for row in given], dtype=bool)


def _cached(name: str, seed: int, what: str, make: Callable[[], Any]) -> Any:
    return cached(f"search/{name}-{seed}-{what}-{_source_hash()}", make)


@lru_cache
def _source_hash() -> str:
    """Hash of the code behind the cached objects."""
    specs = [find_spec(name) for name in SOURCES]
    code = [Path(spec.origin).read_bytes() for spec in specs if spec and spec.origin]
    return sha256(b"".join(code)).hexdigest()[:8]
