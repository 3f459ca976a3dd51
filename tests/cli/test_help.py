"""Help texts, and every command that help and pages show."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcce.cli import (
    app,
    demo,
    experiments,
    explain,
    fit,
    inspection,
    main,
    privacy_audit,
    report,
    serve,
    verify,
)
from shown_commands import commands_in, commands_of_page, run_shown

ROOT = Path(__file__).parents[2]
COMMANDS = (
    *("fit", "explain", "report", "serve", "verify", "privacy-audit", "inspect", "demo"),
    "experiments",
)
PARTS = (app, fit, explain, report, serve, verify, privacy_audit, inspection, demo)
TEXTS = [part.EPILOG for part in PARTS]
# Each once, however often it is shown.
SHOWN = list(dict.fromkeys(command for text in TEXTS for command in commands_in(text)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    assert main([name, "--help"]) == 0

    said = capsys.readouterr().out
    assert f"Usage: mcce {name}" in said
    assert "Examples:" in said
    assert max(map(len, said.splitlines())) <= 80


def test_help_lists_the_commands_and_the_exit_codes(capsys):
    assert main(["--help"]) == 0

    said = capsys.readouterr().out
    assert all(re.search(rf"^  {name} ", said, re.M) for name in COMMANDS)
    assert "Exit codes: 0 done" in said


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["explain"], ["fit", "--nonsense"]])
def test_a_wrong_command_is_a_usage_error(arguments, capsys):
    assert main(arguments) == 2


def fitted_for(command, monkeypatch):
    """Fit anew where a command wants an explainer of another predictor."""
    if (
        command.startswith(("mcce explain", "mcce report", "mcce serve", "mcce privacy-audit"))
        and "model.joblib" in command
    ):
        words = "mcce fit train.csv --predictor model.joblib --trust --desired 0.5: -o bank.mcce"
        assert run_shown(words, monkeypatch) == 0


@pytest.mark.parametrize("command", SHOWN)
def test_the_examples_of_help_run(command, here, monkeypatch, request):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    # A service would not end; everything before it begins is done.
    monkeypatch.setattr("uvicorn.run", lambda *args, **options: None)
    fitted_for(command, monkeypatch)
    if command.startswith("mcce verify"):
        request.getfixturevalue("receipt")

    assert run_shown(command, monkeypatch) == 0


def test_the_examples_of_experiments_are_the_ones_that_their_tests_run():
    shown = commands_in(experiments.EPILOG)

    assert run_shown(shown[0], None) == 0
    assert shown[1] == "mcce experiments costs --dataset german --quick"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["README.md", "docs/user_guide/command_line.md", "docs/user_guide/report.md"]
)
def test_the_commands_of_a_page_run(page, here, monkeypatch):
    commands = commands_of_page(ROOT / page)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))

    codes = {command: run_shown(command, monkeypatch) for command in commands}

    assert commands
    assert not {command: code for command, code in codes.items() if code}


def process(*arguments, **options):
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "mcce.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_help_takes_little_time():
    before = os.times()

    assert process("--help").returncode == 0

    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    assert used < 0.4


def test_without_typer_one_line_says_what_to_install():
    program = (
        "import sys; sys.modules['typer'] = None; from mcce.cli import main; sys.exit(main([]))"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert ended.stderr == 'mcce: the command needs typer: pip install "mcce[cli]".\n'


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell):
    asked = {**os.environ, "_MCCE_COMPLETE": f"complete_{shell}", "COMP_WORDS": "mcce in"}
    asked |= {"COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "mcce in"}
    asked |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}

    program = "import sys; from mcce.cli import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=False
    )

    assert "inspect" in ended.stdout
