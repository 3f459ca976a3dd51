"""One draw of people and rows, and what answers to it are worth: the API for experiments.

``evaluate("adult", 0, answer)`` runs ``answer(case, train, people, seed)``, which may return a
result of ours or :class:`rivals.Answers`, and prints its measures beside NICE's. For each seed:

- declined people are drawn at random, not from the first 1,000 declined of the file, on which the
  searches were tuned; where too few others are left, from all;
- the accepted training rows fall at random into two halves. The search and every rival see the
  declined rows and one half, the judges the other half alone;
- people stay among the training rows, as in the paper; there they are declined.

Judges and NICE's answers are kept under ``out/bench/search`` until the code that made them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases import N_PEOPLE as N_TUNED
from cases import Case, load
from judges import JUDGES, Contradictions, Judges, Space
from mcce import Counterfactuals
from predictors import Floats, kept
from rivals import CONTENDERS, Answers

N_PEOPLE = 150
MADE_BY = ("cases.py", "judges.py", "predictors.py", "rivals.py", "trials.py")


@dataclass(frozen=True, eq=False)
class Trial:
    """A case with one draw of people and halves.

    Parameters
    ----------
    case, seed
        The case, and what the draw hangs on.
    train, people
        Rows that searches may see, and the people to explain; both with their labels in the file.
    space, contradictions
        How rows become numbers, and which pairs of levels training rules out; of all rows.
    judges
        Fitted on the accepted rows that are not in ``train``.
    """

    case: Case
    seed: int
    train: pd.DataFrame
    people: pd.DataFrame
    space: Space
    contradictions: Contradictions
    judges: Judges


@dataclass(frozen=True, eq=False)
class Record:
    """What answers to a trial are worth: one row per answer, labelled by person, and the cost."""

    rows: pd.DataFrame
    n_people: int
    n_asked: float
    fit_seconds: float
    seconds: float


def load_case(name: str, seed: int = 0, n_people: int = N_PEOPLE) -> Trial | None:
    """The trial of a case and seed, or None where its data are absent."""
    known = _known(name)
    if known is None:
        return None
    case, space, contradictions, accepted = known
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(accepted))
    unseen = np.sort(order[: order.size // 2])
    declined = np.flatnonzero(~accepted)
    pool = declined[N_TUNED:] if has_others(name, n_people) else declined
    chosen = rng.choice(pool, min(n_people, pool.size), replace=False)
    train = case.train.drop(index=case.train.index[unseen])
    judges = _kept(name, seed, "judges", lambda: Judges.fit(space, case.train.iloc[unseen], seed))
    people = case.train.iloc[chosen]
    return Trial(case, seed, train, people, space, contradictions, judges)


def has_others(name: str, n_people: int) -> bool:
    """Whether so many people are declined beside those on whom the searches were tuned."""
    known = _known(name)
    return known is not None and int((~known[3]).sum()) - N_TUNED >= n_people


def evaluate(
    name: str,
    seed: int,
    answer: Callable[
        [Case, pd.DataFrame, pd.DataFrame, int], Answers | Counterfactuals[pd.DataFrame]
    ],
    n_people: int = N_PEOPLE,
) -> dict[str, float]:
    """Measures of a contender, printed in one line beside NICE's."""
    trial = load_case(name, seed, n_people)
    if trial is None:
        raise FileNotFoundError(f"The data of {name} are not there.")
    record = assess(trial, answer(trial.case, trial.train, trial.people, seed))
    rival = nice_record(trial)
    told, theirs = summary(record, rival), summary(rival, rival)
    line = ", ".join(
        f"{key} {told[key]:.3g}" + (f" (NICE {theirs[key]:.3g})" if key in _BESIDE else "")
        for key in _TOLD
    )
    judged = " ".join(f"{key} {told[f'{key} %']:+.1f}" for key in JUDGES)
    print(f"{name} {seed}: {line} | judges % {told['judges %']:+.1f}: {judged}", flush=True)
    return told


def assess(trial: Trial, answers: Answers | Counterfactuals[pd.DataFrame]) -> Record:
    """What answers are worth, each for itself."""
    if isinstance(answers, Counterfactuals):
        answers = Answers.of(answers)
    case, space = trial.case, trial.space
    own, given = space.encode(trial.people)[answers.owner], space.encode(answers.frame)
    changed = own != given
    fixed = trial.people.columns.get_indexer(pd.Index(case.immutable))
    whole = space.encode(case.train)
    gaps = np.abs(space.by_range(own) - space.by_range(given)).sum(axis=1)
    rows = {
        "sparsity": changed.sum(axis=1),
        "l1": gaps,
        "valid": case.decide(answers.frame),
        "violations": changed[:, fixed].sum(axis=1),
        "copies": _among(given, space.encode(trial.train)),
        "copies of all": _among(given, whole),
        "pairs": trial.contradictions(given),
    }
    index = trial.people.index[answers.owner]
    table = pd.DataFrame(rows).join(trial.judges(answers.frame)).set_axis(index)
    costs = answers.n_asked, answers.fit_seconds, answers.seconds
    return Record(table, len(trial.people), *costs)


def nice_record(trial: Trial) -> Record:
    """What NICE's answers are worth, kept from before."""
    sizes = f"nice-{len(trial.people)}"
    seen = trial.case, trial.train, trial.people, trial.seed
    return _kept(
        trial.case.name, trial.seed, sizes, lambda: assess(trial, CONTENDERS["nice"](*seen))
    )


def summary(record: Record, nice: Record) -> dict[str, float]:
    """Means over the answers, and differences from NICE over those whom both answer.

    ``judges %`` and each judge's own are differences of means, in percent of NICE's mean.
    """
    rows = record.rows
    ours, theirs = rows.align(nice.rows, join="inner", axis=0)
    told = {name: float(rows[name].mean()) for name in rows.columns if name not in JUDGES}
    told["coverage"] = len(rows) / record.n_people
    told["sparsity over nice"] = float((ours["sparsity"] - theirs["sparsity"]).mean())
    for name in JUDGES:
        told[f"{name} %"] = 100 * float((ours[name] - theirs[name]).mean() / theirs[name].mean())
    told["judges %"] = float(np.mean([told[f"{name} %"] for name in JUDGES]))
    n_answers = max(1, len(rows))
    told["rows asked"] = record.n_asked / n_answers
    told["CPU ms"] = 1000 * record.seconds / n_answers
    told["fit s"] = record.fit_seconds
    return told


def paired_t(records: Sequence[Record], nice: Sequence[Record], name: str) -> float:
    """Student's t of the differences from NICE; those of one person are first averaged."""
    parts = []
    for record, rival in zip(records, nice, strict=True):
        ours, theirs = record.rows[name].align(rival.rows[name], join="inner")
        parts.append(ours - theirs)
    gaps = pd.concat(parts).groupby(level=0).mean()
    spread = float(gaps.std())
    return float(gaps.mean()) / (spread / np.sqrt(len(gaps))) if spread > 0 else 0.0


_BESIDE = ("sparsity", "l1", "pairs", "coverage")
_TOLD = (
    *("sparsity", "sparsity over nice", "l1", "coverage", "valid", "violations"),
    *("copies", "pairs", "rows asked", "CPU ms", "fit s"),
)


@lru_cache
def _known(name: str) -> tuple[Case, Space, Contradictions, NDArray[np.bool_]] | None:
    """What all draws of a case share."""
    case = load(name)
    if case is None:
        return None
    space = Space.learn(case.train)
    return case, space, Contradictions.learn(space, case.train), case.decide(case.train)


def _among(given: Floats, rows: Floats) -> NDArray[np.bool_]:
    """Which rows are equal to one of others."""
    known = {row.tobytes() for row in rows}
    return np.array([row.tobytes() in known for row in given], dtype=bool)


def _kept(name: str, seed: int, what: str, make: Callable[[], Any]) -> Any:
    return kept(f"search/{name}-{seed}-{what}-{_made_by()}", make)


@lru_cache
def _made_by() -> str:
    """A mark of the code that draws, answers and judges."""
    folder = Path(__file__).parent
    return sha256(b"".join((folder / file).read_bytes() for file in MADE_BY)).hexdigest()[:8]
