"""Answers that last, from the command line."""

from __future__ import annotations

import joblib
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from bank_files import INPUT, PREDICTOR, USAGE
from mcce.cli import main

NUMBERS = ["Duration", "CreditAmount", "Age"]


@pytest.fixture
def labelled(here):
    """Training rows with a column of labels, and a model of scikit-learn trained on them."""
    rows = pd.read_csv("train.csv")[NUMBERS]
    noise = rows["CreditAmount"] % 977 / 977
    good = rows["Duration"] / 20 - rows["Age"] / 40 + noise < 1
    rows.assign(good=good.map({True: "yes", False: "no"})).to_csv("labelled.csv", index=False)
    model = LogisticRegression(max_iter=5000).fit(rows, good.map({True: "yes", False: "no"}))
    joblib.dump(model, "logistic.joblib")
    return here


def fit(*arguments, train="labelled.csv", predictor="logistic.joblib"):
    given = ["--predictor", predictor, "--trust", "-o", "lasting.mcce"]
    return main(["fit", train, *given, *map(str, arguments)])


def explain(*arguments, predictor="logistic.joblib"):
    given = ["--predictor", predictor, "--trust", "-o", "lasting.csv"]
    return main(["explain", "lasting.mcce", "people.csv", *given, *arguments])


RETRAINED = ["--outcome", "good", "--retrained", "models.joblib"]


def test_a_predictor_of_scikit_learn_is_trained_anew_on_the_labels(labelled, capsys):
    assert fit("--survival", 0.9, *RETRAINED, "--survival-models", 7) == 0

    assert "7 models were trained anew and are in models.joblib" in capsys.readouterr().err
    models = joblib.load("models.joblib")
    assert len(models) == 7
    assert all(list(model.feature_names_in_) == NUMBERS for model in models)
    assert explain("--retrained", "models.joblib") == 0
    answers = pd.read_csv("lasting.csv").query("rank >= 1")
    accepted = sum(model.predict(answers[NUMBERS]) == "yes" for model in models) / 7
    assert len(answers)
    assert answers["survival"].to_numpy() == pytest.approx(accepted)
    assert explain("--overwrite") == USAGE
    assert "trained anew" in capsys.readouterr().err
    assert explain("--overwrite", "--retrained", "logistic.joblib") == PREDICTOR


def test_processes_that_share_the_work_have_the_models_too(labelled):
    assert fit("--survival", 0.9, *RETRAINED, "--survival-models", 5, "--immutable", "Age") == 0
    assert explain("--retrained", "models.joblib") == 0
    alone = pd.read_csv("lasting.csv")

    shared = ["--workers", "1", "--engine", "local", "--overwrite"]
    assert explain("--retrained", "models.joblib", *shared) == 0

    assert pd.read_csv("lasting.csv")["survival"].equals(alone["survival"])


def test_trees_stand_in_for_a_predictor_that_cannot_be_trained(here, capsys):
    more = ["--desired", "0.6:1", "--survival", 0.8]
    assert fit(*more, train="train.csv", predictor="scoring:score") == 0

    assert "20 boosted trees stand for models trained anew" in capsys.readouterr().err
    assert mcce.load("lasting.mcce", __import__("scoring").score).survival.share == 0.8
    assert explain(predictor="scoring:score") == 0
    assert "survival" in pd.read_csv("lasting.csv").columns


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--outcome", "good"], "need --survival"),
        (["--survival-models", 5], "need --survival"),
        (["--survival", 0.9, "--outcome", "good"], "--retrained"),
        (["--survival", 0.9, "--retrained", "models.joblib"], "--outcome"),
        (["--survival", 0.9, *RETRAINED, "--sample-rows", 9], "--sample-rows"),
        (["--survival", 0.9, "--outcome", "god", *RETRAINED[2:]], "Did you mean 'good'"),
        (["--survival", 0.9, *RETRAINED[:3], "lasting.mcce"], "must be two files"),
        (["--survival", 1.5], "below 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(labelled, capsys, more, message):
    assert fit(*more) == USAGE

    assert message in capsys.readouterr().err


def test_the_models_take_the_place_of_nothing_that_is_read(labelled, capsys):
    (labelled / "own.py").write_text("import joblib\nmodel = joblib.load('logistic.joblib')\n")

    given = ["--survival", 0.9, *RETRAINED[:3], "own.py"]
    assert fit(*given, predictor="own:model") == USAGE

    assert "own.py" in capsys.readouterr().err
    assert (labelled / "own.py").read_text().startswith("import joblib")


def test_labels_that_are_missing_or_of_one_kind_are_errors(labelled, capsys):
    rows = pd.read_csv("labelled.csv")
    rows.assign(good=rows["good"].where(rows.index > 3)).to_csv("few.csv", index=False)
    rows.assign(good="yes").to_csv("same.csv", index=False)

    assert fit("--survival", 0.9, *RETRAINED, train="few.csv") == INPUT
    assert "no label in 4 rows" in capsys.readouterr().err
    assert fit("--survival", 0.9, *RETRAINED, train="same.csv") == PREDICTOR
    assert "Training the predictor anew failed with a ValueError" in capsys.readouterr().err
