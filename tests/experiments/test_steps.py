"""Replaced steps: how generators and distances are compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce import ForestChain, GaussianCopula, InferenceTreeChain, TreeChain
from mcce.cli import main
from mcce.experiments import EXPERIMENTS, Case, Options
from mcce.experiments.report.page import joined_text
from mcce.experiments.steps import STEPS
from mcce.experiments.steps.cells import saved_runs
from mcce.experiments.steps.likelihood import heldout_log_likelihood
from mcce.experiments.steps.measuring import against, interval, summarise, verdicts
from mcce.experiments.steps.page import INTRODUCTION
from mcce.experiments.steps.parts import Parts, rows_for_desired, rows_like
from mcce.experiments.steps.private import private_trees

PAGE = Path(__file__).resolve().parents[2] / "docs" / "steps.md"
# Too few rows for what the audit would like; a small sample of people may have no answer.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@pytest.fixture(scope="module")
def case():
    chance = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": chance.integers(20, 70, 600),
            "job": pd.Categorical(chance.choice(["clerk", "cook"], 600)),
            "salary": chance.integers(10, 60, 600),
        }
    )

    def score(frame):
        return frame["salary"].to_numpy() / 60 + (frame["job"] == "clerk").to_numpy() / 5

    return Case("bank", rows, rows.head(3), ["age"], score)


@pytest.fixture(scope="module")
def parts(case):
    return Parts.draw(case, 0, quick=True)


def test_nobody_is_in_two_parts_and_those_explained_are_declined(case, parts):
    places = [set(part.index) for part in (parts.training, parts.holdout, parts.reference)]

    assert [len(some) for some in places] == [200, 200, 200]
    assert len(set.union(*places)) == 600
    assert set(parts.factuals.index) <= places[1]
    assert not case.decide(parts.factuals).any()


def test_parts_depend_on_the_seed_alone(case, parts):
    again, other = (Parts.draw(case, seed, quick=True) for seed in (0, 1))

    pd.testing.assert_frame_equal(parts.training, again.training)
    assert not parts.training.equals(other.training)


CHAINS = [TreeChain(), ForestChain(), InferenceTreeChain()]


@pytest.mark.parametrize("generator", CHAINS, ids=lambda some: type(some).__name__)
def test_rows_are_like_those_of_real_people_in_immutable_values_and_decision(
    case, parts, generator
):
    like_training, like_reference = rows_like(generator, case, parts, 0)

    for made, real in ((like_training, parts.training), (like_reference, parts.reference)):
        assert made["age"].tolist() == real["age"].tolist()
        agree = (case.decide(made) == case.decide(real)).mean()
        # Trees do not follow the decision to the letter; without it, about half would agree.
        assert agree > 0.75


def test_rows_for_the_desired_decision_have_it_mostly(case, parts):
    made = rows_for_desired(TreeChain(), case, parts, 0)

    assert made["age"].tolist() == parts.reference["age"].tolist()
    assert case.decide(made).mean() > 0.85


def test_private_trees_know_the_domains_and_none_of_the_training_rows(case, parts):
    domains = private_trees(case, parts, 1.0, 0).domains
    without = private_trees(
        case, Parts(parts.holdout, parts.training, parts.reference, parts.factuals), 1.0, 0
    ).domains

    assert list(domains["job"].levels) == ["clerk", "cook"]
    assert domains == without
    assert domains["salary"].low == case.train["salary"].min()


def test_likelihoods_of_generators_are_comparable(case, parts):
    for generator in (*CHAINS, GaussianCopula(), private_trees(case, parts, 5.0, 0)):
        found = heldout_log_likelihood(generator, case, parts, 0)

        # Two features that are drawn at random, in 20 combinations; the decision tells about half.
        assert found == pytest.approx(-np.log(20), abs=0.8)


def test_intervals_are_those_of_student():
    found = interval("x", pd.Series([1.0, 2.0, 3.0]))

    margin = 4.302653 / np.sqrt(3)
    assert list(found.values()) == pytest.approx([2, 2 - margin, 2 + margin])
    assert np.isnan(interval("x", pd.Series([1.0]))["x_low"])


def test_differences_count_only_beyond_their_interval():
    runs = pd.DataFrame(
        [
            {"dataset": "bank", "seed": seed, "generator": name, "l1": base + at, "coverage": 1.0}
            for seed, at in enumerate((0.0, 0.1, 0.2))
            for name, base in (("trees", 1.0), ("good", 0.5), ("bad", 1.5 + seed / 100))
        ]
    )

    found = against(runs, "generator", "trees", {"l1": "lower", "coverage": "higher"})
    table = verdicts(found, "generator").set_index("measure")

    assert found.set_index(["measure", "generator"])["verdict"].to_dict() == {
        ("l1", "good"): "better",
        ("l1", "bad"): "worse",
        ("coverage", "good"): "",
        ("coverage", "bad"): "",
    }
    assert table.loc["l1"].tolist() == ["+1 -0", "+0 -1"]
    assert table.loc["coverage"].tolist() == ["=", "="]


def test_a_measure_that_a_seed_lacks_is_empty():
    runs = pd.DataFrame(
        [
            {"dataset": "bank", "seed": seed, "generator": name, "log_likelihood": base + at}
            for seed, at in enumerate((0.0, 0.1, 0.2))
            for name, base in (("trees", -9.0), ("copula", np.nan if seed == 1 else -8.0))
        ]
    )

    means = summarise(runs, ["dataset", "generator"], ["log_likelihood"]).set_index("generator")
    found = against(runs, "generator", "trees", {"log_likelihood": "higher"})

    assert means.loc["trees", "log_likelihood"] == pytest.approx(-8.9)
    assert means.loc["copula"].drop("dataset").isna().all()
    assert found.empty


def test_what_was_run_is_not_run_again(tmp_path):
    options = Options(("german",), None, 1, tmp_path, quick=True)
    labels = {"dataset": "german", "seed": 0}

    first = saved_runs("generators", options, labels, lambda: [{"l1": 1.0}])
    again = saved_runs("generators", options, labels, lambda: pytest.fail("run again"))

    assert first == again == [{"dataset": "german", "seed": 0, "l1": 1.0}]
    (path,) = (tmp_path / "cells").iterdir()
    assert json.loads(path.read_text()) == first
    other = saved_runs("private", options, labels, lambda: [{"l1": 2.0}])
    assert other[0]["l1"] == 2.0


@pytest.mark.slow
def test_quick_runs_write_a_page(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("private", "distances"):
        assert main(["experiments", name, "--quick", "--seeds", "1", "--out", str(tmp_path)]) == 0

    assert main(["experiments", "page", "--out", str(tmp_path)]) == 0

    text = (tmp_path / "steps.md").read_text(encoding="utf-8")
    assert "epsilon 10" in text
    assert "hvdm" in text


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")
def test_the_page_is_what_its_files_give():
    experiments = [EXPERIMENTS[name] for name in STEPS]

    assert PAGE.read_text(encoding="utf-8") == joined_text(
        PAGE.with_suffix(""), experiments, INTRODUCTION
    )
