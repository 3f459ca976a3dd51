"""A folder with data, predictors and a fitted explainer, in which commands run."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from bank_files import write_bank
from mcce.cli import main
from served_bank import running

FIT = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:", "--quiet"]


@pytest.fixture(scope="session")
def fitted_bank(tmp_path_factory):
    folder = write_bank(tmp_path_factory.mktemp("bank"))
    with forgetting_modules(folder) as patch:
        patch.chdir(folder)
        assert main([*FIT, "--immutable", "Age,Sex", "-o", "bank.mcce"]) == 0
    return folder


@pytest.fixture
def here(fitted_bank, tmp_path):
    """A copy of the folder, as the current one."""
    shutil.copytree(fitted_bank, tmp_path, dirs_exist_ok=True)
    with forgetting_modules(tmp_path) as patch:
        patch.chdir(tmp_path)
        yield tmp_path


@contextmanager
def forgetting_modules(folder):
    """Modules that are imported from a folder inside, and paths to it, are forgotten after."""
    imported = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        try:
            yield patch
        finally:
            for name in set(sys.modules) - imported:
                if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                    del sys.modules[name]


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
