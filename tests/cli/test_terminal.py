"""What a terminal shows, and names that try to do harm."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest

from bank_files import USAGE
from mcce.cli import main
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


def test_hostile_names_and_values_are_escaped_on_the_terminal_alone(here, capsys):
    chance = np.random.default_rng(0)
    frame = pd.DataFrame({"salary": chance.integers(20, 90, 200)})
    levels = list(HOSTILE.values())
    for name in levels:
        frame[name] = chance.choice(levels, 200)
    frame.to_csv("train.csv", index=False)
    (here / "salary_scoring.py").write_text(SCORE)
    predictor, file = ["--predictor", "salary_scoring:score"], "a'b\n[x].mcce"
    fit, answers = ["fit", "train.csv", *predictor, "--desired", "0.6:"], "answers <b>\n.jsonl"

    assert main([*fit, "-o", file, "--immutable", HOSTILE["newline"]]) == 0
    assert main(["inspect", file]) == 0
    assert main(["explain", file, "train.csv", *predictor, "-o", answers]) == 0

    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\\x1b[31mred" in said.out
    assert max(map(len, said.out.splitlines())) <= 200
    rows = [json.loads(line) for line in (here / answers).read_text("utf-8").splitlines()]
    assert set(levels) <= set(rows[0])
    assert {row[name] for row in rows for name in levels} - {None} <= set(levels)
    assert main([*fit, "-o", "x.mcce", "--immutable", "\x1b[2J<b>"]) == USAGE
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b[2J<b>" in said
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_shows_progress_and_a_summary_that_fit(here):
    pytest.importorskip("tqdm")
    command = ["explain", "bank.mcce", "people.csv", "--predictor", "scoring:score"]

    code, shown = in_terminal([*command, "-o", "answers.csv", "--block-rows", 20], 70)

    assert code == 0
    lines = shown.replace("\r\n", "\n").replace("\r", "\n").splitlines()
    assert any("60/60" in line and "people/s" in line for line in lines)
    assert max(map(len, lines)) <= 70
    assert "60 people in" in shown
