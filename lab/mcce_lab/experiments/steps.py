"""Replaced steps: rows in three parts, and what is measured of a generator or a distance.

Paper, sections "Modeling", "Privacy" and "Future steps", which name copulas, CTGAN, MADE, HVDM,
IVDM and differential privacy without trying them.

Always true: nobody is in two parts, and the same seed gives the same parts to every generator and
every distance. Runs are saved one by one: an interrupted experiment goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, Domain, PrivateTrees, Schema, metrics
from mcce.errors import ParameterError
from mcce.metrics import Evaluator
from mcce.privacy import audit_rows
from mcce.protocols import BoolArray, EncodedRows, Generator

from ..metrics import discriminator
from .case import Case, cpu_seconds, draw_one_each, prepare_case
from .experiment import Options, ProgressLine
from .visit_order import bin_numbers, log_likelihood

MAX_STEP_ROWS, MAX_QUICK_ROWS = 4000, 300
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
        """Three parts of the rows of a case, drawn at random."""
        most = MAX_QUICK_ROWS if quick else MAX_STEP_ROWS
        size = min(most, len(case.train) // 3)
        order = np.random.default_rng(seed).permutation(len(case.train))[: 3 * size]
        training, holdout, reference = (case.train.iloc[some] for some in np.split(order, 3))
        declined = holdout[~case.decide(holdout)]
        factuals = declined.head(N_FACTUALS_QUICK if quick else N_FACTUALS)
        return cls(training, holdout, reference, factuals)


def draw_all(options: Options, progress: ProgressLine) -> Iterator[tuple[Case, int, Parts]]:
    """Every data set with every seed, and the parts of its rows."""
    for dataset in options.datasets:
        progress.step(f"{dataset}: rows and predictor")
        case = prepare_case(dataset, options)
        for seed in range(options.seeds):
            yield case, seed, Parts.draw(case, seed, quick=options.quick)


def fit_for_both(generator: Generator, rows: EncodedRows, is_desired: BoolArray, seed: int) -> Any:
    """A copy of a generator, fitted to draw rows with either decision."""
    copy: Any = clone(generator)
    if "decisions" in copy.get_params():
        copy.set_params(decisions=(False, True))
    return copy.fit(rows, is_desired, seed=seed, n_jobs=1, verbose=False)


def rows_like(
    generator: Generator, case: Case, parts: Parts, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One generated row for each training row and for each reference row.

    Each has the immutable values and the decision of the real one, so that the mix of people is the
    real one.
    """
    training = encode_rows(generator, parts.training, case)
    fitted = fit_for_both(generator, training, case.decide(parts.training), seed)
    made = []
    for like in (parts.training, parts.reference):
        rows = training.schema.encode(like)
        made.append(draw_one_each(fitted, rows, seed, case.decide(like)))
    return made[0], made[1]


def rows_for_desired(generator: Generator, case: Case, parts: Parts, seed: int) -> pd.DataFrame:
    """A generated row with the desired decision for each row of the reference."""
    training = encode_rows(generator, parts.training, case)
    decision = case.decide(parts.training)
    fitted: Any = clone(generator)
    fitted.fit(training, decision, seed=seed, n_jobs=1, verbose=False)
    return draw_one_each(fitted, training.schema.encode(parts.reference), seed)


def encode_rows(generator: Generator, frame: pd.DataFrame, case: Case) -> EncodedRows:
    """Training rows for a generator: with their own schema, or that of declared domains."""
    if isinstance(generator, PrivateTrees):
        return generator.encode_training(frame, immutable=case.immutable)
    return Schema.learn_rows(frame, immutable=case.immutable)


Run = dict[str, Any]


def saved_runs(
    experiment: str, options: Options, labels: dict[str, Any], make: Callable[[], list[Run]]
) -> list[Run]:
    """The runs of a cell: those of its file, or else new ones, which are saved."""
    parts = [experiment, *labels.values(), *(["quick"] if options.quick else [])]
    name = "-".join(str(part).replace(" ", "_") for part in parts)
    path = options.out / "cells" / f"{name}.json"
    if path.is_file():
        saved: list[Run] = json.loads(path.read_text(encoding="utf-8"))
        return saved
    runs = [labels | run for run in make()]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(runs, indent=1), encoding="utf-8")
    unfinished.replace(path)
    return runs


def heldout_log_likelihood(generator: Generator, case: Case, parts: Parts, seed: int) -> float:
    """Mean log-likelihood of held-out rows in nats, NaN for a generator that has none.

    Numbers are replaced by deciles of the training rows, in training too.
    """
    if not generator.capabilities.density:
        return np.nan
    binned = bin_numbers(parts.training, parts.holdout, case.immutable)
    if isinstance(generator, PrivateTrees):
        generator = _with_deciles(generator, case, binned[0])
    rows = encode_rows(generator, binned[0], case)
    heldout = rows.schema.encode(binned[1])
    decision = case.decide(parts.holdout)
    fitted = fit_for_both(generator, rows, case.decide(parts.training), seed)
    return float(log_likelihood(fitted, rows, heldout, decision).mean())


def _with_deciles(generator: Generator, case: Case, binned: pd.DataFrame) -> Generator:
    """Private trees for numbers that are replaced by deciles."""
    copy: Any = clone(generator)
    numbers = binned[case.mutable].select_dtypes("number").columns
    deciles = {
        name: Domain(low=0, high=max(int(binned[name].max()), 1), step=1) for name in numbers
    }
    private: Generator = copy.set_params(domains=copy.domains | deciles)
    return private


N_TREES, N_TREES_QUICK = 100, 20
REALISM = {"accuracy_%": "lower", "auc": "lower", "logistic_auc": "lower"}
LIKELIHOOD = {"log_likelihood": "higher"}
ANSWERS = {
    "coverage": "higher",
    "l0": "lower",
    "l1": "lower",
    "knn_distance": "lower",
    "outlier_factor": "lower",
}
SECONDS = {"fit_seconds": "lower", "explain_seconds": "lower"}
PRIVACY = {
    "copies_%": "lower",
    "value_copies_%": "lower",
    "holdout_share": "lower",
    "distance_auc": "lower",
    "calibrated_auc": "lower",
    "rare_values_auc": "lower",
    "tpr_1%": "lower",
    "tpr_0.1%": "lower",
}


def measure_rows(
    generator: Generator, case: Case, parts: Parts, seed: int, *, quick: bool
) -> dict[str, float]:
    """How real the rows of a generator look, and what they tell of its training rows.

    Realism: classifiers tell rows like those of training from held-out rows, as on the page of the
    comparison. Privacy: an attacker sees rows made for people of the reference.
    """
    alike, released = rows_like(generator, case, parts, seed)
    told = discriminator(
        alike,
        parts.training,
        holdout=parts.holdout,
        n_repeats=1,
        n_trees=N_TREES_QUICK if quick else N_TREES,
        random_state=seed,
        n_jobs=1,
    )
    values: dict[str, Any] = {
        "accuracy_%": 100 * float(told.loc[("forest", "generated"), "accuracy"]),  # type: ignore[arg-type]
        "auc": told.loc[("forest", "generated"), "auc"],
        "logistic_auc": told.loc[("logistic", "generated"), "auc"],
    }
    evaluator = Evaluator.fit(parts.training, immutable=case.immutable)
    found = audit_rows(released, evaluator, parts.holdout, parts.reference, random_state=seed)
    for name in ("copies", "value_copies"):
        values[f"{name}_%"] = 100 * found[name].value
    for name in ("holdout_share", "distance_auc", "calibrated_auc", "rare_values_auc"):
        values[name] = found[name].value
    for rate in ("tpr_1%", "tpr_0.1%"):
        values[rate] = found[f"calibrated_{rate}"].value
    return {name: float(value) for name, value in values.items()}


def measure_answers(
    case: Case, parts: Parts, seed: int, generator: Generator
) -> list[dict[str, Any]]:
    """Coverage, costs and plausibility of the answers to people of the holdout, by search."""
    judge = Evaluator.fit(
        parts.reference, immutable=case.immutable, predictor=case.predictor, desired=case.desired
    )
    explainer = MCCE(
        case.predictor,
        case.desired,
        immutable=case.immutable,
        generator=generator,
        n_jobs=1,
        random_state=seed,
    )
    runs: list[dict[str, Any]] = []
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        seconds, searches = _fit(explainer, parts.training)
        for search in searches:
            # A fit for any other search serves the paper's too.
            explainer.set_params(search=search)
            explain, result = cpu_seconds(lambda: explainer.explain(parts.factuals))
            run = {"search": search, "fit_seconds": seconds, "explain_seconds": explain}
            runs.append(run | answers_of(result, case, parts, judge))
    return runs


def _fit(explainer: MCCE, training: pd.DataFrame) -> tuple[float, tuple[str, ...]]:
    """CPU seconds of the generator's fit, and the searches that it can serve."""
    for first in ("balanced", "paper"):
        explainer.set_params(search=first)
        try:
            fit, _ = cpu_seconds(lambda: explainer.fit(training))
        except ParameterError:
            if first == "paper":
                raise
            continue
        taken = explainer.timings_
        share = taken["model"] / sum(t for name, t in taken.items() if name != "total")
        return fit * share, ("paper", "balanced") if first == "balanced" else ("paper",)
    raise AssertionError("the paper's search returns or raises")


def answers_of(result: Any, case: Case, parts: Parts, judge: Evaluator) -> dict[str, float]:
    """Coverage, costs and plausibility of a result, by the names of ``ANSWERS``."""
    far = metrics.knn_distance(result, judge, scale="ranks", among="desired")
    return {
        "coverage": metrics.coverage(parts.factuals, result),
        "l0": float(metrics.sparsity(parts.factuals, result, case.evaluator).mean()),
        "l1": float(metrics.l1(parts.factuals, result, case.evaluator).mean()),
        "knn_distance": float(far.mean()),
        "outlier_factor": outlier_factor(result, judge),
    }


def outlier_factor(result: Any, judge: Evaluator) -> float:
    """Median local outlier factor of the answers among accepted rows of a judge, each once."""
    from sklearn.neighbors import LocalOutlierFactor

    known = np.unique(judge.matrix(judge.rows)[judge.among("desired")], axis=0)
    detector = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(known)
    return float(np.median(-detector.score_samples(judge.matrix(judge.read(result)))))


def summarise(runs: pd.DataFrame, by: Sequence[str], measures: Sequence[str]) -> pd.DataFrame:
    """Means over seeds with 95 % intervals."""
    lines = []
    for names, rows in runs.groupby(list(by), sort=False):
        line = dict(zip(by, names, strict=True))
        for measure in measures:
            values = rows[measure]
            line |= interval(measure, values if values.notna().all() else values.iloc[:0])
        lines.append(line)
    return pd.DataFrame(lines)


def interval(name: str, values: pd.Series[float]) -> dict[str, float]:
    """The mean of some values and its 95 % interval by Student's t.

    Examples
    --------
    >>> interval("x", pd.Series([1.0, 2.0, 3.0]))["x_low"].round(2)
    np.float64(-0.48)
    """
    from scipy.stats import t  # type: ignore[import-untyped]

    n = len(values)
    margin = t.ppf(0.975, n - 1) * values.std() / n**0.5 if n > 1 else np.nan
    mean = values.mean() if n else np.nan
    return {name: mean, f"{name}_low": mean - margin, f"{name}_high": mean + margin}


def against(runs: pd.DataFrame, what: str, base: str, measures: Mapping[str, str]) -> pd.DataFrame:
    """Differences from a base over the same seeds, and whether they are better or worse."""
    lines = []
    for name, rows in runs.groupby("dataset", sort=False):
        wide = rows.pivot_table(index="seed", columns=what, values=list(measures), sort=False)
        for measure, good in measures.items():
            for other in dict.fromkeys(rows[what]):
                if other == base or (measure, other) not in wide or (measure, base) not in wide:
                    continue
                gaps = wide[measure][other] - wide[measure][base]
                if gaps.isna().any():
                    continue
                line = {"dataset": name, "measure": measure, what: other}
                line |= interval("difference", gaps)
                lines.append(line | {"verdict": _verdict(line, good)})
    return pd.DataFrame(lines)


def _verdict(line: Mapping[str, Any], good: str) -> str:
    low, high = line["difference_low"], line["difference_high"]
    if not (low > 0 or high < 0):
        return ""
    return "better" if (high < 0) == (good == "lower") else "worse"


def verdicts(differences: pd.DataFrame, what: str) -> pd.DataFrame:
    """On how many data sets each is better (+) and worse (-) than the base, by measure."""
    lines = []
    for measure, rows in differences.groupby("measure", sort=False):
        line: dict[str, Any] = {"measure": measure}
        for other, some in rows.groupby(what, sort=False):
            better, worse = (int((some["verdict"] == word).sum()) for word in ("better", "worse"))
            line[str(other)] = f"+{better} -{worse}" if better or worse else "="
        lines.append(line)
    return pd.DataFrame(lines)


def measure_generator(
    generator: Any, case: Case, parts: Parts, seed: int, options: Options
) -> list[dict[str, Any]]:
    """Realism, likelihood and privacy of its rows, and its answers by each search that can."""
    made = measure_rows(generator, case, parts, seed, quick=options.quick)
    made["log_likelihood"] = heldout_log_likelihood(generator, case, parts, seed)
    runs = measure_answers(case, parts, seed, generator)
    return [runs[0] | made, *runs[1:]]


def tables_of(runs: pd.DataFrame, what: str, base: str) -> dict[str, pd.DataFrame]:
    """The tables of a report: measures with intervals, and verdicts against a base."""
    paper = runs[runs["search"] == "paper"]
    by = ["dataset", what]
    tables = {
        "realism": summarise(paper, by, [*REALISM, *LIKELIHOOD]),
        "answers": summarise(runs, ["search", *by], [*ANSWERS]),
        "privacy": summarise(paper, by, [*PRIVACY]),
        "seconds": summarise(runs, ["search", *by], [*SECONDS]),
    }
    differences = against(paper, what, base, REALISM | LIKELIHOOD | ANSWERS | PRIVACY)
    balanced = against(runs[runs["search"] == "balanced"], what, base, ANSWERS)
    if len(balanced):
        balanced["measure"] = "balanced: " + balanced["measure"]
    differences = pd.concat([differences, balanced], ignore_index=True)
    return {"verdicts": verdicts(differences, what), "differences": differences, **tables}
