"""Whether generated rows look like real ones.

Paper, section "Experiment 3" and appendix "Quality of generated data": histograms, correlation
matrices and a classifier that tells generated from real rows. Each generated row has the immutable
values and the decision of a real one, so that the mix of people is the real one. The paper does not
say whether its real rows were those that the trees were grown on, so there are several protocols.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mcce import Schema, TreeChain
from mcce.protocols import BoolArray

from ..datasets import load
from ..metrics import correlation_difference, correlations, discriminator
from .case import Case, draw_one_each, prepare_case
from .experiment import Experiment, Options, ProgressLine, Report, published
from .report import GREY, OTHER, OURS, legend_below, panels

N_TREES, N_TREES_QUICK = 100, 20
# Rows of each class where no rows are held out: as many as the paper generates for its figures.
MAX_CLASS_ROWS = 10_000
# Give Me Some Credit: a quarter of the rows without outliers, 28,882.
QUARTER = 0.25
FIGURES_OF = "fico"
# Trees on one half of the rows against the other half; the same with copies of the first half in
# place of generated rows, for which 50 % is right; trees on all rows against the same rows; and
# these generated for the desired decision alone, as in step 2.
OTHER_HALF, COPIES, SAME_ROWS, ALL_DESIRED = PROTOCOLS = (
    *("other half", "other half, copies"),
    *("same rows", "same rows, all desired"),
)


def run(options: Options, progress: ProgressLine) -> Report:
    """Generate rows for each data set and try to tell them from real ones."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + len(PROTOCOLS) * options.seeds))
    drawn = FIGURES_OF if FIGURES_OF in options.datasets else options.datasets[0]
    lines, agreement = [], []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        real = _real(case, options)
        for protocol in PROTOCOLS:
            tables = []
            for seed in range(options.seeds):
                progress.step(f"{name}: {protocol}, seed {seed}")
                tables.append(_discriminate(protocol, real, case, seed, options))
            lines += _summarise(name, protocol, tables)
        generated = generate_like(real, case, seed=0)
        agreement.append(_agreement(name, generated, real))
        if name == drawn:
            report.figures = {
                "histograms": draw_histograms(generated, real),
                "correlations": draw_correlations(generated, real),
            }
    report.tables = {"discriminator": pd.DataFrame(lines), "agreement": pd.DataFrame(agreement)}
    _compare(report)
    return report


def generate_like(
    training: pd.DataFrame, case: Case, *, seed: int, wanted: BoolArray | None = None
) -> pd.DataFrame:
    """Generate one row per training row, with its immutable values and decision."""
    rows, decision = Schema.learn_rows(training, immutable=case.immutable), case.decide(training)
    chain = TreeChain(decisions=(False, True)).fit(rows, decision, n_jobs=-1)
    return draw_one_each(chain, rows, seed, decision if wanted is None else wanted)


def _real(case: Case, options: Options) -> pd.DataFrame:
    """The real rows to generate from."""
    if case.name != "gmc":
        return case.train
    filtered = load("gmc", form="paper", rows="filtered", folder=options.folder).features
    return filtered.sample(frac=QUARTER, random_state=0)


def _discriminate(
    protocol: str, real: pd.DataFrame, case: Case, seed: int, options: Options
) -> pd.DataFrame:
    """How well classifiers tell generated from real rows, for one protocol and seed."""
    holdout = None
    if protocol in (OTHER_HALF, COPIES):
        order = np.random.default_rng(seed).permutation(len(real))
        real, holdout = real.iloc[order[::2]], real.iloc[order[1::2]]
    wanted = np.ones(len(real), dtype=bool) if protocol == ALL_DESIRED else None
    made = real if protocol == COPIES else generate_like(real, case, seed=seed, wanted=wanted)
    if holdout is None and len(real) > MAX_CLASS_ROWS:
        made = made.sample(MAX_CLASS_ROWS, random_state=2 * seed)
        real = real.sample(MAX_CLASS_ROWS, random_state=2 * seed + 1)
    n_trees = N_TREES_QUICK if options.quick else N_TREES
    given = {"n_repeats": 1, "n_trees": n_trees, "random_state": seed, "n_jobs": -1}
    return discriminator(made, real, holdout=holdout, **given)


def _summarise(name: str, protocol: str, tables: list[pd.DataFrame]) -> list[dict[str, Any]]:
    """Means over seeds in % with their standard errors, one row per classifier."""
    shares = 100 * pd.concat(tables)[["accuracy", "auc"]]
    rows = []
    for classifier in ("forest", "logistic"):
        row: dict[str, Any] = {"dataset": name, "protocol": protocol, "classifier": classifier}
        for part, prefix in (("generated", ""), ("control", "control_")):
            for measure in ("accuracy", "auc"):
                values = shares[measure].loc[[(classifier, part)]]
                row[f"{prefix}{measure}"] = values.mean()
                row[f"{prefix}{measure}_error"] = values.std() / len(values) ** 0.5
        rows.append(row | {"seeds": len(tables)})
    return rows


def _compare(report: Report) -> None:
    """Put the accuracies on held-out rows beside the published ones, also means over five seeds."""
    table = report.tables["discriminator"]
    table = table[(table["protocol"] == OTHER_HALF) & (table["classifier"] == "forest")]
    for _, row in table.iterrows():
        theirs = published("manifold", dataset=row["dataset"])["accuracy_%"].iloc[0]
        # Their seeds spread as ours, as far as can be told.
        error = 2**0.5 * row["accuracy_error"]
        labels = {"dataset": row["dataset"], "measure": "accuracy %"}
        report.compare(labels, theirs, row["accuracy"], error=error, rounding=0.05)


def _agreement(name: str, generated: pd.DataFrame, real: pd.DataFrame) -> dict[str, Any]:
    """Differences of correlations and marginal distributions from the real ones."""
    sizes = correlation_difference(generated, real, method="pearson", n_bootstrap=10)
    gaps = {str(name): _gap(generated[name], real[name]) for name in real.columns}
    worst = max(gaps, key=gaps.__getitem__)
    return {
        "dataset": name,
        "mean_difference": sizes.loc["generated", "mean"],
        "chance": sizes.loc["noise", "mean"],
        "max_difference": sizes.loc["generated", "max"],
        "chance_max": sizes.loc["noise_q95", "max"],
        "largest_marginal_gap": gaps[worst],
        "in_feature": worst,
    }


def _gap(new: pd.Series[Any], old: pd.Series[Any]) -> float:
    """The largest difference of distribution functions, or for levels of shares."""
    shares = pd.concat([s.value_counts(normalize=True) for s in (new, old)], axis=1).fillna(0.0)
    difference = shares.iloc[:, 0] - shares.iloc[:, 1]
    if pd.api.types.is_numeric_dtype(old.dtype):
        difference = difference.sort_index().cumsum()
    return round(float(difference.abs().max()), 12)


EXPERIMENT = Experiment(
    name="manifold",
    title="Experiment 3: whether generated rows can be told from real ones",
    run=run,
    datasets=("adult", "gmc", "fico", "german"),
)


N_BINS = 24
N_COLUMNS = 4
# Quantile of the real numbers where the last bin ends; it holds all larger values too.
LAST_BIN = 0.995
# Absolute correlations in the key of circle sizes.
KEY = (0.1, 0.5, 1.0)
DIAMETER = 0.95  # of the circle of correlation 1, in cells


def draw_histograms(generated: pd.DataFrame, real: pd.DataFrame) -> Any:
    """A histogram of every feature: real rows as bars, generated ones as a line."""
    n_rows = -(-len(real.columns) // N_COLUMNS)
    figure, axes = panels(n_rows, N_COLUMNS, size=(2.6, 1.7))
    for axis, name in zip(axes.ravel(), real.columns, strict=False):
        if pd.api.types.is_numeric_dtype(real[name].dtype):
            _numbers(axis, generated[name], real[name])
        else:
            _levels(axis, generated[name], real[name])
        axis.set_title(str(name), fontsize=8)
        axis.tick_params(labelsize=6)
        axis.grid(False)
    for axis in axes.ravel()[len(real.columns) :]:
        axis.set_axis_off()
    figure.supylabel("share of rows", fontsize=9)
    note = "horizontal: value of the feature; the last bin of a number holds all larger values"
    legend_below(figure, axes, note=note)
    return figure


def _numbers(axis: Any, new: pd.Series[Any], old: pd.Series[Any]) -> None:
    axis.locator_params(axis="x", nbins=4, integer=True)
    low, high = old.quantile([0.0, LAST_BIN])
    edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    looks = {"real": {"color": GREY, "alpha": 0.6}}
    looks["generated"] = {"histtype": "step", "color": OURS, "linewidth": 1.1}
    for column, (label, look) in zip((old, new), looks.items(), strict=True):
        weights = np.full(len(column), 1 / len(column))
        axis.hist(column.clip(upper=edges[-1]), edges, weights=weights, label=label, **look)


def _levels(axis: Any, new: pd.Series[Any], old: pd.Series[Any]) -> None:
    shares = old.value_counts(normalize=True, sort=False)
    drawn = new.value_counts(normalize=True).reindex(shares.index, fill_value=0.0)
    places = np.arange(len(shares))
    axis.bar(places, shares, 0.7, color=GREY, alpha=0.6, label="real")
    axis.bar(places, drawn, 0.7, fill=False, edgecolor=OURS, linewidth=1.1, label="generated")
    axis.set_xticks(places, [str(level) for level in shares.index])


def draw_correlations(generated: pd.DataFrame, real: pd.DataFrame) -> Any:
    """Correlations of real rows, of generated rows, and their difference.

    The area of a circle is the absolute correlation, as in the paper.
    """
    ours, theirs = (correlations(rows, real, method="pearson") for rows in (generated, real))
    figure, axes = panels(1, 3, size=(4.2, 5.9))
    heads = "real", "generated", "generated - real"
    names = [str(name) for name in real.columns]
    for axis, head, matrix in zip(axes[0], heads, (theirs, ours, ours - theirs), strict=True):
        _circles(axis, matrix.to_numpy())
        axis.set_title(f"correlations, {head}", fontsize=9)
        axis.set_xticks(range(len(names)), names, fontsize=6, rotation=90)
    axes[0][0].set_yticks(range(len(names)), names, fontsize=6)
    # A key in data units of its own: the circles of the panels by their absolute correlation.
    for at, size in enumerate(KEY):
        axes[0][1].text(at * len(names) / 3, -1.2, f"|r| {size}", fontsize=6)
        _circle(axes[0][1], [at * len(names) / 3 - 0.8], [-1.4], [size], GREY)
    legend_below(figure, axes)
    return figure


def _circles(axis: Any, matrix: np.ndarray) -> None:
    """One circle per pair, blue above 0 and orange below."""
    n = len(matrix)
    column, row = np.meshgrid(np.arange(n), np.arange(n))
    for sign, colour, label in ((1, OURS, "positive"), (-1, OTHER, "negative")):
        here = sign * matrix > 0
        _circle(axis, column[here], row[here], np.abs(matrix[here]), colour)
        axis.plot([], [], "o", color=colour, label=label)
    axis.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal", xticks=[], yticks=[])
    axis.tick_params(length=0)
    axis.grid(False)


def _circle(axis: Any, x: Any, y: Any, area: Any, colour: str) -> None:
    """Circles whose areas are shares of that of correlation 1, in cells."""
    from matplotlib.collections import EllipseCollection

    width = np.sqrt(area) * DIAMETER
    offsets, none = np.column_stack([x, y]), np.zeros(len(width))
    shape = {"units": "x", "offset_transform": axis.transData, "clip_on": False}
    circles = EllipseCollection(width, width, none, offsets=offsets, facecolors=colour, **shape)
    axis.add_collection(circles)
