"""The screen of inputs: what it finds, and that nothing but the rows as a set decides it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from mcce import MCCE, ParameterError, Schema, TreeChain
from mcce.model.associations import MAX_INPUTS, WIDE, Associations

N_ROWS = 3000


def noise(n_columns=40, seed=0):
    rng = np.random.default_rng(seed)
    columns = {f"x{at}": rng.normal(size=N_ROWS).round(2) for at in range(n_columns)}
    for at in range(0, n_columns, 4):
        columns[f"x{at}"] = rng.choice(list("abcdef"), N_ROWS)
    return pd.DataFrame(columns)


def strongest(frame, name):
    """The column that the screen prefers for another one."""
    names = list(frame.columns)
    at = names.index(name)
    others = np.delete(np.arange(len(names)), at)
    found = Associations.of(Schema.learn_rows(frame)).inputs(at, others, 1)
    return names[found[0]]


def test_a_number_that_rises_and_falls_with_another_is_found():
    frame = noise()
    rng = np.random.default_rng(1)

    valley = frame["x1"] ** 2 + 0.3 * rng.normal(size=N_ROWS)

    assert abs(np.corrcoef(valley, frame["x1"])[0, 1]) < 0.1
    assert strongest(frame.assign(x21=valley), "x21") == "x1"


def test_a_number_whose_spread_depends_on_another_is_found():
    frame = noise()
    rng = np.random.default_rng(1)

    fan = np.exp(frame["x1"]) * rng.normal(size=N_ROWS)

    assert strongest(frame.assign(x21=fan), "x21") == "x1"


def test_levels_that_depend_on_a_number_without_any_order_are_found():
    frame = noise()

    levels = np.array(list("caebd"))[np.digitize(frame["x2"], [-1, -0.3, 0.3, 1])]
    mixed = np.where(np.random.default_rng(1).random(N_ROWS) < 0.4, frame["x0"], levels)

    assert strongest(frame.assign(x20=mixed).drop(columns="x0"), "x20") == "x2"


def test_levels_that_depend_on_levels_are_found():
    frame = noise()

    other = frame["x4"].map(dict(zip("abcdef", "zyzyxx", strict=True)))
    mixed = other.where(np.random.default_rng(1).random(N_ROWS) < 0.4, "z")

    assert strongest(frame.assign(x20=mixed), "x20") == "x4"


def test_columns_that_repeat_one_another_do_not_crowd_out_the_rest():
    frame = noise()
    rng = np.random.default_rng(1)
    copies = {f"x{at}": frame["x1"] + 0.1 * rng.normal(size=N_ROWS) for at in (5, 9, 13)}
    frame = frame.assign(**copies, x21=frame["x1"] + 0.8 * frame["x2"])

    inputs = Associations.of(Schema.learn_rows(frame)).inputs(21, np.arange(20), 2)

    assert inputs.tolist() == [1, 2]


def test_whether_a_cell_is_missing_counts():
    frame = noise()

    gaps = frame["x21"].where(frame["x8"].isin(list("abc")))

    assert strongest(frame.assign(x21=gaps), "x21") == "x8"


def test_constant_columns_and_single_rows_have_no_association():
    frame = noise().assign(x3=1.0)

    strength = Associations.of(Schema.learn_rows(frame)).strength

    assert np.abs(strength[3]).max() < 10
    single = Associations.of(Schema.learn_rows(frame.head(1))).strength
    assert np.abs(single).max() < 10


def test_independent_columns_are_no_stronger_than_chance():
    strength = Associations.of(Schema.learn_rows(noise())).strength / 2**30

    apart = strength[~np.eye(len(strength), dtype=bool)]
    assert abs(apart.mean()) < 0.001
    assert np.abs(apart).max() < 0.03


def test_neither_the_order_of_rows_nor_threads_change_a_bit():
    frame = noise()

    expected = Associations.of(Schema.learn_rows(frame)).strength

    mixed = frame.sample(frac=1.0, random_state=3)
    assert np.array_equal(Associations.of(Schema.learn_rows(mixed)).strength, expected)
    with threadpool_limits(1):
        assert np.array_equal(Associations.of(Schema.learn_rows(frame)).strength, expected)


def test_a_tree_considers_the_strongest_inputs_and_the_decision():
    frame = noise(12)
    frame["x11"] = frame["x1"] + 0.6 * frame["x2"] + 0.01 * frame["x3"]
    rows = Schema.learn_rows(frame)
    decision = frame["x5"].to_numpy() > 0

    chain = TreeChain(max_inputs=2).fit(rows, decision)

    trees = chain.trees_
    used = set(trees.feature[trees.roots[11] :]) - {-1}
    assert used <= {1, 2, 12}
    assert {1, 2} <= used


def test_as_many_inputs_as_there_are_change_nothing():
    frame = noise(8)
    rows, decision = Schema.learn_rows(frame), frame["x5"].to_numpy() > 0

    all_of_them, without = (
        TreeChain(max_inputs=most).fit(rows, decision).trees_ for most in (8, None)
    )

    assert np.array_equal(all_of_them.feature, without.feature)
    assert np.array_equal(all_of_them.values, without.values)


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "all"])
def test_a_wrong_number_of_inputs_is_refused(given):
    rows = Schema.learn_rows(noise(4))

    with pytest.raises(ParameterError, match="max_inputs must be a whole number >= 1, got"):
        TreeChain(max_inputs=given).fit(rows, np.ones(N_ROWS, dtype=bool))


@pytest.mark.parametrize(
    ("n_columns", "search", "generator", "expected"),
    [
        (WIDE, "balanced", "trees", None),
        (WIDE + 1, "balanced", "trees", MAX_INPUTS),
        (WIDE + 1, "paper", "trees", None),
        (WIDE + 1, "balanced", TreeChain(), None),
        (WIDE + 1, "paper", TreeChain(max_inputs=3), 3),
    ],
)
def test_only_wide_tables_of_searches_beyond_the_paper_are_screened(
    n_columns, search, generator, expected
):
    frame = noise(n_columns).head(200)
    explainer = MCCE(
        lambda rows: 1 / (1 + np.exp(-rows["x1"])),
        (0.5, 1.0),
        generator=generator,
        search=search,
        random_state=0,
    )

    explainer.fit(frame)

    assert explainer.generator_.max_inputs == expected
    assert generator == "trees" or explainer.generator is generator
