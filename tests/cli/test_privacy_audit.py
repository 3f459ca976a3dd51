"""``mcce privacy-audit``: figures, the page, and files that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from bank_files import INPUT, USAGE
from mcce.cli import main
from report_pages import Page

# The holdout is halved for want of a reference, so that it is smaller than training.
pytestmark = pytest.mark.filterwarnings("ignore:The holdout has:mcce.errors.McceWarning")
AUDIT = ["privacy-audit", "bank.mcce", "--predictor", "scoring:score"]
ROWS = ["--training", "train.csv", "--holdout", "holdout.csv"]


def test_figures_are_shown_and_a_page_is_written(here, capsys):
    known = ["--quasi-identifiers", "Duration,Age"]

    assert main([*AUDIT, *ROWS, *known, "-o", "privacy.html"]) == 0

    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split()[:2] == ["figure", "value"]
    assert any(line.startswith("distance_auc") for line in lines)
    assert any(line.startswith("linkage_unique") for line in lines)
    assert "Not used as quasi-identifiers, since nobody can change them: Age." in said.err
    assert "leak by value_copies: Released numbers that exactly one training row has." in " ".join(
        said.err.split()
    )
    page = Page(Path("privacy.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert "Who fits a released row?" in page.text


def test_machines_get_one_object(here, capsys):
    assert main([*AUDIT, *ROWS, "--reference", "people.csv", "--json", "--release", "rows"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert said["n_training"] == said["n_each"] == said["n_released"] == 300
    assert said["n_reference"] == 60
    assert said["release"] == "rows"
    assert {"figure", "value", "low", "high", "null", "finding", "n"} == set(said["figures"][0])


def test_what_cannot_be_audited_is_said_in_one_paragraph(here, capsys):
    pd.read_csv("holdout.csv").drop(columns="Age").to_csv("short.csv", index=False)
    Path("privacy.html").write_text("mine", encoding="utf-8")
    wrong = [
        (["--training", "train.csv", "--holdout", "train.csv"], INPUT, "share rows"),
        (["--training", "holdout.csv", "--holdout", "train.csv"], INPUT, "fitted on other rows"),
        (["--training", "train.csv", "--holdout", "absent.csv"], INPUT, "absent.csv"),
        ([*ROWS, "-o", "privacy.txt"], USAGE, "ends in .html"),
        ([*ROWS, "-o", "train.csv"], USAGE, "ends in .html"),
        ([*ROWS, "--quasi-identifiers", "absent"], USAGE, "--quasi-identifiers names columns"),
        ([*ROWS, "--release", "all"], USAGE, "release must be one of"),
        ([*ROWS, "-o", "privacy.html"], USAGE, "--overwrite"),
        (["--training", "train.csv", "--holdout", "short.csv"], INPUT, "lacks the columns ['Age']"),
    ]
    for options, code, words in wrong:
        assert main([*AUDIT, *options]) == code, options
        said = capsys.readouterr().err
        assert words in " ".join(said.split())
        assert "Traceback" not in said
    assert Path("privacy.html").read_text(encoding="utf-8") == "mine"
