"""Receipts on the command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bank_files import BROKEN, INPUT, USAGE
from mcce.cli import main

OPTIONS = ["--explainer", "bank.mcce", "--predictor", "scoring:score"]


def test_a_receipt_holds(receipt, capsys):
    assert main(["verify", "receipt.json"]) == 0
    assert "Only the receipt itself" in capsys.readouterr().out

    assert main(["verify", "receipt.json", *OPTIONS]) == 0

    said = capsys.readouterr().out
    assert "FAILS" not in said
    assert said.count("holds  ") == 13


def test_an_altered_receipt_fails(receipt, capsys):
    receipt["answer"]["Age"] += 1
    Path("receipt.json").write_text(json.dumps(receipt), encoding="utf-8")

    assert main(["verify", "receipt.json", *OPTIONS, "--json"]) == BROKEN

    said = json.loads(capsys.readouterr().out)
    assert not said["holds"]
    failing = [check["name"] for check in said["checks"] if not check["holds"]]
    assert "the receipt is unaltered" in failing
    assert "immutable features stay" in failing


def test_another_explainer_fails(receipt, capsys):
    words = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:", "--seed", "1"]
    assert main([*words, "-o", "other.mcce"]) == 0

    assert main(["verify", "receipt.json", *OPTIONS[:1], "other.mcce", *OPTIONS[2:]]) == BROKEN

    assert "FAILS  the explainer is the same" in capsys.readouterr().out


def test_a_receipt_that_names_an_answer_twice_is_none(receipt, capsys):
    twice = f'{{"answer": {{}}, {json.dumps(receipt)[1:]}'
    Path("receipt.json").write_text(twice, encoding="utf-8")

    assert main(["verify", "receipt.json"]) == INPUT

    assert "no receipt: it has an object that has a key twice" in capsys.readouterr().err


def test_a_receipt_holds_checksums_and_another_module_of_that_name_fails(receipt, here, capsys):
    assert re.fullmatch("[0-9a-f]{64}", receipt["predictor"])
    (here / "scoring.py").write_text((here / "scoring.py").read_text() + "# edited\n")
    sys.modules.pop("scoring")

    assert main(["verify", "receipt.json", *OPTIONS]) == BROKEN

    said = capsys.readouterr().out
    assert said.count("FAILS") == 1
    assert "FAILS  the predictor is the same" in said


def test_errors_are_one_paragraph(receipt, capsys):
    del receipt["person"]["Age"]
    wrong = [
        ("{", [], INPUT, "is no JSON"),
        ("[1]", [], INPUT, "no receipt"),
        ('{"receipt": 1, "receipt": 1}', [], INPUT, "has a key twice"),
        ("[" * 100_000, [], INPUT, "is no JSON"),
        ("{}", OPTIONS[:2], USAGE, "go together"),
        (json.dumps(receipt), OPTIONS, INPUT, "lacks the columns"),
    ]
    for content, arguments, code, message in wrong:
        Path("odd.json").write_text(content, encoding="utf-8")
        assert main(["verify", "odd.json", *arguments]) == code
        said = capsys.readouterr().err
        assert message in said
        assert "Traceback" not in said
