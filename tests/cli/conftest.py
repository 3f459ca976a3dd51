"""A folder with data, predictors and a fitted explainer, in which commands run."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pandas as pd
import pytest

from bank_files import entered, fit_bank
from mcce.cli import main
from served_bank import running


@pytest.fixture(scope="session")
def fitted_bank(tmp_path_factory):
    return fit_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture
def here(fitted_bank, tmp_path):
    """A copy of the folder, as the current one."""
    shutil.copytree(fitted_bank, tmp_path, dirs_exist_ok=True)
    with entered(tmp_path):
        yield tmp_path


@pytest.fixture
def explain(here):
    """Run ``mcce explain`` on people.csv with some more arguments."""

    def run(*arguments, people="people.csv", predictor="scoring:score"):
        files = [people] if isinstance(people, str) else people
        command = ["explain", "bank.mcce", *files, "--predictor", predictor]
        return main([*command, *map(str, arguments)])

    return run


@pytest.fixture
def score(here):
    """The predictor, as Python has it."""
    return runpy.run_path("scoring.py")["score"]


@pytest.fixture
def receipt(here, monkeypatch):
    """A receipt of the first person who has an answer, in receipt.json, as the service makes it."""
    apps = []
    monkeypatch.setattr("uvicorn.run", lambda app, **_: apps.append(app))
    assert main(["serve", "bank.mcce", "--predictor", "scoring:score"]) == 0
    people = pd.read_csv("people.csv").to_dict("records")
    with running(apps[0]) as client:
        found = client.post("/explain", json={"people": people}).json()["people"]
        at = next(at for at, person in enumerate(found) if person["counterfactuals"])
        asked = {"person": people[at], "answer": found[at]["counterfactuals"][0]["row"]}
        made = client.post("/receipts", json=asked).json()
    Path("receipt.json").write_text(json.dumps(made), encoding="utf-8")
    return made
