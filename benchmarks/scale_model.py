"""A cost model of large runs, fitted to measured slopes: CPU seconds by people, K, p and predictor.

``measure`` times partitions of simulated people in one process over a grid of settings and keeps
the slopes in a file; ``fit`` prints the coefficients, and how far the model is from settings that
it was not fitted to; ``plan`` prints what a night of many people needs. CPU time, minimum of
repeats, so that a busy machine disturbs little.

``python benchmarks/scale_model.py measure fit plan``
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from mcce import MCCE
from mcce.execution.frames import plan as plan_frames
from mcce.execution.workers import Task
from mcce.search.config import SearchName
from mcce_lab.datasets import simulate, total
from measure import OUT

FILE = OUT / "scale_model.json"
N_TRAIN = 10_000
SIZES = (4_000, 12_000)
# What a core, with the memory that comes with it, costs for an hour at a public cloud.
EUROS_PER_CORE_HOUR = 0.04
NIGHT_HOURS = 8.0


@dataclass(frozen=True)
class Setting:
    """What a run costs depends on this: features, draws, and whether people share immutables."""

    n_features: int
    n_samples: int
    shared: bool
    search: str = "paper"


@dataclass(frozen=True)
class Slope:
    """Of one person more: CPU seconds, rows scored, and bytes of Parquet read and written."""

    setting: Setting
    seconds: float
    rows: float
    bytes_in: float
    bytes_out: float


GRID = [Setting(p, k, s) for p in (5, 10, 20, 40) for k in (100, 300, 1000) for s in (True, False)]
UNSEEN = [Setting(15, 500, True), Setting(15, 500, False), Setting(30, 1000, True)]
BEYOND = [Setting(p, 1000, False, "balanced") for p in (10, 20)]


class Counted:
    """A cheap predictor that counts the rows it is asked for."""

    def __init__(self) -> None:
        self.n_rows = 0

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """Score rows by their sum."""
        self.n_rows += len(frame)
        return total(frame)


def measure_slope(setting: Setting, repeats: int) -> Slope:
    """What one person more costs, between two numbers of people in one partition."""
    n_immutable = 0 if setting.shared else 1
    train = simulate(N_TRAIN, setting.n_features, n_immutable=n_immutable, seed=0).features
    drawn = simulate(4 * max(SIZES), setting.n_features, n_immutable=n_immutable, seed=1).features
    rows = drawn[total(drawn) <= 0].head(max(SIZES)).reset_index(drop=True)
    rows["customer"] = np.arange(len(rows))
    predictor = Counted()
    explainer = MCCE(
        predictor,
        (np.nextafter(0.0, 1.0), np.inf),
        immutable=list(train.columns[:n_immutable]),
        search=cast("SearchName", setting.search),
        n_samples=setting.n_samples if setting.search == "paper" else None,
        random_state=0,
    ).fit(train)
    _, task = plan_frames(explainer, rows, "customer", lambda: predictor)
    sizes = SIZES if setting.search == "paper" else (500, 1500)
    seconds, asked = zip(
        *(_cost(task, rows.head(n), predictor, repeats) for n in sizes), strict=True
    )
    more = sizes[1] - sizes[0]
    sample = rows.head(sizes[1])
    return Slope(
        setting,
        (seconds[1] - seconds[0]) / more,
        (asked[1] - asked[0]) / more,
        _parquet_bytes(sample) / len(sample),
        _parquet_bytes(task.frame(sample)) / len(sample),
    )


def _cost(task: Task, people: pd.DataFrame, predictor: Counted, repeats: int) -> tuple[float, int]:
    """The least CPU seconds of a partition, and how many rows were scored."""
    found = []
    for _ in range(repeats):
        before, began = predictor.n_rows, time.process_time()
        task.frame(people)
        found.append((time.process_time() - began, predictor.n_rows - before))
    return min(found)


def _parquet_bytes(frame: pd.DataFrame) -> int:
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getbuffer().nbytes


TERMS = (
    *("person", "column", "draw", "draw x column"),
    *("column, own draws", "draw x column, own draws"),
)


def terms_of(setting: Setting) -> list[float]:
    """How often each term of the model counts for one person."""
    p, k, own = setting.n_features, setting.n_samples, float(not setting.shared)
    return [1.0, float(p), float(k), float(k * p), own * p, own * k * p]


def fit(slopes: Sequence[Slope]) -> np.ndarray:
    """Seconds per term: no negative ones, least squares of relative errors."""
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    rows = np.array([terms_of(slope.setting) for slope in slopes])
    seconds = np.array([slope.seconds for slope in slopes])
    return nnls(rows / seconds[:, None], np.ones(len(slopes)))[0]


def seconds_per_person(terms: np.ndarray, setting: Setting) -> float:
    """CPU seconds of one person, without the predictor."""
    return float(terms @ terms_of(setting))


def plan(slope: Mapping[str, Any], n_people: float, predictor_us: float) -> dict[str, float]:
    """Cores, terabytes and euros for a night with a number of people."""
    seconds = n_people * (slope["seconds"] + slope["rows"] * predictor_us * 1e-6)
    hours = seconds / 3600
    return {
        "core hours": hours,
        "cores for a night": hours / NIGHT_HOURS,
        "GB read": n_people * slope["bytes_in"] / 1e9,
        "GB written": n_people * slope["bytes_out"] / 1e9,
        "euros": hours * EUROS_PER_CORE_HOUR,
    }


def read_slopes(path: Path) -> list[Slope]:
    """Slopes of an earlier ``measure``."""
    return [Slope(Setting(**s.pop("setting")), **s) for s in json.loads(path.read_text())]


def show_fit(slopes: Sequence[Slope]) -> None:
    """Print the coefficients, and the model beside slopes that it has and has not seen."""
    seen = [slope for slope in slopes if slope.setting in GRID]
    terms = fit(seen)
    for name, seconds in zip(TERMS, terms, strict=True):
        print(f"{name}: {seconds * 1e9:,.2f} ns")
    off = [seconds_per_person(terms, s.setting) / s.seconds - 1 for s in seen]
    print(
        f"fitted to {len(seen)} slopes; off by {np.median(np.abs(off)):.0%} in the middle, "
        f"{np.max(np.abs(off)):.0%} at most"
    )
    for slope in slopes:
        if slope.setting in UNSEEN:
            model = seconds_per_person(terms, slope.setting)
            print(
                f"unseen {slope.setting}: {slope.seconds * 1e6:.0f} us measured, "
                f"{model * 1e6:.0f} us by the model ({model / slope.seconds - 1:+.0%})"
            )


def show_plan(slopes: Sequence[Slope], n_people: float) -> None:
    """Print what a night needs, by setting and cost of the predictor."""
    wanted = [
        Setting(20, 1000, True),
        Setting(20, 1000, False),
        Setting(20, 1000, False, "balanced"),
    ]
    for slope in (slope for slope in slopes if slope.setting in wanted):
        for predictor_us in (1.0, 20.0, 1000.0):
            needs = plan(asdict(slope), n_people, predictor_us)
            shown = ", ".join(f"{name} {value:,.1f}" for name, value in needs.items())
            print(
                f"{slope.setting}, {slope.rows:.1f} rows a person at {predictor_us:g} us: {shown}"
            )


def main() -> None:
    """Measure, fit, or plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+", choices=["measure", "fit", "plan"])
    parser.add_argument("--people", type=float, default=1e8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="Settings measured side by side.")
    options = parser.parse_args()
    if "measure" in options.what:
        run = Parallel(n_jobs=options.workers, return_as="generator", verbose=5)
        settings = [*GRID, *UNSEEN, *BEYOND]
        slopes = list(run(delayed(measure_slope)(one, options.repeats) for one in settings))
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(json.dumps([asdict(slope) for slope in slopes], indent=1))
    slopes = read_slopes(FILE)
    if "fit" in options.what:
        show_fit(slopes)
    if "plan" in options.what:
        show_plan(slopes, options.people)


if __name__ == "__main__":
    main()
