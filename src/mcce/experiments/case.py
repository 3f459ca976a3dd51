"""A data set with its black box and the people it declines; what answers to them are worth.

Paper, section "Real data experiments": the protocol of its tables. What every experiment on a real
data set needs, and what a method needs that joins them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from .. import datasets, metrics
from ..datasets import Dataset
from ..errors import PredictorError
from ..explainer import MCCE
from ..metrics import Evaluator
from ..model import TreeChain
from .experiment import Options
from .predictors import BlackBox, Kind, black_box

DESIRED = (0.5, 1.0)
# Differences up to this share of the range do not count in the paper's tables.
TOLERANCE = 1e-5
N_PEOPLE, N_PEOPLE_OF = 1000, {"german": 200}
FEW = 40
# Records that are missing throughout can neither be explained nor be an explanation.
ROWS = {"fico": "known"}


@dataclass(frozen=True, eq=False)
class Case:
    """What a method is given.

    Parameters
    ----------
    name
        Of the data set.
    data, box
        Training rows with what is immutable, and the black box on them.
    people
        The factuals, all declined: the score is below 0.5.
    judge
        Knows the rows and the black box, for measures.
    """

    name: str
    data: Dataset
    box: BlackBox
    people: pd.DataFrame
    evaluator: Evaluator


@dataclass(frozen=True, eq=False)
class Answers:
    """What a method hands back.

    Parameters
    ----------
    counterfactuals
        A result of ``explain``, or a frame with one row per person, all missing for no answer.
    seconds
        CPU seconds for learning and searching together.
    steps
        Seconds by step, where a method has steps.
    """

    counterfactuals: Any
    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)


Method: TypeAlias = Callable[[Case, int], Answers]


def prepare(
    name: str,
    options: Options,
    *,
    form: str = "paper",
    kind: Kind = "network",
    rows: str | None = None,
    most: int | None = None,
) -> Case:
    """The case of a data set: rows of the paper, its black box, and whom this declines.

    ``form`` and ``rows`` are those of :func:`mcce.datasets.load`, ``kind`` that of the black box;
    of each category the ``most`` most frequent levels are kept and the others become one.
    """
    rows = ROWS.get(name) if rows is None else rows
    data = datasets.load(name, form=form, rows=rows, folder=options.folder)
    if most is not None:
        data = replace(data, features=_coarser(data.features, most))
    box = black_box(data, kind)
    pool = data.features
    if options.factuals == "heldout":
        pool = pool.loc[pool.index.isin(box.heldout)]
    declined = pool[box.predict(pool) < DESIRED[0]]
    if declined.empty:
        raise PredictorError(f"The black box declines nobody of {data.card['name']}.")
    n_people = FEW if options.quick else N_PEOPLE_OF.get(name, N_PEOPLE)
    evaluator = Evaluator.fit(
        data.features, immutable=data.immutable, predictor=box.predict, desired=DESIRED
    )
    return Case(name, data, box, declined.head(n_people), evaluator)


def _coarser(features: pd.DataFrame, most: int) -> pd.DataFrame:
    """The frame with so many levels of each category, and ``other`` where there are more."""
    told = {}
    for name, column in features.select_dtypes("category").items():
        frequent = list(column.value_counts().index[:most])
        cells = column.astype(object).where(column.isin(frequent), "other")
        told[str(name)] = cells.astype(pd.CategoricalDtype(sorted(cells.unique())))
    return features.assign(**told)


def explained(
    case: Case, seed: int, *, condition_on_decision: bool = True, **settings: Any
) -> Answers:
    """Answers of MCCE, learned and searched for in one thread, with these settings of it."""
    chain = TreeChain(
        visit_order=visit_order(case.data), condition_on_decision=condition_on_decision
    )
    explainer = MCCE(
        case.box.predict,
        DESIRED,
        immutable=case.data.immutable,
        generator=chain,
        random_state=seed,
        **settings,
    )
    # Threads of BLAS spin while they wait, which would be counted as work.
    with threadpool_limits(1):
        started = time.process_time()
        explainer.fit(case.data.features)
        result = explainer.explain(case.people)
        seconds = time.process_time() - started
    learned, searched = explainer.timings_, result.timings
    steps = {
        "model": sum(learned.values()),
        "generate": searched.get("generate", 0.0),
        "postprocess": searched["total"] - searched.get("generate", 0.0),
    }
    return Answers(result, seconds, steps)


def visit_order(data: Dataset) -> list[str]:
    """The mutable features as the authors' code visits them: numbers, then categories by name."""
    by_level = set(data.features.select_dtypes("category").columns)
    mutable = [str(name) for name in data.features.columns if name not in data.immutable]
    numbers = [name for name in mutable if name not in by_level]
    return numbers + sorted(name for name in mutable if name in by_level)


def measured(case: Case, answers: Answers) -> dict[str, float]:
    """The columns of the paper's tables, exact counts, and copies of training rows."""
    given = case.people, answers.counterfactuals, case.evaluator
    rows = {
        "l0": metrics.sparsity(*given, tolerance=TOLERANCE),
        "l0_exact": metrics.sparsity(*given),
        "l1": metrics.l1(*given),
        "violation": metrics.violation(*given),
    }
    told: dict[str, float] = {}
    for name, values in rows.items():
        told |= {name: float(values.mean()), f"{name}_sd": float(values.std())}
    told["success"] = float(metrics.success(answers.counterfactuals, case.evaluator).mean())
    told["n_ce"] = float(rows["l1"].notna().sum())
    told["coverage"] = metrics.coverage(case.people, answers.counterfactuals)
    told["copies"] = float(metrics.copies(answers.counterfactuals, case.evaluator).sum())
    return {**told, "seconds": answers.seconds, **answers.steps}


def over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over seeds, and how much the mean costs of a seed scatter (``_seeds``)."""
    table = pd.DataFrame(runs)
    told = {str(name): float(value) for name, value in table.mean().items()}
    for name in ("l0", "l1"):
        told[f"{name}_seeds"] = float(table[name].std()) if len(table) > 1 else np.nan
    return told


def size_remark(case: Case, options: Options) -> str:
    """Who was explained, in a sentence."""
    who = "people explained" if options.factuals == "paper" else "held out people explained"
    return (
        f"{case.data.card['name']}: {len(case.people):,} {who}, {len(case.data.features):,} "
        f"training rows, test AUC of the black box {case.box.auc:.3f}."
    )
