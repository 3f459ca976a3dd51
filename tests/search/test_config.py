"""What a search may be: its parameters, the presets, and what it needs from the explainer."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from mcce import ExactSearch, ParameterError, Search
from mcce.search.config import PRESETS, Needs, find_search

SAMPLING = [name for name in PRESETS if name != "exact"]
WALKS = ["sparse", "balanced", "plausible", "near"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_targets": -1}, "n_targets must be a whole number from 0"),
        ({"n_targets": 2.5}, "n_targets"),
        ({"min_plausibility": -0.1}, "min_plausibility must be at least 0 and below 1"),
        ({"min_plausibility": 1}, "min_plausibility must be at least 0 and below 1, got 1"),
        ({"min_plausibility": 5}, "min_plausibility must be at least 0 and below 1"),
        ({"min_plausibility": "5"}, "min_plausibility"),
        ({"min_plausibility": None}, "min_plausibility"),
        ({"extra_changes": -1}, "extra_changes"),
        ({"prefer": "nearest"}, "prefer must be one of"),
        ({"prefer": ["balanced"]}, "prefer must be one of"),
        ({"keep_probability": 1}, "keep_probability must be at least 0 and below 1, got 1"),
        ({"keep_probability": 1.5}, "keep_probability"),
        ({"n_samples": 0}, "n_samples"),
        ({"max_samples": 50}, "max_samples must be at least n_samples, 100"),
        ({"n_targets": 0}, "extra_changes=0 and prefer='distance'"),
        ({"rank_by": ["distance"]}, r"rank_by=\['distance'\].*Leave rank_by out"),
        ({"rank_by": ("distance", "sparsity"), "prefer": "distance"}, "or pass n_targets=0"),
    ],
)
def test_a_parameter_that_cannot_work_is_an_error_that_names_it(parameters, message):
    with pytest.raises(ParameterError, match=message):
        Search(**parameters)


@pytest.mark.parametrize("name", WALKS)
def test_a_search_with_targets_cannot_rank_draws_another_way(name):
    with pytest.raises(ParameterError, match=r"rank_by.*Leave rank_by out"):
        Search.preset(name, rank_by=["distance"])


@pytest.mark.parametrize("name", ["paper", "fast"])
def test_implausible_rows_are_allowed_only_where_plausibility_is_required(name):
    with pytest.raises(ParameterError, match=r"allow_implausible=True .* min_plausibility above 0"):
        Search.preset(name, allow_implausible=True)
    assert Search.preset(name, allow_implausible=True, min_plausibility=0.1).allow_implausible


@pytest.mark.parametrize("rank_by", [["sparsity", "distance"], ("sparsity", "distance")])
def test_the_usual_ranking_may_be_written_out_with_targets(rank_by):
    assert Search(rank_by=rank_by).n_targets > 0


@pytest.mark.parametrize("search", PRESETS.values(), ids=PRESETS)
def test_a_search_does_not_change(search):
    with pytest.raises(FrozenInstanceError):
        search.max_sparsity = 1


@pytest.mark.parametrize("name", SAMPLING)
def test_a_preset_is_the_search_of_that_name(name):
    assert Search.preset(name) == find_search(name) == PRESETS[name]
    assert Search.preset(name, **vars(PRESETS[name])) == PRESETS[name]


@pytest.mark.parametrize("name", SAMPLING)
def test_a_preset_with_changes_differs_in_these_alone(name):
    changed = Search.preset(name, max_sparsity=2, tolerance=0.1)

    differing = [
        field.name
        for field in fields(Search)
        if getattr(changed, field.name) != getattr(PRESETS[name], field.name)
    ]

    assert differing == ["max_sparsity", "tolerance"]
    assert PRESETS[name].max_sparsity is None


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_equals_itself_written_out(name):
    written = {"Search": Search, "ExactSearch": ExactSearch}

    assert eval(repr(PRESETS[name]), written) == PRESETS[name]


def test_no_two_presets_are_the_same():
    presets = list(PRESETS.values())

    assert all(one != other for at, one in enumerate(presets) for other in presets[:at])


def test_a_parameter_that_no_search_has_is_refused_with_a_list_of_those_it_has():
    with pytest.raises(ParameterError, match=r"Search has no parameter 'slack'.*'extra_changes'"):
        Search.preset("balanced", slack=2)


def test_the_exact_search_is_no_preset_of_sampling():
    with pytest.raises(ParameterError, match=r"'exact' is an ExactSearch. Pass ExactSearch\("):
        Search.preset("exact", max_sparsity=1)


@pytest.mark.parametrize("name", ["Paper", "both", None, 3])
def test_a_preset_of_no_such_name_is_an_error_that_lists_them(name):
    with pytest.raises(ParameterError, match=r"search must be one of .*'balanced'"):
        Search.preset(name)


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_needs_to_know_what_accepted_rows_look_like(name):
    assert Search.preset(name).needs == Needs(plausibility=True, surrogate=True, relations=True)
    assert Search.preset(name, min_plausibility=0).needs.plausibility


def test_the_paper_needs_nothing():
    assert PRESETS["paper"].needs == Needs()


def test_draws_that_must_be_plausible_need_it():
    assert Search.preset("paper", min_plausibility=0.1).needs == Needs(plausibility=True)


@pytest.mark.parametrize(
    "search", [PRESETS["fast"], Search.preset("fast", keep_probability=0.1)], ids=repr
)
def test_draws_that_keep_own_values_need_a_generator_that_can_be_guided(search):
    assert search.needs == Needs(relations=search.consequences != "none", guidance=True)


def test_a_proof_needs_all_rows_listed_and_the_distance_it_is_about():
    expected = Needs(relations=True, guidance=True, enumeration=True, diversity=False, gower=True)

    assert PRESETS["exact"].needs == ExactSearch(max_rows=3).needs == expected


def test_beyond_its_budget_an_exact_search_draws_within_the_same_bounds():
    search = ExactSearch(n_samples=7, max_samples=70, max_sparsity=2, max_distance=0.25)

    expected = Search.preset(
        "fast",
        n_samples=7,
        max_samples=70,
        max_sparsity=2,
        max_distance=0.25,
        back_off=False,
    )

    assert search.fallback == expected
    assert search.fallback.needs == Needs(relations=True, guidance=True)


def test_the_name_of_a_preset_is_no_number_of_targets():
    with pytest.raises(ParameterError, match=r"Search\.preset\('balanced'\)"):
        Search("balanced")


def test_whoever_keeps_found_relations_or_recomputes_by_them_needs_them():
    assert Search.preset("paper").needs == Needs()
    assert Search.preset("paper", consequences="redraw").needs == Needs(relations=True)
    assert not Search.preset("near", consequences="none").needs.relations
