"""Boosted trees: what they learn, and what cannot change them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce.boosting import BinnedColumns, BoostedTrees, screen
from mcce.boosting.bins import MAX_BINS
from mcce.tables.schema import Schema


def encode(frame):
    return Schema.learn_rows(frame, immutable=[])


def bills(n_rows, seed=0):
    """Rows whose total is months times price, but for a little noise and a level's surcharge."""
    chance = np.random.default_rng(seed)
    months = chance.integers(1, 73, n_rows)
    price = chance.uniform(20.0, 120.0, n_rows).round(2)
    plan = chance.choice(["basic", "extra", "full"], n_rows)
    surcharge = pd.Series(plan).map({"basic": 0.0, "extra": 900.0, "full": 300.0}).to_numpy()
    frame = pd.DataFrame({"months": months, "price": price, "plan": plan})
    frame["noise"] = chance.normal(size=n_rows)
    return frame, months * price + surcharge + chance.normal(size=n_rows)


def r_squared(response, predicted):
    return 1.0 - ((response - predicted) ** 2).mean() / response.var()


def test_a_product_and_a_level_are_learned():
    frame, total = bills(3000)
    rows = encode(frame)
    seen, unseen = np.arange(2000), np.arange(2000, 3000)

    model = BoostedTrees().fit(BinnedColumns.of(rows), total, rows=seen)
    predicted = model.predict(rows.descent)

    assert r_squared(total[unseen], predicted[unseen]) > 0.99


def test_the_order_of_training_rows_changes_no_bit():
    frame, total = bills(900)
    frame.loc[::7, "price"] = np.nan
    mixed = np.random.default_rng(1).permutation(900)
    rows, mixed_rows = encode(frame), encode(frame.take(mixed).reset_index(drop=True))
    table, mixed_table = BinnedColumns.of(rows), BinnedColumns.of(mixed_rows)

    model = BoostedTrees(n_trees=10).fit(table, total)
    mixed_model = BoostedTrees(n_trees=10).fit(mixed_table, total[mixed])

    predicted = model.predict(rows.descent)
    assert np.array_equal(predicted[mixed], mixed_model.predict(mixed_rows.descent))
    columns = np.arange(4)
    assert np.array_equal(
        screen(table, total, columns, most=2), screen(mixed_table, total[mixed], columns, most=2)
    )


def test_fitting_on_some_rows_is_fitting_on_a_table_of_them():
    frame, total = bills(600)
    rows, some = encode(frame), np.arange(0, 600, 2)
    table = BinnedColumns.of(rows)
    part = BinnedColumns(table.codes[:, some], table.ordered, table.tables)

    model = BoostedTrees(n_trees=5).fit(table, total, rows=some)
    other = BoostedTrees(n_trees=5).fit(part, total[some])

    assert np.array_equal(model.predict(rows.descent), other.predict(rows.descent))


def test_only_the_inputs_are_read():
    frame, total = bills(400)
    rows = encode(frame)
    model = BoostedTrees(n_trees=5).fit(BinnedColumns.of(rows), total, inputs=np.array([0, 2]))

    changed = rows.descent.copy()
    changed[[1, 3]] = -1

    assert np.array_equal(model.predict(changed), model.predict(rows.descent))


def test_levels_are_ordered_by_their_mean_response():
    level = np.array(list("abcd") * 50)
    response = pd.Series(level).map({"a": 5.0, "b": 1.0, "c": 5.0, "d": 0.0}).to_numpy()
    rows = encode(pd.DataFrame({"level": level}))

    model = BoostedTrees(n_trees=1, max_leaves=2, shrinkage=1).fit(BinnedColumns.of(rows), response)

    assert model.predict(rows.descent[:, :4]) == pytest.approx([5.0, 0.5, 5.0, 0.5])


def test_rare_and_unseen_levels_are_predicted_alike():
    level = np.array([*"ab" * 50, *"cdefg"])
    rows = encode(pd.DataFrame({"level": level}))
    response = (level == "a") * 2.0

    model = BoostedTrees(n_trees=3, min_samples_leaf=5).fit(BinnedColumns.of(rows), response)
    unseen = encode(pd.DataFrame({"level": level})).schema.encode(pd.DataFrame({"level": ["z"]}))

    assert model.predict(unseen.descent)[0] == model.predict(rows.descent)[-1]


@pytest.mark.parametrize("n_values", [1, 3, 255, 256, 4000])
@pytest.mark.parametrize("missing", [False, True])
def test_bins_are_few_ascend_with_the_values_and_keep_missing_last(n_values, missing):
    values = np.random.default_rng(n_values).integers(0, n_values, 5000).astype(float)
    values[:2000] = 0.0
    values[-3:] = np.nan if missing else 0.0
    rows = encode(pd.DataFrame({"x": values}))

    table = BinnedColumns.of(rows)

    bins, known = table.bins[0], ~np.isnan(values)
    assert table.n_bins[0] <= MAX_BINS
    assert (np.diff(bins[known][np.argsort(values[known])].astype(int)) >= 0).all()
    if missing:
        assert (bins[known] < bins[-1]).all()
    if n_values > 1:
        assert (bins == 0).sum() == (values == 0.0).sum()


@pytest.mark.parametrize("n_rows", [0, 300])
def test_columns_without_rows_or_values_can_be_binned(n_rows):
    frame = pd.DataFrame({"x": np.arange(300.0), "gone": np.nan, "level": ["a"] * 300})
    rows = encode(frame)

    table = BinnedColumns.of(rows.take(np.arange(n_rows)))

    assert table.bins.shape == (3, n_rows)
    assert table.n_bins[1] == 1
    assert [groups.size for groups in table.coarse] == table.n_bins.tolist()
    assert screen(table, np.zeros(n_rows), np.arange(3), most=1).size <= 1


def test_a_constant_response_is_predicted_exactly():
    rows = encode(bills(100)[0])

    model = BoostedTrees().fit(BinnedColumns.of(rows), np.full(100, 7.25))

    assert (model.predict(rows.descent) == 7.25).all()


def test_a_response_that_is_missing_is_refused():
    rows = encode(bills(100)[0])

    with pytest.raises(ValueError, match="finite"):
        BoostedTrees().fit(BinnedColumns.of(rows), np.full(100, np.nan))


def test_extreme_responses_neither_overflow_nor_fail():
    frame, _ = bills(200)
    rows, response = encode(frame), np.repeat([-1e308, 1e308], 100)

    predicted = (
        BoostedTrees(n_trees=100).fit(BinnedColumns.of(rows), response).predict(rows.descent)
    )

    assert np.isfinite(predicted).all()


def wide(n_rows, n_columns):
    chance = np.random.default_rng(3)
    numbers = chance.normal(size=(n_rows, n_columns))
    return numbers, encode(pd.DataFrame(numbers, columns=[f"x{i}" for i in range(n_columns)]))


def test_the_screen_finds_every_term_of_a_sum_of_ten():
    numbers, rows = wide(3000, 60)
    terms = np.arange(5, 55, 5)

    chosen = screen(BinnedColumns.of(rows), numbers[:, terms].sum(axis=1), np.arange(60))

    assert chosen.size <= 16
    assert set(terms) <= set(chosen)


def test_the_screen_finds_both_factors_of_a_product():
    numbers, rows = wide(3000, 60)
    response = (numbers[:, 11] + 2.0) * (numbers[:, 40] + 1.0)

    chosen = screen(BinnedColumns.of(rows), response, np.arange(60))

    assert {11, 40} <= set(chosen)


def test_columns_that_repeat_one_another_do_not_crowd_out_the_rest():
    numbers, _ = wide(3000, 40)
    copies = numbers[:, :1] + 0.05 * numbers[:, 1:31]
    frame = pd.DataFrame(np.column_stack([copies, numbers[:, 31:]]))
    rows = encode(frame.rename(columns=str))

    chosen = screen(BinnedColumns.of(rows), numbers[:, 0] + 0.4 * numbers[:, 35], np.arange(39))

    assert 34 in chosen
