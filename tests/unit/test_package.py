"""The package is as ARCHITECTURE.md says, and functions stay small."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mcce"
MAX_FUNCTION = 45


def page() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_layers_on_the_page_are_those_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]

    listed = " ".join(page().rsplit("```", 2)[1].split())

    assert listed.split(" → ") == contract["layers"]
    assert "exclude_type_checking_imports" not in settings["tool"]["importlinter"]
    assert "ignore_imports" not in contract


def test_every_file_that_the_page_names_exists():
    named = set(re.findall(r"`([\w/]+\.(?:py|hpp))`", page()))

    found = {
        name
        for name in named
        if any((folder / name).is_file() for folder in (PACKAGE, ROOT, PACKAGE / "kernels"))
        or list((PACKAGE / "kernels").glob(name))
    }

    assert named
    assert named - found == set()


def test_functions_stay_small():
    long = [
        f"{path.relative_to(PACKAGE)}: {node.name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and length(node) > MAX_FUNCTION
    ]

    # It has a line for each parameter, twice.
    assert long == ["explainer.py: __init__"]


def length(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or 0) - function.lineno + 1 - documented
