"""Help texts, and every command that help and pages show."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bank_files import USAGE
from mcce.cli import main
from shown_commands import commands_in, commands_of_page, run_shown

ROOT = Path(__file__).parents[2]
COMMANDS = ("fit", "explain", "report", "serve", "verify", "privacy-audit", "compare-models")
COMMANDS += ("inspect", "demo")


def fitted_for(command, monkeypatch):
    """Fit anew where a command wants an explainer of another predictor."""
    if "model.joblib" in command and not command.startswith("mcce fit"):
        words = "mcce fit train.csv --predictor model.joblib --trust --desired 0.5: -o bank.mcce"
        assert run_shown(words, monkeypatch) == 0


def examples(name, capsys, monkeypatch):
    """The commands that the help of a command shows."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"Usage: mcce {name}" in said
    assert "Examples:" in said
    assert max(map(len, said.splitlines())) <= 80
    return commands_in(said)


def test_every_command_has_help_with_examples(capsys, monkeypatch):
    for name in COMMANDS:
        assert examples(name, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_help_run(name, here, capsys, monkeypatch, request):
    shown = examples(name, capsys, monkeypatch)
    if name == "verify":
        request.getfixturevalue("receipt")
    # A service would not end; everything before it begins is done.
    monkeypatch.setattr("uvicorn.run", lambda *args, **options: None)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    before = (here / "bank.mcce").read_bytes()
    for name in ("old", "new"):
        (here / f"{name}.mcce").write_bytes(before)

    for command in shown:
        (here / "bank.mcce").write_bytes(before)
        shutil.rmtree("answers", ignore_errors=True)
        fitted_for(command, monkeypatch)
        assert run_shown(command, monkeypatch) == 0, command


def test_help_lists_the_commands_and_the_exit_codes(capsys):
    assert main(["--help"]) == 0

    said = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", said, re.M) for name in COMMANDS)
    assert "Exit codes: 0 done" in said
    for wrong in ([], ["nonsense"], ["explain"], ["fit", "--nonsense"]):
        assert main(wrong) == USAGE


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["README.md", "docs/user_guide/command_line.md", "docs/user_guide/letters.md"]
)
def test_the_commands_of_a_page_run(page, here, monkeypatch):
    commands = commands_of_page(ROOT / page)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))

    codes = {command: run_shown(command, monkeypatch) for command in commands}

    assert commands
    assert not {command: code for command, code in codes.items() if code}


def python(program, **environment):
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom mcce.cli import main\n{program}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_imports_no_large_library():
    program = "main(['--help']); sys.exit(bool({'numpy', 'pandas', 'sklearn'} & set(sys.modules)))"

    assert python(program).returncode == 0


@pytest.mark.slow
def test_without_typer_one_line_says_what_to_install():
    ended = python("sys.modules['typer'] = None; sys.exit(main([]))")

    assert ended.returncode == USAGE
    assert ended.stderr == (
        "mcce: the command needs typer, which is not installed: "
        'pip install ".[cli]" in mcce\'s folder.\n'
    )


def test_shells_can_complete_commands():
    ended = python("main()", _MCCE_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="mcce in")

    assert "inspect" in ended.stdout
