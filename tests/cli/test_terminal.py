"""What a terminal shows, and names that try to do harm."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest

from mcce.cli import main
from mcce.cli.terminal import printable, table
from terminals import in_terminal

HOSTILE = {
    "markup": "<script>alert(1)</script>",
    "rich": "[bold red]x[/]",
    "escape": "\x1b[31mred\x1b[0m",
    "newline": 'two\nlines, "quoted"',
    "braces": "{0.__class__} %s",
    "long": "x" * 10_000,
    "formula": "=1+1",
}
SCORE = "def score(frame):\n    return frame['salary'].to_numpy(dtype=float) / 90\n"


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Training rows with names and levels that try to do harm."""
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(0)
    frame = pd.DataFrame({"salary": chance.integers(20, 90, 200)})
    levels = list(HOSTILE.values())
    for name in HOSTILE.values():
        frame[name] = chance.choice(levels, 200)
    frame.to_csv("train.csv", index=False)
    (tmp_path / "salary_scoring.py").write_text(SCORE)
    return tmp_path


def test_hostile_names_and_values_pass_through_unchanged(hostile, capsys):
    predictor = ["--predictor", "salary_scoring:score"]
    fitted = ["fit", "train.csv", *predictor, "--desired", "0.6:", "-o", "a'b\n[x].mcce"]
    assert main([*fitted, "--immutable", HOSTILE["newline"]]) == 0
    assert main(["inspect", "a'b\n[x].mcce"]) == 0
    answers = "answers <b>\n.jsonl"
    command = ["explain", "a'b\n[x].mcce", "train.csv", *predictor, "-o", answers]

    assert main([*command, "--block-rows", "70"]) == 0

    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\\x1b[31mred" in said.out
    rows = [json.loads(line) for line in (hostile / answers).read_text("utf-8").splitlines()]
    assert set(HOSTILE.values()) <= set(rows[0])
    values = {row[name] for row in rows for name in HOSTILE.values()} - {None}
    assert values <= set(HOSTILE.values())
    assert sorted(path.name for path in hostile.glob("*.parts")) == []


def test_an_error_shows_hostile_names_escaped(hostile, capsys):
    arguments = ["--predictor", "salary_scoring:score", "--desired", "0.6:", "-o", "x.mcce"]

    assert main(["fit", "train.csv", *arguments, "--immutable", "\x1b[2J<b>"]) == 3

    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b[2J<b>" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_table_fits_the_terminal(width):
    rows = [["x" * 300, "y" * 40, 1], ["a\tb", "c", 2]]

    shown = table(["name", "value", "n"], rows, width)

    assert max(map(len, shown.splitlines())) <= width
    assert len(shown.splitlines()) == 3


def test_printable_texts_are_left_alone():
    assert printable("Löhne ≥ 3 €, [x] {y} <z>") == "Löhne ≥ 3 €, [x] {y} <z>"


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_shows_progress_and_a_summary_that_fit(here, columns):
    pytest.importorskip("tqdm")
    command = ["explain", "bank.mcce", "people.csv", "--predictor", "scoring:score"]

    code, shown = in_terminal([*command, "-o", "answers.csv", "--block-rows", "20"], columns)

    assert code == 0
    lines = shown.replace("\r\n", "\n").replace("\r", "\n").splitlines()
    assert any("60/60" in line and "people/s" in line for line in lines)
    assert max(map(len, lines)) <= columns
    assert "60 people in" in shown


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_shows_an_error_as_a_paragraph(here):
    command = ["explain", "bank.mcce", "absent.csv", "--predictor", "scoring:score", "-o", "a.csv"]

    code, shown = in_terminal(command, 80)

    assert code == 3
    assert shown.startswith("mcce: error: Cannot read 'absent.csv'")
    assert "Traceback" not in shown
