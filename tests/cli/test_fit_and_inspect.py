"""Fitting from files, looking into saved files, and the demo."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from bank_files import INPUT, USAGE
from mcce.cli import main
from shown_commands import commands_in, run_shown


def fit(*arguments, train=("train.csv",)):
    command = ["fit", *train, "--predictor", "scoring:score", "--desired", "0.6:", "-o", "own.mcce"]
    return main([*command, *arguments])


def content():
    return Path("own.mcce").read_bytes()


def split(rows, at):
    """Write the rows as two files."""
    rows.iloc[:at].to_csv("part1.csv", index=False)
    rows.iloc[at:].to_csv("part2.csv", index=False)
    return ["part1.csv", "part2.csv"]


def test_every_source_of_training_rows_gives_the_same_explainer(here, monkeypatch):
    assert fit() == 0
    expected = content()

    for name in ("train.jsonl", "train.parquet", "train.feather"):
        assert fit(train=[name]) == 0
        assert content() == expected
    assert fit(train=split(pd.read_csv("train.csv"), 120)) == 0
    assert content() == expected
    stream = io.TextIOWrapper(io.BytesIO((here / "train.csv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert fit("--format", "csv", train=["-"]) == 0
    assert content() == expected


def test_an_explainer_is_the_one_that_python_fits(here, score):
    options = ["--immutable", "Age,Sex", "--rules", "rules.toml", "--search", "balanced"]
    more = ["--n-counterfactuals", "2", "--seed", "7", "--distance", "hvdm"]
    assert fit(*options, *more) == 0

    explainer = mcce.MCCE(
        score,
        mcce.Interval(0.6, float("inf")),
        immutable=["Age", "Sex"],
        constraints="rules.toml",
        search="balanced",
        distance="hvdm",
        n_counterfactuals=2,
        diversity=0.5,
        random_state=7,
    ).fit(pd.read_csv("train.csv"))
    explainer.save("python.mcce")
    assert content() == (here / "python.mcce").read_bytes()


def test_a_sample_does_not_depend_on_how_rows_are_divided_into_files(here, capsys):
    rows, saved = pd.read_csv("train.csv"), []
    for at in (100, 217):
        arguments = ["--sample-rows", "150", "--immutable", "Sex", "--json"]
        assert fit(*arguments, train=split(rows, at)) == 0
        saved.append(content())
        said = json.loads(capsys.readouterr().out)

    assert saved[0] == saved[1]
    assert (said["n_train"], said["n_seen"]) == (150, 300)
    assert said["rare"] >= 1


def test_with_a_key_a_sample_does_not_depend_on_the_order_of_files(here, capsys):
    rows, saved = pd.read_csv("train.csv"), []
    paths = split(rows.assign(Customer=range(len(rows))), 100)
    for order in (paths, paths[::-1]):
        arguments = ["--sample-rows", "150", "--sample-key", "Customer", "--immutable", "Sex"]
        assert fit(*arguments, train=order) == 0
        saved.append(content())

    assert saved[0] == saved[1]
    said = " ".join(capsys.readouterr().err.split())
    assert "a sample of 300 rows" in said
    assert "accepted rows are over-represented" in said


def test_columns_can_be_dropped_and_read_in_another_dtype(here, capsys):
    arguments = ["--drop", "Job", "--dtype", "Duration=float64", "--categorical", "Age", "--json"]
    assert fit(*arguments, "--immutable", "Sex") == 0
    fitted = json.loads(capsys.readouterr().out)
    assert main(["inspect", "own.mcce", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    columns = {column["name"]: column for column in said["columns"]}
    assert "Job" not in columns
    assert columns["Duration"]["dtype"] == "float64"
    assert columns["Age"]["kind"] == "categorical"
    assert (fitted["n_train"], fitted["immutable"]) == (300, ["Sex"])


def test_the_outcome_among_the_columns_is_an_error_unless_it_is_allowed(here, capsys, score):
    rows = pd.concat([pd.read_csv("train.csv")] * 2, ignore_index=True)
    rows.assign(Paid=np.where(score(rows) >= 0.6, "yes", "no")).to_csv("leaked.csv", index=False)

    assert fit(train=["leaked.csv"]) == INPUT
    assert "'Paid' looks like the outcome" in capsys.readouterr().err
    assert not Path("own.mcce").exists()
    for option in (["--allow-outcome"], ["--drop", "Paid"]):
        assert fit(*option, train=["leaked.csv"]) == 0


def test_names_may_hold_commas(here, capsys):
    train = pd.read_csv("train.csv").rename(columns={"Job": "Job, kind"})
    train.to_csv("commas.csv", index=False)

    assert fit("--immutable", "Job, kind", "--immutable", "Age,Sex", train=["commas.csv"]) == 0
    capsys.readouterr()
    assert main(["inspect", "own.mcce", "--json"]) == 0

    columns = json.loads(capsys.readouterr().out)["columns"]
    fixed = {column["name"] for column in columns if column["immutable"]}
    assert fixed == {"Job, kind", "Age", "Sex"}


def test_what_cannot_work_is_an_error(here, capsys):
    wrong = [
        (["--immutable", "Alter"], USAGE, "--immutable names columns"),
        (["--drop", "Alter"], USAGE, "--drop names columns"),
        (["--seed", "-1"], USAGE, "--seed"),
        (["--dtype", "Age"], USAGE, "NAME=DTYPE"),
        (["--dtype", "Age=nonsense"], USAGE, "no dtype"),
        (["--dtype", "Sex=float64"], INPUT, "do not fit"),
        (["--search", "best"], USAGE, "search"),
        (["--distance", "miles"], USAGE, "'miles'"),
        (["--delimiter", ""], USAGE, "--delimiter must be one character"),
        (["--rules", "absent.toml"], USAGE, "absent.toml"),
        (["--key-file", "absent.key"], INPUT, "absent.key"),
        (["--sample-rows", "3", "--immutable", "Age"], USAGE, "too small"),
        (["--sample-key", "Age"], USAGE, "--sample-rows"),
        (["--sample-rows", "100", "--sample-key", "Nothing"], INPUT, "Nothing"),
    ]
    for arguments, code, text in wrong:
        assert fit(*arguments) == code, arguments
        assert text in " ".join(capsys.readouterr().err.split())
    assert fit("--sample-rows", "100", "--format", "csv", train=["-"]) == USAGE
    assert not (here / "own.mcce").exists()


def test_desired_is_an_interval_or_labels_and_fit_says_whose_probability(here, capsys):
    train = pd.DataFrame({"debt": range(200)})
    labels = np.where(train["debt"] < 100, "1:2", "rejected")
    joblib.dump(LogisticRegression(max_iter=1000).fit(train, labels), "model.joblib")
    train.to_csv("debts.csv", index=False)
    command = ["fit", "debts.csv", "--predictor", "model.joblib", "--trust", "-o", "own.mcce"]

    assert main([*command, "--desired", "0.5:"]) == 0
    assert "the probability of 'rejected'" in " ".join(capsys.readouterr().err.split())
    # A label that looks like an interval is a label.
    assert main([*command, "--desired", "1:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["score_of"] == ["1:2"]
    assert main([*command, "--desired", "nan:"]) == USAGE
    assert "low must be a number, got nan" in capsys.readouterr().err
    for wrong in ("0.5", "rejectd"):
        assert main([*command, "--desired", wrong]) == USAGE
        said = " ".join(capsys.readouterr().err.split())
        assert f"0.5: (at least), :0.2 (at most) or 0.2:0.8, got '{wrong}'" in said
    assert "'rejected'" in said.partition("got")[2]


def test_a_signed_file_is_opened_with_its_key_alone(here):
    (here / "key").write_bytes(b"k" * 32)
    (here / "other").write_bytes(b"o" * 32)

    assert fit("--key-file", "key") == 0

    assert main(["inspect", "own.mcce", "--key-file", "key"]) == 0
    assert main(["inspect", "own.mcce", "--key-file", "other"]) == INPUT


def test_inspect_shows_columns_rules_and_what_is_personal(here, capsys):
    assert fit("--rules", "rules.toml", "--immutable", "Age", "--search", "balanced") == 0
    capsys.readouterr()

    assert main(["inspect", "own.mcce"]) == 0

    said = capsys.readouterr().out
    assert "change('CreditAmount', at_least='-50 %', at_most=0)" in said
    assert "immutable" in said
    assert "accepted training rows, as whole rows" in said
    assert main(["inspect", "bank.mcce"]) == 0
    assert "no whole training rows" in capsys.readouterr().out
    assert main(["inspect", "bank.mcce", "--json"]) == 0
    said = capsys.readouterr().out
    assert not [level for level in pd.read_csv("train.csv")["Savings"].unique() if level in said]


def test_inspect_refuses_what_is_no_explainer(here, capsys):
    for given in (b"", b"PK\3\4", b"nonsense"):
        (here / "broken.mcce").write_bytes(given)
        assert main(["inspect", "broken.mcce"]) == INPUT


def test_relations_that_answers_may_break_are_not_among_those_they_keep(here, capsys):
    random = np.random.default_rng(0)
    train = pd.DataFrame({"net": random.integers(1, 500, 800), "tax": random.integers(1, 90, 800)})
    train["total"] = train["net"] + train["tax"]
    train["paid"] = (train["net"] * 3).where(train.index != 5, 1)
    explainer = mcce.MCCE(
        lambda rows: rows["total"] / 600, (0.5, 1), search="sparse", random_state=0
    )
    with pytest.warns(mcce.McceWarning, match="possible: paid"):
        explainer.fit(train)
    explainer.save("relations.mcce")
    assert not explainer.relations_["enforced"].all()

    assert main(["inspect", "relations.mcce", "--json"]) == 0

    kept = explainer.relations_.loc[explainer.relations_["enforced"], "relation"]
    assert json.loads(capsys.readouterr().out)["relations"] == list(kept)
    explainer.set_params(ignore_relations=[kept.iloc[0]]).save("relations.mcce")
    assert main(["inspect", "relations.mcce", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["relations"] == list(kept)[1:]


@pytest.mark.slow
def test_the_demo_writes_files_that_the_other_commands_take(here, monkeypatch, capsys):
    assert main(["demo", "--out", "demo"]) == 0

    shown = commands_in(capsys.readouterr().out)
    assert [run_shown(command, monkeypatch) for command in shown] == [0, 0, 0, 0]
    assert pd.read_csv("demo/answers.csv")["factual"].nunique() == 200
    assert Path("demo/report.html").stat().st_size > 100_000
