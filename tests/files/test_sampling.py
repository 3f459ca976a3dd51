"""Samples of training rows that stream by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from mcce import McceError, ParameterError, PredictorError, SchemaError, sample_training
from mcce.files import blocks, sampling
from mcce.files.strata import bin_numbers

ACCEPTED = (0.6, 1.0)


def score(rows):
    return (rows["salary"] % 100) / 100


def table(n_rows, seed=0):
    """Rows of three groups, of which the last is rare, with a number for each row."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": rng.permutation(n_rows),
            "sex": rng.choice(["f", "m", "x"], n_rows, p=[0.6, 0.38, 0.02]),
            "age": rng.integers(18, 70, n_rows),
            "salary": rng.integers(0, 1000, n_rows),
        }
    )


def cut(rows, *sizes):
    """The rows in blocks of these sizes, over and over."""
    at, turn = 0, 0
    while at < len(rows):
        size = sizes[turn % len(sizes)]
        yield rows.iloc[at : at + size]
        at, turn = at + size, turn + 1


def sample(blocks, n_rows=400, immutable=("sex",), **more):
    given = {"predictor": score, "desired": ACCEPTED, "immutable": list(immutable)}
    return sample_training(blocks, n_rows, **{**given, **more})


def oracle(rows, n_rows, rare, seed, keys=None):
    """The positions that are kept, with all rows at once."""
    words = sampling._words(np.arange(len(rows)) if keys is None else keys, seed)
    accepted = ((score(rows) >= ACCEPTED[0]) & (score(rows) <= ACCEPTED[1])).to_numpy()
    groups = rows["sex"].to_numpy()
    counts = pd.Series(groups[accepted]).value_counts()
    while rare > 1 and counts.clip(upper=rare).sum() > n_rows // 2:
        rare -= 1
    chosen = set()
    for group in counts.index:
        some = np.flatnonzero(accepted & (groups == group))
        chosen |= set(some[np.argsort(words[some], kind="stable")][:rare].tolist())
    for row in np.argsort(words, kind="stable").tolist():
        if len(chosen) < n_rows:
            chosen.add(row)
    return rare, sorted(chosen)


@given(
    n_rows=st.integers(1, 700),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    n_kept=st.integers(6, 300),
    rare=st.integers(1, 60),
    seed=st.integers(0, 2**64 - 1),
    call_rows=st.integers(1, 200),
    n_keys=st.none() | st.sampled_from([1, 2, 50]),
)
def test_a_sample_is_that_of_all_rows_at_once(n_rows, sizes, n_kept, rare, seed, call_rows, n_keys):
    rows = table(n_rows).drop(columns="id")
    keys = None if n_keys is None else np.arange(n_rows) % n_keys
    given = rows if keys is None else rows.assign(id=keys)
    key = None if keys is None else "id"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "CALL_ROWS", call_rows)
        if not score(rows).between(*ACCEPTED).any():
            return
        found = sample(cut(given, *sizes), n_kept, rare=rare, random_state=seed, key=key)

    numbers = None if keys is None else blocks._key_numbers(pd.Series(keys))
    expected_rare, positions = oracle(rows, n_kept, rare, seed, numbers)

    expected = rows.iloc[positions].sort_values(list(rows), ignore_index=True)
    pd.testing.assert_frame_equal(found.rows.sort_values(list(rows), ignore_index=True), expected)
    assert found.rare == expected_rare


@pytest.mark.parametrize("sizes", [(1000,), (1, 7, 300), (64,)])
def test_blocks_do_not_change_the_sample(sizes):
    rows = table(1000)

    found = sample(cut(rows, *sizes))

    pd.testing.assert_frame_equal(found.rows, sample([rows]).rows)


def test_with_a_key_the_order_of_rows_does_not_matter():
    rows = table(1000)
    shuffled = rows.sample(frac=1, random_state=1)

    one, other = sample([rows], key="id"), sample(cut(shuffled, 130), key="id")

    pd.testing.assert_frame_equal(one.rows, other.rows)
    pd.testing.assert_frame_equal(one.strata, other.strata)
    assert "id" not in one.rows


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_are_floats_in_some_blocks_change_nothing(seed):
    rows = table(900)
    parts = [rows.head(300).astype({"id": float}), rows.tail(600)]

    one, other = (sample(some, key="id", random_state=seed) for some in ([rows], parts))

    pd.testing.assert_frame_equal(one.rows, other.rows)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_key_is_refused_with_its_row(missing):
    rows = table(300).astype({"id": object})
    rows.iloc[123, 0] = missing

    with pytest.raises(SchemaError, match=r"Column 'id' .* is missing in row 124"):
        sample(cut(rows, 50), key="id")


def test_all_accepted_rows_of_rare_values_are_kept():
    rows = table(20_000).drop(columns="id")
    accepted = rows[score(rows).between(*ACCEPTED) & (rows["sex"] == "x")]

    found = sample(cut(rows, 999), 1000, rare=300)

    kept = found.rows[score(found.rows).between(*ACCEPTED) & (found.rows["sex"] == "x")]
    assert 100 < len(accepted) <= found.rare
    assert kept.value_counts().sort_index().equals(accepted.value_counts().sort_index())
    rare = found.strata.query("accepted and sex == 'x'").iloc[0]
    assert rare["whole"]
    assert rare["n_seen"] == len(accepted)
    assert rare["weight"] == 1


def test_accepted_rows_are_over_represented_and_weights_undo_that():
    rows = table(20_000).drop(columns="id").assign(sex="f")
    desired = (0.95, 1.0)

    found = sample(cut(rows, 5000), 1000, rare=400, desired=desired)

    seen, kept = (score(some).between(*desired).mean() for some in (rows, found.rows))
    assert kept > 5 * seen
    stands_for = found.strata["n_kept"] * found.strata["weight"]
    assert stands_for.tolist() == pytest.approx(found.strata["n_seen"].tolist())


def test_strata_with_many_more_accepted_rows_than_rare_are_in_proportion():
    rows = table(60_000).drop(columns="id")

    found = sample(cut(rows, 5000), 6000, rare=100)

    large = found.strata.query("sex != 'x'")
    share = large["n_kept"] / large["n_seen"]
    assert share.max() / share.min() < 1.15
    assert found.strata["n_seen"].sum() == found.n_seen == 60_000
    assert found.strata["n_kept"].sum() == found.n_kept == len(found.rows) == 6000


@pytest.mark.parametrize("key", [None, "id", "branch"])
def test_memory_is_bounded_by_the_sample(monkeypatch, key):
    monkeypatch.setattr(sampling, "CALL_ROWS", 100)
    most, joined = [], sampling._Held.joined.__func__

    def watched(cls, parts):
        most.append(sum(len(part) for part in parts))
        return joined(cls, parts)

    monkeypatch.setattr(sampling._Held, "joined", classmethod(watched))

    rows = table(50_000).assign(branch="north")
    rows = rows.drop(columns={"id", "branch"} - {key})

    sample(cut(rows, 700), 1000, rare=500, key=key)

    assert max(most) <= 2 * 1000 + 100


def test_few_rows_are_all_kept():
    rows = table(300).drop(columns="id")

    found = sample(cut(rows, 50), 1000)

    assert found.n_kept == 300
    assert found.strata["whole"].all()
    assert found.rows.value_counts().sort_index().equals(rows.value_counts().sort_index())


def test_another_seed_keeps_other_rows():
    rows = table(2000)

    assert not sample([rows]).rows.equals(sample([rows], random_state=1).rows)


def test_numbers_are_stratified_by_bins_and_missing_cells_go_together():
    rows = table(2000).drop(columns="id").astype({"age": float, "sex": object})
    rows.loc[::50, "age"] = np.nan
    rows.loc[::70, "sex"] = None

    found = sample(cut(rows, 600), 1500, immutable=("age", "sex"))

    ends = bin_numbers(rows["age"].dropna().to_numpy())
    strata = found.strata.reset_index()
    assert set(strata["age"].dropna()) == set(ends)
    assert strata["age"].isna().any()
    assert strata["sex"].isna().any()
    assert found.strata["n_seen"].sum() == 2000


def test_dates_are_stratified_by_year_and_levels_by_what_they_are():
    rows = table(900).drop(columns="id").astype({"sex": "category"})
    rows["since"] = pd.Timestamp("2001-06-01") + pd.to_timedelta(rows["salary"], unit="D")

    found = sample(cut(rows, 200), immutable=("since", "sex"))

    assert set(found.strata.index.get_level_values("since")) == set(rows["since"].dt.year)
    assert found.rows.dtypes.equals(rows.dtypes)


@pytest.mark.parametrize("name", ["accepted", "n_seen", "n_kept", "whole", "weight"])
@pytest.mark.parametrize("more", [[], ["age"]])
def test_an_immutable_column_may_have_the_name_of_a_count(name, more):
    rows = table(900).drop(columns="id")
    expected = sample([rows], immutable=["sex", *more]).strata

    found = sample([rows.rename(columns={"sex": name})], immutable=[name, *more]).strata

    assert found.index.names == [name, *more]
    assert found.index.to_list() == expected.index.to_list()
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True))


def test_without_immutable_columns_there_are_two_strata():
    found = sample(cut(table(900).drop(columns="id"), 200), immutable=())

    assert found.strata["accepted"].tolist() == [False, True]


def test_polars_arrow_and_batches_come_back_as_they_came():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = table(500).drop(columns="id")
    expected = sample([rows], 100).rows

    def arrow_score(block):
        return np.asarray(block["salary"]) % 100 / 100

    polars = sample([pl.from_pandas(rows)], 100, predictor=arrow_score)
    batches = pa.Table.from_pandas(rows).to_batches(max_chunksize=90)
    arrow = sample(batches, 100, predictor=arrow_score)

    assert isinstance(polars.rows, pl.DataFrame)
    assert isinstance(arrow.rows, pa.Table)
    assert polars.rows["salary"].to_list() == arrow.rows["salary"].to_pylist()
    assert polars.rows["salary"].to_list() == expected["salary"].tolist()


def test_a_fit_on_a_sample_of_all_rows_is_that_on_the_rows():
    rows = table(400).drop(columns="id")
    found = sample(cut(rows, 90), 1000)
    people = rows[score(rows) < 0.5].head(20)

    def answers(train):
        explainer = mcce.MCCE(score, ACCEPTED, immutable=["sex"], random_state=0).fit(train)
        return explainer.explain(people).frame

    pd.testing.assert_frame_equal(answers(found.rows), answers(rows))


def failing(rows):
    raise RuntimeError("no")


ROWS = table(300)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"blocks": []}, SchemaError, "no training rows"),
        ({"blocks": [ROWS.head(0)]}, SchemaError, "no training rows"),
        ({"blocks": ROWS}, SchemaError, r"Pass \[frame\]"),
        ({"blocks": [ROWS, ROWS.drop(columns="age")]}, SchemaError, "missing .*age"),
        ({"blocks": [ROWS, ROWS.assign(more=1)]}, SchemaError, "extra .*more"),
        ({"blocks": [ROWS, ROWS.astype({"age": str})]}, SchemaError, "int64 in the first"),
        ({"blocks": [ROWS], "immutable": ["sexe"]}, SchemaError, "sexe"),
        ({"blocks": [ROWS], "key": "number"}, SchemaError, "key names"),
        ({"blocks": [ROWS], "n_rows": 1}, ParameterError, "n_rows"),
        ({"blocks": [ROWS], "n_rows": 4.5}, ParameterError, "n_rows"),
        ({"blocks": [ROWS], "n_rows": 5}, ParameterError, "too small"),
        ({"blocks": [ROWS], "immutable": ["id"], "n_rows": 20}, ParameterError, "too small"),
        ({"blocks": [ROWS], "rare": 0}, ParameterError, "rare"),
        ({"blocks": [ROWS], "random_state": -1}, ParameterError, "random_state"),
        ({"blocks": [ROWS], "predictor": failing}, PredictorError, "RuntimeError"),
        ({"blocks": [ROWS], "desired": (2.0, 3.0)}, ParameterError, "None of the 300"),
    ],
)
def test_what_cannot_be_sampled_is_refused(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        sample(**arguments)
    assert isinstance(caught.value, McceError)


def test_a_table_that_is_all_accepted_is_sampled():
    found = sample([table(900)], desired=(0.0, 1.0))

    assert found.n_kept == 400


def test_a_block_may_have_floats_where_others_have_integers():
    rows = table(600).drop(columns="id")
    later = rows.tail(300).astype({"age": float})
    later.iloc[5, 1] = np.nan

    found = sample([rows.head(300), later], 500)

    assert found.rows["age"].dtype == np.float64
