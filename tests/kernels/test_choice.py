"""Which implementation a kernel comes from is decided in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mcce

SOURCES = Path(mcce.__file__).parent
IMPLEMENTATIONS = {"_native", "native", "reference"}
OUTSIDE = [path for path in SOURCES.rglob("*.py") if "kernels" not in path.parts]


def imported(path):
    """Every dotted name that a module imports, without the dots of relative imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_the_package_imports_kernels_from_mcce_kernels_only(path):
    for name in imported(path):
        before, _, after = name.partition("kernels.")
        assert name == before or after.partition(".")[0] not in IMPLEMENTATIONS, name


def test_the_reference_does_not_know_the_compiled_kernels():
    for path in (SOURCES / "kernels" / "reference").glob("*.py"):
        for name in imported(path):
            assert not {"_native", "native"} & set(name.split(".")), (path.name, name)
