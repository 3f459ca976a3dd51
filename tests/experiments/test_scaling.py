"""Computation times: fitted growth, published tables, and what a run leaves behind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.datasets import simulate, total
from mcce.experiments import scaling
from mcce.experiments.timing import STEPS, cpu_seconds, growth, time_steps


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found(exponent):
    sizes = [10, 100, 300, 1000]

    assert growth(sizes, [0.03 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_n_log_n_looks_slightly_steeper_than_linear():
    sizes = np.array([10_000, 30_000, 100_000])

    assert 1.0 < growth(sizes, sizes * np.log(sizes)) < 1.15


def test_the_published_totals_are_those_of_the_paper():
    totals = scaling._published().set_index(scaling.SIZES)["total"]

    assert totals[1, 1000, 5, 10_000] == 0.24
    assert totals[50, 1000, 30, 100_000] == 272.08
    assert totals[50, 10_000, 30, 100_000] == 286.79


def test_steps_add_up_to_the_total():
    rows = simulate(300, 4)
    people = rows.features[rows.target <= 0].head(5)

    seconds = time_steps(
        total, rows.features, people, immutable=[], desired=rows.desired, n_samples=50
    )

    assert tuple(seconds) == STEPS
    assert min(seconds.values()) >= 0
    assert sum(seconds[step] for step in STEPS[:-1]) == pytest.approx(seconds["total"])


def test_waiting_takes_no_cpu_seconds():
    import time

    seconds, given = cpu_seconds(lambda: time.sleep(0.2) or 7)

    assert given == 7
    assert seconds < 0.15


def test_sizes_are_abbreviated():
    assert [scaling._brief(n) for n in (5, 1000, 300_000, 1_000_000)] == ["5", "1k", "300k", "1M"]


@pytest.mark.slow
def test_the_experiment_leaves_its_tables_and_figures(tmp_path):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "scaling", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0

    combinations = pd.read_csv(tmp_path / "scaling-combinations.csv")
    assert list(combinations) == [*scaling.SIZES, "runs", *STEPS]
    exponents = pd.read_csv(tmp_path / "scaling-growth.csv").set_index(["varied", "step"])["ours"]
    assert exponents["n_test, one immutable", "generate"] > exponents["n_test", "generate"]
    assert exponents["p", "model"] > 0.3
    assert (tmp_path / "scaling-runtimes.png").stat().st_size > 10_000
    published = pd.read_csv(tmp_path / "scaling-published.csv")
    assert published["published"].tolist() == [0.24]


def test_mimicked_sizes_are_timed_beside_the_real_data(tmp_path, bench_cache):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "mimic", "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0

    seconds = pd.read_csv(tmp_path / "mimic-seconds.csv")
    assert list(seconds) == ["dataset", "rows", "runs", "n_test", *STEPS]
    assert seconds["rows"].tolist() == ["simulated", "real"]
    assert pd.read_csv(tmp_path / "mimic-published.csv")["published"].tolist() == [7.4, 3.71]
