"""Remarks are computed from tables: other numbers are other sentences."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce.experiments import EXPERIMENTS, published
from mcce.experiments.experiment import no_remarks

COSTS = {"l0": 3.2, "l0_sd": 0.8, "l1": 1.6, "l1_sd": 0.7, "n_ce": 200}


def remarks(name, tables):
    return " ".join(EXPERIMENTS[name].remarks(tables))


def compared(l0_of_networks=(3.0, 3.2), unseen="not reproduced: -0.30 [-0.50, -0.10]"):
    """Tables of Experiment 1 with German Credit alone, whose published l0 is 3.62."""
    printed = published.RESULTS.rows(dataset="german", method="MCCE")
    ours = {"dataset": "german", "rows": "paper", "method": "MCCE", "source": "ours"} | COSTS
    networks = [
        {"dataset": "german", "rows": "paper", "network": n, "auc": 0.74 + n / 100}
        | {"n_declined": 170 + n, "l0": l0, "l1": 1.5}
        for n, l0 in enumerate(l0_of_networks)
    ]
    changes = {"dataset": ["german"], "feature": ["Duration"], "changed_%": [65.0]}
    lines = {"what": ["german, held-out people, l0"], "remark": [unseen]}
    return {
        "results": pd.DataFrame([*printed, ours]),
        "networks": pd.DataFrame(networks),
        "heldout": pd.DataFrame([{"dataset": "german"} | COSTS | {"l0": 3.5, "n_ce": 60}]),
        "changes": pd.DataFrame(changes),
        "black_boxes": pd.DataFrame([{"dataset": "german", "rows": "paper", "auc": 0.74}]),
        "published": pd.DataFrame(lines),
    }


def test_the_spread_over_networks_is_stated_with_where_the_published_cost_lies():
    outside = remarks("costs", compared())
    inside = remarks("costs", compared(l0_of_networks=(3.0, 3.2, 3.7)))

    assert "over 2 networks trained from different seeds the test AUC is 0.74 to 0.75" in outside
    assert "they decline 170 to 171 people" in outside
    assert "l0 is 3.00 to 3.20, the published 3.62 is outside" in outside
    assert "l0 is 3.00 to 3.70, the published 3.62 is inside" in inside


def test_a_network_that_declines_nobody_is_counted_and_left_out():
    tables = compared()
    nobody = pd.DataFrame([{"dataset": "german", "rows": "paper", "network": 2, "n_declined": 0}])
    tables["networks"] = pd.concat([tables["networks"], nobody])

    text = remarks("costs", tables)

    assert "over 2 networks trained from different seeds (1 more declined nobody)" in text


def test_one_network_says_nothing_about_its_spread():
    text = remarks("costs", compared(l0_of_networks=(3.0,)))

    assert "german: one network, so how costs vary with it is not known." in text


@pytest.mark.parametrize(
    ("settings", "unknown"),
    [
        ({}, True),
        ({"l0_of_networks": (3.0, 3.7)}, False),
        ({"unseen": "reproduced: -0.10 [-0.30, +0.10], 1.0 standard errors"}, False),
    ],
)
def test_the_cause_is_unknown_only_where_nothing_gives_the_published_cost(settings, unknown):
    text = remarks("costs", compared(**settings))

    assert ("The cause of the difference is not known" in text) == unknown


def test_few_heldout_people_are_no_cause():
    text = remarks(
        "costs", compared(unseen="reproduced: -0.10 [-0.30, +0.10], 1.0 standard errors")
    )

    assert "counts as reproduced: -0.10 [-0.30, +0.10], but they are only 60" in text


def test_heldout_people_are_stated_next_to_the_first_of_the_file():
    text = remarks("costs", compared())

    assert "3.50 and 1.60 for 60 held-out people, 3.20 and 1.60 for the first" in text


def test_directions_of_education_are_those_of_the_table():
    tables = compared()
    for name in ("results", "networks", "heldout", "changes"):
        tables[name] = tables[name].replace("german", "adult")
    tables["changes"] = tables["changes"].assign(feature="education-num", **{"up_%": 87.5})

    text = remarks("costs", tables)

    assert "changes for 65.0 % of them, and 87.5 % of these changes are increases" in text


def copies(share, without=0.0):
    row = {"dataset": "adult", "source": "ours", "value_copies_%": 7.0, "l0": 2.5, "l1": 0.5}
    row |= {"coverage": 1.0}
    return pd.DataFrame(
        [
            row | {"variant": "as drawn", "copies_%": share},
            row | {"variant": "without copies", "copies_%": without, "l0": 2.6, "coverage": 0.99},
        ]
    )


def test_the_cost_of_excluding_copies_is_that_of_the_table():
    text = remarks("privacy", {"copies": copies(1.25)})

    assert "adult: excluding copies reduces them from 1.25 % to 0.00 %" in text
    assert "l0 goes from 2.500 to 2.600" in text
    assert "coverage from 1.000 to 0.990" in text
    assert "from 3.50 % to 0.00 %" in remarks("privacy", {"copies": copies(3.5)})


def test_copies_of_the_forest_are_next_to_those_of_the_network():
    rows = copies(9.5).replace({"as drawn": "forest", "without copies": "forest, without copies"})
    network = copies(0.75).head(1).assign(variant="network")

    text = remarks("forest", {"results": pd.concat([network, rows])})

    assert "9.5 % of the counterfactuals for the forest are copies" in text
    assert "for the network 0.8 %" in text
    assert "the paper reports at most 1.1 %" in text


@pytest.mark.parametrize(
    ("coverage", "since"),
    [
        ([0.9, 0.99, 1.0], "from K = 100 on"),
        ([1.0, 1.0, 1.0], "from K = 10 on"),
        ([1.0, 0.99, 1.0], "from K = 100 on"),
        ([1.0, 1.0, 0.99], "not even at the largest K"),
    ],
)
def test_everybody_has_a_counterfactual_from_the_k_after_the_last_gap(coverage, since):
    samples = pd.DataFrame({"k": [10, 50, 100], "coverage": coverage})
    samples = samples.assign(dataset="adult", source="ours")
    models = ["with the decision", "without the decision"]
    draws = pd.DataFrame({"dataset": "adult", "model": models, "k": 1000, "valid_%": [98.0, 25.0]})
    draws["valid_and_unique_%"] = [86.0, 24.0]

    text = remarks("unconditioned", {"samples": samples, "draws": draws})

    assert f"everybody has a counterfactual {since}." in text
    assert "with the decision 98.0 % of the draws are valid and 86.0 % valid and unique" in text


def test_the_costs_of_more_levels_are_those_of_the_table():
    variants = ["two levels", "four levels", "all levels"]
    table = pd.DataFrame({"variant": variants, "l0": [2.6, 2.9, 3.3], "l1": [0.5, 0.8, 1.1]})

    text = remarks("levels", {"results": table.assign(dataset="adult", source="ours")})

    assert "l0 and l1 are 2.60 and 0.50 with two levels, 2.90 and 0.80 with four levels" in text


def test_times_of_simulated_and_real_rows_are_those_of_the_table():
    table = pd.DataFrame({"rows": ["simulated", "real"], "total": [3.0, 1.5]})

    text = remarks("mimic", {"seconds": table.assign(dataset="adult")})

    assert "adult: 3.00 CPU seconds for simulated rows, 1.50 for the data set itself" in text
    assert "a ratio of 2.0" in text


def test_orders_are_stated_with_what_chance_does():
    row = {"dataset": "adult", "measure": "l0", "data": 2.5, "authors' code": 2.6}
    row |= {"correlation": 2.7, "random": 2.8, "random_sd": 0.04, "sd_over_seeds": 0.09}

    text = remarks("visit-order", {"summary": pd.DataFrame([row, row | {"measure": "l1"}])})

    assert text.count("adult: l0 is 2.50 in the order of the data") == 1
    assert "of 0.04 over these orders and of 0.09 over seeds" in text


def test_every_experiment_says_something_about_its_tables():
    for experiment in EXPERIMENTS.values():
        assert experiment.remarks is not no_remarks, f"{experiment.name} says nothing"
