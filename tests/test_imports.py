"""Importing the package loads next to nothing; using it loads no optional library."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import mcce

STANDARD = set(sys.stdlib_module_names) | {"mcce"}
# What pandas and scikit-learn load themselves, pyarrow for one, differs from place to place.
REQUIRED = "import joblib, numpy, pandas, scipy.stats, sklearn.base, sklearn.tree, sklearn.utils"
EXPLAIN = """
import mcce, pandas as pd
frame = pd.DataFrame({"age": [30, 40, 50, 60] * 5, "salary": range(20)})
explainer = mcce.MCCE(lambda rows: rows["salary"] / 20, (0.5, 1.0), random_state=0)
explainer.fit(frame).explain(frame.head(2)).changes()
"""


def packages_loaded_by(statements):
    """Packages loaded by statements in a fresh process, without those Python starts with."""
    program = (
        "import sys; before = set(sys.modules)\n"
        f"{statements}\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(printed.splitlines()[-1].split())


def strangers(packages, allowed=()):
    """Packages that are neither ours, nor Python's, nor allowed."""
    known = STANDARD | set(allowed)
    return {name for name in packages if name not in known and not name.startswith("_")}


@pytest.fixture(scope="module")
def required():
    """Packages of the required libraries."""
    return packages_loaded_by(REQUIRED)


def test_importing_the_package_loads_no_other_library():
    assert strangers(packages_loaded_by("import mcce; mcce.__version__; dir(mcce)")) == set()


def test_a_name_that_needs_no_estimator_does_not_wait_for_one():
    program = "import mcce, sys; mcce.McceError; assert 'mcce.explainer' not in sys.modules"

    packages_loaded_by(program)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_line_answers_simple_questions_without_loading_a_library(option):
    loaded = packages_loaded_by(f"from mcce.cli import main\nmain([{option!r}])")

    assert strangers(loaded, packages_loaded_by("import typer, typer.main")) == set()


def test_explaining_loads_the_required_libraries_and_no_optional_one(required):
    assert strangers(packages_loaded_by(EXPLAIN), required) == set()


def test_the_public_modules_load_no_optional_library(required):
    program = "import mcce; mcce.constraints, mcce.datasets, mcce.metrics, mcce.predictors"

    assert strangers(packages_loaded_by(program), required) == set()


def test_public_names_are_sorted_and_exist():
    plain = [name for name in mcce.__all__ if not name.startswith("_")]

    assert plain == sorted(plain, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(mcce, name) for name in mcce.__all__)
    assert set(mcce.__all__) <= set(dir(mcce))


def test_every_name_comes_from_the_module_that_type_checkers_see():
    tree = ast.parse(Path(mcce.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    listed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert {name for name, module in listed.items() if module is None} == set(mcce._SUBMODULES)
    assert {name: module for name, module in listed.items() if module} == mcce._MODULES
    assert sorted([*listed, "__version__"]) == sorted(mcce.__all__)


def test_a_star_import_brings_every_public_name():
    namespace = {}

    exec("from mcce import *", namespace)

    assert set(mcce.__all__) <= set(namespace)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mcce' has no attribute 'Explainer'"):
        mcce.Explainer  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Explainer'"):
        exec("from mcce import Explainer")


def test_names_of_the_package_can_be_pickled():
    for name in mcce._MODULES:
        value = getattr(mcce, name)

        assert pickle.loads(pickle.dumps(value)) is value


def test_help_lists_the_public_names():
    command = [sys.executable, "-c", "import mcce; help(mcce)"]

    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "class MCCE(" in printed
    assert "class ConstraintError(" in printed


@pytest.mark.parametrize("room", ["constraints", "datasets", "metrics", "predictors"])
def test_the_public_names_of_a_module_are_sorted_and_exist(room):
    module = import_module(f"mcce.{room}")
    key = lambda name: (not name.isupper(), name[0].islower(), name)

    assert module.__all__ == sorted(module.__all__, key=key)
    assert all(hasattr(module, name) for name in module.__all__)
