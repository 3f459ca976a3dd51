"""How many models that no search has seen accept its answers, and what that costs.

A predictor is trained on a part of each data set, and people whom it declines are drawn from the
rest. Their answers are those of a search in several ways: alone, required to last by models trained
anew (``refits``), by trees that learned from the predictor's ``probabilities`` or from its
``decisions`` alone, and by two published ideas. Then models are trained that none of them has seen,
on other bootstrap samples, with other seeds, and of another family; ``observed`` is the share of
these that accept an answer. ``claimed`` is what ``result.measures`` says of it.

The rivals are short forms of what was published, not the authors' code. ``betarce`` (Stępień et
al., KDD 2025) looks around the answer of the search alone for the nearest row that a share of
sampled models accepts by a bound of a beta distribution. ``roar`` (Upadhyay et al., NeurIPS 2021)
fits a linear model around the person and minimises the l1 distance subject to the worst case of
coefficients that move by at most ``ROAR_SHIFT``, here as a linear program.

Writes one line per person to ``out/bench/survival.csv`` after every case, and the tables to
``out/bench/survival.md``. Usage:
``PYTHONPATH=benchmarks:lab python lab/benchmarks/survival.py [--cases german] [--models boosting]
[--searches balanced] [--ways alone refits] [--people 100] [--seeds 5] [--jobs 16] [--data DIR]``.
``--tables FILE.csv`` only makes the tables of such a file again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.stats import beta  # type: ignore[import-untyped]
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, McceWarning, Survival
from mcce_lab import datasets
from measure import OUT, Table, log, write

CASES = ("german", "fico", "adult", "gmc")
WAYS = ("alone", "refits", "probabilities", "decisions")
RIVALS = ("betarce", "roar")
# Training rows at most, their share of all rows, and the seeds of unseen models.
MAX_TRAIN, TRAIN_SHARE, UNSEEN = 10_000, 0.7, 1_000_000
N_SEEDS = N_FAMILY = 5
# BetaRCE: models, confidence, and rows tried at each of growing distances.
BETA_MODELS, BETA_CONFIDENCE, BETA_ROWS = 32, 0.9, 100
BETA_RADII = np.linspace(0.05, 1.0, 20)
# ROAR: by how much coefficients of standardised columns may move, and rows around a person.
ROAR_SHIFT, ROAR_ROWS, ROAR_RADIUS = 0.1, 1000, 0.5
RESAMPLES = 2000


def boosting(seed: int) -> Any:
    """Boosted trees, which take levels as they are."""
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)


def forest(seed: int) -> Any:
    """A random forest of indicators."""
    return make_pipeline(
        _indicators("passthrough"), RandomForestClassifier(min_samples_leaf=3, random_state=seed)
    )


def network(seed: int) -> Any:
    """A network with two layers."""
    net = MLPClassifier((32, 16), alpha=1e-3, early_stopping=True, random_state=seed)
    return make_pipeline(_indicators(StandardScaler()), net)


def _indicators(numbers: Any) -> Any:
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (levels, make_column_selector(dtype_exclude="number")),
        (numbers, make_column_selector(dtype_include="number")),
    )


MODELS: dict[str, Callable[[int], Any]] = {
    "boosting": boosting,
    "forest": forest,
    "network": network,
}
# Which family tells how answers fare under another one.
OTHER = {"boosting": "forest", "forest": "boosting", "network": "boosting"}


@dataclass(frozen=True)
class Decisions:
    """A predictor that gives labels alone."""

    model: Any

    def predict(self, rows: pd.DataFrame) -> Any:
        """The labels of rows."""
        return self.model.predict(rows)


@dataclass(frozen=True)
class Setting:
    """A data set, a model trained on a part of it, and people whom it declines."""

    train: pd.DataFrame
    labels: np.ndarray
    people: pd.DataFrame
    immutable: list[str]
    family: Callable[[int], Any]
    model: Any
    seed: int

    @classmethod
    def of(cls, case: str, model: str, seed: int, options: argparse.Namespace) -> Setting:
        """The setting of a seed."""
        rows_of = "known" if case == "fico" else None
        data = datasets.load(case, form="levels", rows=rows_of, folder=options.data)  # type: ignore[arg-type]
        rows = data.features.reset_index(drop=True)
        labels = (data.target == data.desired).to_numpy(dtype=int)
        order = np.random.default_rng(seed).permutation(len(rows))
        n_train = min(int(TRAIN_SHARE * len(rows)), MAX_TRAIN)
        inside, outside = order[:n_train], order[n_train:]
        train = rows.iloc[inside].reset_index(drop=True)
        fitted = MODELS[model](seed).fit(train, labels[inside])
        others = rows.iloc[outside[: 50 * options.people]].reset_index(drop=True)
        people = others[fitted.predict(others) == 0].head(options.people)
        return cls(
            train,
            labels[inside],
            people.reset_index(drop=True),
            list(data.immutable),
            MODELS[model],
            fitted,
            seed,
        )

    def refit(self, family: Callable[[int], Any], seed: int, *, bootstrap: bool = True) -> Any:
        """A model trained anew."""
        n_rows = len(self.train)
        chosen = np.arange(n_rows)
        if bootstrap:
            chosen = np.random.default_rng(seed).integers(0, n_rows, n_rows)
        return family(seed).fit(self.train.iloc[chosen], self.labels[chosen])

    def unseen(self, other: str, n_refits: int) -> dict[str, list[Any]]:
        """Models that no search has seen, by how they differ."""
        first = UNSEEN + 1000 * self.seed
        return {
            "observed": [self.refit(self.family, first + k) for k in range(n_refits)],
            "observed_seeds": [
                self.refit(self.family, first + 200 + k, bootstrap=False) for k in range(N_SEEDS)
            ],
            "observed_family": [
                self.refit(MODELS[other], first + 400 + k) for k in range(N_FAMILY)
            ],
        }


def main() -> None:
    """Measure the selected cases, or make the tables of earlier measurements."""
    options = _options()
    path = OUT / "survival.csv"
    if options.tables is None:
        OUT.mkdir(parents=True, exist_ok=True)
        cells = list(product(options.cases, options.models, range(options.seeds)))
        work = (delayed(measure)(*cell, options) for cell in cells)
        found: list[pd.DataFrame] = []
        for part in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
            found.append(part)
            pd.concat(found, ignore_index=True).to_csv(path, index=False)
            log(f"{len(found)} of {len(cells)} done")
        table = pd.concat(found, ignore_index=True)
    else:
        table = pd.read_csv(options.tables)
    shown = [survival_table(table), calibration_table(table)]
    write(shown, "survival")
    for one in shown:
        print(one.markdown())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--searches", nargs="+", default=["balanced", "sparse"])
    parser.add_argument("--ways", nargs="+", choices=WAYS + RIVALS, default=WAYS + RIVALS)
    parser.add_argument("--share", type=float, default=0.9, help="the share asked for")
    parser.add_argument("--committee", type=int, default=20, help="models of a committee")
    parser.add_argument("--refits", type=int, default=20, help="unseen bootstrap models")
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="settings measured at a time")
    parser.add_argument("--data", type=Path, default=None, help="folder with heloc.csv.gz, ...")
    parser.add_argument("--tables", type=Path, default=None, metavar="CSV")
    options = parser.parse_args()
    if options.data is None:
        shared = Path(__file__).resolve().parents[3] / "shared" / "data"
        options.data = shared if shared.is_dir() else Path("shared", "data")
    return options


def measure(case: str, model: str, seed: int, options: argparse.Namespace) -> pd.DataFrame:
    """One line for each person of a setting, search and way."""
    warnings.simplefilter("ignore", McceWarning)
    # Models that differ in nothing but the seed may stop before they converge.
    warnings.filterwarnings("ignore", module="sklearn")
    # BLAS and OpenMP threads would wait for each other.
    with threadpool_limits(1):
        setting = Setting.of(case, model, seed, options)
        unseen = setting.unseen(OTHER[model], options.refits)
        parts = []
        for search in options.searches:
            base: pd.DataFrame | None = None
            for way in options.ways:
                if way == "roar" and search != options.searches[0]:
                    continue  # It has no search of ours.
                log(f"{case} {model} {seed} {search} {way}")
                answers = _answers(setting, search, way, base, options)
                base = answers if way == "alone" else base
                table = _observed(setting, answers, unseen)
                parts.append(
                    table.assign(case=case, model=model, seed=seed, search=search, way=way)
                )
    return pd.concat(parts, ignore_index=True)


def _answers(
    setting: Setting,
    search: str,
    way: str,
    base: pd.DataFrame | None,
    options: argparse.Namespace,
) -> pd.DataFrame:
    """The first answers, by person, with measures in columns that begin with an underscore."""
    started = time.process_time()
    if way in RIVALS:
        if way == "betarce" and base is None:
            raise SystemExit("betarce starts from the answers of the way alone: name it before.")
        rows = betarce(setting, base, options.share) if way == "betarce" else roar(setting)
        return rows.assign(_explain_seconds=time.process_time() - started)
    alone, labels = way == "alone", setting.labels if way in ("alone", "refits") else None
    by_label = way == "decisions"
    explainer = MCCE(
        Decisions(setting.model) if by_label else setting.model,
        [1] if by_label else None,
        immutable=setting.immutable,
        search=search,  # type: ignore[arg-type]
        survival=Survival(0 if alone else options.share, n_models=options.committee),
        random_state=setting.seed,
    ).fit(setting.train, labels)
    fitted = time.process_time()
    result = explainer.explain(setting.people)
    seconds = {"_fit_seconds": fitted - started, "_explain_seconds": time.process_time() - fitted}
    first = result.measures.index.get_level_values("rank") == 1
    names = ["survival", "survival_low", "gower", "plausibility"]
    measures = result.measures[first][names].add_prefix("_").reset_index(drop=True)
    frame = result.frame[first].reset_index(drop=True)
    answers = pd.concat([frame, measures.assign(**seconds)], axis=1)
    return answers.set_axis(result.owner[first])


def _observed(
    setting: Setting, answers: pd.DataFrame, unseen: dict[str, list[Any]]
) -> pd.DataFrame:
    """One line for each person: how many unseen models accept the answer, and what it changes."""
    people = setting.people
    found = pd.DataFrame({"person": people.index, "answered": people.index.isin(answers.index)})
    if answers.empty:
        return found
    rows = answers[list(people.columns)].astype(people.dtypes.to_dict())
    own = people.loc[rows.index]
    measured = {str(name)[1:]: answers[name] for name in answers if str(name).startswith("_")}
    measured["valid"] = setting.model.predict(rows) == 1
    same = np.column_stack([(rows[name] == own[name]).to_numpy() for name in rows])
    measured["changes"] = (~same).sum(axis=1)
    for name, models in unseen.items():
        measured[name] = np.mean([model.predict(rows) == 1 for model in models], axis=0)
    table = pd.DataFrame(measured, index=rows.index).rename(columns={"survival": "claimed"})
    return found.join(table, on="person")


def betarce(setting: Setting, base: pd.DataFrame | None, share: float) -> pd.DataFrame:
    """The nearest row around each answer of the search that a share of sampled models accepts."""
    assert base is not None
    random = np.random.default_rng(setting.seed)
    models = [setting.model]
    models += [setting.refit(setting.family, 500 + k) for k in range(BETA_MODELS)]
    columns = [str(name) for name in setting.people if name not in setting.immutable]
    found = {}
    for person in base.index:
        start = base.loc[[person], list(setting.people.columns)].astype(setting.people.dtypes)
        around = [
            _around(setting, start, columns, radius, BETA_ROWS, random) for radius in BETA_RADII
        ]
        # Nearest first: the answer itself, then rows at growing distances.
        rows = pd.concat([start, *around], ignore_index=True)
        accepted = np.array([model.predict(rows) == 1 for model in models])
        n_accepted = accepted[1:].sum(axis=0)
        low = beta.ppf(1 - BETA_CONFIDENCE, 1 + n_accepted, 1 + BETA_MODELS - n_accepted)
        good = np.flatnonzero(accepted[0] & (low >= share))
        if good.size:
            found[person] = rows.iloc[[good[0]]].assign(_survival=low[good[0]])
    return _stacked(found, setting)


def roar(setting: Setting) -> pd.DataFrame:
    """Rows on the far side of a linear model around the person, in the worst case of a shift."""
    random = np.random.default_rng(setting.seed)
    encoder = _indicators(StandardScaler()).fit(setting.train)
    columns = [str(name) for name in setting.people if name not in setting.immutable]
    space = encoder.transform(setting.train)
    low, high = space.min(axis=0), space.max(axis=0)
    found = {}
    for person in setting.people.index:
        start = setting.people.loc[[person]]
        rows = _around(setting, start, columns, ROAR_RADIUS, ROAR_ROWS, random)
        labels = setting.model.predict(rows)
        if labels.min() == labels.max():
            continue
        near = encoder.transform(rows)
        linear = LogisticRegression(max_iter=1000).fit(near, labels)
        own = encoder.transform(start)[0]
        fixed = encoder.transform(rows).std(axis=0) == 0
        moved = _worst_case(linear.coef_[0], float(linear.intercept_[0]), own, low, high, fixed)
        if moved is not None:
            found[person] = _decoded(encoder, moved, start, columns)
    return _stacked(found, setting)


def _worst_case(
    weights: np.ndarray,
    intercept: float,
    own: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    fixed: np.ndarray,
) -> np.ndarray | None:
    """The nearest point whose score is positive if each coefficient shifts for the worse."""
    n, zero, one = own.size, np.zeros((own.size, own.size)), np.eye(own.size)
    # Unknowns: the point, its distance from the person, and its absolute value, by column.
    matrix = np.vstack(
        [
            np.hstack([one, -one, zero]),
            np.hstack([-one, -one, zero]),
            np.hstack([one, zero, -one]),
            np.hstack([-one, zero, -one]),
            np.concatenate([-weights, np.zeros(n), np.full(n, ROAR_SHIFT)])[None],
        ]
    )
    limits = np.concatenate([own, -own, np.zeros(2 * n), [intercept - ROAR_SHIFT]])
    bounds = [
        (mine, mine) if held else (min(least, mine), max(most, mine))
        for mine, least, most, held in zip(own, low, high, fixed, strict=True)
    ]
    cost = np.concatenate([np.zeros(n), np.ones(n), np.zeros(n)])
    solved = linprog(cost, matrix, limits, bounds=bounds + [(0, None)] * (2 * n))
    return np.asarray(solved.x[:n]) if solved.success else None


def _decoded(
    encoder: Any, point: np.ndarray, start: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    """The row of a point: the level with the largest indicator, numbers in the form of the data."""
    row, at = start.copy(), 0
    levels, numbers = encoder.named_transformers_["onehotencoder"], encoder.transformers_[1]
    for name, known in zip(encoder.transformers_[0][2], levels.categories_, strict=True):
        if name in columns:
            row[name] = pd.Categorical(
                [known[np.argmax(point[at : at + len(known)])]], dtype=row[name].dtype
            )
        at += len(known)
    scaler, names = numbers[1], list(numbers[2])
    for name, value, mean, scale in zip(
        names, point[at:], scaler.mean_, scaler.scale_, strict=True
    ):
        if name in columns:
            number = value * scale + mean
            whole = pd.api.types.is_integer_dtype(row[name].dtype)
            row[name] = np.array([round(number) if whole else number], dtype=row[name].dtype)
    return row


def _around(
    setting: Setting,
    start: pd.DataFrame,
    columns: list[str],
    radius: float,
    n_rows: int,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Rows near one: numbers within a share of their spread, and that share of levels redrawn."""
    rows = start.loc[start.index.repeat(n_rows)].reset_index(drop=True)
    for name in columns:
        known, own = setting.train[name], rows[name]
        drawn = known.iloc[random.integers(0, len(known), n_rows)].reset_index(drop=True)
        if pd.api.types.is_numeric_dtype(known.dtype):
            spread = float(known.quantile(0.95) - known.quantile(0.05)) or 1.0
            moved = own + random.uniform(-radius, radius, n_rows) * spread
            moved = moved.clip(known.min(), known.max())
            whole = pd.api.types.is_integer_dtype(known.dtype)
            rows[name] = (moved.round() if whole else moved).astype(known.dtype)
        else:
            kept = random.random(n_rows) >= radius
            rows[name] = own.where(kept, drawn).astype(known.dtype)
    return rows


def _stacked(found: dict[Any, pd.DataFrame], setting: Setting) -> pd.DataFrame:
    """The rows found, by person."""
    if not found:
        return setting.people.head(0)
    return pd.concat([row.set_axis([person]) for person, row in found.items()])


def survival_table(table: pd.DataFrame) -> Table:
    """Observed survival, and differences from the search alone on the same people."""
    keys = ["case", "model", "seed", "person"]
    lines = []
    for names, rows in table.groupby(["case", "model", "search"], sort=False):
        alone = rows[rows["way"] == "alone"].set_index(keys)
        for way, some in rows.groupby("way", sort=False):
            both = some.set_index(keys).join(alone, rsuffix="_alone")
            answered = some[some["answered"]]
            lines.append(
                [
                    " ".join(map(str, names)),
                    str(way),
                    f"{some['answered'].mean():.2f}",
                    f"{answered['valid'].astype(float).mean():.2f}",
                    _mean(answered["observed"]),
                    f"{answered['observed_seeds'].mean():.2f}",
                    f"{answered['observed_family'].mean():.2f}",
                    f"{answered['changes'].mean():.2f}",
                    _difference(both, "changes"),
                    _difference(both, "plausibility"),
                    _ratio(both, "explain_seconds"),
                ]
            )
    head = ["", "way", "answered", "valid", "observed", "other seeds", "other family", "changes"]
    head += ["+ changes", "+ plausibility", "CPU"]
    return Table(
        "Share of unseen models that accept answers",
        head,
        lines,
        "Observed: models trained on other bootstrap samples; 95 % intervals by resampling people. "
        "Differences and CPU time of explain are against the search alone, of people with an "
        "answer in both. A rival's CPU time includes its models.",
    )


def calibration_table(table: pd.DataFrame) -> Table:
    """What is claimed against what is observed, by decile of the claim."""
    lines = []
    known = table[table["claimed"].notna() & table["answered"].astype(bool)]
    for way, rows in known.groupby("way", sort=False):
        decile = np.minimum(np.floor(10 * rows["claimed"] + 1e-9), 9).astype(int)
        for number, some in rows.groupby(decile):
            claimed, observed = some["claimed"].mean(), some["observed"].mean()
            lines.append(
                [
                    str(way),
                    f"{number / 10:.1f} to {(number + 1) / 10:.1f}",
                    str(len(some)),
                    f"{claimed:.3f}",
                    _mean(some["observed"]),
                    f"{observed - claimed:+.3f}",
                ]
            )
    head = ["way", "claimed", "answers", "mean claim", "observed", "observed - claimed"]
    return Table("Calibration", head, lines, "All cases, models and searches together.")


def _mean(values: pd.Series[Any]) -> str:
    """The mean of people, with an interval."""
    if values.empty:
        return "-"
    low, high = _interval(values.to_numpy(dtype=float))
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def _difference(both: pd.DataFrame, name: str) -> str:
    """The mean difference from the search alone, with an interval."""
    if name not in both or f"{name}_alone" not in both:
        return "-"
    gap = (both[name] - both[f"{name}_alone"]).dropna().to_numpy(dtype=float)
    if not gap.size:
        return "-"
    low, high = _interval(gap)
    return f"{gap.mean():+.2f} ({low:+.2f} to {high:+.2f})"


def _ratio(both: pd.DataFrame, name: str) -> str:
    """The mean time over that of the search alone."""
    times = both[[name, f"{name}_alone"]].dropna().groupby("seed").first().sum()
    return f"{times.iloc[0] / times.iloc[1]:.1f}" if times.iloc[1] > 0 else "-"


def _interval(values: np.ndarray) -> tuple[float, float]:
    """A 95 % interval of a mean, by resampling."""
    random = np.random.default_rng(0)
    draws = values[random.integers(0, values.size, (RESAMPLES, values.size))].mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    main()
