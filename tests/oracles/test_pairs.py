"""Pairs nobody has: counted by hand, not found by chance, and kept out of answers."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE
from mcce.plausibility.pairs import EmptyPairs
from mcce.search.config import Search
from mcce.tables.schema import Schema


def unseen_people(rows):
    """Own rows that share no tested value with any row."""
    n_codes = [feature.n_codes for feature in rows.schema.features]
    return np.repeat(np.array(n_codes, dtype=np.int32)[:, None], len(rows), axis=1)


def planted(rng, n_rows, n_pairs=20, n_noise=4):
    """Pairs of columns of which one pair of values is impossible, and noise beside them."""
    columns = {}
    for i in range(n_pairs):
        a, b = rng.integers(0, 5, (2, n_rows))
        columns[f"a{i}"] = a
        columns[f"b{i}"] = np.where((a == 2) & (b == 3), 4, b)
    return pd.DataFrame(columns | {f"noise{i}": rng.random(n_rows) for i in range(n_noise)})


@given(st.integers(0, 2**32 - 1), st.integers(1, 150), st.booleans())
def test_empty_pairs_are_those_counted_one_by_one(seed, n_rows, immutable):
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 3, (3, n_rows))
    b, c = np.where(a == 1, 0, b), np.where((a == 0) & (b == 0), np.nan, c)
    frame = pd.DataFrame({"a": a, "b": np.array(list("xyz"))[b], "c": c})
    rows = Schema.learn_rows(frame, immutable=["a", "b"] if immutable else [])
    codes, sizes = rows.tree_codes, [feature.n_codes for feature in rows.schema.features]
    n_tested = [sizes[0], (np.bincount(codes[1]) >= 12).sum(), sizes[2]]
    n_cells = sum(x * y for x, y in combinations(n_tested, 2))
    least = n_rows * max(12, np.log(max(n_cells, 1) / 1e-4))
    every = np.indices([size + 1 for size in sizes]).reshape(3, -1).astype(np.int32)
    own = every[:, rng.permutation(every.shape[1])]
    own[:2] = every[:2] if immutable else own[:2]

    found = EmptyPairs.fit(rows).contain_empty(every, own)

    for new, old, holds in zip(every.T, own.T, found, strict=True):
        has = codes == new[:, None]
        assert holds == any(
            has[i].sum() * has[j].sum() >= least and not (has[i] & has[j]).any()
            for i, j in combinations(range(3), 2)
            if (new[[i, j]] != old[[i, j]]).any()
        )


def test_a_number_too_rare_for_its_bins_is_judged_by_groups_of_them():
    rng = np.random.default_rng(3)
    pay = rng.permutation(np.arange(1_500))
    rows = Schema.learn_rows(pd.DataFrame({"pay": pay, "manager": pay >= 1_350}))
    asked = np.repeat(rows.tree_codes[:, :1], 3, axis=1)
    asked[:, :] = [[100, 700, 1_400], [1, 1, 1]]

    found = EmptyPairs.fit(rows).contain_empty(asked, unseen_people(rows)[:, :3])

    assert found.tolist() == [True, True, False]


def test_shuffled_columns_have_no_empty_pairs():
    rng = np.random.default_rng(0)
    frame = planted(rng, 2_000, n_pairs=4)

    for _ in range(20):
        shuffled = frame.apply(lambda column: rng.permutation(column))
        pairs = EmptyPairs.fit(Schema.learn_rows(shuffled))
        assert pairs.columns.shape == (2, 0)
        assert not pairs.packed.size


@pytest.mark.parametrize("n_noise", [0, 60])
def test_impossible_pairs_are_found_in_narrow_and_wide_tables(n_noise):
    from mcce.model.associations import Associations

    frame = planted(np.random.default_rng(1), 3_000, n_noise=n_noise)
    rows = Schema.learn_rows(frame)

    pairs = EmptyPairs.fit(rows, Associations.of(rows) if n_noise else None)

    assert pairs.columns.T.tolist() == [[2 * i, 2 * i + 1] for i in range(20)]
    assert np.unpackbits(pairs.packed).sum() == 20
    assert not pairs.contain_empty(rows.tree_codes, unseen_people(rows)).any()


@pytest.fixture(scope="module")
def staff():
    """Managers start at 1,000, and a better score takes a manager or much more pay."""
    rng = np.random.default_rng(2)
    level = rng.integers(0, 3, 1_500)
    pay = np.where(level == 2, rng.integers(1_000, 2_000, 1_500), rng.integers(100, 990, 1_500))
    job = np.array(["helper", "clerk", "manager"])[level]
    return pd.DataFrame({"job": job, "pay": pay, "age": rng.integers(20, 60, 1_500)})


def manages(frame):
    return ((frame["job"] == "manager") * 0.6 + (frame["age"] > 58) * 0.3).to_numpy()


def test_answers_hold_no_pair_that_nobody_has(staff):
    poor = staff[staff["job"] != "manager"].head(20)

    for search in ("balanced", "near", Search("paper", min_plausibility=0.01)):
        explainer = MCCE(manages, desired=(0.5, 1.0), search=search, random_state=0).fit(staff)
        answers = explainer.explain(poor).to_pandas().frame
        assert (answers["pay"] >= 990).all()
        assert len(answers)


def test_where_only_such_a_pair_would_do_the_reason_says_so(staff):
    poor = staff[staff["job"] != "manager"].head(3)
    explainer = MCCE(manages, desired=(0.5, 1.0), immutable=["pay"], random_state=0).fit(staff)

    with pytest.warns(match="no counterfactual"):
        missing = explainer.explain(poor).missing

    assert (missing["reason_kind"] == "implausible").all()
    assert missing["reason"].str.contains("pairs of values that nobody in the training data").all()
    assert missing["reason"].str.endswith("With min_plausibility=0 there would be an answer.").all()


def test_a_pair_of_ones_own_rules_out_no_answer(staff):
    odd = pd.DataFrame({"job": ["manager"], "pay": [150], "age": [30]})
    clerk = staff[staff["job"] == "clerk"].head(1)

    def by_age(frame):
        return (frame["age"] > 50).to_numpy() * 1.0

    explainer = MCCE(by_age, desired=(0.5, 1.0), random_state=0).fit(staff)

    assert explainer.explain(odd).to_pandas().frame["age"].gt(50).all()
    assert explainer.plausibility_.pairs_.contain_empty(
        explainer.fitted_.schema.encode(odd).tree_codes,
        explainer.fitted_.schema.encode(clerk).tree_codes,
    ).all()


def test_pairs_survive_saving_and_others_are_refused(staff, tmp_path):
    from mcce.errors import SavedFileError
    from mcce.saving.parts import PARTS, Known, read, write

    model = MCCE(manages, desired=(0.5, 1.0), random_state=0).fit(staff)
    kind, fitted = PARTS["plausibility"], model.fitted_
    plain = write(model.plausibility_, kind)
    known = Known(fitted.schema, fitted.generator.visit_order_, fitted.n_desired)
    pairs = model.plausibility_.pairs_

    again = read(plain, known, kind).pairs_

    for field in dataclasses.fields(pairs):
        assert np.array_equal(getattr(again, field.name), getattr(pairs, field.name))
    for name, wrong in {
        "bins": pairs.bins[1:],
        "columns": pairs.columns[::-1],
        "packed": pairs.packed[:-1],
    }.items():
        with pytest.raises(SavedFileError):
            read({**plain, "pairs": {**plain["pairs"], name: wrong}}, known, kind)
