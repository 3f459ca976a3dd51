"""The comparison of methods: its statistics, and a tiny run from cells to the page."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from mcce_lab.cli import main
from mcce_lab.experiments.summary import (
    MEASURES,
    by_method,
    dominance,
    front,
    interval,
    paired,
)

OURS, RIVALS = ["MCCE sparse", "MCCE near"], ["NICE", "FACE"]
CELL = ["dataset", "box", "network", "seed", "method"]


def table(**shifts):
    """Measures of 40 people in each of 2 x 2 cells; every method shifted as told."""
    chance = np.random.default_rng(0)
    parts = []
    for network, draw in product(range(2), range(2)):
        base = pd.DataFrame({name: chance.normal(3, 0.3, 40) for name in MEASURES})
        for method in (*OURS, *RIVALS):
            moved = base + chance.normal(0, 0.02, base.shape)
            for name, by in shifts.get(method.removeprefix("MCCE "), {}).items():
                moved[name] += by
            keys = {"dataset": "german", "box": "network", "network": network, "seed": draw}
            parts.append(moved.assign(**keys, method=method, person=range(40)))
    return pd.concat(parts, ignore_index=True).assign(valid=1.0, violation=0.0)


@pytest.fixture(scope="module")
def rows():
    columns = ["network", "seed", "person"]
    return pd.DataFrame(list(product(range(3), range(5), range(30))), columns=columns)


def test_an_interval_covers_the_mean_about_as_often_as_it_says(rows):
    chance, covered = np.random.default_rng(0), []
    for _ in range(100):
        effect = chance.normal(0, 0.3, 5)[rows["seed"]] + chance.normal(0, 0.1, 3)[rows["network"]]
        _, low, high = interval(rows, effect + chance.normal(0, 1, len(rows)))
        covered.append(low <= 0 <= high)

    # Percentile intervals over five seeds and three networks are a little too narrow.
    assert 0.8 <= np.mean(covered) <= 1.0


def test_an_interval_is_wider_if_seeds_differ_and_unknown_for_a_single_value(rows):
    values = np.random.default_rng(1).normal(0, 1, len(rows))
    alike, apart = interval(rows, values), interval(rows, values + 3 * rows["seed"])

    assert apart[2] - apart[1] > 3 * (alike[2] - alike[1])
    assert np.isnan(interval(rows.head(2), [np.nan, np.nan])).all()
    mean, low, high = interval(rows.head(2), [2.0, np.nan])
    assert mean == 2.0
    assert np.isnan([low, high]).all()


def test_coverage_counts_everybody_and_means_those_with_an_answer():
    people = table()
    gone = (people["method"] == "FACE") & (people["person"] < 10)
    people.loc[gone, [*MEASURES, "valid", "violation"]] = np.nan
    measured = {"fit_cpu": 1.0, "search_cpu": 2.0, "rows_per_person": 3.0, "detectability": 0.7}

    found = by_method(people, people[CELL].drop_duplicates().assign(**measured)).set_index("method")

    assert found["coverage"].to_dict() == {**dict.fromkeys(OURS, 1.0), "NICE": 1.0, "FACE": 0.75}
    there = people[(people["method"] == "FACE") & ~gone]
    assert found.loc["FACE", "sparsity"] == pytest.approx(there["sparsity"].mean())
    assert (found["sparsity_low"] <= found["sparsity"]).all()
    assert (found["sparsity"] <= found["sparsity_high"]).all()


def test_methods_are_paired_on_the_people_whom_both_answer():
    people = table(NICE={"l1": 1.0})
    few = (people["method"] == "FACE") & (people["person"] >= 10)
    people.loc[few, [*MEASURES]] = np.nan

    found = paired(people, "MCCE near").set_index("method")

    assert found["common_people"].to_dict() == {**dict.fromkeys(OURS, 160), "NICE": 160, "FACE": 40}
    some = people[(people["person"] < 10) & (people["method"] == "MCCE near")]
    assert found.loc["FACE", "l1_base"] == pytest.approx(some["l1"].mean())
    assert 0.9 < found.loc["NICE", "l1_difference_low"] < found.loc["NICE", "l1_difference"] < 1.1
    assert found.loc["MCCE near", "l1_difference"] == 0


def test_who_dominates_whom_is_found_unless_too_few_people_tell():
    people = table(
        sparse={"sparsity": -1.0, "l1": -1.0}, NICE={"sparsity": -0.1, "isolation": -1.0}
    )
    few = people.copy()
    few.loc[(few["method"] == "NICE") & (few["person"] > 3), [*MEASURES]] = np.nan

    found = dominance(people, OURS, RIVALS).set_index(["rival", "judge"])

    assert found.loc[("FACE", "l1"), "dominated_by"] == "MCCE sparse"
    assert found.loc[("FACE", "l1"), "dominates"] == ""
    assert found.loc[("NICE", "isolation"), "dominated_by"] == ""
    assert found.loc[("NICE", "isolation"), "dominates"] == "MCCE near"
    nothing = dominance(few, OURS, ["NICE"])[["dominated_by", "dominates"]]
    assert (nothing == "").all(axis=None)


def test_a_worse_mean_prevents_dominance_even_within_its_interval():
    people = table(sparse={"sparsity": -1.0})
    # One person of ours is far worse: a mean above 0, with an interval that holds 0.
    people.loc[(people["method"] == "MCCE sparse") & (people.index % 160 == 0), "l1"] += 9.0

    found = dominance(people, ["MCCE sparse"], ["NICE"]).set_index("judge")

    assert found.loc["l1", "dominated_by"] == ""


def test_the_front_is_what_nothing_beats():
    points = np.random.default_rng(2).integers(0, 6, (40, 2))

    found = front(pd.DataFrame(points, columns=["x", "y"]), "x", "y")

    for at, point in enumerate(points):
        beaten = ((points <= point).all(axis=1) & (points < point).any(axis=1)).any()
        assert found[at] == (not beaten)


@pytest.mark.slow
def test_cells_are_run_once_saved_and_shown(bench_cache, tmp_path, capsys):
    named = ["MCCE sparse", "NICE"]
    run = ["compare", "--quick", "--seeds", "1", "--out", str(tmp_path), "--only", *named]

    assert main(run) == 0

    saved = tmp_path / "cells" / "german-network-0-0-people.csv"
    people = pd.read_csv(saved)
    answered = people[people["sparsity"].notna()]
    assert list(dict.fromkeys(people["method"])) == named
    assert people.groupby("method")["person"].nunique().eq(30).all()
    assert (answered["valid"] == 1).all()
    assert (answered["violation"] == 0).all()
    # Neither cells of the data nor values.
    assert set(people.columns) - set(CELL) - {"person"} <= {*MEASURES, "valid", "violation"}
    methods = saved.with_name("german-network-0-0-methods.csv")
    for path in (saved, methods):
        before = pd.read_csv(path)
        before[before["method"] != "NICE"].to_csv(path, index=False)
    capsys.readouterr()
    assert main(run) == 0
    steps = [line for line in capsys.readouterr().err.splitlines() if "german-network" in line]
    assert len(steps) == 1, "the method that was missing is run alone"
    assert steps[0].endswith("NICE")
    pd.testing.assert_frame_equal(pd.read_csv(saved), people)
    assert "| german | network | NICE |" in (tmp_path / "compare.md").read_text(encoding="utf-8")


def test_a_method_that_is_unknown_is_an_error(tmp_path, capsys):
    assert main(["compare", "--only", "Dice", "--out", str(tmp_path)]) == 2

    assert "There is no 'Dice' to try, only MCCE paper; MCCE sparse;" in capsys.readouterr().err


def test_a_run_without_any_data_says_what_is_missing(tmp_path, capsys):
    arguments = ["compare", "--quick", "--dataset", "adult", "--data", str(tmp_path)]

    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2

    assert "No cell could be run" in capsys.readouterr().err
