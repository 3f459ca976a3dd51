"""Files that would take all memory are refused before they do."""

from __future__ import annotations

import gzip
import json

import pytest

from bank_files import INPUT
from mcce.cli import main

LONG, LINES, CELLS = "x" * 2**24, "y\n" * 2**23, ",1" * 2**23


@pytest.fixture
def head(here):
    """The line of names and a row of people.csv."""
    return (here / "people.csv").read_text().splitlines()[:2]


def assert_refused(name, text, capsys):
    predictor = ["--predictor", "scoring:score"]
    for command in (
        ["explain", "bank.mcce", name, *predictor, "-o", "answers.csv", "--overwrite"],
        ["fit", name, *predictor, "--desired", "0.6:", "-o", "own.mcce"],
    ):
        assert main(command) == INPUT
        assert text in " ".join(capsys.readouterr().err.split())


def test_a_row_that_is_too_long_is_refused_in_every_text_format(here, head, capsys):
    names, row = head
    more = [f"{names},note", f"{row},short"]
    # In one line, in a cell with lines, and in cells that each are short.
    for long in (f"{row},{LONG}", f'{row},"{LINES}"', f"{row}{CELLS}"):
        (here / "long.csv").write_text("\n".join([*more, long]))
        assert_refused("long.csv", "a row has more than 16,777,216 characters", capsys)
    person = json.loads((here / "people.jsonl").read_text().splitlines()[0])
    lines = [json.dumps(person), json.dumps(person | {"note": LONG})]
    (here / "long.jsonl").write_text("\n".join(lines))
    assert_refused("long.jsonl", "after line 1: a row has more than", capsys)


def test_gzip_that_expands_beyond_all_measure_is_refused(here, head, capsys):
    names, row = head
    line = f"{row},{'z' * 2**20}\n".encode()
    with gzip.open("bomb.csv.gz", "wb") as stream:
        stream.write(f"{names},note\n".encode())
        for _ in range(160):
            stream.write(line)

    assert_refused("bomb.csv.gz", "expands to more than 200 times its size", capsys)


def test_a_key_that_stands_twice_in_a_row_is_refused(here, capsys):
    rows = (here / "people.jsonl").read_text().splitlines()
    rows[1] = rows[1].replace("{", '{"Age": 90, ', 1)
    (here / "twice.jsonl").write_text("\n".join(rows))

    assert_refused("twice.jsonl", "Line 2 of 'twice.jsonl' has an object that has a key", capsys)
