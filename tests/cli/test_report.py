"""Reports on people in files: what is in them, replay, and what goes wrong."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bank_files import INPUT, OUTPUT, PREDICTOR, USAGE
from mcce.cli import main
from report_pages import Page

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
FINGERPRINT = re.compile(r"<code>(\w{16})</code>")


@pytest.fixture
def report(here):
    """Run ``mcce report`` on people.csv with some more arguments."""

    def run(*arguments, people="people.csv", predictor="scoring:score"):
        command = ["report", "bank.mcce", people, "--predictor", predictor]
        return main([*command, *map(str, arguments)])

    return run


def read(path):
    return Path(path).read_text(encoding="utf-8")


def test_everybody_of_the_file_who_is_declined_is_in_the_report(report, explain, capsys):
    assert report("-o", "report.html") == 0
    said = capsys.readouterr().err
    assert explain("-o", "answers.csv") == 0

    page, answers = Page(read("report.html")), pd.read_csv("answers.csv")
    assert page.faults == []
    status = answers.drop_duplicates("factual")["status"]
    declined = status[status != "already desired"]
    assert 0 < page.count("article") == len(declined) < 60
    assert [s.replace("_", " ") for s in page.attributes("data-status")] == declined.tolist()
    assert "60 people" in said
    assert "Report: report.html" in said


@pytest.mark.slow
def test_a_person_and_the_run_can_be_replayed_by_the_printed_commands(report, capsys):
    pd.read_csv("people.csv").head(12).to_csv("few.csv", index=False)
    options = ["--n-counterfactuals", "2", "--title", 'It\'s a "bank"']
    assert report("-o", "report.html", *options, people="few.csv") == 0
    first = Path("report.html").read_bytes()
    page = Page(read("report.html"))
    printed = [text for text in page.texts if text.startswith("mcce report")]
    run, person = printed
    (row, *_) = [i for i in page.attributes("id") if i.startswith("person-")]
    row = row.removeprefix("person-")

    assert "--row ROW -o person-ROW.html" in person
    assert main(shlex.split(person.replace("ROW", row))[1:]) == 0
    assert main([*shlex.split(run)[1:], "--overwrite", "--json"]) == 0

    assert FINGERPRINT.findall(read(f"person-{row}.html")) == [
        FINGERPRINT.findall(read("report.html"))[0]
    ]
    assert "&#34;bank&#34;" in read("report.html")
    assert Path("report.html").read_bytes() == first
    said = json.loads(capsys.readouterr().out)
    assert said["output"] == "report.html"
    assert said["n_people"] == sum(said["status"].values()) == 12
    assert said["bytes"] == len(first)


def test_options_reach_the_page(report, here):
    people = pd.read_csv("people.csv").assign(customer=[f"C-{at}" for at in range(60)])
    people.to_csv("named.csv", index=False)
    (here / "card.md").write_text("Ein Datensatz <b>", encoding="utf-8")
    options = ["--language", "de", "--groups", "Sex,Age", "--name", "customer"]
    options += ["--title", "Bericht"]
    options += ["--card", "card.md", "--rules", "rules.toml", "--row", "3", "--row", "5"]

    assert report("-o", "report.html", *options, people="named.csv") == 0

    page = Page(read("report.html"))
    assert page.elements[0] == ("html", {"lang": "de"})
    texts = ["Bericht", "2 Personen", "Ein Datensatz <b>", "change('CreditAmount'"]
    for text in texts:
        assert text in page.text
    assert "Sex: was nötig gewesen wäre" in page.text
    assert "sha256:" in page.text
    assert "--row 3 --row 5 -o report.html" in page.text


def test_people_with_cells_of_other_types_have_the_answers_of_explain(report, explain, here):
    Path("patient.py").write_text(
        "import scoring\n"
        "def score(frame):\n"
        "    return scoring.score(frame.assign(Duration=frame['Duration'].fillna(24)))\n",
        encoding="utf-8",
    )
    people = pd.read_csv("people.csv", dtype=object).head(12)
    people.loc[2, "Duration"] = None
    people.loc[4, "Savings"] = "a new level"
    people.to_csv("odd.csv", index=False)
    assert explain("-o", "answers.csv", people="odd.csv", predictor="patient:score") == 0

    assert report("-o", "report.html", people="odd.csv", predictor="patient:score") == 0

    answers = pd.read_csv("answers.csv").drop_duplicates("factual")
    page = Page(read("report.html"))
    declined = answers.index[answers["status"] != "already desired"]
    places = answers["factual"][declined]
    assert [i for i in page.attributes("id") if i.startswith("person-")] == [
        f"person-{at}" for at in places
    ]
    answered = (answers["status"] == "answered").sum()
    assert page.attributes("data-status").count("answered") == answered


def test_some_people_of_a_file_and_nobody_have_a_report(report, score):
    people = pd.read_csv("people.csv").assign(customer=[f"C-{at}" for at in range(60)])
    first, *_, last = np.flatnonzero(score(people) < 0.6)
    people.to_csv("named.csv", index=False)
    people.head(0).to_csv("empty.csv", index=False)

    rows = ["--row", last, "--row", first, "--name", "customer"]
    assert report("-o", "report.html", *rows, people="named.csv") == 0
    assert report("-o", "empty.html", people="empty.csv") == 0

    page = Page(read("report.html"))
    shown = [name for name in page.attributes("id") if name.startswith("person-")]
    assert shown == [f"person-{first}", f"person-{last}"]
    assert page.text.index(f"Person C-{first}") < page.text.index(f"Person C-{last}")
    assert Page(read("empty.html")).count("article") == 0


def test_errors_are_one_paragraph_with_an_exit_code(report, capsys):
    Path("old.html").touch()
    wrong = [
        (["-o", "-"], USAGE, "is written to a file"),
        (["-o", "r.pdf"], USAGE, "ends in .html"),
        (["-o", "r.html", "--row", "60"], USAGE, "--row must be from 0 to 59"),
        (["-o", "r.html", "--language", "fr"], USAGE, "language must be one of"),
        (["-o", "r.html", "--labels", "l.toml", "--language", "de"], USAGE, "do not go together"),
        (["-o", "r.html", "--groups", "sxe"], USAGE, "--groups names columns"),
        (["-o", "r.html", "--max-people", "0"], USAGE, "max_people"),
        (["-o", "r.html", "--name", "customer"], INPUT, "lacks the columns"),
        (["-o", "r.html", "--card", "absent.md"], INPUT, "absent.md"),
        (["-o", "absent/r.html"], OUTPUT, "Cannot write to"),
        (["-o", "old.html"], USAGE, "exists already"),
    ]
    for arguments, code, message in wrong:
        assert report(*arguments) == code, arguments
        said = capsys.readouterr().err
        assert message in said
        assert "Traceback" not in said
    assert not list(Path().glob("r.*"))
    assert report("-o", "r.html", predictor="scoring:fails") == PREDICTOR
    assert "a secret cell" not in capsys.readouterr().err
