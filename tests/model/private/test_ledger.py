"""The ledger adds up what the parts of a fit spend."""

import math

import numpy as np
import pytest

from mcce import Ledger, ParameterError
from mcce.model.private.ledger import Budget, Entry, allocate, depth_for, epsilon_of, rho_of
from private_bank import IMMUTABLE, bank, declined, explainer, private, score


def test_two_trees_of_three_levels_with_a_histogram_each():
    levels = [
        Entry("exponential", f"tree {tree}, level {level}", f"node {node}", epsilon=0.1)
        for tree in (1, 2)
        for level in (1, 2, 3)
        for node in range(2 ** (level - 1))
    ]
    leaves = [
        Entry("geometric", f"tree {tree}, leaves", f"leaf {leaf}", epsilon=0.5)
        for tree in (1, 2)
        for leaf in range(8)
    ]

    assert Ledger((*levels, *leaves)).epsilon == pytest.approx(1.6)


def test_of_disjoint_parts_the_dearest_counts_and_of_one_part_the_sum():
    apart = Ledger((Entry("a", "x", "1", epsilon=0.2), Entry("a", "x", "2", epsilon=0.5)))
    same = Ledger((Entry("a", "x", "1", epsilon=0.2), Entry("b", "x", "1", epsilon=0.5)))

    assert apart.epsilon == 0.5
    assert same.epsilon == pytest.approx(0.7)


def test_concentrated_privacy_becomes_epsilon_and_delta():
    ledger = Ledger(tuple(Entry("g", f"{j}", rho=0.005) for j in range(11)), delta=1e-5)

    assert ledger.rho == pytest.approx(0.055)
    assert ledger.epsilon == pytest.approx(0.055 + 2 * math.sqrt(0.055 * math.log(1e5)))
    assert rho_of(epsilon_of(0.2, 1e-6), 1e-6) == pytest.approx(0.2)
    mixed = Ledger((Entry("g", "1", rho=0.01), Entry("l", "2", epsilon=0.1)), delta=1e-5)
    assert mixed.rho == pytest.approx(0.015)


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "rho": 1.0}, {"epsilon": -1.0}])
def test_an_entry_has_one_cost(given):
    with pytest.raises(ParameterError, match="costs epsilon or rho"):
        Entry("geometric", "leaves", **given)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("structure", ["random", "expmech"])
@pytest.mark.parametrize("noise", ["geometric", "gaussian"])
def test_a_fit_spends_its_budget_and_no_more(relation, structure, noise):
    delta = 1e-5 if noise == "gaussian" else None
    given = {"neighbours": relation, "structure": structure, "noise": noise, "delta": delta}
    for more in ({"depth": 2}, {"depth": None}, {"n_rows": 10_000}):
        generator = private(**given, **more, epsilon=1.7)
        rows = generator.encode_training(bank(), immutable=IMMUTABLE)

        ledger = generator.fit(rows, score(rows.frame) > 0.5).ledger_

        assert ledger.epsilon == pytest.approx(1.7)
        assert ledger.neighbours == relation
        assert ledger.delta == (delta or 0.0)


def test_the_ledger_is_the_sum_over_trees_levels_and_leaves():
    generator = private(structure="expmech", depth=2, epsilon=2.0)
    rows = generator.encode_training(bank(), immutable=IMMUTABLE)

    table = generator.fit(rows, score(rows.frame) > 0.5).ledger_.table()

    each = 2.0 / 3
    assert table.groupby("mechanism").size().to_dict() == {"exponential": 6, "geometric": 3}
    assert np.allclose(table.loc[table["mechanism"] == "geometric", "epsilon"], 0.7 * each)
    assert np.allclose(table.loc[table["mechanism"] == "exponential", "epsilon"], 0.15 * each)


def test_random_splits_are_free_and_an_unknown_number_of_rows_is_not():
    generator = private(epsilon=1.0)
    rows = generator.encode_training(bank(), immutable=IMMUTABLE)

    table = generator.fit(rows, score(rows.frame) > 0.5).ledger_.table().set_index("scope")

    assert list(table.index) == [
        "number of rows",
        "salary, leaves",
        "debt, leaves",
        "housing, leaves",
    ]
    assert table.loc["number of rows", "epsilon"] == pytest.approx(0.01)


def test_more_rows_and_more_budget_give_deeper_trees():
    budget = Budget(1 / 11, "geometric", "add_remove")

    assert depth_for(budget, 48_842, 20, "random", 10) == 4
    assert depth_for(budget.share(10), 48_842, 20, "random", 10) == 7
    assert depth_for(budget, 10, 20, "random", 10) == 0
    twice = Budget(1 / 11, "geometric", "replace")
    assert depth_for(twice, 48_842, 20, "random", 10) == 3


def test_a_tree_without_levels_spends_all_on_its_leaves():
    budget = Budget(0.5, "geometric", "add_remove")

    assert allocate(budget, "expmech", 0).leaves.cost == 0.5
    assert allocate(budget, "expmech", 2).leaves.cost == pytest.approx(0.35)
    assert allocate(budget, "random", 2).leaves.cost == 0.5


def test_the_ledger_of_an_explainer_is_at_hand_also_after_loading(tmp_path):
    import mcce

    frame = bank()
    fitted = explainer(private(seed=None)).fit(frame)
    fitted.save(tmp_path / "bank.mcce")

    again = mcce.load(tmp_path / "bank.mcce", score)

    assert again.generator_.ledger_ == fitted.generator_.ledger_
    assert again.explain(declined(frame)).people is not None
