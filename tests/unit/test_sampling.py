"""Samples of training rows that stream by."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import MCCE, ParameterError, PredictorError, SchemaError, sample_training

ACCEPTED = (0.6, 1.0)


def score(rows):
    return np.asarray(rows["salary"]) % 100 / 100


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


def sample(blocks, n_rows=400, **more):
    given = {"predictor": score, "desired": ACCEPTED, "immutable": ["sex"]}
    return sample_training(blocks, n_rows, **given | more)


def mixed(numbers):
    """SplitMix64: a random number of 64 bits for each number."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def oracle(rows, n_rows, rare, seed):
    """The positions that are kept, with all rows at once."""
    with np.errstate(over="ignore"):
        positions = np.arange(len(rows), dtype=np.uint64)
        words = mixed(mixed(positions) ^ mixed(np.array([seed], dtype=np.uint64)))
    accepted, groups = score(rows) >= ACCEPTED[0], rows["sex"].to_numpy()
    counts = pd.Series(groups[accepted]).value_counts()
    while rare > 1 and counts.clip(upper=rare).sum() > n_rows // 2:
        rare -= 1
    chosen = set()
    for group in counts.index:
        some = np.flatnonzero(accepted & (groups == group))
        chosen |= set(some[np.argsort(words[some], kind="stable")][:rare].tolist())
    for row in np.argsort(words, kind="stable").tolist():
        if len(chosen) == n_rows:
            break
        chosen.add(row)
    return rare, sorted(chosen)


def assert_kept(found, rows, n_kept, rare, seed):
    expected_rare, positions = oracle(rows, n_kept, rare, seed)
    by = list(rows)
    expected = rows.iloc[positions].sort_values(by, ignore_index=True)
    pd.testing.assert_frame_equal(found.rows.sort_values(by, ignore_index=True), expected)
    assert found.rare == expected_rare


@given(
    n_rows=st.integers(30, 700),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    n_kept=st.integers(6, 300),
    rare=st.integers(1, 60),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_sample_is_that_of_all_rows_at_once(n_rows, sizes, n_kept, rare, seed):
    rows = table(n_rows).drop(columns="id")

    found = sample(cut(rows, *sizes), n_kept, rare=rare, random_state=seed)

    assert_kept(found, rows, n_kept, rare, seed)


def test_rows_of_many_calls_give_the_sample_of_all_rows_at_once():
    rows = table(200_000).drop(columns="id")

    found = sample(cut(rows, 30_000), 2000, rare=500, random_state=7)

    assert_kept(found, rows, 2000, 500, 7)


def test_memory_is_bounded_by_the_sample_and_not_by_the_rows():
    block = table(2**16).drop(columns=["id", "sex"])

    def peak(n_blocks):
        tracemalloc.start()
        try:
            sample((block for _ in range(n_blocks)), 1000, immutable=[])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(8) < 1.5 * peak(2)


def test_with_a_key_the_order_and_the_types_of_keys_do_not_matter():
    rows = table(1000)
    shuffled = rows.sample(frac=1, random_state=1)
    floats = [shuffled.head(300).astype({"id": float}), shuffled.tail(700)]

    one = sample([rows], key="id")
    for blocks in (cut(shuffled, 130), floats):
        other = sample(blocks, key="id")

        pd.testing.assert_frame_equal(one.rows, other.rows)
        pd.testing.assert_frame_equal(one.strata, other.strata)
    assert "id" not in one.rows
    assert not one.rows.equals(sample([rows], key="id", random_state=1).rows)


def test_a_missing_key_is_refused_with_its_row():
    for missing in (None, np.nan, pd.NA):
        rows = table(300).astype({"id": object})
        rows.iloc[123, 0] = missing

        with pytest.raises(SchemaError, match=r"Column 'id' .* is missing in row 124"):
            sample(cut(rows, 50), key="id")


def test_all_accepted_rows_of_rare_values_are_kept():
    rows = table(20_000).drop(columns="id")
    accepted = rows[(score(rows) >= 0.6) & (rows["sex"] == "x")]

    found = sample(cut(rows, 999), 1000, rare=300)

    kept = found.rows[(score(found.rows) >= 0.6) & (found.rows["sex"] == "x")]
    assert 100 < len(accepted) <= found.rare
    assert kept.value_counts().sort_index().equals(accepted.value_counts().sort_index())
    rare = found.strata.query("accepted and sex == 'x'").iloc[0]
    assert rare["whole"]
    assert (rare["n_seen"], rare["weight"]) == (len(accepted), 1)


def test_accepted_rows_are_over_represented_and_weights_undo_that():
    rows = table(20_000).drop(columns="id").assign(sex="f")

    found = sample(cut(rows, 5000), 1000, rare=400, desired=(0.95, 1.0))

    seen, kept = ((score(some) >= 0.95).mean() for some in (rows, found.rows))
    assert kept > 5 * seen
    stands_for = found.strata["n_kept"] * found.strata["weight"]
    assert stands_for.tolist() == pytest.approx(found.strata["n_seen"].tolist())
    assert found.strata["n_seen"].sum() == found.n_seen == 20_000
    assert found.strata["n_kept"].sum() == found.n_kept == len(found.rows) == 1000


def test_few_rows_are_all_kept_and_explain_as_the_rows_do():
    rows = table(300).drop(columns="id")
    people = rows[score(rows) < 0.5].head(10)

    found = sample(cut(rows, 50), 1000)

    assert found.n_kept == 300
    assert found.strata["whole"].all()
    answers = [
        MCCE(score, ACCEPTED, immutable=["sex"], n_samples=50, random_state=0)
        .fit(train)
        .explain(people)
        .frame
        for train in (found.rows, rows)
    ]
    pd.testing.assert_frame_equal(*answers)


def test_numbers_are_stratified_by_bins_dates_by_year_and_missing_cells_go_together():
    rows = table(2000).drop(columns="id").astype({"sex": object})
    rows["children"] = np.arange(2000) % 9 + 0.0
    rows["since"] = pd.Timestamp("2001-06-01") + pd.to_timedelta(rows["salary"], unit="D")
    rows.loc[::50, "children"] = np.nan
    rows.loc[::70, "sex"] = None

    by_number = sample(cut(rows, 600), 1500, immutable=["children", "sex"]).strata
    by_date = sample([rows], 1500, immutable=["since"])
    by_age = sample([rows], 1500, immutable=["age"]).strata

    for name in ("children", "sex"):
        counts = by_number["n_seen"].groupby(name, dropna=False).sum()
        assert counts.tolist() == rows.groupby(name, dropna=False).size().tolist()
    assert set(by_date.strata.index.get_level_values("since")) == set(rows["since"].dt.year)
    assert by_date.rows.dtypes.equals(rows.dtypes)
    assert 5 < by_age.index.nunique() < 12
    assert by_age["n_seen"].sum() == 2000


def test_an_immutable_column_may_have_the_name_of_a_count():
    rows = table(900).drop(columns="id")
    expected = sample([rows], immutable=["sex", "age"]).strata

    for name in ("accepted", "n_seen", "weight"):
        found = sample([rows.rename(columns={"sex": name})], immutable=[name, "age"]).strata

        assert found.index.names == [name, "age"]
        assert found.index.to_list() == expected.index.to_list()
        plain = expected.reset_index(drop=True)
        pd.testing.assert_frame_equal(found.reset_index(drop=True), plain)


def test_without_immutable_columns_there_are_two_strata():
    rows = table(900).drop(columns="id")

    assert sample([rows], immutable=[]).strata["accepted"].tolist() == [False, True]
    assert sample([rows], desired=(0.0, 1.0)).n_kept == 400


def test_polars_arrow_and_batches_come_back_as_they_came():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rows = table(500).drop(columns="id")
    expected = sample([rows], 100).rows["salary"].tolist()

    polars = sample([pl.from_pandas(rows)], 100)
    arrow = sample(pa.Table.from_pandas(rows).to_batches(max_chunksize=90), 100)

    assert isinstance(polars.rows, pl.DataFrame)
    assert isinstance(arrow.rows, pa.Table)
    assert polars.rows["salary"].to_list() == arrow.rows["salary"].to_pylist() == expected


def test_a_block_may_have_floats_where_others_have_integers():
    rows = table(600).drop(columns="id")
    later = rows.tail(300).astype({"age": float})
    later.iloc[5, 1] = np.nan

    found = sample([rows.head(300), later], 500)

    assert found.rows["age"].dtype == np.float64


def failing(rows):
    raise RuntimeError("no")


def test_what_cannot_be_sampled_is_refused():
    rows = table(300)
    for arguments, error, message in [
        ({"blocks": []}, SchemaError, "no training rows"),
        ({"blocks": [rows.head(0)]}, SchemaError, "no training rows"),
        ({"blocks": rows}, SchemaError, r"Pass \[frame\]"),
        ({"blocks": [rows, rows.drop(columns="age")]}, SchemaError, "missing .*age"),
        ({"blocks": [rows, rows.assign(more=1)]}, SchemaError, "extra .*more"),
        ({"blocks": [rows, rows.astype({"age": str})]}, SchemaError, "int64 in the first"),
        ({"immutable": ["sexe"]}, SchemaError, "sexe"),
        ({"key": "number"}, SchemaError, "key names"),
        ({"n_rows": 1}, ParameterError, "n_rows"),
        ({"n_rows": 4.5}, ParameterError, "n_rows"),
        ({"n_rows": 5}, ParameterError, "too small"),
        ({"immutable": ["id"], "n_rows": 20}, ParameterError, "too small"),
        ({"rare": 0}, ParameterError, "rare"),
        ({"random_state": -1}, ParameterError, "random_state"),
        ({"predictor": failing}, PredictorError, "RuntimeError"),
        ({"desired": (2.0, 3.0)}, ParameterError, "None of the 300"),
    ]:
        with pytest.raises(error, match=message):
            sample(**{"blocks": [rows]} | arguments)
