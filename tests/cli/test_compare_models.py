"""``mcce compare-models``: figures, the page, the exit status, and answers that were given."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from bank_files import INPUT, USAGE
from mcce.cli import main
from report_pages import Page

REFUSED = 7
STRICTER = "from scoring import score as old\n\ndef score(frame):\n    return old(frame) - 0.1\n"
MODELS = ["--old-predictor", "scoring:score", "--predictor", "stricter:score"]


@pytest.fixture
def both(here):
    """Explainers of an old model and of one that gives everybody a lower score."""
    Path("stricter.py").write_text(STRICTER, encoding="utf-8")
    for output, predictor in (("old.mcce", "scoring:score"), ("new.mcce", "stricter:score")):
        words = ["train.csv", "--predictor", predictor, "--desired", "0.6:", "--immutable", "Sex"]
        assert main(["fit", *words, "--quiet", "-o", output]) == 0
    return here


def compare(*arguments, people="people.csv"):
    return main(["compare-models", "old.mcce", "new.mcce", people, *MODELS, *arguments])


def test_figures_are_shown_a_page_is_written_and_a_pipeline_is_stopped(both, capsys):
    assert compare("--groups", "Sex", "-o", "models.html", "--language", "de") == 0

    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[:2] == ["Decisions and answers by group", lines[1]]
    assert lines[1].split()[:3] == ["people", "lose", "gain"]
    assert [line.split()[:2] for line in lines[3:5]] == [["Sex:", "female"], ["Sex:", "male"]]
    assert "lose the desired decision" in said.err
    page = Page(Path("models.html").read_text(encoding="utf-8"))
    assert page.faults == []
    assert "Wessen Entscheidung sich ändert" in page.text
    assert "Sex: female" in page.text
    assert compare("--fail-above", "1") == 0
    assert compare("--fail-above", "0.001") == REFUSED
    assert "more answers are refused than --fail-above 0.001" in capsys.readouterr().err


def test_machines_get_one_object_with_the_rows(both, capsys, score):
    assert compare("--json", "--fail-above", "0.001") == REFUSED

    said = json.loads(capsys.readouterr().out)
    before = score(pd.read_csv("people.csv"))
    lost = ((before >= 0.6) & (before - 0.1 < 0.6)).nonzero()[0].tolist()
    assert said["rows_lost"] == lost
    everybody = said["groups"][0]
    assert everybody["n_lost"] == len(lost)
    assert everybody["n"] == 60
    assert everybody["broken"] == said["broken"]
    assert len(said["rows_refused"]) == round(said["broken"] * everybody["n_answered"])


def test_the_same_model_refuses_nothing(both, capsys):
    command = ["compare-models", "old.mcce", "old.mcce", "people.csv"]
    same = ["--old-predictor", "scoring:score", "--predictor", "scoring:score"]

    assert main([*command, *same, "--fail-above", "0", "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["rows_refused"] == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_answers_that_were_given_are_taken_as_they_are(both, capsys, kind):
    words = ["explain", "old.mcce", "people.csv", "--predictor", "scoring:score", "--quiet"]
    assert main([*words, "-o", f"given.{kind}"]) == 0
    capsys.readouterr()

    assert compare("--json", "--answers", f"given.{kind}") == 0

    said = json.loads(capsys.readouterr().out)
    main([*words, "-o", "table.csv"])
    table = pd.read_csv("table.csv").query("rank == 1")
    refused = table[table["score"] - 0.1 < 0.6]
    assert said["groups"][0]["n_answered"] == len(table)
    assert said["rows_refused"] == refused["factual"].tolist()


def test_what_cannot_be_compared_is_said(both, capsys):
    main(["explain", "old.mcce", "people.csv", "--predictor", "scoring:score", "-o", "given.csv"])
    given = pd.read_csv("given.csv")
    given.drop(columns="factual").to_csv("nobody.csv", index=False)
    pd.read_csv("people.csv").head(5).to_csv("few.csv", index=False)
    pd.read_csv("people.csv").iloc[::-1].to_csv("turned.csv", index=False)
    pd.read_csv("people.csv").head(0).to_csv("none.csv", index=False)
    wrong = [
        (["--fail-above", "5"], "people.csv", USAGE, "from 0 to 1"),
        (["--groups", "Sexx"], "people.csv", USAGE, "--groups names columns"),
        (["-o", "page.txt"], "people.csv", USAGE, "ends in .html"),
        (["--answers", "nobody.csv"], "people.csv", INPUT, "lacks the columns"),
        (["--answers", "given.csv"], "few.csv", INPUT, "answers to other people"),
        (["--answers", "given.csv"], "turned.csv", INPUT, "answers to other people"),
        ([], "none.csv", INPUT, "has no rows"),
    ]
    capsys.readouterr()
    for more, people, code, message in wrong:
        assert compare(*more, people=people) == code, more
        assert message in " ".join(capsys.readouterr().err.split())
