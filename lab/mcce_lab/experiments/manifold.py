"""Whether generated rows look like real ones.

Paper, section "Experiment 3" and appendix "Quality of generated data": histograms, correlation
matrices and a classifier that tells generated from real rows. Each generated row has the immutable
values and the decision of a real one, so that the mix of people is the real one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mcce import Schema, TreeChain
from mcce.protocols import BoolArray

from ..datasets import load
from ..metrics import correlation_difference, correlations, discriminator
from . import published
from .case import Case, draw_one_each, prepare_case
from .experiment import Experiment, Options, ProgressLine, Report
from .report import GREY, OTHER, OURS, legend_below, panels

N_TREES, N_TREES_QUICK = 100, 20
# Rows of each class where no rows are held out: as many as the paper generates for its figures.
MAX_CLASS_ROWS = 10_000
# Give Me Some Credit: a quarter of the rows without outliers, 28,882.
QUARTER = 0.25
FIGURES_OF = "fico"


def run(options: Options, progress: ProgressLine) -> Report:
    """Generate rows for each data set and try to tell them from real ones."""
    report = Report()
    progress.plan(len(options.datasets) * (1 + len(PROTOCOLS) * options.seeds))
    drawn = FIGURES_OF if FIGURES_OF in options.datasets else options.datasets[0]
    n_trees = N_TREES_QUICK if options.quick else N_TREES
    accuracies, correlations = [], []
    for name in options.datasets:
        progress.step(f"{name}: rows and predictor")
        case = prepare_case(name, options)
        real = _real(case, options)
        for protocol in PROTOCOLS:
            tables = []
            for seed in range(options.seeds):
                progress.step(f"{name}: {protocol}, seed {seed}")
                tables.append(_discriminate(protocol, real, case, seed, n_trees))
            accuracies.append(_summarise(name, protocol, tables))
        generated = generate_like(real, case.decide(real), case.immutable, seed=0)
        correlations.append(_correlations(name, generated, real))
        if name == drawn:
            report.figures = _figures(generated, real)
    printed = published.DISCRIMINATOR
    report.tables = {
        "discriminator": pd.concat(accuracies, ignore_index=True),
        "paper": printed[printed["dataset"].isin(options.datasets)],
        "agreement": pd.DataFrame(correlations),
    }
    return report


def generate_like(
    training: pd.DataFrame,
    is_desired: BoolArray,
    immutable: Sequence[Hashable],
    *,
    seed: int,
    wanted: BoolArray | None = None,
    max_inputs: int | None = None,
) -> pd.DataFrame:
    """Generate one row per training row, with its immutable values."""
    rows = Schema.learn_rows(training, immutable=immutable)
    chain = TreeChain(decisions=(False, True), max_inputs=max_inputs).fit(
        rows, is_desired, n_jobs=-1
    )
    return draw_one_each(chain, rows, seed, is_desired if wanted is None else wanted)


def _real(case: Case, options: Options) -> pd.DataFrame:
    """The real rows to generate from."""
    if case.name != "gmc":
        return case.train
    filtered = load("gmc", form="paper", rows="filtered", folder=options.folder).features
    return filtered.sample(frac=QUARTER, random_state=0)


class Samples(NamedTuple):
    """Generated rows, the rows they were generated from, and rows held out from the generator."""

    generated: pd.DataFrame
    training: pd.DataFrame
    holdout: pd.DataFrame | None


def _other_half(real: pd.DataFrame, case: Case, seed: int) -> Samples:
    """Trees on one half, rows for that half, against real rows of the other half only."""
    seen, unseen = _halves(real, seed)
    generated = generate_like(seen, case.decide(seen), case.immutable, seed=seed)
    return Samples(generated, seen, unseen)


def _copies(real: pd.DataFrame, case: Case, seed: int) -> Samples:
    """Copies of one half in place of generated rows, against the other half: 50 % is right."""
    seen, unseen = _halves(real, seed)
    return Samples(seen, seen, unseen)


def _halves(real: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    order = np.random.default_rng(seed).permutation(len(real))
    return real.iloc[order[::2]], real.iloc[order[1::2]]


def _same_rows(real: pd.DataFrame, case: Case, seed: int) -> Samples:
    """Trees on all rows, tested against the same rows."""
    generated = generate_like(real, case.decide(real), case.immutable, seed=seed)
    return Samples(generated, real, None)


def _all_desired(real: pd.DataFrame, case: Case, seed: int) -> Samples:
    """As before, but every row is generated for the desired decision, as in step 2."""
    wanted = np.ones(len(real), dtype=bool)
    decision = case.decide(real)
    generated = generate_like(real, decision, case.immutable, seed=seed, wanted=wanted)
    return Samples(generated, real, None)


PROTOCOLS = {
    "other half": _other_half,
    "other half, copies": _copies,
    "same rows": _same_rows,
    "same rows, all desired": _all_desired,
}


def _discriminate(
    protocol: str, real: pd.DataFrame, case: Case, seed: int, n_trees: int
) -> pd.DataFrame:
    """How well classifiers tell generated from real rows, for one protocol and seed."""
    generated, training, holdout = PROTOCOLS[protocol](real, case, seed)
    if holdout is None and len(real) > MAX_CLASS_ROWS:
        generated = generated.sample(MAX_CLASS_ROWS, random_state=2 * seed)
        training = training.sample(MAX_CLASS_ROWS, random_state=2 * seed + 1)
    return discriminator(
        generated,
        training,
        holdout=holdout,
        n_repeats=1,
        n_trees=n_trees,
        random_state=seed,
        n_jobs=-1,
    )


def _summarise(name: str, protocol: str, tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Means over seeds with 95 % intervals in %, one row per classifier."""
    from scipy.stats import t  # type: ignore[import-untyped]

    shares = pd.concat(tables)[["accuracy", "auc"]]
    every = (100 * shares).groupby(level=[0, 1])
    mean = every.mean()
    margin = t.ppf(0.975, max(len(tables) - 1, 1)) * every.std() / len(tables) ** 0.5
    rows = []
    for classifier in ("forest", "logistic"):
        row: dict[str, Any] = {"dataset": name, "protocol": protocol, "classifier": classifier}
        for part, prefix in (("generated", ""), ("control", "control_")):
            for measure in ("accuracy", "auc"):
                middle = mean.loc[(classifier, part), measure]
                reach = margin.loc[(classifier, part), measure]
                row[f"{prefix}{measure}"] = middle
                row |= {f"{prefix}{measure}_low": middle - reach}
                row |= {f"{prefix}{measure}_high": middle + reach}
        rows.append(row | {"seeds": len(tables)})
    return pd.DataFrame(rows)


def _correlations(name: str, generated: pd.DataFrame, real: pd.DataFrame) -> dict[str, Any]:
    """Differences of correlations and marginal distributions from the real ones."""
    sizes = correlation_difference(generated, real, method="pearson", n_bootstrap=10)
    feature, gap = largest_gap(generated, real)
    return {
        "dataset": name,
        "mean_difference": sizes.loc["generated", "mean"],
        "chance": sizes.loc["noise", "mean"],
        "max_difference": sizes.loc["generated", "max"],
        "chance_max": sizes.loc["noise_q95", "max"],
        "largest_marginal_gap": gap,
        "in_feature": str(feature),
    }


def _figures(generated: pd.DataFrame, real: pd.DataFrame) -> dict[str, Any]:
    return {
        "histograms": draw_histograms(generated, real),
        "correlations": draw_correlations(generated, real),
    }


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


def largest_gap(generated: pd.DataFrame, real: pd.DataFrame) -> tuple[Hashable, float]:
    """The feature whose distribution differs most, and by how much.

    For numbers the largest difference of the distribution functions, for levels that of a share.

    Examples
    --------
    >>> real = pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]})
    >>> largest_gap(real.assign(a=[1, 1, 1, 4]), real)
    ('a', 0.5)
    """
    gaps = {name: _gap(generated[name], real[name]) for name in real.columns}
    worst = max(gaps, key=gaps.__getitem__)
    return worst, gaps[worst]


def _gap(new: pd.Series[Any], old: pd.Series[Any]) -> float:
    shares = pd.concat([s.value_counts(normalize=True) for s in (new, old)], axis=1).fillna(0.0)
    difference = shares.iloc[:, 0] - shares.iloc[:, 1]
    if pd.api.types.is_numeric_dtype(old.dtype):
        difference = difference.sort_index().cumsum()
    return round(float(difference.abs().max()), 12)


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
    shares = {"weights": np.full(len(old), 1 / len(old))}
    axis.hist(old.clip(upper=edges[-1]), edges, color=GREY, alpha=0.6, label="real", **shares)
    axis.hist(
        new.clip(upper=edges[-1]),
        edges,
        weights=np.full(len(new), 1 / len(new)),
        histtype="step",
        color=OURS,
        linewidth=1.1,
        label="generated",
    )


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
    for axis, head, matrix in zip(axes[0], heads, (theirs, ours, ours - theirs), strict=True):
        _circles(axis, matrix.to_numpy())
        axis.set_title(f"correlations, {head}", fontsize=9)
        names = [str(name) for name in real.columns]
        axis.set_xticks(range(len(names)), names, fontsize=6, rotation=90)
    axes[0][0].set_yticks(range(len(names)), names, fontsize=6)
    for size in KEY:
        axes[0][0].plot([], [], "o", color=GREY, markeredgewidth=0, label=_key_label(size))
    legend_below(figure, axes, n_columns=5)
    _fit_size_key(figure, axes[0][0])
    return figure


def _key_label(size: float) -> str:
    return f"|correlation| {size}"


def _fit_size_key(figure: Any, axis: Any) -> None:
    """Draw the circles of the key as large as those of the panels."""
    figure.canvas.draw()  # settles the layout, and with it the width of a cell, in points below
    left, right = axis.transData.transform([(0, 0), (1, 0)])[:, 0]
    cell = (right - left) * 72 / figure.dpi
    (legend,) = figure.legends
    entries = zip(legend.get_texts(), legend.legend_handles, strict=True)
    circles = {text.get_text(): handle for text, handle in entries}
    for size in KEY:
        circles[_key_label(size)].set_markersize(cell * DIAMETER * np.sqrt(size))


def _circles(axis: Any, matrix: np.ndarray) -> None:
    """One circle per pair, blue above 0 and orange below."""
    from matplotlib.collections import EllipseCollection

    n = len(matrix)
    column, row = np.meshgrid(np.arange(n), np.arange(n))
    for sign, colour, label in ((1, OURS, "positive"), (-1, OTHER, "negative")):
        here = sign * matrix > 0
        width = np.sqrt(np.abs(matrix[here])) * DIAMETER
        circles = EllipseCollection(
            width,
            width,
            np.zeros(width.size),
            units="x",
            offsets=np.column_stack([column[here], row[here]]),
            offset_transform=axis.transData,
            facecolors=colour,
        )
        axis.add_collection(circles)
        axis.plot([], [], "o", color=colour, label=label)
    axis.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal", xticks=[], yticks=[])
    axis.tick_params(length=0)
    axis.grid(False)
