"""A folder with data, predictors and a fitted explainer, in which commands run."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from bank_files import write_bank
from mcce.cli import main
from mcce.cli.predictors import PredictorChoice
from mcce.cli.running import ExplainerFile, read_checksum
from mcce.report.receipts import Origin, make_receipt

FIT = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:", "--quiet"]


@pytest.fixture(scope="session")
def bank(tmp_path_factory):
    folder = write_bank(tmp_path_factory.mktemp("bank"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*FIT, "--immutable", "Age,Sex", "-o", "bank.mcce"]) == 0
    return folder


@pytest.fixture
def here(bank, tmp_path, monkeypatch):
    """A copy of the folder, as the current one; modules imported from it are forgotten after."""
    shutil.copytree(bank, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    imported = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - imported:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def explain(here):
    """Run ``mcce explain`` on people.csv with some more arguments."""

    def run(*arguments, people="people.csv", predictor="scoring:score"):
        command = ["explain", "bank.mcce", people, "--predictor", predictor]
        return main([*command, *map(str, arguments)])

    return run


@pytest.fixture
def receipt(here):
    """A receipt of the first person who has an answer, in receipt.json."""
    file = ExplainerFile("bank.mcce", PredictorChoice("scoring:score"))
    explainer, people = file.load(), pd.read_csv("people.csv").astype({"Savings": object})
    result = explainer.explain(people)
    person = people.iloc[result.owner[:1]]
    origin = Origin(read_checksum("bank.mcce"), file.predictor.fingerprint())
    made = make_receipt(
        explainer, person, result.frame.iloc[:1], origin=origin, made=datetime.now(UTC)
    )
    Path("receipt.json").write_text(json.dumps(made), encoding="utf-8")
    return made
