"""Whether the order in which the chain visits the features matters.

Paper, section "Future steps": its experiments use the order of the data and suggest an order by
correlation. Random orders show what chance does. Orders are compared by the costs of
counterfactuals and by the likelihood of held-out rows, in nats.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE, Schema, TreeChain, metrics
from mcce.protocols import BoolArray, EncodedRows, FloatArray

from .case import Case, authors_visit_order, prepare_case
from .experiment import (
    Experiment,
    Options,
    ProgressLine,
    Report,
)
from .report import (
    GREY,
    OTHER,
    OURS,
    PUBLISHED,
    legend_below,
    panels,
)

N_RANDOM = 10
N_TRAIN, N_FACTUALS = 5000, 100
N_BINS = 10
# Probability of a row that does not come from the generator.
OTHERWISE = 0.05
MEASURES = {
    "l0": "changes (L0)",
    "l1": "L1",
    "coverage": "coverage",
    "log_likelihood": "log-likelihood per held-out row",
}
AUTHORS = "authors' code"
Order = str | Sequence[Hashable]


@dataclass(frozen=True, eq=False)
class Halves:
    """Training rows and held-out rows, drawn at random, with their decisions."""

    train: pd.DataFrame
    heldout: pd.DataFrame
    train_decision: BoolArray
    heldout_decision: BoolArray
    immutable: list[str]

    @classmethod
    def draw(cls, case: Case, seed: int) -> Halves:
        """Two disjoint parts of the rows of a case."""
        rows = case.train
        order = np.random.default_rng(seed).permutation(len(rows))
        size = min(N_TRAIN, len(rows) // 2)
        train, heldout = rows.iloc[order[:size]], rows.iloc[order[size : 2 * size]]
        return cls(train, heldout, case.decide(train), case.decide(heldout), case.immutable)


def run(options: Options, progress: ProgressLine) -> Report:
    """Run every order on every data set with every seed."""
    report = Report()
    n_random = 2 if options.quick else N_RANDOM
    progress.plan(len(options.datasets) * (1 + options.seeds * (3 + n_random)))
    runs = []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        orders = _orders(case, n_random)
        for seed in range(options.seeds):
            halves = Halves.draw(case, seed)
            for label, order in orders.items():
                progress.step(f"{name}: {label}, seed {seed}")
                labels = {"dataset": name, "order": label, "seed": seed}
                runs.append(labels | _measure(case, halves, order, seed))
    table = pd.DataFrame(runs)
    report.tables = {"summary": _summary(table), "differences": _differences(table)}
    report.tables["orders"] = _by_order(table)
    report.figures["orders"] = _draw(table)
    return report


def _orders(case: Case, n_random: int) -> dict[str, Order]:
    """Orders by name; the random ones are the same for every seed."""
    rng = np.random.default_rng(0)
    orders: dict[str, Order] = {"data": "data", "correlation": "correlation"}
    orders[AUTHORS] = authors_visit_order(case)
    for number in range(n_random):
        orders[f"random {number}"] = [str(name) for name in rng.permutation(case.mutable)]
    return orders


def _measure(case: Case, halves: Halves, order: Order, seed: int) -> dict[str, float]:
    """Costs of counterfactuals, and likelihood of held-out rows."""
    explainer = MCCE(
        case.predictor,
        case.desired,
        immutable=halves.immutable,
        generator=TreeChain(visit_order=order),
        search="paper",
        n_jobs=-1,
        random_state=seed,
    ).fit(halves.train)
    factuals = halves.heldout[~halves.heldout_decision].head(N_FACTUALS)
    result = explainer.explain(factuals)
    return {
        "l0": float(result.measures["sparsity"].mean()),
        "l1": float(result.measures["l1"].mean()),
        "coverage": metrics.coverage(factuals, result),
        "log_likelihood": heldout_log_likelihood(halves, order),
    }


def heldout_log_likelihood(halves: Halves, order: Order) -> float:
    """Mean log-likelihood of held-out rows, in nats per row.

    Numbers are replaced by deciles of the training rows, in training too: a leaf holds a few exact
    values, and hardly any new row has just these.
    """
    train, heldout = bin_numbers(halves.train, halves.heldout, halves.immutable)
    rows = Schema.learn_rows(train, immutable=halves.immutable)
    chain = TreeChain(visit_order=order, decisions=(False, True))
    chain.fit(rows, halves.train_decision, n_jobs=-1)
    total = log_likelihood(chain, rows, rows.schema.encode(heldout), halves.heldout_decision)
    return float(total.mean())


def bin_numbers(
    train: pd.DataFrame, heldout: pd.DataFrame, immutable: Sequence[Hashable]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both frames with mutable numbers replaced by deciles of the training values.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": range(20)})
    >>> bin_numbers(rows, pd.DataFrame({"a": [-5, 3, 90]}), [])[1]["a"].tolist()
    [0, 1, 9]
    """
    binned = []
    numbers = train.drop(columns=list(immutable)).select_dtypes("number")
    edges = {
        name: np.unique(column.quantile(np.arange(1, N_BINS) / N_BINS))
        for name, column in numbers.items()
    }
    for frame in (train, heldout):
        bins = {n: np.searchsorted(edge, frame[n], side="left") for n, edge in edges.items()}
        binned.append(frame.assign(**{str(name): codes for name, codes in bins.items()}))
    return binned[0], binned[1]


def log_likelihood(
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


def _by_order(table: pd.DataFrame) -> pd.DataFrame:
    """Means and standard deviations over seeds, one row per order."""
    grouped = table.groupby(["dataset", "order"], sort=False)[list(MEASURES)]
    means = grouped.mean().join(grouped.std().add_suffix("_sd"))
    return means[[f"{m}{end}" for m in MEASURES for end in ("", "_sd")]].reset_index()


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means by kind of order, and their spread over orders and over seeds."""
    lines = []
    for name, rows in table.groupby("dataset", sort=False):
        means = rows.groupby("order", sort=False)[list(MEASURES)].mean()
        random = means[means.index.str.startswith("random")]
        seeds = rows.groupby("order", sort=False)[list(MEASURES)].std().mean()
        for measure in MEASURES:
            lines.append(
                {
                    "dataset": name,
                    "measure": measure,
                    "data": means.loc["data", measure],
                    AUTHORS: means.loc[AUTHORS, measure],
                    "correlation": means.loc["correlation", measure],
                    "random": random[measure].mean(),
                    "random_sd": random[measure].std(),
                    "sd_over_seeds": seeds[measure],
                }
            )
    return pd.DataFrame(lines)


def _differences(table: pd.DataFrame) -> pd.DataFrame:
    """Order by correlation minus order of the data: means and deviations over seeds."""
    lines = []
    for name, rows in table.groupby("dataset", sort=False):
        paired = rows.pivot_table(index="seed", columns="order", values=list(MEASURES), sort=False)
        line: dict[str, Any] = {"dataset": name}
        for measure in ("l0", "l1", "log_likelihood"):
            gap = paired[measure]["correlation"] - paired[measure]["data"]
            line |= {measure: gap.mean(), f"{measure}_sd": gap.std()}
        lines.append(line)
    return pd.DataFrame(lines)


def _draw(table: pd.DataFrame) -> Any:
    """One panel per data set and measure: a dot per seed, a line per order."""
    names, shown = list(dict.fromkeys(table["dataset"])), ["l0", "l1", "log_likelihood"]
    figure, axes = panels(len(names), len(shown), size=(2.8, 2.3))
    colours = {"data": OURS, "correlation": OTHER, AUTHORS: PUBLISHED}
    for line, name in zip(axes, names, strict=True):
        rows = table[table["dataset"] == name]
        orders = list(dict.fromkeys(rows["order"]))
        for axis, measure in zip(line, shown, strict=True):
            for place, order in enumerate(orders):
                values = rows.loc[rows["order"] == order, measure]
                label = order if order in colours else "random"
                colour = colours.get(order, GREY)
                axis.plot(values, [place] * len(values), ".", color=colour, alpha=0.6)
                axis.plot(values.mean(), place, "D", color=colour, label=label)
            axis.set_yticks([])
            axis.margins(y=0.1)
            axis.set_ylabel("orders")
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=name, xlabel=MEASURES[measure])
            axis.invert_yaxis()
    legend_below(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="visit-order",
    title="Future steps: whether the order of the features matters",
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
)
