"""Commands that help texts and pages show, to be run as tests."""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path

from mcce.cli import main


def commands_in(text: str) -> list[str]:
    """Every command ``mcce …`` of a text, lines that end in a backslash joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line.strip() for line in joined.splitlines() if re.match(r"\s*(\$ )?mcce ", line)]


def commands_of_page(page: Path) -> list[str]:
    """Commands in the blocks of a page that are for a shell."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:console|bash|sh)\n(.*?)^```$", text, re.M | re.S)
    return [command for block in blocks for command in commands_in(block)]


def run_shown(command: str, monkeypatch) -> int:
    """Run a command as shown, with standard input from a file if it says so."""
    words = shlex.split(command.removeprefix("$ "))
    assert words.pop(0) == "mcce"
    if "<" in words:
        at = words.index("<")
        content = Path(words[at + 1]).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        del words[at : at + 2]
    return main(words)
