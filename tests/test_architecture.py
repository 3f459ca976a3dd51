"""The package is as ARCHITECTURE.md says, and files and functions stay small."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SOURCES = sorted((ROOT / "src" / "mcce").rglob("*.py"))
MAX_FILE, MAX_FUNCTION = 400, 50
# The rooms of which the page lists every file.
LISTED = (
    "tables",
    "relations",
    "model",
    "postprocess",
    "boosting",
    "plausibility",
    "search",
    "analysis",
    "privacy",
    "baselines",
)


def test_the_layers_on_the_page_are_those_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]

    listed = PAGE.rsplit("```", 2)[1].split("\n")

    assert [line for line in listed if line] == contract["layers"]
    assert "exclude_type_checking_imports" not in settings["tool"]["importlinter"]
    assert "ignore_imports" not in contract


def test_every_file_that_the_page_names_exists():
    named = set(re.findall(r"`([\w/]+\.(?:py|hpp))`", PAGE))

    missing = {n for n in named if not any((ROOT / at / n).is_file() for at in ("src/mcce", ""))}

    assert named
    assert not {n for n in missing if not list((ROOT / "src/mcce/kernels").glob(n))}


@pytest.mark.parametrize("room", LISTED)
def test_the_page_lists_every_file_of_a_room(room):
    files = {p.name for p in SOURCES if p.parent.name == room and p.name != "__init__.py"}
    (entry,) = re.findall(rf"^  {room}/ .*(?:\n {{20}}.*)*", PAGE, re.MULTILINE)

    assert files
    assert not {name for name in files if not re.search(rf"\b{name}\b", entry)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path):
    text = path.read_text(encoding="utf-8")

    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and length(node) > MAX_FUNCTION
    ]

    assert text.count("\n") <= MAX_FILE
    assert not [node.name for node in functions]


def length(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documented
