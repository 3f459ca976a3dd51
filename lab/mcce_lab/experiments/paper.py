"""The paper's tables of MCCE: each line is a setting, run on a case and put beside the printed one.

Experiments 1 and 2, the section on privacy, and the appendix on other predictors, on categories
that are not binarized and on leaving out the decision. One counterfactual each for the first 1,000
people (German Credit: 200) of the file whom the predictor declines, K = 1,000 unless it varies.
Means are those of the explained people, so a setting that explains only easy cases looks cheaper
than it is. Our times are CPU seconds of one thread, the published ones wall-clock seconds of
another machine. Predictors decline different people, so costs of settings with another predictor
are not directly comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from mcce import Schema, Search, TreeChain
from mcce.errors import PredictorError
from mcce.protocols import person_keys

from ..datasets import DatasetName, load
from .case import (
    ROWS,
    Case,
    MethodResult,
    authors_visit_order,
    average_over_seeds,
    describe_case,
    draw_rows,
    measure_result,
    prepare_case,
    run_mcce,
)
from .experiment import Experiment, Options, ProgressLine, Report, published, records
from .predictors import NETWORK_SETTINGS, auc_of_split
from .report import OURS, PUBLISHED, legend_below, panels

COLUMNS = [
    *("dataset", "setting", "source", "l0", "l0_sd", "l1", "l1_sd", "n_ce", "coverage"),
    *("violation", "success", "copies", "copies_%", "value_copies_%", "l0_exact", "l0_exact_sd"),
    *("model", "generate", "postprocess", "total", "seconds", "seeds", "l0_seeds", "l1_seeds"),
    *("n_explained", "n_declined", "n_train", "auc"),
]


@dataclass(frozen=True)
class Setting:
    """One line of a table.

    Parameters
    ----------
    name : str
        Its name in the column ``setting``.
    run, case : dict
        Parameters of :func:`run_mcce` and :func:`prepare_case`.
    against : str
        The setting of the paper's table that it is compared with; empty for none.
    max_seeds : int
        The most repetitions.
    """

    name: str
    run: Mapping[str, Any] = field(default_factory=dict)
    case: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""
    max_seeds: int = 1000


Settings: TypeAlias = Callable[[DatasetName, Options], Sequence[Setting]]


def _experiment(
    name: str,
    title: str,
    settings: Settings,
    compared: Sequence[str],
    *,
    datasets: tuple[DatasetName, ...] = ("adult",),
    draw: Callable[[pd.DataFrame], Any] | None = None,
) -> Experiment:
    """An experiment of settings, next to the paper's table of the same name."""

    def run(options: Options, progress: ProgressLine) -> Report:
        report = Report()
        lines: list[dict[str, Any]] = []
        for dataset in options.datasets:
            printed = published(name, dataset=dataset)
            most = printed["n_ce"].max()
            printed = printed.assign(source="published", n_explained=most)
            lines += records(printed.assign(coverage=printed["n_ce"] / most))
            lines += _measure(dataset, settings(dataset, options), options, progress)
        table = pd.DataFrame(lines)
        for dataset in options.datasets:
            for setting in settings(dataset, options):
                _compare(report, table, dataset, setting, compared)
        report.tables["results"] = table.reindex(columns=COLUMNS)
        if draw is not None:
            report.figures[name] = draw(report.tables["results"])
        return report

    return Experiment(name, title, run, datasets)


def _measure(
    dataset: DatasetName, settings: Sequence[Setting], options: Options, progress: ProgressLine
) -> list[dict[str, Any]]:
    """Our lines of a data set: means over seeds."""
    cases: dict[str, Case | None] = {}
    progress.plan(sum(min(options.seeds, setting.max_seeds) for setting in settings))
    lines = []
    for setting in settings:
        key = repr(sorted(setting.case.items()))
        if key not in cases:
            cases[key] = _case(dataset, options, setting)
        case, runs = cases[key], []
        line = {"dataset": dataset, "setting": setting.name, "source": "ours"}
        for seed in range(min(options.seeds, setting.max_seeds) if case else 0):
            progress.step(f"{dataset}: {setting.name}, seed {seed}")
            assert case is not None
            runs.append(measure_result(case, run_mcce(case, seed, **setting.run)))
        told = describe_case(case) | average_over_seeds(runs) if case else {"n_declined": 0}
        lines.append(line | told)
    return lines


def _case(dataset: DatasetName, options: Options, setting: Setting) -> Case | None:
    """The case of a setting, or None if a network of another training seed declines nobody."""
    try:
        return prepare_case(dataset, options, **setting.case)
    except PredictorError:
        if "box_seed" in setting.case:
            return None
        raise


def _compare(
    report: Report, table: pd.DataFrame, dataset: str, setting: Setting, compared: Sequence[str]
) -> None:
    """Put a setting beside the printed one."""
    rows = table[table["dataset"] == dataset]
    theirs = rows[(rows["source"] == "published") & (rows["setting"] == setting.against)]
    if theirs.empty:
        return
    both = (
        theirs.iloc[0],
        rows[(rows["source"] == "ours") & (rows["setting"] == setting.name)].iloc[0],
    )
    labels = {"dataset": dataset, "setting": setting.name}
    for measure in compared:
        if measure == "n_ce":
            report.compare_counts(labels, *both, "n_ce", "n_explained")
        elif measure == "copies":
            report.compare_counts(labels, *both, "copies", "n_ce")
        elif measure == "auc" and not isnan(both[1]["published_auc"]):
            aucs = both[1]["published_auc"], both[1]["auc"]
            report.compare({**labels, "measure": "test AUC"}, *aucs)
        else:
            report.compare_means(labels, *both, measure)


N_NETWORKS = 5
# Other rows that the published figures may be based on; of Give Me Some Credit they are alike.
OTHER_ROWS: dict[str, tuple[str, bool]] = {"gmc": ("filtered", True), "fico": ("all", False)}


def _costs(dataset: DatasetName, options: Options) -> list[Setting]:
    """MCCE and another search, other rows, people the network has not seen, other networks."""
    rows, alike = ("", False) if options.quick else OTHER_ROWS.get(dataset, ("", False))
    usual = "" if alike else "MCCE"
    settings = [
        Setting("MCCE", against=usual),
        Setting("MCCE balanced", {"search": "balanced"}, max_seeds=2),
        Setting("held-out people", case={"factuals": "heldout"}, against=usual),
    ]
    if rows:
        against = "MCCE" if alike else ""
        settings.append(Setting(f"rows {rows}", case={"rows": rows}, against=against))
    more = {"rows": rows} if alike else {}
    networks = range(1, 1 if options.quick else N_NETWORKS)
    return settings + [
        Setting(f"network {seed}", case={**more, "box_seed": seed}, max_seeds=1)
        for seed in networks
    ]


COSTS = _experiment(
    "costs",
    "Experiment 1: costs of counterfactuals, next to the paper's table of methods",
    _costs,
    ("auc", "l0", "l1"),
    datasets=("adult", "gmc", "german", "fico"),
)


K = (10, 50, 100, 1000, 5000, 10_000, 25_000)
QUICK_K = (10, 50, 100)


def _by_samples(options: Options, **more: Any) -> list[Setting]:
    """A line for each number of samples, with its name as in the paper's tables here."""
    names = {k: f"K = {k:,}" for k in (QUICK_K if options.quick else K)}
    return [Setting(name, {"n_samples": k, **more}, against=name) for k, name in names.items()]


def _draw_by_samples(table: pd.DataFrame) -> Any:
    """Costs, people with a counterfactual and times by K: ours as lines, the paper's as dashes."""
    figure, axes = panels(1, 4, size=(2.6, 2.7))
    titles = {
        "l0": "changed features (L0)",
        "l1": "distance (L1)",
        "n_ce": "people with a counterfactual",
        "total": "seconds (paper: another machine)",
    }
    table = table.assign(k=table["setting"].str.replace(r"\D", "", regex=True).astype(int))
    for panel, (measure, title) in zip(axes[0], titles.items(), strict=True):
        for (name, source), rows in table.groupby(["dataset", "source"], sort=False):
            style = ("o-", OURS, "ours") if source == "ours" else ("s--", PUBLISHED, "paper")
            shape, colour, label = style
            panel.plot(rows["k"], rows[measure], shape, color=colour, label=f"{name}, {label}")
        panel.set(xscale="log", xlabel="samples K", ylabel=title)
        if measure == "total":
            panel.set_yscale("log")
        else:
            panel.set_ylim(bottom=0)
    legend_below(figure, axes)
    return figure


SAMPLES = _experiment(
    "samples",
    "Experiment 2: costs and times by the number of samples K, the tuning parameter",
    lambda _, options: _by_samples(options),
    ("l0", "l1", "n_ce"),
    draw=_draw_by_samples,
)
UNCONDITIONED = _experiment(
    "unconditioned",
    "Appendix: the decision left out of the model",
    lambda _, options: _by_samples(options, condition_on_decision=False),
    ("l0", "l1", "n_ce"),
    draw=_draw_by_samples,
)
NO_COPIES = {"search": Search("paper", copies="never")}


def _privacy(dataset: DatasetName, options: Options) -> list[Setting]:
    """Copies of training rows allowed and excluded, on the rows of the published figures."""
    rows, alike = OTHER_ROWS.get(dataset, ("", False))
    case = {"rows": rows} if alike and not options.quick else {}
    usual = Setting("as drawn", case=case, against="as drawn")
    return [usual, Setting("without copies", NO_COPIES, case)]


PRIVACY = _experiment(
    "privacy",
    "Privacy: counterfactuals that copy a training row, and the cost of excluding them",
    _privacy,
    ("copies",),
    datasets=("adult", "gmc", "fico", "german"),
)
FOREST = _experiment(
    "forest",
    "Appendix: a random forest as the predictor",
    lambda *_: [
        Setting("network"),
        Setting("forest", case={"kind": "forest"}, against="forest"),
        Setting("forest, without copies", NO_COPIES, {"kind": "forest"}),
    ],
    ("l0", "l1"),
)
# The published script keeps the three most frequent levels of each category and one for the rest.
LEVELS = _experiment(
    "levels",
    "Appendix: categories that are not binarized",
    lambda *_: [
        Setting("two levels"),
        Setting("four levels", case={"form": "levels", "n_levels": 3}, against="not binarized"),
        Setting("all levels", case={"form": "levels"}, against="not binarized"),
    ],
    ("l0", "l1"),
)


MEASURE = "valid and unique %"
CONDITIONED = {True: "with the decision", False: "without the decision"}


def _run_draws(options: Options, progress: ProgressLine) -> Report:
    """Shares of valid and unique draws, by K and by network: the paper does not say which K."""
    report, lines = Report(), []
    numbers, networks = (QUICK_K, 1) if options.quick else (K[:5], N_NETWORKS)
    progress.plan(len(options.datasets) * networks * 2 * len(numbers))
    for dataset in options.datasets:
        for network in range(networks):
            case = prepare_case(dataset, options, box_seed=network)
            for flag, name in CONDITIONED.items():
                for k in numbers:
                    progress.step(f"{dataset}, network {network}: {name}, K = {k:,}")
                    labels = {"dataset": dataset, "setting": name, "network": network, "k": k}
                    lines.append(labels | share_of_valid_draws(case, k, conditioned=flag))
    table = report.tables["draws"] = pd.DataFrame(lines)
    for _, theirs in published("draws").iterrows():
        share, name = theirs["valid_and_unique_%"], theirs["setting"]
        ours = table[(table["dataset"] == theirs["dataset"]) & (table["setting"] == name)]
        if len(ours):
            # The number of samples that fits best: any other would be a harder test.
            nearest = (ours["valid_and_unique_%"] - share).abs().idxmin()
            best = ours.loc[nearest]
            error = float(best["valid_and_unique_%_sd"] / best["n_explained"] ** 0.5)
            where = f"{name}, K = {best['k']:,}"
            named = {"dataset": str(theirs["dataset"]), "setting": where, "measure": MEASURE}
            both = share, float(best["valid_and_unique_%"])
            report.compare(named, *both, error=error, rounding=0.5)
    return report


def share_of_valid_draws(case: Case, k: int, *, conditioned: bool) -> dict[str, float]:
    """Draws with the desired decision, and the distinct ones among them, in % of all draws.

    Means over people. Those with the same immutable values share their draws, so each set of draws
    is scored once and counts as often as there are people.
    """
    rows = Schema.learn_rows(case.train, immutable=case.immutable)
    chain = TreeChain(visit_order=authors_visit_order(case), condition_on_decision=conditioned)
    chain.fit(rows, case.decide(case.train), n_jobs=1)
    group = case.factuals.groupby(case.immutable, observed=True, sort=False).ngroup().to_numpy()
    people = rows.schema.encode(case.factuals[~pd.Series(group).duplicated().to_numpy()])
    keys = person_keys(0, np.ascontiguousarray(people.tree_codes[rows.schema.immutable].T))
    drawn = draw_rows(chain, people, keys, k)
    valid = case.decide(drawn)
    owner = np.repeat(np.arange(len(people)), k)
    repeated = drawn.reset_index(drop=True).assign(_owner=owner).duplicated().to_numpy()
    found: dict[str, float] = {"n_explained": len(group)}
    for name, kept in {"valid_%": valid, "valid_and_unique_%": valid & ~repeated}.items():
        shares = 100 * kept.reshape(len(people), k).mean(axis=1)[group]
        found |= {name: float(shares.mean()), f"{name}_sd": float(shares.std(ddof=1))}
    return found


DRAWS = Experiment(
    "draws",
    "Appendix: draws that are valid and unique, with the decision and without it",
    _run_draws,
    ("adult",),
)


def _run_splits(options: Options, progress: ProgressLine) -> Report:
    """Test AUC of the paper's networks on several splits; the published one is of one."""
    report, lines = Report(), []
    progress.plan(2 * len(options.datasets) * options.seeds)
    for dataset in options.datasets:
        for rows in dict.fromkeys([ROWS.get(dataset), OTHER_ROWS.get(dataset, (None,))[0]]):
            data = load(dataset, form="paper", rows=rows, folder=options.folder)
            aucs = []
            for seed in range(options.seeds):
                progress.step(f"{dataset}, rows {rows or 'complete'}: split {seed}")
                aucs.append(auc_of_split(data, seed))
            labels = {"dataset": str(dataset), "setting": f"rows {rows or 'complete'}"}
            spread = float(np.std(aucs, ddof=1)) if len(aucs) > 1 else np.nan
            line = {"n_rows": len(data.features), "auc": np.mean(aucs), "auc_sd": spread}
            lines.append({**labels, **line, "least": min(aucs), "most": max(aucs)})
            printed = NETWORK_SETTINGS[data.card["name"]].auc
            error = spread * (1 + 1 / len(aucs)) ** 0.5
            labels["measure"] = "test AUC"
            report.compare(labels, printed, float(np.mean(aucs)), error=error)
    report.tables["splits"] = pd.DataFrame(lines)
    return report


SPLITS = Experiment(
    "splits",
    "Predictors: test AUC of the paper's networks by the split of the rows",
    _run_splits,
    ("adult", "gmc", "german", "fico"),
)


def _run_changes(options: Options, progress: ProgressLine) -> Report:
    """How often each mutable feature changes, and in which direction.

    Numbers go up or down; for levels ``to`` is the most frequent new one, with its share of the
    changes.
    """
    report, lines = Report(), []
    progress.plan(len(options.datasets))
    for dataset in options.datasets:
        progress.step(dataset)
        case = prepare_case(dataset, options)
        lines += _count_changes(case, run_mcce(case))
    report.tables["changes"] = pd.DataFrame(lines)
    return report


def _count_changes(case: Case, result: MethodResult) -> list[dict[str, Any]]:
    answers = result.counterfactuals
    changes, lines = answers.changes(), []
    for name in case.mutable:
        cells = changes[changes["feature"] == name]
        line: dict[str, Any] = {"dataset": case.name, "feature": name}
        line["changed_%"] = 100 * len(cells) / len(answers.frame)
        if isinstance(case.train[name].dtype, pd.CategoricalDtype):
            levels = cells["after"].astype(str).value_counts(normalize=True)
            if len(levels):
                line |= {"to": levels.index[0], "to_%": 100 * levels.iloc[0]}
        elif len(cells):
            up = (cells["after"].astype(float) > cells["before"].astype(float)).mean()
            line |= {"up_%": 100 * up, "down_%": 100 * (1 - up)}
        lines.append(line)
    return lines


CHANGES = Experiment(
    "changes",
    "Experiment 1: which features change",
    _run_changes,
    ("adult", "gmc", "german", "fico"),
)
