"""Boosted trees: compiled against brute force, what they learn, and what cannot change them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_cases import assert_equal
from mcce import SavedFileError, Schema
from mcce.boosting.trees import (
    MAX_BINS,
    BinnedColumns,
    BoostedTrees,
    pack_boosted,
    screen,
    unpack_boosted,
)
from mcce.kernels import LEAF, BoostedNodes, Boosting, Ensemble, native

# ---------------------------------------------------------------------------------------------
# The kernels.


def bins_of(n_bins, n_rows, chance):
    bins = [np.minimum(chance.geometric(2 / (n + 1), n_rows) - 1, n - 1) for n in n_bins]
    return np.array(bins, dtype=np.uint8).reshape(len(n_bins), n_rows)


@st.composite
def problems(draw):
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.sampled_from([0, 1, 5, 60, 500]))
    n_bins = draw(st.lists(st.sampled_from([1, 2, 7, 64, 255, 256]), max_size=6))
    bins = bins_of(n_bins, n_rows, chance)
    largest = draw(st.sampled_from([1, 3, 1000, 2**55 // (n_rows + 1)]))
    units = chance.integers(-largest, largest, n_rows, endpoint=True)
    if draw(st.booleans()) and len(bins):
        units = units // 2 + (bins[0] > 0) * (largest // 2)
    boosting = Boosting(
        n_trees=draw(st.integers(0, 8)),
        max_leaves=draw(st.sampled_from([0, 1, 2, 3, 16, 32])),
        min_samples_leaf=draw(st.sampled_from([1, 2, 20, 2**40])),
        shrinkage=draw(st.sampled_from([1, 3, 8])),
    )
    return bins, np.array(n_bins, dtype=np.int32), units, boosting


def ensemble_of(nodes, n_bins, n_codes, chance):
    """Trees of every other column, whose codes have random bins."""
    tables = [chance.integers(0, n, n_codes, dtype=np.uint8) for n in n_bins]
    return Ensemble(
        nodes,
        np.arange(n_bins.size, dtype=np.int32) * 2,
        np.arange(n_bins.size + 1) * n_codes,
        np.concatenate([np.empty(0, dtype=np.uint8), *tables]),
    )


def boost_by_brute_force(bins, n_bins, units, boosting):
    """Every tree splits the leaf that gains most, by the best of all cuts of its rows."""
    left_over, roots, splits, value = units.copy(), [], [], []

    def leaf(rows):
        splits.append((LEAF, 0, 0, 0.0))
        value.append(0)
        return len(splits) - 1, rows, best_cut(bins, left_over, rows, boosting.min_samples_leaf)

    for _ in range(boosting.n_trees if units.size else 0):
        root = len(splits)
        leaves = [leaf(np.arange(units.size))]
        while len(leaves) < boosting.max_leaves:
            best = max(leaves, key=lambda one: (one[2][0], -one[0]))
            node, rows, (gain, feature, cut) = best
            if gain <= 0.0:
                break
            splits[node] = feature, cut, len(splits), gain
            goes_left = bins[feature, rows] <= cut
            leaves = [one for one in leaves if one is not best]
            leaves += [leaf(rows[goes_left]), leaf(rows[~goes_left])]
        if len(leaves) == 1:
            del splits[root:], value[root:]
            break
        roots.append(root)
        for node, rows, _ in leaves:
            total, share = int(left_over[rows].sum()), boosting.shrinkage * rows.size
            # Toward zero, so that no leaf corrects more than its mean.
            value[node] = abs(total) // share * (1 if total > 0 else -1)
            left_over[rows] -= value[node]
    *whole, gain = np.array(splits, dtype=object).reshape(-1, 4).T
    feature, cut, left = (column.astype(np.int32) for column in whole)
    numbers = np.array(value, dtype=np.int64), gain.astype(np.float64)
    return BoostedNodes(np.array(roots, dtype=np.int32), feature, cut, left, *numbers)


def best_cut(bins, left_over, rows, least):
    """Gain, column and cut of the first of the best splits; the gain is 0 where there is none."""
    own, n, best = left_over[rows], float(rows.size), (0.0, LEAF, 0)
    mean = float(own.sum()) / n
    for feature, column in enumerate(bins[:, rows]):
        present = np.unique(column)
        goes_left = column <= present[:-1, None]
        n_left = goes_left.sum(axis=1).astype(float)
        excess = np.where(goes_left, own, 0).sum(axis=1).astype(float) - mean * n_left
        gains = excess * excess / (n_left * (n - n_left)) * n
        gains[(n_left < least) | (n - n_left < least)] = 0.0
        if gains.size and gains.max() > best[0]:
            at = int(gains.argmax())
            # Halfway to the next bin that the node holds.
            cut = (int(present[at]) + int(present[at + 1])) // 2
            best = float(gains[at]), feature, cut
    return best


def predict_one_by_one(ensemble, codes):
    """Sum of all trees for each row."""
    nodes, total = ensemble.nodes, np.zeros(codes.shape[1], dtype=np.int64)
    tables = np.split(ensemble.bins, ensemble.first[1:-1])
    bins = [table[codes[column]] for table, column in zip(tables, ensemble.inputs, strict=False)]
    for root, row in product(nodes.roots, range(codes.shape[1])):
        node = root
        while nodes.feature[node] != LEAF:
            node = nodes.left[node] + (bins[nodes.feature[node]][row] > nodes.cut[node])
        total[row] += nodes.value[node]
    return total


@given(problems(), st.integers(0, 1100), st.integers(0, 2**32 - 1))
def test_trees_and_predictions_are_equal_and_those_of_the_rows_in_any_order(problem, n_rows, seed):
    chance, (bins, n_bins, units, boosting) = np.random.default_rng(seed), problem
    mixed = chance.permutation(units.size)

    nodes = native.boost(*problem)

    assert_equal(nodes, boost_by_brute_force(*problem))
    assert_equal(nodes, native.boost(bins[:, mixed].copy(), n_bins, units[mixed], boosting))
    ensemble = ensemble_of(nodes, n_bins, 40, chance)
    codes = chance.integers(0, 40, (2 * n_bins.size, n_rows), dtype=np.int32)
    predicted, some = native.predict_units(ensemble, codes), np.arange(codes.shape[1])[::-2].copy()
    assert np.array_equal(predicted, predict_one_by_one(ensemble, codes))
    assert np.array_equal(native.predict_units(ensemble, codes, some), predicted[some])


def test_a_cut_lies_halfway_to_the_next_bin_and_the_first_of_equal_inputs_is_split_on():
    one = np.array([2] * 20 + [9] * 20, dtype=np.uint8)

    nodes = native.boost(
        np.array([one, one]),
        np.array([10, 10], dtype=np.int32),
        np.repeat([-8, 8], 20),
        Boosting(n_trees=1),
    )

    assert (nodes.feature[0], nodes.cut[0]) == (0, 5)
    assert nodes.value.tolist() == [0, -1, 1]


def test_leaves_have_enough_rows_and_are_not_too_many():
    chance = np.random.default_rng(2)
    n_bins = np.full(4, 100, dtype=np.int32)
    bins, units = bins_of(n_bins, 900, chance), chance.integers(-999, 1000, 900)
    boosting = Boosting(n_trees=5, max_leaves=7, min_samples_leaf=30)

    nodes = native.boost(bins, n_bins, units, boosting)

    for root, end in pairwise([*nodes.roots, nodes.feature.size]):
        at = np.full(900, root)
        for _ in range(7):
            goes_left = bins[nodes.feature[at], np.arange(900)] <= nodes.cut[at]
            at = np.where(nodes.feature[at] == LEAF, at, nodes.left[at] + ~goes_left)
        leaves, sizes = np.unique(at, return_counts=True)
        assert leaves.size == (nodes.feature[root:end] == LEAF).sum() <= 7
        assert sizes.min() >= 30


def test_what_could_not_have_been_grown_or_looked_up_is_refused():
    bins, n_bins = np.repeat(np.arange(4, dtype=np.uint8), 20)[None], np.array([4], dtype=np.int32)
    nodes = native.boost(bins, n_bins, np.repeat([-900, 10, 20, 800], 20), Boosting(n_trees=2))
    ensemble = ensemble_of(nodes, n_bins, 5, np.random.default_rng(0))
    codes = np.arange(5, dtype=np.int32)[None]
    predicted = native.predict_units(ensemble, codes)

    assert np.array_equal(
        native.predict_units(pickle.loads(pickle.dumps(ensemble)), codes), predicted
    )
    for change in [
        {"left": np.zeros_like(nodes.left)},
        {"left": np.full_like(nodes.left, nodes.left.size)},
        {"feature": np.ones_like(nodes.feature)},
        {"cut": np.full_like(nodes.cut, 255)},
        {"cut": nodes.cut[:-1]},
        {"roots": nodes.roots - 1},
        {"roots": nodes.roots + 1000},
        {"roots": nodes.roots[:-1]},
        {"roots": nodes.roots[:0]},
    ]:
        broken = replace(ensemble, nodes=replace(nodes, **change))
        with pytest.raises(ValueError, match=r"node|child|cut|root|leaves"):
            native.predict_units(broken, codes)
    for code in (-1, 5, 2**31 - 1):
        with pytest.raises(ValueError, match="code"):
            native.predict_units(ensemble, np.full((1, 3), code, dtype=np.int32))
    with pytest.raises(ValueError, match="bin"):
        native.boost(bins, n_bins - 1, np.zeros(80, dtype=np.int64), Boosting())
    with pytest.raises(ValueError, match="too large"):
        native.boost(bins, n_bins, np.full(80, 2**60), Boosting())


# ---------------------------------------------------------------------------------------------
# Models of encoded rows.


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


def test_a_product_and_a_level_are_learned():
    frame, total = bills(3000)
    rows = Schema.learn_rows(frame)

    model = BoostedTrees.fit(BinnedColumns.of(rows), total, row_numbers=np.arange(2000))

    missed = total[2000:] - model.predict(rows.tree_codes)[2000:]
    assert 1 - (missed**2).mean() / total[2000:].var() > 0.99


def test_the_order_of_training_rows_changes_no_bit_and_other_rows_and_inputs_are_not_read():
    frame, total = bills(600)
    frame.loc[::7, "price"] = np.nan
    mixed, some = np.random.default_rng(1).permutation(600), np.arange(0, 600, 2)
    rows = Schema.learn_rows(frame)
    mixed_rows = Schema.learn_rows(frame.take(mixed).reset_index(drop=True))
    table, mixed_table = BinnedColumns.of(rows), BinnedColumns.of(mixed_rows)
    part = BinnedColumns(table.codes[:, some], table.ordered, table.tables)
    inputs = np.array([0, 2])

    model = BoostedTrees.fit(table, total, Boosting(n_trees=10))
    mixed_model = BoostedTrees.fit(mixed_table, total[mixed], Boosting(n_trees=10))
    of_some = BoostedTrees.fit(table, total, Boosting(n_trees=5), row_numbers=some)
    of_part = BoostedTrees.fit(part, total[some], Boosting(n_trees=5))
    of_two = BoostedTrees.fit(table, total, Boosting(n_trees=5), inputs=inputs)

    predicted = model.predict(rows.tree_codes)
    assert np.array_equal(predicted[mixed], mixed_model.predict(mixed_rows.tree_codes))
    screened = [screen(table, total, np.arange(4), most=2)]
    screened += [screen(mixed_table, total[mixed], np.arange(4), most=2)]
    assert np.array_equal(*screened)
    assert np.array_equal(of_some.predict(rows.tree_codes), of_part.predict(rows.tree_codes))
    changed = rows.tree_codes.copy()
    changed[[1, 3]] = -1
    assert np.array_equal(of_two.predict(changed), of_two.predict(rows.tree_codes))


def test_levels_are_ordered_by_their_mean_response():
    level = np.array(list("abcd") * 50)
    response = pd.Series(level).map({"a": 5.0, "b": 1.0, "c": 5.0, "d": 0.0}).to_numpy()
    rows = Schema.learn_rows(pd.DataFrame({"level": level}))

    model = BoostedTrees.fit(
        BinnedColumns.of(rows), response, Boosting(n_trees=1, max_leaves=2, shrinkage=1)
    )

    assert model.predict(rows.tree_codes[:, :4]) == pytest.approx([5.0, 0.5, 5.0, 0.5])


def test_rare_and_unseen_levels_are_predicted_alike():
    level = np.array([*"ab" * 50, *"cdefg"])
    rows = Schema.learn_rows(pd.DataFrame({"level": level}))

    model = BoostedTrees.fit(
        BinnedColumns.of(rows), (level == "a") * 2.0, Boosting(n_trees=3, min_samples_leaf=5)
    )

    unseen = rows.schema.encode(pd.DataFrame({"level": ["z"]}))
    assert model.predict(unseen.tree_codes)[0] == model.predict(rows.tree_codes)[-1]


@pytest.mark.parametrize("missing", [False, True])
def test_bins_are_few_ascend_with_the_values_and_keep_missing_last(missing):
    for n_values in (1, 3, 255, 256, 4000):
        values = np.random.default_rng(n_values).integers(0, n_values, 5000).astype(float)
        values[:2000] = 0.0
        values[-3:] = np.nan if missing else 0.0
        known = ~np.isnan(values)

        table = BinnedColumns.of(Schema.learn_rows(pd.DataFrame({"x": values})))

        bins = table.bins[0].astype(int)
        assert table.n_bins[0] <= MAX_BINS
        assert (np.diff(bins[known][np.argsort(values[known], kind="stable")]) >= 0).all()
        if missing:
            assert (bins[known] < bins[-1]).all()
        if n_values > 1:
            assert (bins == 0).sum() == (values == 0.0).sum()


def test_odd_responses_are_predicted_or_refused():
    rows = Schema.learn_rows(bills(200)[0])
    table = BinnedColumns.of(rows)

    constant = BoostedTrees.fit(table, np.full(200, 7.25)).predict(rows.tree_codes)
    extreme = BoostedTrees.fit(table, np.repeat([-1e308, 1e308], 100), Boosting(n_trees=50))

    assert (constant == 7.25).all()
    assert np.isfinite(extreme.predict(rows.tree_codes)).all()
    with pytest.raises(ValueError, match="finite"):
        BoostedTrees.fit(table, np.full(200, np.nan))


def test_columns_without_rows_or_values_can_be_binned():
    frame = pd.DataFrame({"x": np.arange(300.0), "gone": np.nan, "level": ["a"] * 300})
    for n_rows in (0, 300):
        table = BinnedColumns.of(Schema.learn_rows(frame).take(np.arange(n_rows)))

        assert table.bins.shape == (3, n_rows)
        assert table.n_bins[1] == 1
        assert screen(table, np.zeros(n_rows), np.arange(3), most=1).size <= 1


@pytest.mark.parametrize("kind", ["sum of ten", "product", "copies"])
def test_the_screen_finds_every_column_that_matters(kind):
    numbers = np.random.default_rng(3).normal(size=(3000, 60))
    columns = numbers
    if kind == "sum of ten":
        terms = np.arange(5, 55, 5)
        response = numbers[:, terms].sum(axis=1)
    elif kind == "product":
        terms = np.array([11, 40])
        response = (numbers[:, 11] + 2.0) * (numbers[:, 40] + 1.0)
    else:
        # Columns that repeat one another must not crowd out the rest.
        terms = np.array([34])
        columns = np.column_stack([numbers[:, :1] + 0.05 * numbers[:, 1:31], numbers[:, 31:40]])
        response = numbers[:, 0] + 0.4 * numbers[:, 35]
    rows = Schema.learn_rows(pd.DataFrame(columns).rename(columns=str))

    chosen = screen(BinnedColumns.of(rows), response, np.arange(columns.shape[1]))

    assert chosen.size <= 16
    assert set(terms) <= set(chosen)


def test_a_model_from_its_arrays_predicts_the_same_and_nothing_else_is_accepted():
    chance = np.random.default_rng(0)
    sizes = {"a": 40, "b": 3, "c": 90}
    frame = pd.DataFrame({name: chance.integers(0, n, 500) for name, n in sizes.items()})
    rows = Schema.learn_rows(frame.astype({"b": str}))
    codes, table = rows.tree_codes, BinnedColumns.of(rows)
    n_codes = np.array([feature.n_codes for feature in rows.schema.features])
    fitted = BoostedTrees.fit(table, codes[0] * 1.5, Boosting(n_trees=4), inputs=np.array([0, 1]))

    plain = pack_boosted(fitted)

    assert np.array_equal(unpack_boosted(plain, n_codes).predict(codes), fitted.predict(codes))
    changes = {
        "roots": plain["roots"] + 10_000,
        "feature": plain["feature"] + 7,
        "cut": plain["cut"].astype(np.int64),
        "left": plain["left"] * 0,
        "value": plain["value"][:-1],
        "inputs": plain["inputs"][::-1],
        "bins": plain["bins"][:-1],
        "base": float(plain["base"]),
        "exponent": 10**6,
        "low": float("nan"),
        "high": -1e300,
    }
    assert changes.keys() == plain.keys()
    for name, value in changes.items():
        with pytest.raises(SavedFileError):
            unpack_boosted({**plain, name: value}, n_codes)
        with pytest.raises(SavedFileError, match="entries"):
            unpack_boosted({key: plain[key] for key in plain if key != name}, n_codes)
    with pytest.raises(SavedFileError, match="ascending columns"):
        unpack_boosted(plain, n_codes[:1])
