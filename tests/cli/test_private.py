"""``mcce fit --generator private``: domains from a file, and no training values in the other."""

from __future__ import annotations

import json
import re
import zipfile

import pandas as pd
import pytest

from bank_files import USAGE
from mcce.cli import main

FIT = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:", "-o", "own.mcce"]
PRIVATE = ["--generator", "private", "--domains", "domains.json", "--epsilon", "2"]


@pytest.fixture
def domains(here):
    train = pd.read_csv("train.csv")
    known = {
        "Duration": {"low": 0, "high": 72, "step": 1},
        "CreditAmount": {"low": 0, "high": 20000, "step": 100},
        "Age": {"low": 18, "high": 90, "step": 1},
    }
    known |= {name: {"levels": sorted(train[name].unique())} for name in ("Savings", "Sex", "Job")}
    (here / "domains.json").write_text(json.dumps(known), encoding="utf-8")
    return "domains.json"


def test_a_private_explainer_is_fitted_inspected_and_used(domains, here, capsys):
    assert main([*FIT, *PRIVATE, "--immutable", "Age,Sex"]) == 0

    told = " ".join(capsys.readouterr().err.split())
    assert "spent epsilon 2" in told
    assert re.search(r"rows, about \d+ of them", told)
    assert main(["inspect", "own.mcce"]) == 0
    said = capsys.readouterr().out
    assert "no training values" in said
    assert "differential privacy with epsilon 2" in " ".join(said.split())
    assert "Protect the file" not in said
    assert "Personal data (about " in said
    explain = ["explain", "own.mcce", "people.csv", "--predictor", "scoring:score", "-o", "a.csv"]
    assert main([*explain, "--quiet"]) == 0
    answers = pd.read_csv("a.csv")
    assert len(answers) > 10
    assert main([*FIT, *PRIVATE, "--search", "exact", "--quiet"]) == 0


def test_types_are_those_of_the_domains_whatever_stands_in_a_cell(domains, here):
    rows = pd.read_csv("train.csv").assign(Branch=["01", "02"] * 150)
    known = json.loads((here / domains).read_text(encoding="utf-8"))
    known["Branch"] = {"levels": ["01", "02"]}
    (here / domains).write_text(json.dumps(known), encoding="utf-8")
    odd = rows.iloc[[0]].astype(object).assign(Branch="north", Age="unknown")

    columns, found = [], []
    for table in (rows, pd.concat([rows.astype(object), odd])):
        table.to_csv("train.csv", index=False)
        assert main([*FIT, *PRIVATE, "--immutable", "Age,Sex", "--quiet"]) == 0
        with zipfile.ZipFile("own.mcce") as file:
            document = json.loads(file.read("explainer.json"))
        columns.append(document["schema"])
        found.append(document["n_desired"])

    assert columns[0] == columns[1]
    assert columns[0]["features"][-1]["table"]["values"] == ["01", "02"]
    assert min(found) > 50


def test_options_that_do_not_go_together_are_refused(domains, capsys):
    wrong = [
        (["--generator", "private"], "needs --domains"),
        (["--generator", "private", "--domains", "domains.json"], "needs --domains"),
        ([*PRIVATE, "--sample-rows", "200"], "Leave it out"),
        (["--epsilon", "1"], "need --generator private"),
        (["--generator", "public"], "generator must be one of"),
        ([*PRIVATE, "--search", "balanced"], "Use search='paper'"),
    ]
    for arguments, words in wrong:
        assert main([*FIT, *arguments]) == USAGE, arguments
        assert words in " ".join(capsys.readouterr().err.split())
