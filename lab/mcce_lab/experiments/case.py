"""A data set with its predictor and the factuals to explain, and how MCCE is measured on it.

Paper, section "Real data experiments": the protocol of its tables. Experiments and benchmarks
share :class:`Case`; :func:`prepare_case` builds those of the paper. Times are CPU seconds of one
thread, so that other work on the machine hardly matters.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, Counterfactuals, Interval, TreeChain, metrics
from mcce.errors import PredictorError
from mcce.metrics import Evaluator
from mcce.protocols import (
    BoolArray,
    CandidateRows,
    DrawRequest,
    EncodedRows,
    WordArray,
    person_keys,
)

from .. import datasets
from ..datasets import DatasetName, Form
from .experiment import Factuals, Options
from .predictors import BlackBoxKind, Predictor, black_box

Result = TypeVar("Result")
STEPS = ("model", "generate", "postprocess", "total")
AT_LEAST_HALF = Interval(0.5, 1.0)
# Differences up to this share of the range do not count in the paper's tables.
TOLERANCE = 1e-5
N_FACTUALS, N_FACTUALS_OF = 1000, {"german": 200}
N_FACTUALS_QUICK = 40
# Empty records can neither be explained nor serve as an explanation.
ROWS = {"fico": "known"}


@dataclass(frozen=True, eq=False)
class Case:
    """Training rows, a predictor and the factuals that it declines.

    Parameters
    ----------
    name : str
        Name of the case on the command line.
    train, factuals : DataFrame
        Training rows and rows to explain, with the same columns.
    immutable : list of str
        Columns that must not change.
    predictor : callable
        From a frame to the score of each row.
    desired : Interval
        The desired scores.
    n_samples : int
        Draws per factual, the K of the paper.
    outcome : Series of bool, optional
        Whether each training row had the desired outcome, by label.
    auc, published_auc : float
        Test AUC of the predictor, and the paper's; NaN if unknown.

    Examples
    --------
    >>> rows = pd.DataFrame({"age": [20, 30], "salary": [10.0, 30.0]})
    >>> score = lambda frame: frame["salary"].to_numpy() / 40
    >>> case = Case("bank", rows, rows.iloc[[0]], ["age"], score)
    >>> case.mutable, case.decide(rows)
    (['salary'], array([False,  True]))
    """

    name: str
    train: pd.DataFrame
    factuals: pd.DataFrame
    immutable: list[str]
    predictor: Predictor
    desired: Interval = AT_LEAST_HALF
    n_samples: int = 1000
    outcome: pd.Series[bool] | None = None
    auc: float = np.nan
    published_auc: float = np.nan

    @property
    def mutable(self) -> list[str]:
        """Columns that may change."""
        return [str(name) for name in self.train.columns if name not in self.immutable]

    @cached_property
    def evaluator(self) -> Evaluator:
        """Training rows and predictor, for measures."""
        return self.evaluator_of(self.train)

    def evaluator_of(self, rows: pd.DataFrame) -> Evaluator:
        """Other rows and the predictor, for measures."""
        return Evaluator.fit(
            rows, immutable=self.immutable, predictor=self.predictor, desired=self.desired
        )

    def decide(self, rows: pd.DataFrame) -> BoolArray:
        """Which rows have the desired decision, shape (n_rows,)."""
        return self.desired.contains(self.predictor(rows))

    def explainer(self, **settings: Any) -> MCCE:
        """MCCE for this case in one thread, not yet fitted; the paper's search unless told."""
        given: dict[str, Any] = {"search": "paper", "n_jobs": 1, "random_state": 0} | settings
        if given["search"] == "paper":
            given = {"n_samples": self.n_samples} | given
        return MCCE(self.predictor, self.desired, immutable=self.immutable or None, **given)


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What a method returns for a case."""

    counterfactuals: Counterfactuals[pd.DataFrame]
    seconds: float
    steps: Mapping[str, float] = field(default_factory=dict)


def prepare_case(
    name: DatasetName,
    options: Options,
    *,
    form: Form = "paper",
    kind: BlackBoxKind = "network",
    rows: str | None = None,
    n_levels: int | None = None,
    box_seed: int = 0,
    factuals: Factuals | None = None,
) -> Case:
    """Build the case of a data set as in the paper."""
    rows = ROWS.get(name) if rows is None else rows
    data = datasets.load(name, form=form, rows=rows, folder=options.folder)
    if n_levels is not None:
        data = replace(data, features=_merge_rare_levels(data.features, n_levels))
    box = black_box(data, kind, box_seed)
    pool = data.features
    if (factuals or options.factuals) == "heldout":
        pool = pool.loc[pool.index.isin(box.heldout)]
    declined = pool[box.predict(pool) < AT_LEAST_HALF.low]
    if declined.empty:
        raise PredictorError(
            f"The predictor declines nobody of {data.card['name']}, so there is nothing to explain."
        )
    n_factuals = N_FACTUALS_QUICK if options.quick else N_FACTUALS_OF.get(name, N_FACTUALS)
    return Case(
        name,
        data.features,
        declined.head(n_factuals),
        data.immutable,
        box.predict,
        outcome=data.target == data.desired,
        auc=box.auc,
        published_auc=box.published_auc,
    )


def _merge_rare_levels(features: pd.DataFrame, n_levels: int) -> pd.DataFrame:
    """The frame with the most frequent levels of each category, and ``other`` for the rest."""
    merged = {}
    for name, column in features.select_dtypes("category").items():
        frequent = list(column.value_counts().index[:n_levels])
        cells = column.astype(object).where(column.isin(frequent), "other")
        merged[str(name)] = cells.astype(pd.CategoricalDtype(sorted(cells.unique())))
    return features.assign(**merged)


def run_mcce(
    case: Case, seed: int = 0, *, condition_on_decision: bool = True, **settings: Any
) -> MethodResult:
    """Fit MCCE and explain the factuals of a case in one thread, by default as in the paper."""
    gc.collect()
    chain = TreeChain(
        visit_order=authors_visit_order(case), condition_on_decision=condition_on_decision
    )
    explainer = case.explainer(generator=chain, random_state=seed, **settings)
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        fit, _ = cpu_seconds(lambda: explainer.fit(case.train))
        explain, result = cpu_seconds(lambda: explainer.explain(case.factuals))
    steps = split_seconds(fit, explain, explainer.timings_, result.timings)
    return MethodResult(result, fit + explain, steps)


def cpu_seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of a call, and its result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def split_seconds(
    fit: float, explain: float, fitting: Mapping[str, float], explaining: Mapping[str, float]
) -> dict[str, float]:
    """CPU seconds of ``STEPS`` from those of both calls and the wall-clock times of their parts.

    The CPU seconds of a call are split in proportion to wall-clock time. As in the paper, the model
    step leaves out the predictor calls on the training rows.

    Examples
    --------
    >>> split_seconds(3.0, 2.0, {"decision": 1.0, "trees": 2.0}, {"generate": 1.0, "search": 3.0})
    {'model': 2.0, 'generate': 0.5, 'postprocess': 1.5, 'total': 4.0}
    """

    def share(seconds: Mapping[str, float], step: str) -> float:
        total = sum(taken for name, taken in seconds.items() if name != "total")
        return seconds.get(step, 0.0) / total if total else 0.0

    model = fit * (1.0 - share(fitting, "decision"))
    generate = explain * share(explaining, "generate")
    seconds = model, generate, explain - generate, model + explain
    return dict(zip(STEPS, seconds, strict=True))


def authors_visit_order(case: Case) -> list[str]:
    """The mutable features in the order of the authors' code: numbers, then categories by name."""
    categories = set(case.train.select_dtypes("category").columns)
    numbers = [name for name in case.mutable if name not in categories]
    return numbers + sorted(name for name in case.mutable if name in categories)


def draw_one_each(
    fitted: Any, rows: EncodedRows, seed: int, is_desired: BoolArray | None = None
) -> pd.DataFrame:
    """A drawn row for each of these, in their order, with its immutable values."""
    number = np.arange(len(rows), dtype=np.int32)
    # Rows with equal immutable values would share their draws; the row number separates them.
    keys = person_keys(seed, np.vstack([rows.tree_codes[rows.schema.immutable], number]).T)
    return draw_rows(fitted, rows, keys, 1, is_desired)


def draw_rows(
    fitted: Any,
    rows: EncodedRows,
    keys: WordArray,
    n_samples: int,
    is_desired: BoolArray | None = None,
) -> pd.DataFrame:
    """Draws of a generator for each of these rows, row after row."""
    request = DrawRequest(rows.tree_codes, keys, np.arange(n_samples), is_desired=is_desired)
    drawn = fitted.sample(request)
    tables = rows.tables
    if drawn.tables is not None:
        pairs = zip(drawn.tables, rows.tables, strict=True)
        tables = [own.astype(table.dtype) for own, table in pairs]
    owner = np.repeat(np.arange(len(rows)), n_samples)
    return CandidateRows(rows, owner, drawn.codes.reshape(len(tables), -1), tables).as_given()


def measure_result(case: Case, result: MethodResult) -> dict[str, float]:
    """The columns of the paper's tables, exact counts, and copies of training rows."""
    answers, evaluator = result.counterfactuals, case.evaluator
    pairs = case.factuals, answers, evaluator
    by_row = {
        "l0": metrics.sparsity(*pairs, tolerance=TOLERANCE),
        "l0_exact": metrics.sparsity(*pairs),
        "l1": metrics.l1(*pairs),
        "violation": metrics.violation(*pairs),
    }
    values: dict[str, float] = {}
    for name, column in by_row.items():
        values |= {name: float(column.mean()), f"{name}_sd": float(column.std())}
    n_ce = float(by_row["l1"].notna().sum())
    values["success"] = float(metrics.success(answers, evaluator).mean())
    values["n_ce"] = n_ce
    values["coverage"] = metrics.coverage(case.factuals, answers)
    values["copies"] = float(metrics.copies(answers, evaluator).sum())
    values["copies_%"] = 100 * values["copies"] / n_ce if n_ce else np.nan
    own_values = (
        metrics.value_copies(answers, evaluator, factuals=case.factuals) if n_ce else np.nan
    )
    values["value_copies_%"] = 100 * own_values
    return {**values, "seconds": result.seconds, **result.steps}


def average_over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over seeds, and the standard deviation of the mean costs over seeds (``_seeds``)."""
    table = pd.DataFrame(runs)
    means = {str(name): float(value) for name, value in table.mean().items()}
    for name in ("l0", "l1"):
        means[f"{name}_seeds"] = float(table[name].std()) if len(table) > 1 else np.nan
    return means | {"seeds": len(table)}


def describe_case(case: Case) -> dict[str, Any]:
    """Who is explained, and by which predictor."""
    return {
        "n_explained": len(case.factuals),
        "n_declined": int((~case.decide(case.train)).sum()),
        "n_train": len(case.train),
        "auc": case.auc,
        "published_auc": case.published_auc,
    }
