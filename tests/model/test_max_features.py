"""The number of features that a node checks."""

from __future__ import annotations

import numpy as np
import pytest

from mcce import MCCE, ParameterError, Schema, TreeChain, load
from mcce.datasets import load_german_credit
from mcce.model.growing import features_to_check


@pytest.mark.parametrize(
    ("given", "n_inputs", "expected"),
    [
        (None, 9, None),
        (1, 9, 1),
        (9, 9, None),
        (20, 9, None),
        (0.5, 9, 4),
        (0.01, 9, 1),
        (1.0, 9, None),
        ("sqrt", 9, 3),
        ("sqrt", 1, None),
        ("sqrt", 2, 1),
        ("third", 9, 3),
        ("third", 2, 1),
        ("third", 0, None),
        (np.int64(2), 9, 2),
        (np.float64(0.4), 10, 4),
    ],
)
def test_so_many_features_are_checked(given, n_inputs, expected):
    assert features_to_check(given, n_inputs) == expected


@pytest.mark.parametrize("given", [0, -1, 0.0, 1.5, "all", "auto", True, [3], float("nan")])
def test_anything_else_is_refused(given):
    with pytest.raises(
        ParameterError, match=r"max_features must be .* or None for all features, got"
    ):
        TreeChain(max_features=given).fit(*german())


def german():
    rows = Schema.learn_rows(load_german_credit().features, immutable=["Age", "Sex"])
    return rows, rows.exact[2] % 3 > 0


def test_all_features_grow_the_trees_of_the_paper():
    rows, decision = german()

    plain = TreeChain().fit(rows, decision)
    every = TreeChain(max_features=1.0).fit(rows, decision, seed=3)

    assert np.array_equal(plain.trees_.feature, every.trees_.feature)
    assert np.array_equal(plain.trees_.values, every.trees_.values)


def test_the_features_that_are_checked_depend_on_the_seed_alone():
    rows, decision = german()

    one, same, other = (
        TreeChain(max_features="sqrt").fit(rows, decision, seed=seed, n_jobs=n_jobs).trees_
        for seed, n_jobs in ((1, 1), (1, 2), (2, 1))
    )

    assert np.array_equal(one.feature, same.feature)
    assert np.array_equal(one.cut, same.cut)
    assert one.feature.size != other.feature.size or not np.array_equal(one.feature, other.feature)


def test_fewer_features_give_other_trees_than_all():
    rows, decision = german()

    few, every = (TreeChain(max_features=m).fit(rows, decision).trees_ for m in (1, None))

    assert few.feature.size != every.feature.size


def test_it_is_saved_with_the_explainer(bank, tmp_path):
    score = lambda frame: frame["salary"] / 100_000
    explainer = MCCE(
        score, (0.6, 1.0), immutable=["age"], generator=TreeChain(max_features="third")
    ).fit(bank)

    explainer.save(tmp_path / "bank.mcce")

    assert load(tmp_path / "bank.mcce", score).generator.max_features == "third"
