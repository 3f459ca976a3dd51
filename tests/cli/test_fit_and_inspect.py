"""Fitting from files, looking into saved files, and the demo."""

from __future__ import annotations

import json
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from mcce.cli import main
from mcce.cli.failures import INPUT, USAGE
from mcce.cli.options import read_desired, split_names


def fit(*arguments, train="train.csv"):
    command = ["fit", train, "--predictor", "scoring:score", "--desired", "0.6:", "-o", "own.mcce"]
    return main([*command, *arguments])


@pytest.mark.parametrize("train", ["train.jsonl", "train.parquet", "train.feather"])
def test_every_format_of_training_rows_gives_the_same_explainer(here, train):
    assert fit() == 0
    from_text = (here / "own.mcce").read_bytes()

    assert fit(train=train) == 0

    assert (here / "own.mcce").read_bytes() == from_text


def test_training_rows_come_from_standard_input(here, monkeypatch):
    import io
    import sys

    assert fit() == 0
    from_file = (here / "own.mcce").read_bytes()
    content = (here / "train.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    assert fit("--format", "csv", train="-") == 0

    assert (here / "own.mcce").read_bytes() == from_file


def test_an_explainer_is_the_one_that_python_fits(here):
    from scoring import score

    options = ["--immutable", "Age,Sex", "--rules", "rules.toml", "--search", "balanced"]
    assert fit(*options, "--n-counterfactuals", "2", "--seed", "7") == 0

    explainer = mcce.MCCE(
        score,
        mcce.Interval(0.6, float("inf")),
        immutable=["Age", "Sex"],
        constraints="rules.toml",
        search="balanced",
        n_counterfactuals=2,
        random_state=7,
    ).fit(pd.read_csv("train.csv"))
    explainer.save("python.mcce")
    assert (here / "own.mcce").read_bytes() == (here / "python.mcce").read_bytes()


def test_a_distance_is_chosen_by_its_name(here, capsys):
    from scoring import score

    assert fit("--distance", "hvdm") == 0

    assert mcce.load("own.mcce", score).distance == "hvdm"
    capsys.readouterr()
    main(["inspect", "own.mcce"])
    assert "share of desired decisions" in capsys.readouterr().out


def split(rows, path, at):
    """Write the rows as two files."""
    rows.iloc[:at].to_csv(f"{path}1.csv", index=False)
    rows.iloc[at:].to_csv(f"{path}2.csv", index=False)
    return [f"{path}1.csv", f"{path}2.csv"]


def fit_files(paths, *arguments):
    command = ["fit", *paths, "--predictor", "scoring:score", "--desired", "0.6:"]
    return main([*command, "-o", "own.mcce", *arguments])


def test_several_files_give_the_explainer_of_one(here):
    assert fit() == 0
    from_one = (here / "own.mcce").read_bytes()

    assert fit_files(split(pd.read_csv("train.csv"), "part", 120)) == 0

    assert (here / "own.mcce").read_bytes() == from_one


def test_a_sample_does_not_depend_on_how_rows_are_divided_into_files(here, capsys):
    rows, saved = pd.read_csv("train.csv"), []
    for at in (100, 217):
        arguments = ["--sample-rows", "150", "--immutable", "Sex", "--json"]
        assert fit_files(split(rows, "part", at), *arguments) == 0
        saved.append((here / "own.mcce").read_bytes())
        said = json.loads(capsys.readouterr().out)

    assert saved[0] == saved[1]
    assert (said["n_train"], said["n_seen"]) == (150, 300)
    assert said["rare"] >= 1


def test_with_a_key_a_sample_does_not_depend_on_the_order_of_files(here, capsys):
    rows, saved = pd.read_csv("train.csv"), []
    paths = split(rows.assign(Customer=range(len(rows))), "part", 100)
    for order in (paths, paths[::-1]):
        arguments = ["--sample-rows", "150", "--sample-key", "Customer", "--immutable", "Sex"]
        assert fit_files(order, *arguments) == 0
        saved.append((here / "own.mcce").read_bytes())

    assert saved[0] == saved[1]
    said = " ".join(capsys.readouterr().err.split())
    assert "a sample of 300 rows" in said
    assert "accepted rows are over-represented" in said


def test_a_sample_that_cannot_be_drawn_is_refused(here, capsys):
    assert fit("--sample-rows", "3", "--immutable", "Age") == USAGE
    assert fit("--sample-key", "Age") == USAGE
    assert fit("--sample-rows", "100", "--sample-key", "Nothing") == INPUT
    assert fit("--sample-rows", "100", "--drop", "Nothing") == INPUT
    assert fit("--sample-rows", "100", "--format", "csv", train="-") == USAGE

    assert "too small" in " ".join(capsys.readouterr().err.split())


def test_json_says_what_was_learned(here, capsys):
    assert fit("--json", "--immutable", "Age") == 0

    said = json.loads(capsys.readouterr().out)
    assert said["n_train"] == 300
    assert said["immutable"] == ["Age"]


def test_columns_can_be_dropped_and_read_in_another_dtype(here, capsys):
    arguments = ["--drop", "Job", "--dtype", "Duration=float64", "--categorical", "Age"]
    assert fit(*arguments) == 0
    assert main(["inspect", "own.mcce", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    columns = {column["name"]: column for column in said["columns"]}
    assert "Job" not in columns
    assert columns["Duration"]["dtype"] == "float64"
    assert columns["Age"]["kind"] == "categorical"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--immutable", "Alter"], INPUT, "['Alter']"),
        (["--drop", "Alter"], INPUT, "--drop"),
        (["--dtype", "Age"], USAGE, "NAME=DTYPE"),
        (["--dtype", "Age=nonsense"], USAGE, "no dtype"),
        (["--dtype", "Sex=float64"], INPUT, "do not fit"),
        (["--search", "best"], USAGE, "search"),
        (["--distance", "miles"], USAGE, "'miles'"),
        (["--rules", "absent.toml"], USAGE, "absent.toml"),
        (["--key-file", "absent.key"], INPUT, "absent.key"),
    ],
)
def test_what_cannot_work_is_an_error(here, capsys, arguments, code, said):
    assert fit(*arguments) == code
    assert said in capsys.readouterr().err


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


def test_inspect_shows_no_training_values(here, capsys):
    assert main(["inspect", "bank.mcce", "--json"]) == 0

    said = capsys.readouterr().out
    assert not [level for level in pd.read_csv("train.csv")["Savings"].unique() if level in said]


@pytest.mark.parametrize("name", ["saved_v1_balanced", "saved_v3_exact", "saved_v1_plain_paper"])
def test_inspect_reads_files_of_older_versions(name, capsys):
    from pathlib import Path

    path = Path(__file__).parents[1] / "data" / f"{name}.mcce"

    assert main(["inspect", str(path)]) == 0
    assert "Personal data" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"nonsense"])
def test_inspect_refuses_what_is_no_explainer(here, capsys, content):
    (here / "broken.mcce").write_bytes(content)

    assert main(["inspect", "broken.mcce"]) == INPUT


@pytest.mark.slow
def test_the_demo_writes_files_that_the_other_commands_take(tmp_path, monkeypatch, capsys):
    from shown_commands import commands_in, run_shown

    monkeypatch.chdir(tmp_path)

    assert main(["demo", "--out", "demo"]) == 0

    shown = commands_in(capsys.readouterr().out)
    assert [run_shown(command, monkeypatch) for command in shown] == [0, 0, 0, 0]
    assert pd.read_csv("demo/answers.csv")["factual"].nunique() == 200
    assert Path("demo/report.html").stat().st_size > 100_000


def test_names_may_hold_commas():
    assert split_names(["a,b", "c"], ["a,b", "c"]) == ["a,b", "c"]
    assert split_names(["a,b"], ["a", "b"]) == ["a", "b"]
    assert split_names(None, ["a"]) is None


@pytest.mark.parametrize(
    ("texts", "classes", "expected"),
    [
        (["0.5:1"], [], mcce.Interval(0.5, 1.0)),
        (["-1e-3:"], [], mcce.Interval(-1e-3, float("inf"))),
        (["1:2"], ["1:2", "3"], ["1:2"]),
        (["True"], [False, True], [True]),
        ([":"], [], [":"]),
        (None, [], None),
    ],
)
def test_desired_is_an_interval_or_labels(texts, classes, expected):
    assert read_desired(texts, classes) == expected


def test_relations_that_answers_may_break_are_not_among_those_they_keep(here, capsys):
    random = np.random.default_rng(0)
    train = pd.DataFrame({"net": random.integers(1, 500, 800), "tax": random.integers(1, 90, 800)})
    train["total"] = train["net"] + train["tax"]
    train["paid"] = (train["net"] * 3).where(train.index != 5, 1)
    explainer = mcce.MCCE(
        lambda rows: rows["total"] / 600, (0.5, 1), search="sparse", random_state=0
    ).fit(train)
    explainer.save("relations.mcce")
    assert not explainer.relations_["enforced"].all()

    assert main(["inspect", "relations.mcce", "--json"]) == 0

    kept = explainer.relations_.loc[explainer.relations_["enforced"], "relation"]
    assert json.loads(capsys.readouterr().out)["relations"] == list(kept)

    explainer.set_params(ignore_relations=[kept.iloc[0]]).save("relations.mcce")
    assert main(["inspect", "relations.mcce", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["relations"] == list(kept)[1:]


def test_fit_says_whose_probability_the_score_is(here, capsys):
    train = pd.DataFrame({"debt": range(200)})
    labels = np.where(train["debt"] < 100, "approved", "rejected")
    joblib.dump(LogisticRegression(max_iter=1000).fit(train, labels), "model.joblib")
    train.to_csv("debts.csv", index=False)
    command = ["fit", "debts.csv", "--predictor", "model.joblib", "--trust", "-o", "own.mcce"]

    assert main([*command, "--desired", "0.5:"]) == 0
    assert "the probability of 'rejected'" in " ".join(capsys.readouterr().err.split())
    assert main([*command, "--desired", "approved", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["score_of"] == ["approved"]
