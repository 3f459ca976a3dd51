"""From frames to codes and back: kinds, codes, names, immutable columns and labels."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mcce import MCCE, Schema, SchemaError, TreeChain

N_TRAIN = 24
DAYS = pd.to_datetime(["2024-03-01", "2024-01-01"])
OSLO = DAYS.tz_localize("Europe/Oslo")
SIZES = pd.CategoricalDtype(["small", "never", "medium", "large"], ordered=True)
BOUNDS = np.iinfo(np.int64)
HALF = pd.Index(["column", "a\ud800"], dtype=object)


def score(frame):
    return frame["points"] / N_TRAIN


def training(cells=(1, 2, 3), dtype=None) -> pd.DataFrame:
    column = pd.Series(list(cells) * (N_TRAIN // len(cells)), dtype=dtype)
    return pd.DataFrame({"column": column, "points": np.arange(N_TRAIN)})


def explainer(predictor=score, **settings) -> MCCE:
    chain = TreeChain(min_samples_leaf=1)
    return MCCE(
        predictor,
        (0.5, 1.0),
        generator=chain,
        search="paper",
        n_samples=30,
        random_state=0,
        **settings,
    )


def learn(values, dtype=None, kind=None) -> Schema:
    kinds = {} if kind is None else {"column": kind}
    return Schema.learn(pd.DataFrame({"column": pd.Series(values, dtype=dtype)}), kinds=kinds)


def codes(schema: Schema, values, dtype=None) -> tuple[list[int], list[int]]:
    """Codes of cells, and those by which they descend in trees."""
    rows = schema.encode(pd.DataFrame({"column": pd.Series(values, dtype=dtype)}))
    return rows.codes[0].tolist(), rows.tree_codes[0].tolist()


# The larger of two values, a missing one and the smaller, by dtype.
NUMBERS = {
    "Int8": [2, 1],
    "float32": [0.2, 0.1],
    "float64": [0.1, -0.1],
    "Int64": [2**60 + 2, 2**60 + 1],
    "UInt64": [2**64 - 1, 2**64 - 2],
    "Float64": [0.2, 0.1],
    "datetime64[ns]": DAYS,
    "datetime64[s]": DAYS,
    "datetime64[us, Europe/Oslo]": OSLO,
    "timedelta64[ns]": DAYS - DAYS[1],
    "int64[pyarrow]": [2**60 + 2, 2**60 + 1],
    "timestamp[us][pyarrow]": DAYS,
    "date32[day][pyarrow]": DAYS.date,
    "duration[us][pyarrow]": DAYS - DAYS[1],
}
LEVELS = {
    "str": ["b", "a"],
    "object": ["b", "a"],
    "string": ["b", "a"],
    "category": [30, 10],
    "boolean": [True, False],
    "string[pyarrow]": ["b", "a"],
    "bool[pyarrow]": [True, False],
}


def test_a_code_is_the_rank_of_a_value_and_missing_comes_last():
    for kind, columns in (("numeric", NUMBERS), ("categorical", LEVELS)):
        for dtype, (high, low) in columns.items():
            frame = pd.DataFrame({"column": pd.Series([high, None, low], dtype=dtype)})

            rows = Schema.learn_rows(frame)

            (feature,) = rows.schema.features
            assert feature.kind == kind, dtype
            assert rows.codes[0].tolist() == [1, 2, 0], dtype
            assert codes(rows.schema, frame["column"]) == ([1, 2, 0], [1, 2, 0]), dtype
            assert feature.table.dtype == frame["column"].dtype, dtype


def test_a_column_of_nothing_but_missing_has_one_code():
    for dtype in ("float64", "object", "Int64", "string", "boolean", "category", "datetime64[ns]"):
        schema = learn([None] * 3, dtype)

        assert schema.features[0].n_codes == 1, dtype
        assert codes(schema, [None] * 2, dtype) == ([0, 0], [0, 0]), dtype


@given(
    st.lists(st.integers(BOUNDS.min, BOUNDS.max), min_size=1).map(lambda n: np.array(n, np.int64))
    | st.lists(st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0]), min_size=1).map(np.array)
)
def test_equal_numbers_share_a_code_and_codes_have_their_order(cells):
    schema = learn(cells)

    exact, tree_codes = codes(schema, cells)

    assert exact == tree_codes == np.unique(cells, return_inverse=True)[1].tolist()
    assert (schema.features[0].table.to_numpy()[exact] == cells).all()


def test_many_distinct_numbers_are_coded_as_few():
    cells = np.random.default_rng(0).normal(size=20_000)
    cells[::1000] = 0.5

    exact, _ = codes(learn(cells), cells)

    assert exact == np.unique(cells, return_inverse=True)[1].tolist()


def test_ordered_levels_keep_their_order_and_others_are_sorted():
    ordered = learn(["large", "small", "medium"], SIZES)
    plain = learn(["a", "b"], pd.CategoricalDtype(["b", "never", "a"]))

    assert ordered.features[0].ordered
    assert codes(ordered, ["small", "medium", "large", "never"], SIZES) == (
        [0, 1, 2, -1],
        [0, 1, 2, 3],
    )
    assert not plain.features[0].ordered
    assert plain.features[0].table.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("trained", "given", "tree_codes"),
    [
        ([10, 20, 40], [-99, 14, 15, 16, 30, 31, 99], [0, 0, 0, 1, 1, 2, 2]),
        ([1, 2], [1.4, 1.5, 1.6], [0, 0, 1]),
        ([BOUNDS.min, 0, BOUNDS.max], [BOUNDS.min + 1, -2, BOUNDS.max - 1], [0, 1, 2]),
        ([-4e307, 4e307], [-4.4e307, 4.4e307], [0, 1]),
        ([DAYS[1], DAYS[0]], pd.to_datetime(["2024-01-20", "2024-02-20"]), [0, 1]),
        ([1.0, 2.0], [np.nan], [1]),
        (["a", "b"], ["z", None], [2, 2]),
        (["a", None], ["z"], [2]),
    ],
    ids=["whole", "fraction", "integers", "floats", "dates", "missing", "levels", "gaps"],
)
def test_an_unseen_value_takes_the_nearest_code_or_one_past_the_levels(trained, given, tree_codes):
    assert codes(learn(trained), given) == ([-1] * len(given), tree_codes)


def test_the_spread_is_the_range_in_the_unit_of_the_column():
    for unit, per_day in (("s", 86_400), ("ms", 86_400_000)):
        assert learn(DAYS.astype(f"datetime64[{unit}]")).spreads.tolist() == [60 * per_day]
    assert learn([1.5, np.nan, 4.0]).spreads.tolist() == [2.5]
    assert learn(["a", "b"]).spreads.tolist() == [0.0]


def test_the_kind_can_be_declared_by_name():
    train = pd.DataFrame({"zip": [7030, 1000], "zip+4": [1, 2], "member": [True, False]})

    schema = Schema.learn(train, kinds={"zip": "categorical", "member": "numeric"})

    assert [feature.kind for feature in schema.features] == ["categorical", "numeric", "numeric"]
    assert schema.encode(train.assign(zip=[1000, 1001])).codes[0].tolist() == [0, -1]
    assert learn([np.inf, 1.0], kind="categorical").features[0].n_codes == 2


NO_FEATURES = [
    (pd.Series([np.inf, 1.0, -np.inf]), None, "'column' holds infinity in 2 of 3 rows"),
    (pd.Series([-1e308, 1e308]), None, "range of column 'column' is too wide"),
    (pd.Series([1, 2], dtype=object), None, r"dtype object and holds integer .*pd.to_numeric"),
    (pd.Series([1, "a"], dtype=object), None, "holds mixed-integer values"),
    (pd.Series([decimal.Decimal(1)]), None, "holds decimal values"),
    (pd.Series([datetime.date(2024, 1, 1)], dtype=object), None, "date values.*pd.to_datetime"),
    (pd.Series([b"a"], dtype=object), None, r"holds bytes values.*astype\(str\)"),
    (pd.Series([1j, 2j]), None, "neither numeric nor categorical. Convert it"),
    (pd.Series([0, 1], dtype="Sparse[int]"), None, "neither numeric nor categorical"),
    (pd.Series(pd.period_range("2024", periods=2, freq="M")), None, "neither numeric nor"),
    (pd.Series([0, 1], dtype=np.longdouble), None, "neither numeric nor categorical"),
    (pd.Series(["1", "2"]), "numeric", "'column' is declared numeric.*pd.to_numeric"),
    (pd.Series([1, "a"], dtype=object), "categorical", "'column' cannot be sorted"),
    (pd.Series([["a"], ["b"]]), "categorical", r"'column' cannot be compared; .* \['list'\]"),
]


def test_what_cannot_be_a_feature_is_an_error_that_names_the_column():
    for column, kind, says in NO_FEATURES:
        with pytest.raises(SchemaError, match=says):
            learn(column, kind=kind)


NO_TABLES = [
    ([[1, 2], [3, 4]], "got builtins.list. Convert it first"),
    ({"a": [1, 2]}, "got builtins.dict"),
    (None, "got builtins.NoneType"),
    (sparse.csr_matrix(np.eye(3)), r"csr_matrix.*\.toarray\(\)"),
    (np.arange(3), r"got shape \(3,\). Reshape your data"),
    (np.arange(4.0).reshape(2, 2).astype(">f8"), r"byte order of another machine.*astype\('float"),
    (pd.Series([1, 2]), r"got a Series.*frame\.iloc\[\[0\]\]"),
    (pd.DataFrame(index=range(3)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    (pd.DataFrame({"a": [], "b": []}), r"0 sample\(s\) \(shape=\(0, 2\)\)"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"unique.*more than once: \['a'\]"),
    (pd.DataFrame({("a", "b"): [1], ("a", "c"): [2]}), "several levels of column names"),
    (pd.DataFrame([[1, 2]], columns=["a", None]), "Every column needs a name"),
    (pd.DataFrame([[1, 2]], columns=HALF), "name of column 1 .* half a surrogate pair"),
]


def test_data_that_are_no_table_are_an_error_that_says_what_to_do():
    for data, says in NO_TABLES:
        with pytest.raises(SchemaError, match=says):
            Schema.learn(data)


WRONG_ARGUMENTS = [
    ({"immutable": "Age"}, r"got 'Age'. Write immutable=\['Age'\]"),
    ({"immutable": 5}, "list of column names, got 5"),
    (
        {"immutable": ["age", "Age"]},
        r"not in the data: \['Age'\]. Did you mean 'age'\? The",
    ),
    ({"immutable": [["age"]]}, r"not in the data: \[\['age'\]\]"),
    ({"immutable": [False, True]}, r"not in the data: \[False, True\]"),
    ({"immutable": ["2024-03-01"]}, "not in the data"),
    ({"immutable": ["age", "sex", DAYS[0]]}, "All 3 columns are immutable"),
    ({"mutable": "age"}, r"got 'age'. Write mutable=\['age'\]"),
    ({"mutable": ["Age"]}, r"mutable names columns that are not in the data: \['Age'\]"),
    ({"mutable": []}, "mutable names no column"),
    ({"mutable": ["age"], "immutable": ["sex"]}, "both are given: .*Pass one of them"),
    ({"kinds": ["age"]}, r"kinds must map.*got \['age'\]"),
    ({"kinds": {"zip": "categorical"}}, r"not in the data: \['zip'\]"),
    ({"kinds": {"age": "category"}}, r"kinds\['age'\] must be.*got 'category'"),
    ({"kinds": {"age": str}}, r"kinds\['age'\] must be"),
]


def test_names_and_kinds_that_cannot_be_are_an_error():
    train = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], DAYS[0]: [1, 2]})

    for arguments, says in WRONG_ARGUMENTS:
        with pytest.raises(SchemaError, match=says):
            Schema.learn(train, **arguments)


def test_columns_may_be_listed_in_any_container_and_twice():
    train = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], DAYS[0]: [1, 2]})

    for listed in (list, tuple, set, pd.Index, pd.Series, np.array):
        assert Schema.learn(train, immutable=listed(["sex", "sex"])).immutable.tolist() == [1]
        assert Schema.learn(train, mutable=listed(["sex"])).mutable.tolist() == [1]
    assert Schema.learn(train, immutable=[DAYS[0]]).immutable.tolist() == [2]


def test_people_with_other_columns_are_refused_by_name():
    schema = Schema.learn(training())
    people = training().rename(columns={"column": "colunm"})

    with pytest.raises(SchemaError, match=r"missing \['column'\], extra \['colunm'\].*any order"):
        schema.encode(people)
    with pytest.raises(SchemaError, match=r"without column names.*\['column', 'points'\]"):
        schema.encode(np.zeros((2, 2)))
    with pytest.raises(SchemaError, match=r"missing \['x2'\], extra \[\]"):
        Schema.learn(np.zeros((4, 3))).encode(np.zeros((4, 2)))
    with pytest.raises(SchemaError, match="half a surrogate pair"):
        schema.encode(people.set_axis(HALF, axis=1))


STRANGE = [
    "a b",
    "c[0]",
    "ø",
    "",
    0,
    1.5,
    ("u", "v"),
    pd.Timestamp("2024-01-01"),
    "factual",
    "rank",
]


def test_column_names_may_be_anything_that_is_unique():
    names = pd.Index(STRANGE, dtype=object, tupleize_cols=False, name="feature")
    train = pd.DataFrame(np.repeat(np.arange(12.0), 10).reshape(12, 10), columns=names)
    train.iloc[:, [1, 4, 6]] = 5.0
    immutable = ["c[0]", 0, ("u", "v")]

    model = explainer(lambda frame: frame.iloc[:, 0] / 12, immutable=immutable).fit(train)
    result = model.explain(train.head(3))

    pd.testing.assert_index_equal(result.frame.columns, train.columns)
    assert not result.changes()["feature"].isin(immutable).any()
    assert len(result.changes()) == result.measures["sparsity"].sum()
    for name in immutable:
        place = STRANGE.index(name)
        assert result.frame.iloc[:, place].tolist() == train.iloc[:3, place].tolist()


def test_columns_in_another_order_give_the_same_answer_in_that_order():
    train = training(["b", "c", "a"])
    people, seen = train.head(3), []
    model = explainer(lambda frame: seen.append(list(frame)) or score(frame)).fit(train)

    straight = model.explain(people)
    turned = model.explain(people[["points", "column"]])

    pd.testing.assert_frame_equal(turned.frame, straight.frame[["points", "column"]])
    pd.testing.assert_frame_equal(turned.factuals, straight.factuals[["points", "column"]])
    assert all(names == ["column", "points"] for names in seen)


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_inputs_are_never_changed_even_by_a_predictor_that_writes_into_its_rows(kind):
    def vandal(rows):
        if kind == "array":
            points = rows[:, 1] / N_TRAIN
            rows[:] = -1.0
            return points
        points = rows["points"].to_numpy() / N_TRAIN
        rows.loc[:, "points"] = 0
        del rows["column"]
        return points

    train = training([0.5, 1.5]) if kind == "frame" else training([0.5, 1.5]).to_numpy()
    people = train[:6].copy()
    before = train.copy(), people.copy()

    result = explainer(vandal).fit(train).explain(people)

    np.testing.assert_array_equal(train, before[0])
    np.testing.assert_array_equal(people, before[1])
    assert (result.frame.iloc[:, 1] >= N_TRAIN / 2).all()
    people[:] = -1
    assert result.factuals.iloc[:, 1].tolist() == [0, 1, 2, 3, 4, 5]


LABELS = [
    pd.Index(["ann", "ann", "bob"]),
    OSLO.append(OSLO[:1]),
    pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["x", "y"]),
    pd.Index([7, 8, 9], name="points"),
    pd.Index([7, 8, 9], name="rank"),
    pd.CategoricalIndex(["x", "y", "x"]),
    pd.period_range("2024-01", periods=3, freq="M"),
    pd.Index([1.0, np.nan, np.nan]),
]


def test_the_index_carries_the_labels_of_the_people():
    train = training()
    model = explainer(n_counterfactuals=2, immutable=["column"]).fit(train)

    for labels in LABELS:
        result = model.explain(train.head(3).set_axis(labels))

        expected = [str(label) for label in labels for _ in range(2)]
        assert result.frame.index.names == result.measures.index.names == ["factual", "rank"]
        assert [str(x) for x in result.frame.index.get_level_values("factual")] == expected
        assert result.owner.tolist() == [0, 0, 1, 1, 2, 2]
        assert result.people.index.name == result.factuals.index.name == "factual"
        assert result.frame["column"].tolist() == [1, 1, 2, 2, 3, 3]
        before = result.changes()["before"].tolist()
        assert before == train["points"].head(3).repeat(2).tolist()


def test_a_person_with_an_unseen_immutable_value_is_flagged():
    train = training(["b", "c", "a"])
    people = pd.DataFrame({"column": ["a", "z"], "points": [2, 3]})

    result = explainer(immutable=["column"]).fit(train).explain(people)

    assert result.people["unseen_immutable"].tolist() == ["", "column"]
    assert result.frame["column"].tolist() == ["a", "z"]


@pytest.mark.parametrize(
    ("trained", "given", "exact", "tree_codes"),
    [
        ([1.0, np.nan, 3.0], [np.nan, 2.0, 3.0], [2, -1, 1], [2, 0, 1]),
        (["a", None], ["z", None], [-1, 1], [2, 1]),
    ],
    ids=["number", "level"],
)
def test_a_known_missing_value_keeps_its_code_beside_an_unseen_one(
    trained, given, exact, tree_codes
):
    assert codes(learn(trained), given) == (exact, tree_codes)
