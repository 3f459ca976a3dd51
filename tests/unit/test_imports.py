"""Importing the package loads next to nothing; using it loads no optional library."""

from __future__ import annotations

import pickle
import pydoc
import subprocess
import sys
from importlib import import_module

import pytest

import mcce

STANDARD = set(sys.stdlib_module_names) | {"mcce"}
# What pandas and scikit-learn load themselves, pyarrow for one, differs from place to place.
REQUIRED = "import joblib, numpy, pandas, scipy.stats, sklearn.base, sklearn.tree, sklearn.utils"
EXPLAIN = """
import mcce, pandas as pd
mcce.constraints, mcce.datasets, mcce.metrics, mcce.predictors
frame = pd.DataFrame({"age": [30, 40, 50, 60] * 5, "salary": range(20)})
explainer = mcce.MCCE(lambda rows: rows["salary"] / 20, (0.5, 1.0), random_state=0)
explainer.fit(frame).explain(frame.head(2)).changes()
"""


PAPER = """
import mcce, pandas as pd
frame = pd.DataFrame({"age": [30, 40, 50, 60] * 5, "salary": range(20)})
explainer = mcce.MCCE(lambda rows: rows["salary"] / 20, (0.5, 1.0), search="paper", random_state=0)
explainer.fit(frame).explain(frame.head(2))
"""
# What only other searches, other models and other calls need.
BEYOND_PAPER = (
    "analysis",
    "boosting",
    "metrics",
    "plausibility",
    "privacy",
    "relations",
    "report",
    "saving",
    "surrogate",
)


def packages_loaded_by(statements, before="pass"):
    """Packages that statements load in a fresh process, without those loaded before."""
    packages = "{name.partition('.')[0] for name in sys.modules}"
    program = (
        f"import sys\n{before}\nknown = {packages}\n{statements}\nprint(*({packages} - known))"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(printed.splitlines()[-1].split())


def strangers(packages):
    """Packages that are neither ours nor Python's."""
    return {name for name in packages if name not in STANDARD and not name.startswith("_")}


def test_importing_the_package_loads_no_other_library():
    loaded = packages_loaded_by("import mcce; mcce.__version__; dir(mcce)")

    assert strangers(loaded) == set()


def test_the_command_line_answers_simple_questions_without_loading_a_library():
    questions = "from mcce.cli import main\nmain(['--help']), main(['--version'])"

    assert strangers(packages_loaded_by(questions, "import typer, typer.main")) == set()


@pytest.mark.slow
def test_explaining_loads_the_required_libraries_and_no_optional_one():
    assert strangers(packages_loaded_by(EXPLAIN, REQUIRED)) == set()


def test_the_papers_search_loads_few_modules_and_nothing_beyond_it():
    program = f"{PAPER}\nimport sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    ours = [name.split(".") for name in printed.split() if name.partition(".")[0] == "mcce"]

    assert not {part for name in ours for part in name[1:2]}.intersection(BEYOND_PAPER)
    assert len(ours) <= 120


def test_public_names_are_sorted_and_exist():
    plain = [name for name in mcce.__all__ if not name.startswith("_")]

    assert plain == sorted(plain, key=lambda name: (not name.isupper(), name))
    assert set(mcce.__all__) <= set(dir(mcce))
    for room in ("constraints", "datasets", "metrics", "predictors"):
        module = import_module(f"mcce.{room}")
        key = lambda name: (not name.isupper(), name[0].islower(), name)
        assert module.__all__ == sorted(module.__all__, key=key)
        assert all(hasattr(module, name) for name in module.__all__)


def test_a_star_import_brings_every_public_name_and_each_can_be_pickled():
    namespace = {}

    exec("from mcce import *", namespace)

    for name in mcce.__all__:
        value = namespace[name]
        if isinstance(value, type) or callable(value):
            assert pickle.loads(pickle.dumps(value)) is value


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mcce' has no attribute 'Explainer'"):
        mcce.Explainer  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Explainer'"):
        exec("from mcce import Explainer")


def test_help_lists_the_public_names():
    printed = pydoc.plain(pydoc.render_doc(mcce))

    assert "class MCCE(" in printed
    assert "class ConstraintError(" in printed
