"""Public domains: bins, the values that can be drawn, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce import Domain, McceWarning, ParameterError, SchemaError
from mcce.model.private import plain_domains, read_domains
from mcce.model.private.rows import bin_rows, encode_public


def test_few_whole_numbers_are_bins_on_their_own():
    domain = Domain(low=1, high=4, step=1)

    assert domain.values.tolist() == [1, 2, 3, 4]
    assert domain.bin_of_value.tolist() == [0, 1, 2, 3]
    assert domain.bin_numbers(np.array([0.0, 1.4, 1.6, 4.0, 99.0])).tolist() == [0, 0, 1, 3, 3]


def test_many_numbers_share_bins_and_atoms_stand_alone():
    domain = Domain(low=0, high=100, bins=4, atoms=[0, 50], step=5)

    assert domain.values.tolist() == list(range(0, 101, 5))
    assert domain.n_bins == 6
    numbers = np.array([0, 0.1, 24.9, 25, 49, 50, 50.1, 75, 100])
    assert domain.bin_numbers(numbers).tolist() == [0, 1, 1, 2, 2, 3, 4, 5, 5]


def test_edges_may_be_of_any_width():
    domain = Domain(low=0, high=1000, edges=[0, 1, 10, 1000], missing=True)

    assert domain.n_bins == 4
    assert domain.bin_numbers(np.array([0.5, 1, 9.9, 10, np.nan])).tolist() == [0, 1, 1, 2, 3]
    assert domain.values[[0, -1]].tolist() == [0, 1000]
    assert np.bincount(domain.bin_of_value).min() >= 10


@given(
    low=st.integers(-50, 50),
    width=st.integers(1, 500),
    bins=st.integers(1, 25),
    step=st.sampled_from([None, 0.1, 0.5, 1, 3, 7]),
    atoms=st.lists(st.floats(0, 1), max_size=3),
)
def test_every_value_lies_in_its_bin_and_every_bin_has_a_value(low, width, bins, step, atoms):
    places = [low + share * width for share in atoms]
    domain = Domain(low=low, high=low + width, bins=bins, step=step, atoms=places)

    assert (np.diff(domain.values) > 0).all()
    assert domain.values[0] == low
    assert domain.values[-1] == low + width
    assert np.array_equal(domain.bin_numbers(domain.values), domain.bin_of_value)
    assert set(domain.bin_of_value) == set(range(domain.n_bins))
    numbers = np.linspace(low - 5, low + width + 5, 300)
    assert (np.diff(domain.bin_numbers(numbers)) >= 0).all()
    assert set(places) <= set(domain.values)


REFUSED = {
    "nothing": ({}, "levels, or a range"),
    "an endless range": ({"low": 0, "high": np.inf}, "finite"),
    "a range reversed": ({"low": 3, "high": 1}, "low < high"),
    "two kinds": ({"levels": ["a"], "low": 0}, "levels or low"),
    "a word as levels": ({"levels": "abc"}, "list of values"),
    "a level twice": ({"levels": ["a", "a"]}, "each level once"),
    "missing as a level": ({"levels": ["a", None]}, "missing=True"),
    "another level": ({"levels": ["a"], "other": "b"}, "one of the levels"),
    "other for numbers": ({"low": 0, "high": 1, "other": 3}, "domain of levels"),
    "no bins": ({"low": 0, "high": 1, "bins": 0}, "bins must be"),
    "a step back": ({"low": 0, "high": 1, "step": -1}, "step must be"),
    "edges elsewhere": ({"low": 0, "high": 1, "edges": [0, 2]}, "edges must ascend"),
    "an atom outside": ({"low": 0, "high": 1, "atoms": [7]}, "atoms must be"),
    "perhaps missing": ({"low": 0, "high": 1, "missing": "yes"}, "missing must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_domains_that_cannot_be_are_refused(name):
    arguments, words = REFUSED[name]

    with pytest.raises(ParameterError, match=words):
        Domain(**arguments)


def test_domains_can_be_read_from_a_file(tmp_path):
    domains = {"age": Domain(low=0, high=90, step=1), "sex": Domain(levels=["f", "m"])}
    path = tmp_path / "domains.json"
    path.write_text(json.dumps(plain_domains(domains)), encoding="utf-8")

    assert read_domains(path) == domains
    assert json.loads(path.read_text())["sex"] == {"levels": ["f", "m"]}
    with pytest.raises(ParameterError, match="cannot be read"):
        read_domains(tmp_path / "none.json")
    with pytest.raises(ParameterError, match="domain of column 'age'"):
        read_domains({"age": {"lowest": 3}})


FRAME = pd.DataFrame({"age": [20, 35, 99], "job": ["clerk", "judge", "pilot"]})
DOMAINS = {"age": Domain(low=18, high=80, step=1), "job": Domain(levels=["clerk", "judge"])}


def test_numbers_outside_are_moved_inside_and_other_levels_are_declared_or_left_out():
    with pytest.warns(McceWarning, match=r"\['job'\] do not declare are left out"):
        rows = encode_public(DOMAINS, FRAME)
    other = {**DOMAINS, "job": Domain(levels=["clerk", "judge"], other="clerk")}

    assert rows.frame["age"].tolist() == [20, 35]
    kept = encode_public(other, FRAME).frame
    assert kept["age"].tolist() == [20, 35, 80]
    assert kept["job"].tolist() == ["clerk", "judge", "clerk"]


def test_the_schema_holds_the_domains_and_nothing_of_the_rows():
    other = {**DOMAINS, "job": Domain(levels=["clerk", "judge"], other="clerk")}
    schema = encode_public(other, FRAME, immutable=["age"]).schema

    assert schema.features[0].table.tolist() == list(range(18, 81))
    assert schema.features[0].spread == 62
    assert schema.features[1].table.tolist() == ["clerk", "judge"]
    assert [feature.immutable for feature in schema.features] == [True, False]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3]),
        pd.Series([1.0, np.nan, 3.0]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None, 3.0], dtype="float32"),
    ],
)
def test_missing_numbers_are_a_bin_or_their_rows_are_left_out(column):
    frame = pd.DataFrame({"x": column})

    with_missing = encode_public({"x": Domain(low=0, high=9, step=1, missing=True)}, frame)

    assert len(with_missing) == 3
    gone = column.isna()
    bins = bin_rows(with_missing, {"x": Domain(low=0, high=9, step=1, missing=True)})[0]
    assert (bins[gone] == 10).all()
    assert (bins[~gone] == column[~gone].astype(int)).all()
    if gone.any():
        with pytest.warns(McceWarning, match="left out"):
            assert len(encode_public({"x": Domain(low=0, high=9, step=1)}, frame)) == 2


def test_the_dtype_tells_nothing_of_missing_cells():
    whole, gap = pd.DataFrame({"x": [1, 2, 3]}), pd.DataFrame({"x": [1.0, None, 3.0]})
    for missing in (False, True):
        domains = {"x": Domain(low=0, high=9, step=1, missing=missing)}
        schemas = [encode_public(domains, frame.dropna()).schema for frame in (whole, gap)]
        assert schemas[0].features[0].table.equals(schemas[1].features[0].table)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b", None], dtype=object),
        pd.Series(["a", "b", None], dtype="category"),
        pd.Series(["a", "b", None], dtype="string"),
    ],
)
def test_levels_of_every_dtype_are_the_declared_ones(column):
    domains = {"x": Domain(levels=["b", "a", "z"], missing=True)}

    rows = encode_public(domains, pd.DataFrame({"x": column}))

    assert rows.exact.tolist() == [[0, 1, 3]]
    assert rows.schema.features[0].known.tolist() == ["a", "b", "z"]


def test_numbers_and_truth_values_can_be_levels():
    frame = pd.DataFrame({"member": [True, False], "code": [3, 1]})
    domains = {"member": Domain(levels=[False, True]), "code": Domain(levels=[1, 2, 3])}

    schema = encode_public(domains, frame).schema

    assert [feature.kind for feature in schema.features] == ["categorical"] * 2
    assert schema.features[1].table.tolist() == [1, 2, 3]


def test_what_does_not_fit_is_refused():
    days = pd.DataFrame({"since": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(SchemaError, match="Convert it to numbers"):
        encode_public({"since": Domain(low=0, high=1)}, days)
    with pytest.raises(ParameterError, match="columns without a domain are \\['job'\\]"):
        encode_public({"age": DOMAINS["age"]}, FRAME)
    with pytest.raises(ParameterError, match="domains without a column \\['x'\\]"):
        encode_public({**DOMAINS, "x": Domain(levels=["a"])}, FRAME)
    with pytest.raises(ParameterError, match="Leave it out of kinds"):
        encode_public(DOMAINS, FRAME, kinds={"age": "categorical"})
    with pytest.raises(ParameterError, match="do not fit its dtype"):
        encode_public({"age": Domain(levels=["old"], other="old")}, FRAME[["age"]])


def test_other_frames_keep_no_levels_and_no_notes():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(FRAME.assign(job=FRAME["job"].astype("category")))
    other = {**DOMAINS, "job": Domain(levels=["clerk", "judge"], other="clerk")}

    adapter = encode_public(other, table).schema.adapter

    assert adapter.schema.metadata is None
    assert "pilot" not in repr(adapter.dtypes)


def test_a_step_is_found_where_a_logarithm_is_rounded():
    # 0.3 / 3 bins / 10 values is just below 0.01, whose logarithm is -2.
    assert Domain(low=0, high=0.3, bins=3)._step == 0.005


@pytest.mark.parametrize(
    "given",
    [
        {"low": 1e18, "high": 1e18 + 1000},
        {"low": -1e308, "high": 1e308},
        {"low": 0, "high": 5e-324},
        {"low": 0, "high": 1e15, "step": 1e-9},
    ],
)
def test_ranges_beyond_the_digits_of_a_number_are_refused(given):
    with pytest.raises(ParameterError, match="too wide or too narrow"):
        Domain(**given)


def test_levels_that_cannot_be_looked_up_are_refused():
    with pytest.raises(ParameterError, match="levels must be plain values"):
        Domain(levels=[["a"]])
