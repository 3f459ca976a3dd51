"""``mcce-lab``: every experiment runs, writes its tables, and says what it needs."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from mcce.errors import ParameterError
from mcce_lab.cli import main
from mcce_lab.datasets import load
from mcce_lab.experiments import EXPERIMENTS, Report
from mcce_lab.experiments.predictors import black_box


def run(name, folder, *more):
    """Run an experiment in its quick form and read its tables; its figures are there."""
    assert main(["experiments", name, "--quick", "--seeds", "1", "--out", str(folder), *more]) == 0
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    title, table, *figures = text.strip().split("\n\n")
    assert title.startswith("# ")
    assert all(line.startswith("| ") for line in table.splitlines())
    assert all(figure.startswith("![") for figure in figures)
    for file in re.findall(r"\]\(([^)]+)\)", text):
        assert (folder / file).stat().st_size > 0
    return {
        path.stem.removeprefix(f"{name}-"): pd.read_csv(path)
        for path in folder.glob(f"{name}-*.csv")
    }


@pytest.mark.slow
def test_costs_have_all_published_rows_and_ours(bench_cache, tmp_path, capsys):
    tables = run("costs", tmp_path)

    table = tables["results"].set_index("setting")
    printed, ours = (table[table["source"] == who] for who in ("published", "ours"))
    assert capsys.readouterr().out == f"{tmp_path / 'costs.md'}\n"
    assert len(printed) == 7
    revise = printed.loc["REViSE", ["l0", "l1", "n_ce", "coverage"]].tolist()
    assert revise == [7.56, 2.28, 172, 0.86]
    assert ours.index.tolist() == ["MCCE", "MCCE balanced", "held-out people"]
    assert (ours[["coverage", "success"]] == 1).all(axis=None)
    assert (ours["violation"] == 0).all()
    assert ours.loc["MCCE", "l0"] <= 3.62
    assert ours.loc["MCCE balanced", "l0"] < ours.loc["MCCE", "l0"]
    compared = tables["published"].set_index(["setting", "measure"])
    assert set(compared.index.get_level_values(0)) == {"MCCE", "held-out people"}
    assert compared["reproduced"].notna().sum() == 4, "there is no verdict on an AUC"


@pytest.mark.slow
def test_without_the_decision_fewer_people_have_a_counterfactual(bench_cache, tmp_path):
    known, unknown = (
        run(name, tmp_path)["results"].set_index("setting") for name in ("samples", "unconditioned")
    )

    assert known.index.tolist() == ["K = 10", "K = 50", "K = 100"]
    assert known["l0"].is_monotonic_decreasing
    assert known["n_ce"].is_monotonic_increasing
    assert (known[["model", "generate", "postprocess", "total"]] > 0).all(axis=None)
    assert unknown.loc["K = 10", "n_ce"] <= known.loc["K = 10", "n_ce"]
    assert (unknown["l0"] != known["l0"]).all(), "the trees differ"


def test_most_draws_are_valid_with_the_decision_and_fewer_without(bench_cache, tmp_path):
    table = run("draws", tmp_path)["draws"].set_index(["setting", "k"])

    known, unknown = (table.loc[f"{how} the decision"] for how in ("with", "without"))
    assert (known["valid_%"] > unknown["valid_%"]).all()
    assert (table["valid_and_unique_%"] <= table["valid_%"]).all()
    assert known["valid_and_unique_%"].is_monotonic_decreasing


def test_changes_of_a_feature_go_up_or_down(bench_cache, tmp_path):
    table = run("changes", tmp_path)["changes"].set_index("feature")

    assert table["changed_%"].between(0, 100).all()
    numbers = table[table["up_%"].notna()]
    assert (numbers["up_%"] + numbers["down_%"]).tolist() == pytest.approx([100] * len(numbers))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forest", "levels"])
def test_another_predictor_or_form_is_run_next_to_the_usual_one(name, bench_cache, tmp_path):
    settings = {
        "forest": ["network", "forest", "forest, without copies"],
        "levels": ["two levels", "four levels", "all levels"],
    }

    table = run(name, tmp_path)["results"]

    assert table["setting"].tolist() == settings[name]
    assert (table[["coverage", "success"]] == 1).all(axis=None)
    assert (table["violation"] == 0).all()


def test_excluded_copies_are_gone(bench_cache, tmp_path):
    tables = run("privacy", tmp_path)

    printed, drawn, without = (row for _, row in tables["results"].iterrows())
    assert (printed["n_ce"], printed["copies"]) == (200, 2)
    assert without["copies"] == 0
    assert without["l0"] >= drawn["l0"]
    (compared,) = tables["published"].to_dict("records")
    # Two in 200 beside ours in 40 people, both with the chance of a share.
    share = drawn["copies"] / drawn["n_ce"]
    error = 200 * np.sqrt(0.01 * 0.99 / 200 + share * (1 - share) / 200)
    assert compared["difference_high"] - compared["difference"] == pytest.approx(2 * error)


@pytest.mark.slow
def test_the_example_shows_the_first_declined_person(bench_cache, tmp_path):
    table = run("example", tmp_path)["german"]

    assert table["method"].tolist()[:2] == ["person", "MCCE paper"]
    assert table.loc[0, "score"] < 0.5 <= table.loc[1:, "score"].min()
    assert (table.loc[1:, "changes"] >= 1).all()
    assert table.loc[1:, ["Purpose", "Age", "PersonalStatusSex"]].eq("·").all(axis=None)


def test_mimicked_sizes_are_timed_beside_the_real_data(bench_cache, tmp_path):
    table = run("mimic", tmp_path)["seconds"].set_index(["source", "rows"])["total"]

    assert table["published"].to_dict() == {"simulated": 7.4, "real": 3.71}
    assert (table["ours"] > 0).all()


TABLES = {
    "manifold": ("discriminator", {"protocol", "classifier", "accuracy", "auc"}),
    "scaling": ("combinations", {"n_test", "n_train", "p", "n_samples", "model", "total"}),
    "visit-order": ("measures", {"order", "log_likelihood", "coverage"}),
    "distances": ("measures", {"distance", "coverage", "l0", "l1", "other_answers_%"}),
    "private": ("bound", {"dataset", "trees", "violations", "violations_without_noise"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_an_experiment_writes_its_table(name, bench_cache, tmp_path):
    table, columns = TABLES[name]

    found = run(name, tmp_path)[table]

    assert columns <= set(found.columns)
    assert found[sorted(columns)].notna().all(axis=None)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is not None, reason="networks would be trained for minutes")
def test_generators_that_were_measured_are_not_measured_again(bench_cache, tmp_path, capsys):
    command = ["experiments", "generators", "--quick", "--seeds", "1", "--out", str(tmp_path)]
    assert main(command) == 2
    assert "needs torch" in capsys.readouterr().err
    measured = (tmp_path / "cells" / "generators-german-trees-0-quick.json").read_text()
    for name in ("made", "ctgan", "cgan"):
        path = tmp_path / "cells" / f"generators-german-{name}-0-quick.json"
        path.write_text(measured.replace('"trees"', f'"{name}"'))

    table = run("generators", tmp_path)["measures"]

    assert {"trees", "copula", "made", "ctgan", "private"} <= set(table["generator"])
    made, trees = (
        table[table["generator"] == name].drop(columns="generator").reset_index(drop=True)
        for name in ("made", "trees")
    )
    pd.testing.assert_frame_equal(made, trees)


NETWORK = {
    "input_names": np.array(["salary", "job_works"]),
    "natural_mean": np.array([50.0, 0.0]),
    "natural_sd": np.array([10.0, 1.0]),
    "coef_0": np.array([[1.0, -1.0], [1.0, 0.0]]),
    "intercept_0": np.array([0.0, 0.0]),
    "coef_1": np.array([[1.0], [-1.0]]),
    "intercept_1": np.array([-0.5]),
}


def by_hand(rows):
    """The score of that network."""
    inputs = np.column_stack([(rows["salary"] - 50) / 10, rows["job"] == "works"])
    hidden = np.maximum(inputs @ NETWORK["coef_0"], 0)
    return 1 / (1 + np.exp(-(hidden @ NETWORK["coef_1"])[:, 0] + 0.5))


def write_reference(folder, *, stated=0.0):
    """A folder as of the authors' code, where they changed the salary of everybody by 30."""
    chance = np.random.default_rng(0)
    train = pd.DataFrame(
        {
            "age": chance.integers(20, 60, 200),
            "salary": chance.integers(20, 90, 200),
            "job": chance.choice(["rests", "works"], 200),
        }
    ).rename_axis("row")
    score = pd.Series(by_hand(train), index=train.index)
    people = train[score < 0.5].head(20)
    answers = people.assign(salary=people["salary"] + 30, L0=1.0, L1=30 / np.ptp(train["salary"]))
    meta = {"immutables": ["age"], "target": "good", "K": 50, "auc": 0.9}
    meta["reference"] = {"fit_cpu": 1.0, "gen_cpu": 2.0, "post_cpu": 3.0}
    folder.mkdir()
    train.assign(good=(score >= 0.5).astype(int)).to_csv(folder / "train.csv.gz")
    people.assign(good=0, pred_prob=score[people.index] + stated).to_csv(folder / "factuals.csv.gz")
    answers.sample(frac=1.0, random_state=0).to_csv(folder / "reference_cfs.csv.gz")
    (folder / "meta.json").write_text(json.dumps(meta))
    np.savez(folder / "model.npz", **NETWORK)


def test_the_authors_costs_are_compared_whatever_the_order_of_their_answers(tmp_path, capsys):
    write_reference(tmp_path / "german")
    reference = ["--reference", str(tmp_path), "--dataset", "german"]

    tables = run("authors", tmp_path / "out", *reference)

    table, compared = tables["results"].set_index("code"), tables["published"].set_index("measure")
    assert table.loc["authors'", ["l0", "n_ce", "total"]].tolist() == [1, 20, 6]
    assert table.loc["ours", "n_ce"] == 20
    for cost in ("l0", "l1"):
        line = compared.loc[cost]
        assert line["published"] == pytest.approx(table.loc["authors'", cost])
        assert line["ours"] == pytest.approx(table.loc["ours", cost])
        assert line["difference_low"] <= line["ours"] - line["published"] <= line["difference_high"]


def test_a_reference_that_is_missing_damaged_or_scored_otherwise_is_an_error(tmp_path, capsys):
    def said(*more):
        assert main(["experiments", "authors", "--out", str(tmp_path / "out"), *more]) == 2
        return capsys.readouterr().err

    write_reference(tmp_path / "german", stated=0.1)
    given = ["--reference", str(tmp_path), "--dataset", "german"]

    assert "Use --reference" in said()
    assert "differs by up to 0.1" in said(*given)
    (tmp_path / "german" / "model.npz").unlink()
    assert "need model.npz" in said(*given)


def test_a_comparison_has_an_interval_of_two_standard_errors_and_the_rounding():
    report = Report()
    both = pd.DataFrame({"l0": [2.70, 2.71], "l0_sd": 1.0, "l1": [1.0, 2.0], "l1_sd": 0.0})

    report.compare_means({"dataset": "adult"}, *both.assign(n_ce=200).iloc, "l0", "l1")

    few, many = report.comparison.to_dict("records")
    assert few["difference_high"] - few["difference"] == pytest.approx(2 * 0.1 + 0.005)
    assert few["difference_low"] < 0 < few["difference_high"]
    assert few["standard_errors"] == pytest.approx(0.1)
    assert (few["reproduced"], many["reproduced"]) == (True, False)


def test_a_number_of_people_is_compared_as_the_draws_that_it_is():
    report = Report()
    theirs, ours = {"n_ce": 633, "n_explained": 1000}, {"n_ce": 697, "n_explained": 1000}

    report.compare_counts({"setting": "K = 10"}, theirs, ours, "n_ce", "n_explained")

    (line,) = report.comparison.to_dict("records")
    error = np.sqrt(0.633 * 0.367 / 1000 + 0.697 * 0.303 / 1000)
    assert line["standard_errors"] == pytest.approx(0.064 / error)
    assert not line["reproduced"]


def test_the_command_lists_its_experiments(capsys):
    assert main(["experiments", "--list"]) == 0

    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(EXPERIMENTS)
    assert {"costs", "authors", "generators", "distances"} <= set(names)


def test_what_cannot_be_run_is_an_error_that_says_what_to_do(tmp_path, capsys, monkeypatch):
    def said(*arguments):
        assert main(arguments) == 2
        return capsys.readouterr().err

    out = ["--out", str(tmp_path / "out")]
    (tmp_path / "file").write_text("in the way")

    unknown = said("experiments", "coasts")
    assert unknown.startswith("mcce-lab: There is no experiment 'coasts', only costs")
    assert unknown.count("\n") == 1, "one line, no traceback"
    assert "leave --only out" in said("experiments", "costs", "--only", "trees", *out)
    trees = said("experiments", "generators", "--only", "tree", *out)
    assert "There is no 'tree' to try, only trees; forest; ctree;" in trees
    assert "invalid choice: 'germn'" in said("compare", "--dataset", "germn")
    assert "must be a whole number >= 1" in said("experiments", "costs", "--seeds=0")
    assert "folder" in said("experiments", "costs", "--data", str(tmp_path / "nowhere"), *out)
    adult = said("experiments", "costs", "--dataset", "adult", "--data", str(tmp_path), *out)
    assert "There is no adult.csv.gz or adult.csv in" in adult
    no_folder = said("experiments", "costs", "--quick", "--out", str(tmp_path / "file" / "reports"))
    assert "--out" in no_folder
    assert "rows and predictor" not in no_folder, "nothing is read before"
    assert "cannot be read" in said("page", str(tmp_path / "nowhere.md"))
    monkeypatch.setenv("MCCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "pip install" in said("experiments", "costs", "--quick", *out)


def test_a_kept_network_is_read_without_torch_and_has_the_stated_auc(bench_cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    german = load("german", form="paper")

    box = black_box(german)

    heldout, good = german.features.loc[box.heldout], german.target.loc[box.heldout] == "good"
    assert len(box.heldout) == 250
    assert roc_auc_score(good, box.predict(heldout)) == pytest.approx(box.auc, abs=1e-4)


def test_a_black_box_is_kept_and_another_one_is_made_for_other_rows_or_seeds(tmp_path):
    german = load("german", form="paper")
    few = replace(german, features=german.features.head(200), target=german.target.head(200))
    longer = replace(few, features=few.features.assign(Duration=few.features["Duration"] + 1))
    files = lambda: len(list(tmp_path.iterdir()))

    one, other = (black_box(few, "perceptron", cache=tmp_path) for _ in range(2))

    assert files() == 1
    assert one.predict(few.features).tolist() == other.predict(few.features).tolist()
    black_box(few, "perceptron", seed=1, cache=tmp_path)
    black_box(longer, "perceptron", cache=tmp_path)
    assert files() == 3
    with pytest.raises(ParameterError, match="kind must be"):
        black_box(few, "svm")


@pytest.mark.parametrize("kind", ["perceptron", "forest", "boosting"])
def test_a_black_box_scores_rows_as_its_model_does(kind, tmp_path):
    german = load("german")

    box = black_box(german, kind, cache=tmp_path)

    scores = box.predict(german.features)
    heldout = german.target.loc[box.heldout] == "good"
    assert ((scores >= 0) & (scores <= 1)).all()
    assert roc_auc_score(heldout, box.predict(german.features.loc[box.heldout])) > 0.65
    assert box.predict(german.features.iloc[::-1])[::-1].tolist() == pytest.approx(scores.tolist())
