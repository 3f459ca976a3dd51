"""The lab uses mcce through its public names alone, as any other package would."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

LAB = Path(__file__).parents[1]
PUBLIC = {
    "mcce",
    "mcce.constraints",
    "mcce.datasets",
    "mcce.errors",
    "mcce.metrics",
    "mcce.predictors",
    "mcce.privacy",
    "mcce.protocols",
    "mcce.report",
    "mcce.testing",
}


def test_modules_of_the_lab_import_public_names_of_mcce_alone():
    found = {
        f"{path.relative_to(LAB).as_posix()}: {name}"
        for folder in ("benchmarks", "mcce_lab")
        for path in sorted((LAB / folder).rglob("*.py"))
        for name in names_of(ast.parse(path.read_text(encoding="utf-8")))
        if not is_public(name)
    }

    assert found == set()


def names_of(tree: ast.Module) -> set[str]:
    """What a module imports of mcce, with dots."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name for name in names if name.partition(".")[0] == "mcce"}


def is_public(name: str) -> bool:
    """Whether a name is a public module, or one that such a module exports."""
    if name in PUBLIC:
        return True
    module, _, attribute = name.rpartition(".")
    if module not in PUBLIC:
        return False
    found = import_module(module)
    return attribute in getattr(found, "__all__", vars(found))
