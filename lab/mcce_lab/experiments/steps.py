"""Replaced steps: generators, privacy budgets, distances and visit orders in place of the usual.

Paper, sections "Modeling", "Privacy" and "Future steps", which name copulas, GANs, MADE, HVDM,
IVDM, differential privacy and other visit sequences without trying them. Each seed draws three
parts of the rows: generators and distances learn from the first, the declined people of the second
are explained and its rows are what generated ones are compared with, the third is what judges and
attackers know.

Always true: nobody is in two parts, and the same seed gives the same parts to everything that is
tried. Runs are saved one by one: an interrupted experiment goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import (
    Domain,
    ForestChain,
    InferenceTreeChain,
    PrivateTrees,
    Schema,
    TreeChain,
    metrics,
)
from mcce.errors import ParameterError
from mcce.metrics import Evaluator
from mcce.privacy import audit_rows
from mcce.protocols import BoolArray, EncodedRows, FloatArray, Generator

from ..datasets import DatasetName
from ..generators import CTGAN, MADE, ConditionalGAN, GaussianCopula, ParametricChain
from ..metrics import discriminator
from .case import Case, authors_visit_order, cpu_seconds, draw_one_each, prepare_case
from .experiment import Experiment, Options, ProgressLine, Report
from .report import COLOURS, panels

MAX_STEP_ROWS, MAX_QUICK_ROWS = 4000, 300
N_FACTUALS, N_FACTUALS_QUICK = 100, 20
N_TREES, N_TREES_QUICK = 100, 20
# Measures, and whether larger is better.
REALISM = {"accuracy_%": False, "auc": False, "logistic_auc": False, "log_likelihood": True}
ANSWERS = {"coverage": True, "l0": False, "l1": False, "knn_distance": False}
ANSWERS |= {"outlier_factor": False}
PRIVACY = dict.fromkeys(("copies_%", "value_copies_%", "holdout_share", "distance_auc"), False)
PRIVACY |= dict.fromkeys(("calibrated_auc", "rare_values_auc", "tpr_1%", "tpr_0.1%"), False)
MEASURES = REALISM | ANSWERS | PRIVACY
OTHERS = ("other_answers_%", "fit_seconds", "explain_seconds")
ALL_DATA: tuple[DatasetName, ...] = ("adult", "gmc", "fico", "german")
Run: TypeAlias = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """Training rows, as many held-out rows with the people to explain, and as many others."""

    training: pd.DataFrame
    holdout: pd.DataFrame
    reference: pd.DataFrame
    factuals: pd.DataFrame

    @classmethod
    def draw(cls, case: Case, seed: int, *, quick: bool) -> Parts:
        """Three parts of the rows of a case, drawn at random."""
        size = min(MAX_QUICK_ROWS if quick else MAX_STEP_ROWS, len(case.train) // 3)
        order = np.random.default_rng(seed).permutation(len(case.train))[: 3 * size]
        training, holdout, reference = (case.train.iloc[some] for some in np.split(order, 3))
        declined = holdout[~case.decide(holdout)]
        factuals = declined.head(N_FACTUALS_QUICK if quick else N_FACTUALS)
        return cls(training, holdout, reference, factuals)


# From a case, its parts and a seed to the settings of MCCE that are tried.
Make: TypeAlias = Callable[[Case, Parts, int], dict[str, Any]]


def _experiment(
    name: str,
    title: str,
    what: str,
    variants: Callable[[Options], Mapping[str, Make]],
    searches: Sequence[str],
    *,
    measured: Mapping[str, bool] = MEASURES,
    in_paper: bool = False,
    finish: Callable[[Report, pd.DataFrame], None] = lambda report, runs: None,
) -> Experiment:
    """An experiment that tries variants of a step; the first is what others are compared with."""

    def run(options: Options, progress: ProgressLine) -> Report:
        makes, runs = variants(options), []
        tried = {variant: makes[variant] for variant in options.chosen(makes)}
        progress.plan(len(options.datasets) * (1 + options.seeds * len(tried)))
        for dataset in options.datasets:
            progress.step(f"{dataset}: rows and predictor")
            case = prepare_case(dataset, options)
            for seed in range(options.seeds):
                parts = Parts.draw(case, seed, quick=options.quick)
                for variant, make in tried.items():
                    progress.step(f"{dataset}: {variant}, seed {seed}")
                    labels = {"dataset": dataset, what: variant, "seed": seed}
                    work = partial(_measure, case, parts, seed, make, searches, measured, options)
                    runs += _saved_runs(name, options, labels, work)
        report = Report()
        table = _other_answers(pd.DataFrame(runs), what)
        report.tables = _tables(table, what, next(iter(tried)), measured)
        finish(report, table)
        return report

    return Experiment(name, title, run, ALL_DATA, in_paper=in_paper, has_variants=True)


def _saved_runs(
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


def _measure(
    case: Case,
    parts: Parts,
    seed: int,
    make: Make,
    searches: Sequence[str],
    measured: Mapping[str, bool],
    options: Options,
) -> list[Run]:
    """Answers by each search that can; for a generator also its rows and their likelihood."""
    settings = make(case, parts, seed)
    runs = _explain(case, parts, seed, settings, searches)
    generator = settings.get("generator", TreeChain())
    if "auc" in measured:
        runs[0] |= _measure_rows(generator, case, parts, seed, quick=options.quick)
    if "log_likelihood" in measured:
        runs[0]["log_likelihood"] = _log_likelihood(generator, case, parts, seed)
    return runs


def _explain(
    case: Case, parts: Parts, seed: int, settings: Mapping[str, Any], searches: Sequence[str]
) -> list[Run]:
    """Coverage, costs, plausibility and times of the answers to people of the holdout."""
    judge = case.evaluator_of(parts.reference)
    explainer = case.explainer(random_state=seed, n_samples=None, **settings)
    runs: list[Run] = []
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        # A fit for any other search serves the paper's too.
        explainer.set_params(search=searches[-1])
        try:
            fit, _ = cpu_seconds(lambda: explainer.fit(parts.training))
        except ParameterError:
            searches = ("paper",)
            explainer.set_params(search="paper")
            fit, _ = cpu_seconds(lambda: explainer.fit(parts.training))
        taken = explainer.timings_
        share = taken["model"] / sum(t for name, t in taken.items() if name != "total")
        for search in searches:
            explainer.set_params(search=search)
            seconds, result = cpu_seconds(lambda: explainer.explain(parts.factuals))
            run = {"search": search, "fit_seconds": fit * share, "explain_seconds": seconds}
            runs.append(run | _measure_answers(case, parts, judge, result))
    return runs


def _measure_answers(case: Case, parts: Parts, judge: Evaluator, result: Any) -> Run:
    """Coverage, costs and plausibility of a result, and each person's answer as a digest."""
    far = metrics.knn_distance(result, judge, scale="ranks", among="desired")
    cells = result.frame.astype(str).agg("|".join, axis=1)
    digests = [hashlib.sha256(row.encode()).hexdigest()[:12] for row in cells]
    owners = parts.factuals.index[result.owner].astype(str)
    return {
        "coverage": metrics.coverage(parts.factuals, result),
        "l0": float(metrics.sparsity(parts.factuals, result, case.evaluator).mean()),
        "l1": float(metrics.l1(parts.factuals, result, case.evaluator).mean()),
        "knn_distance": float(far.mean()),
        "outlier_factor": _outlier_factor(result, judge),
        "answers": dict(zip(owners, digests, strict=True)),
    }


def _outlier_factor(result: Any, judge: Evaluator) -> float:
    """Median local outlier factor of the answers among accepted rows of a judge, each once."""
    from sklearn.neighbors import LocalOutlierFactor

    known = np.unique(judge.matrix(judge.rows)[judge.among("desired")], axis=0)
    detector = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(known)
    return float(np.median(-detector.score_samples(judge.matrix(judge.read(result)))))


def _measure_rows(
    generator: Generator, case: Case, parts: Parts, seed: int, *, quick: bool
) -> dict[str, float]:
    """How real the rows of a generator look, and what they tell of its training rows.

    Realism: classifiers tell rows like those of training from held-out rows. Privacy: an attacker
    sees rows made for people of the reference.
    """
    training = _encode(generator, parts.training, case)
    fitted = _fit_for_both(generator, training, case.decide(parts.training), seed)
    alike, released = (
        draw_one_each(fitted, training.schema.encode(like), seed, case.decide(like))
        for like in (parts.training, parts.reference)
    )
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
        "accuracy_%": 100 * told["accuracy"]["forest", "generated"],
        "auc": told["auc"]["forest", "generated"],
        "logistic_auc": told["auc"]["logistic", "generated"],
    }
    evaluator = Evaluator.fit(parts.training, immutable=case.immutable)
    found = audit_rows(released, evaluator, parts.holdout, parts.reference, random_state=seed)
    for name in ("copies", "value_copies"):
        values[f"{name}_%"] = 100 * found[name].value
    for name in ("holdout_share", "distance_auc", "calibrated_auc", "rare_values_auc"):
        values[name] = found[name].value
    for rate in ("tpr_1%", "tpr_0.1%"):
        values[rate] = found[f"calibrated_{rate}"].value
    values |= {_violations(e): not found.dp_bound(e).holds for e in EPSILONS}
    return {name: float(value) for name, value in values.items()}


def _fit_for_both(generator: Generator, rows: EncodedRows, is_desired: BoolArray, seed: int) -> Any:
    """A copy of a generator, fitted to draw rows with either decision."""
    copy: Any = clone(generator)
    if "decisions" in copy.get_params():
        copy.set_params(decisions=(False, True))
    return copy.fit(rows, is_desired, seed=seed, n_jobs=1, verbose=False)


def _encode(generator: Generator, frame: pd.DataFrame, case: Case) -> EncodedRows:
    """Training rows for a generator: with their own schema, or that of declared domains."""
    if isinstance(generator, PrivateTrees):
        return generator.encode_training(frame, immutable=case.immutable)
    return Schema.learn_rows(frame, immutable=case.immutable)


N_BINS = 10
# Probability of a row that does not come from the generator.
OTHERWISE = 0.05


def _log_likelihood(generator: Any, case: Case, parts: Parts, seed: int) -> float:
    """Mean log-likelihood of held-out rows in nats, NaN for a generator that has none.

    Numbers are replaced by deciles of the training rows, in training too: a leaf holds a few exact
    values, and hardly any new row has just these.
    """
    if not generator.capabilities.density:
        return np.nan
    training, holdout = bin_numbers(parts.training, parts.holdout, case.mutable)
    if isinstance(generator, PrivateTrees):
        numbers = training[case.mutable].select_dtypes("number")
        steps = {
            name: Domain(low=0, high=max(int(c.max()), 1), step=1) for name, c in numbers.items()
        }
        generator = clone(generator).set_params(domains=generator.domains | steps)
    rows = _encode(generator, training, case)
    fitted = _fit_for_both(generator, rows, case.decide(parts.training), seed)
    heldout, decision = rows.schema.encode(holdout), case.decide(parts.holdout)
    return float(mixed_log_likelihood(fitted, rows, heldout, decision).mean())


def bin_numbers(
    train: pd.DataFrame, heldout: pd.DataFrame, mutable: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames with mutable numbers replaced by deciles of the training values.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": range(20)})
    >>> bin_numbers(rows, pd.DataFrame({"a": [-5, 3, 90]}), ["a"])[1]["a"].tolist()
    [0, 1, 9]
    """
    edges = {
        str(name): np.unique(column.quantile(np.arange(1, N_BINS) / N_BINS))
        for name, column in train[list(mutable)].select_dtypes("number").items()
    }
    binned = [
        frame.assign(
            **{n: np.searchsorted(edge, frame[n], side="left") for n, edge in edges.items()}
        )
        for frame in (train, heldout)
    ]
    return binned[0], binned[1]


def mixed_log_likelihood(
    fitted: Any, training: EncodedRows, rows: EncodedRows, is_desired: BoolArray
) -> FloatArray:
    """Log-likelihood of each row with its own decision, never minus infinity.

    A row comes from the generator, or with a small probability from the marginal distributions of
    the training rows, where a value that they lack counts as half a row.
    """
    likely = np.empty(len(rows))
    for wanted in (True, False):
        at = np.flatnonzero(is_desired == wanted)
        likely[at] = fitted.log_likelihood(rows.take(at), decision=wanted)
    marginal = np.zeros(len(rows))
    for position in training.schema.mutable:
        n_codes = training.schema.features[position].n_codes
        counts = np.bincount(training.codes[position], minlength=n_codes)
        exact = rows.codes[position]
        share = np.where(exact >= 0, counts[exact], 0.5) / (len(training) + 0.5)
        marginal += np.log(share)
    return np.logaddexp(np.log(1 - OTHERWISE) + likely, np.log(OTHERWISE) + marginal)


def _other_answers(runs: pd.DataFrame, what: str) -> pd.DataFrame:
    """The runs with the share of people whom a variant answers otherwise than the first."""
    first: dict[Any, Any] = {}
    shares = []
    for _, run in runs.iterrows():
        base = first.setdefault((run["dataset"], run["seed"], run["search"]), run["answers"])
        both = base.keys() & run["answers"].keys()
        other = sum(base[person] != run["answers"][person] for person in both)
        shares.append(100 * other / len(both) if both else np.nan)
    return runs.drop(columns="answers").assign(**{"other_answers_%": shares})


def _tables(
    runs: pd.DataFrame, what: str, base: str, measured: Mapping[str, bool]
) -> dict[str, pd.DataFrame]:
    """Verdicts against the base, the differences behind them, and all means with intervals."""
    lines, differences = [], []
    for (search, dataset), rows in runs.groupby(["search", "dataset"], sort=False):
        for name, some in rows.groupby(what, sort=False):
            line: Run = {"search": search, "dataset": dataset, what: name}
            for measure in (*measured, *OTHERS):
                values = some[measure]
                line |= interval(measure, values if values.notna().all() else values.iloc[:0])
            lines.append(line)
        differences += _differences(rows, what, base, measured)
    table = pd.DataFrame(differences)
    means = pd.DataFrame(lines).dropna(axis=1, how="all")
    return {"verdicts": _verdicts(table, what), "differences": table, "measures": means}


def _differences(
    runs: pd.DataFrame, what: str, base: str, measured: Mapping[str, bool]
) -> list[Run]:
    """Differences from the base over the same seeds, with a verdict if they are beyond chance."""
    search, dataset = runs["search"].iloc[0], runs["dataset"].iloc[0]
    lines = []
    for measure, more_is_better in measured.items():
        by_seed = runs.pivot_table(measure, "seed", what, dropna=False)
        for name in dict.fromkeys(runs[what]):
            gaps = by_seed[name] - by_seed[base]
            if name == base or gaps.isna().any():
                continue
            line = {"search": search, "dataset": dataset, "measure": measure, what: name}
            line |= interval("difference", gaps)
            low, high = line["difference_low"], line["difference_high"]
            better = (low > 0) if more_is_better else (high < 0)
            worse = (high < 0) if more_is_better else (low > 0)
            lines.append(line | {"verdict": "better" if better else "worse" if worse else ""})
    return lines


def _verdicts(differences: pd.DataFrame, what: str) -> pd.DataFrame:
    """On how many data sets each is better (+) and worse (-) than the base, by measure."""
    lines = []
    for (search, measure), rows in differences.groupby(["search", "measure"], sort=False):
        line = {"search": search, "measure": measure}
        for name, some in rows.groupby(what, sort=False):
            better, worse = (int((some["verdict"] == word).sum()) for word in ("better", "worse"))
            line[str(name)] = f"+{better} -{worse}" if better or worse else "="
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


def _constant(**settings: Any) -> Make:
    """Settings that depend on nothing."""
    return lambda case, parts, seed: dict(settings)


EPSILONS, EPSILONS_QUICK = (0.5, 1.0, 2.0, 5.0, 10.0), (1.0, 10.0)
# Bins of private trees; a number that so large a share of the reference has is counted on its own.
N_PRIVATE_BINS, ATOM = 20, 0.05


def _private(epsilon: float) -> Make:
    """Private trees whose public domains are those of the reference."""

    def make(case: Case, parts: Parts, seed: int) -> dict[str, Any]:
        public = {name: _domain(case.train[name], parts.reference[name]) for name in case.train}
        return {"generator": PrivateTrees(domains=public, epsilon=epsilon)}

    return make


def _domain(declared: pd.Series[Any], reference: pd.Series[Any]) -> Domain:
    """Levels as declared by the dtype; range, bins and atoms of a number from the reference."""
    if isinstance(declared.dtype, pd.CategoricalDtype):
        return Domain(levels=list(declared.cat.categories))
    whole = bool((declared == declared.round()).all())
    shares = reference.value_counts(normalize=True)
    atoms = sorted(float(value) for value in shares.index[shares >= ATOM])
    quantiles = reference.quantile(np.linspace(0, 1, N_PRIVATE_BINS + 1)).to_numpy(dtype=np.float64)
    # The range is that of the whole file, as a codebook would give it.
    edges = np.unique([declared.min(), *quantiles, declared.max()])
    return Domain(
        low=float(edges[0]),
        high=float(edges[-1]),
        edges=edges.tolist(),
        atoms=atoms,
        step=1.0 if whole else None,
    )


def _violations(epsilon: float) -> str:
    """The column that says whether the bound of an epsilon is broken."""
    return f"violations_{epsilon:g}"


def _finish_private(report: Report, runs: pd.DataFrame) -> None:
    """Shares of seeds that break the bound of each epsilon, with noise and without."""
    lines = []
    for dataset, rows in runs[runs["search"] == "paper"].groupby("dataset", sort=False):
        of = rows.set_index("trees")
        for name in (name for name in dict.fromkeys(rows["trees"]) if name != "trees"):
            column = _violations(float(name.removeprefix("epsilon ")))
            broken = {"violations": of.loc[[name], column].mean()}
            broken["violations_without_noise"] = of.loc[["trees"], column].mean()
            lines.append({"dataset": dataset, "trees": name, **broken})
    report.tables["bound"] = pd.DataFrame(lines)


def _generators(options: Options) -> dict[str, Make]:
    tried = {
        "trees": TreeChain(),
        "forest": ForestChain(),
        "ctree": InferenceTreeChain(),
        "parametric": ParametricChain(),
        "copula": GaussianCopula(),
        "made": MADE(),
        "ctgan": CTGAN(),
        "cgan": ConditionalGAN(),
    }
    makes = {name: _constant(generator=generator) for name, generator in tried.items()}
    return makes | {"private": _private(1.0)}


def _epsilons(options: Options) -> dict[str, Make]:
    tried = EPSILONS_QUICK if options.quick else EPSILONS
    private = {f"epsilon {epsilon:g}": _private(epsilon) for epsilon in tried}
    return {"trees": _constant(generator=TreeChain())} | private


N_RANDOM_ORDERS = 10


def _orders(options: Options) -> dict[str, Make]:
    """The order of the data, that by correlation, that of the authors' code, and random ones."""

    def authors(case: Case, parts: Parts, seed: int) -> dict[str, Any]:
        return {"generator": TreeChain(visit_order=authors_visit_order(case))}

    def shuffled(case: Case, parts: Parts, seed: int, number: int) -> dict[str, Any]:
        order = np.random.default_rng(number).permutation(case.mutable)
        return {"generator": TreeChain(visit_order=[str(name) for name in order])}

    named = {
        name: _constant(generator=TreeChain(visit_order=name)) for name in ("data", "correlation")
    }
    n_random = 2 if options.quick else N_RANDOM_ORDERS
    random = {f"random {number}": partial(shuffled, number=number) for number in range(n_random)}
    return {**named, "authors' code": authors, **random}


PANELS = {
    "accuracy_%": "accuracy of a forest, %",
    "l0": "changes of answers",
    "l1": "L1 of answers",
    "calibrated_auc": "AUC of membership",
}


def _draw_dots(report: Report, runs: pd.DataFrame) -> None:
    """One panel per data set and measure, a dot with its interval for each of what was run."""
    table, what = report.tables["measures"], report.tables["measures"].columns[2]
    table = table[table["search"] == "paper"]
    names = list(dict.fromkeys(table["dataset"]))
    figure, axes = panels(len(names), len(PANELS), size=(2.7, 2.2))
    for line, name in zip(axes, names, strict=True):
        rows = table[table["dataset"] == name]
        for axis, (measure, title) in zip(line, PANELS.items(), strict=True):
            for number, (_, row) in enumerate(rows.iterrows()):
                # One seed has no intervals.
                reach = np.nan_to_num(row.get(f"{measure}_high", np.nan) - row[measure])
                colour = COLOURS[number % len(COLOURS)]
                axis.errorbar(row[measure], number, xerr=reach, fmt="o", color=colour)
            axis.set_yticks(range(len(rows)), rows[what])
            axis.invert_yaxis()
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=name, xlabel=title)
    report.figures["generators"] = figure


GENERATORS = _experiment(
    "generators",
    "Which generator: realism, answers, privacy and time of each",
    "generator",
    _generators,
    ("paper", "balanced"),
    finish=_draw_dots,
)
PRIVATE = _experiment(
    "private",
    "What differential privacy costs: realism, answers and privacy by epsilon",
    "trees",
    _epsilons,
    ("paper", "balanced"),
    finish=_finish_private,
)
DISTANCES = _experiment(
    "distances",
    "Which distance: answers and time of each",
    "distance",
    lambda options: {
        name: _constant(distance=name) for name in ("gower", "l1", "heom", "hvdm", "ivdm")
    },
    ("paper", "balanced", "near"),
    measured=ANSWERS,
)
VISIT_ORDER = _experiment(
    "visit-order",
    "Future steps: whether the order of the features matters",
    "order",
    _orders,
    ("paper",),
    measured={"log_likelihood": True} | ANSWERS,
    in_paper=True,
)
