"""Imports inside mcce, and the tests themselves: of public names, synchronised by events."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import mcce

TESTS = Path(__file__).parent
# Internal modules that all tests outside tests/oracles may use together.
MAX_INTERNALS = 12
PUBLIC = {
    "mcce",
    "mcce.cli",
    "mcce.constraints",
    "mcce.datasets",
    "mcce.errors",
    "mcce.execution",
    "mcce.metrics",
    "mcce.predictors",
    "mcce.privacy",
    "mcce.protocols",
    "mcce.report",
    "mcce.report.plots",
    "mcce.serve",
    "mcce.testing",
}
# Files that may sleep, and why.
SLEEPS = {
    "engines/test_dask.py": "lets calls overlap, if they do",
    "helpers/bank_files.py": "looks every 50 ms for a file that lets a command go on",
    "helpers/served_bank.py": "looks every 10 ms whether what must come has come",
    "serve/test_queue.py": "a slow predictor, for a budget of seconds",
    "unit/test_time_limits.py": "a slow predictor, for a budget of seconds",
}


def test_tests_use_few_internal_modules_and_do_not_sleep():
    internal, sleeping = {}, set()
    for path in sorted(TESTS.rglob("*.py")):
        name, text = path.relative_to(TESTS).as_posix(), path.read_text(encoding="utf-8")
        if path == Path(__file__):
            continue
        if re.search(r"\bsleep\(", text):
            sleeping.add(name)
        if not name.startswith("oracles/") and "mcce" in text:
            for module in modules_of(ast.parse(text)) - PUBLIC:
                internal.setdefault(module, []).append(name)

    listed = "\n".join(
        f"{module}: {', '.join(names)}" for module, names in sorted(internal.items())
    )
    assert len(internal) <= MAX_INTERNALS, f"{len(internal)} internal modules:\n{listed}"
    assert sleeping == set(SLEEPS)


def test_modules_import_names_from_where_they_are_defined():
    found = []
    for path in sorted(Path(mcce.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level and node.module:
                room = path.parents[node.level - 1].joinpath(*node.module.split("."))
                if room.is_dir() and room.name != "kernels":
                    found.append(f"{path.name}:{node.lineno} imports from {node.module}")

    assert found == []


def modules_of(tree: ast.Module) -> set[str]:
    """Modules of mcce that a file imports, or names in a string: a program or what it patches."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"\bmcce(?:\.\w+)+", node.value))
    return {module_of(name) for name in names if name.partition(".")[0] == "mcce"}


def module_of(name: str) -> str:
    """The module that a dotted name is, or lies in."""
    folder, module = Path(mcce.__file__).parent, "mcce"
    for part in name.split(".")[1:]:
        if (folder / f"{part}.py").is_file():
            return f"{module}.{part}"
        if not (folder / part / "__init__.py").is_file():
            break
        folder, module = folder / part, f"{module}.{part}"
    return module
