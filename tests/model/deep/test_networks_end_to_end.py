"""Networks in an explainer: searches, constraints, relations, files, and no torch after fitting."""

from __future__ import annotations

import subprocess
import sys

import pytest

from generated import (
    PEOPLE,
    SEARCHES,
    check_batches,
    check_draws,
    check_exact_is_refused,
    check_saving,
    check_search,
    explainer_with,
)
from mcce import CTGAN, MADE

pytest.importorskip("torch", reason="torch is not installed")

GENERATORS = [MADE(n_hidden=32, n_bins=16, n_epochs=15), CTGAN(n_hidden=32, n_noise=16, n_epochs=8)]


@pytest.fixture(scope="module", params=GENERATORS, ids=["made", "ctgan"])
def explainer(request):
    return explainer_with(request.param)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_that_draws_keeps_its_promises(explainer, search):
    check_search(explainer, search)


def test_nobody_depends_on_others(explainer):
    check_batches(explainer.set_params(search="balanced"))


def test_draws_do_not_depend_on_the_batch(explainer):
    check_draws(explainer.generator_, explainer.schema_, PEOPLE)


def test_it_can_be_saved(explainer, tmp_path):
    check_saving(explainer.set_params(search="balanced"), tmp_path / "explainer.mcce")


@pytest.mark.parametrize("generator", GENERATORS, ids=["made", "ctgan"])
def test_the_exact_search_says_which_generators_it_can_use(generator):
    check_exact_is_refused(generator)


def test_a_saved_explainer_needs_no_torch(explainer, tmp_path):
    path = tmp_path / "explainer.mcce"
    explainer.set_params(search="paper").save(path)
    code = (
        "from generated import PEOPLE, explain, score\n"
        "from mcce import load\n"
        f"result = explain(load({str(path)!r}, score), PEOPLE)\n"
        "print(len(result.frame), 'torch' in sys.modules)"
    )
    helpers = f"import sys; sys.path[:0] = {sys.path!r}\n"

    done = subprocess.run(
        [sys.executable, "-c", helpers + code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    n_rows, imported = done.stdout.split()
    assert int(n_rows) > 0
    assert imported == "False"
