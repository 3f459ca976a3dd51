"""Parameters in files of older versions, by their names of today."""

from __future__ import annotations

import pytest

from mcce import ExactSearch, Search, TreeChain
from mcce.saving.versions import upgrade_generator, upgrade_parameters, upgrade_search
from searches import bounded

# What an explainer of version 2 wrote by default.
DEFAULTS = {
    "max_samples": None,
    "max_sparsity": None,
    "max_distance": None,
    "rank_by": ("sparsity", "distance"),
    "tolerance": 0.0,
}


def test_parameters_of_a_search_get_their_new_names():
    old = {
        "targets": 5,
        "support": 0.9,
        "slack": 2,
        "prefer": "distance",
        "keep": 0.3,
        "n_samples": 60,
        "max_samples": 300,
    }

    assert upgrade_search(old) == {
        "n_targets": 5,
        "min_plausibility": 0.1,
        "extra_changes": 2,
        "prefer": "distance",
        "keep_probability": 0.3,
        "n_samples": 60,
        "max_samples": 300,
        "back_off": False,
    }
    assert "targets" in old


@pytest.mark.parametrize(("share", "least"), [(None, 0.0), (0.95, 0.05), (0.75, 0.25)])
def test_the_share_inside_the_support_becomes_the_least_plausibility(share, least):
    assert upgrade_search({"support": share})["min_plausibility"] == least


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nearness", "knn_distance"),
        ("both", "balanced"),
        ("sparsity", "sparsity"),
        ("distance", "distance"),
        ("balanced", "balanced"),
    ],
)
def test_a_preference_gets_its_new_name(old, new):
    assert upgrade_search({"prefer": old})["prefer"] == new


@pytest.mark.parametrize("search", [Search(), Search.preset("fast")])
def test_a_search_of_today_stays_as_it_is(search):
    assert upgrade_search(vars(search)) == vars(search)


def test_parameters_of_today_stay_as_they_are():
    parameters = {"search": Search.preset("near", max_sparsity=2), "n_samples": 5, "memory": 1.0}

    assert upgrade_parameters(parameters) == parameters


@pytest.mark.parametrize("search", ["paper", "balanced", "exact", Search(n_targets=3)])
@pytest.mark.parametrize("rank_by", [("sparsity", "distance"), ["sparsity", "distance"]])
def test_what_nobody_had_changed_leaves_the_search_alone(search, rank_by):
    old = DEFAULTS | {"search": search, "rank_by": rank_by, "n_samples": 7}

    assert upgrade_parameters(old) == {"search": search, "n_samples": 7}


@pytest.mark.parametrize(
    ("search", "changes"),
    [
        ("paper", {"max_sparsity": 2}),
        ("paper", {"max_sparsity": 0, "max_distance": 0.0}),
        ("paper", {"rank_by": ["distance"], "tolerance": 0.02}),
        ("fast", {"rank_by": ("distance", "sparsity")}),
        ("balanced", {"max_distance": 0.3, "max_samples": 400}),
        ("exact", {"max_sparsity": 1, "max_distance": 0.5}),
        (Search(n_targets=3), {"max_sparsity": 1}),
        (ExactSearch(max_rows=9), {"max_samples": 2000}),
    ],
)
def test_what_had_been_changed_becomes_a_parameter_of_the_search(search, changes):
    old = DEFAULTS | {"search": search, "n_samples": None} | changes

    upgraded = upgrade_parameters(old)

    assert upgraded == {"search": bounded(search, **changes), "n_samples": None}


def test_a_file_from_before_searches_had_names_holds_the_papers():
    assert upgrade_parameters(DEFAULTS) == {"search": "paper"}
    assert upgrade_parameters(DEFAULTS | {"max_sparsity": 1}) == {
        "search": Search.preset("paper", max_sparsity=1)
    }


def test_fewer_draws_than_the_search_makes_go_with_the_most_that_anybody_got():
    upgraded = upgrade_parameters(
        DEFAULTS | {"search": "paper", "n_samples": 200, "max_samples": 400}
    )

    search = Search.preset("paper", n_samples=200, max_samples=400)
    assert upgraded == {"search": search, "n_samples": 200}


def test_an_exact_search_drops_what_it_never_used():
    upgraded = upgrade_parameters(DEFAULTS | {"search": "exact", "tolerance": 0.1})

    assert upgraded == {"search": ExactSearch()}


@pytest.mark.parametrize(
    ("search", "generator", "n_features", "expected"),
    [
        ("balanced", "trees", 33, TreeChain()),
        ("balanced", "trees", 32, "trees"),
        ("paper", "trees", 33, "trees"),
        ("sparse", TreeChain(max_inputs=4), 33, TreeChain(max_inputs=4)),
    ],
)
def test_trees_of_a_wide_table_considered_all_columns(search, generator, n_features, expected):
    old = {"search": search, "generator": generator}

    new = upgrade_generator(old, n_features)["generator"]

    assert new == expected if isinstance(expected, str) else vars(new) == vars(expected)
    assert old["generator"] is generator
