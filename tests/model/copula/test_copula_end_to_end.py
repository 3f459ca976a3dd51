"""The Gaussian copula in an explainer: searches, constraints, relations, files."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def explainer():
    return explainer_with("copula")


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_that_draws_keeps_its_promises(explainer, search):
    check_search(explainer, search)


def test_nobody_depends_on_others(explainer):
    check_batches(explainer.set_params(search="balanced"))


def test_draws_do_not_depend_on_the_batch(explainer):
    check_draws(explainer.generator_, explainer.schema_, PEOPLE)


def test_it_can_be_saved(explainer, tmp_path):
    check_saving(explainer.set_params(search="balanced"), tmp_path / "explainer.mcce")


def test_the_exact_search_says_which_generators_it_can_use():
    check_exact_is_refused("copula")
