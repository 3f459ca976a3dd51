"""From frames to codes and back: names, immutables, labels and returned frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mcce import MCCE, Schema, SchemaError, TreeChain

N_TRAIN = 24
DAYS = pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"])
ORDERED = pd.CategoricalDtype(["b", "never", "a"], ordered=True)
EDGES = pd.IntervalIndex.from_breaks([0, 1, 2])

# Three cells that are repeated over the training rows, and their dtype.
CELLS = {
    "int64": ([3, 1, 2], "int64"),
    "int8": ([3, 1, 2], "int8"),
    "beyond 2^53": ([2**60 + 1, 2**60 + 2, 2**60 + 3], "int64"),
    "uint64": ([2**63 + 1, 2**63 + 2, 2**63 + 3], "uint64"),
    "float32": ([0.1, 0.2, 0.3], "float32"),
    "float64": ([0.1, np.nan, -0.0], "float64"),
    "datetime": (DAYS, None),
    "datetime in seconds": ([*DAYS[:2], pd.NaT], "datetime64[s]"),
    "datetime with a zone": (DAYS.tz_localize("Europe/Oslo"), None),
    "timedelta": (DAYS - DAYS[0], None),
    "timedelta in seconds": (DAYS - DAYS[0], "timedelta64[s]"),
    "Int64": ([2**60 + 1, None, 2**60 + 3], "Int64"),
    "Float64": ([0.1, None, 0.3], "Float64"),
    "boolean": ([True, None, False], "boolean"),
    "string": (["b", None, "a"], "string"),
    "default string": (["b", "c", "a"], None),
    "object string": (["b", None, "a"], object),
    "object boolean": ([True, None, False], object),
    "bool": ([True, False, True], "bool"),
    "category": (["b", None, "a"], pd.CategoricalDtype(["b", "never", "a"])),
    "ordered category": (["b", None, "a"], ORDERED),
    "category of objects": (["b", None, "a"], pd.CategoricalDtype(np.array(["b", "a"], object))),
    "category of numbers": ([30, 10, 20], "category"),
    "category of intervals": ([EDGES[0], EDGES[1], None], pd.CategoricalDtype(EDGES)),
    "constant": ([5, 5, 5], "int64"),
    "all missing": ([np.nan] * 3, "float64"),
    "all None": ([None] * 3, object),
    "all NA": ([None] * 3, "Int64"),
    "all NaT": ([pd.NaT] * 3, "datetime64[ns]"),
}


def score(frame):
    return frame["points"] / N_TRAIN


def training(cells, dtype=None) -> pd.DataFrame:
    column = pd.Series(list(cells) * (N_TRAIN // 3), dtype=dtype)
    return pd.DataFrame({"column": column, "points": np.arange(N_TRAIN)})


def explainer(predictor=score, **settings) -> MCCE:
    chain = TreeChain(min_samples_leaf=1)
    return MCCE(predictor, (0.5, 1.0), generator=chain, n_samples=30, random_state=0, **settings)


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
@pytest.mark.parametrize("name", CELLS)
def test_a_frame_comes_back_with_its_dtypes(name, immutable):
    train = training(*CELLS[name])
    people = train.head(6)

    result = explainer(n_counterfactuals=2, immutable=immutable).fit(train).explain(people)

    assert len(result.frame) == 12
    pd.testing.assert_series_equal(result.frame.dtypes, train.dtypes)
    pd.testing.assert_frame_equal(result.factuals, people, check_names=False)
    assert len(result.changes()) == result.measures["sparsity"].sum()


@pytest.mark.parametrize("name", CELLS)
def test_inputs_are_never_changed_even_by_a_predictor_that_writes_into_its_frame(name):
    def vandal(frame):
        points = frame["points"].to_numpy() / N_TRAIN
        frame["column"] = frame["column"].iloc[0]
        frame.loc[:, "points"] = 0
        del frame["column"]
        return points

    train = training(*CELLS[name])
    people = train.head(6).copy()
    train_before, people_before = train.copy(deep=True), people.copy(deep=True)

    result = explainer(vandal).fit(train).explain(people)

    pd.testing.assert_frame_equal(train, train_before)
    pd.testing.assert_frame_equal(people, people_before)
    assert (result.frame["points"] >= N_TRAIN / 2).all()


def test_arrays_are_never_changed_either():
    def vandal(rows):
        points = rows[:, 0].copy()
        rows[:] = -1.0
        return points

    train = np.linspace(0.0, 1.0, 24).reshape(12, 2)
    before = train.copy()

    explainer(vandal).fit(train).explain(train[:3])

    np.testing.assert_array_equal(train, before)


def test_a_result_does_not_share_its_cells_with_the_people():
    train = training([1, 2, 3])
    people = train.head(2).copy()
    result = explainer().fit(train).explain(people)

    people.loc[:, "points"] = -1

    assert result.factuals["points"].tolist() == [0, 1]


LABELS = {
    "strings": pd.Index(["ann", "bob", "cy"]),
    "duplicates": pd.Index(["ann", "ann", "bob"]),
    "dates": DAYS,
    "dates with a zone": DAYS.tz_localize("Europe/Oslo"),
    "several levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["x", "y"]),
    "a name": pd.Index([7, 8, 9], name="id"),
    "the name of a column": pd.Index([7, 8, 9], name="points"),
    "the name of our own level": pd.Index([7, 8, 9], name="rank"),
    "a category": pd.CategoricalIndex(["x", "y", "x"]),
    "periods": pd.period_range("2024-01", periods=3, freq="M"),
    "missing": pd.Index([1.0, np.nan, np.nan]),
}


@pytest.mark.parametrize("name", LABELS)
def test_the_index_carries_the_labels_of_the_people(name):
    train = training([1, 2, 3])
    labels = LABELS[name]
    people = train.head(3).set_axis(labels)

    result = explainer(n_counterfactuals=2).fit(train).explain(people)

    expected = [label for label in labels for _ in range(2)]
    assert result.frame.index.names == result.measures.index.names == ["factual", "rank"]
    factuals = result.frame.index.get_level_values("factual")
    assert factuals.isna().tolist() == pd.isna(pd.Series(expected, dtype=object)).tolist()
    assert [t for t in factuals if t == t] == [t for t in expected if t == t]
    assert result.owner.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(result.people) == len(result.factuals) == 3
    assert result.people.index.name == result.factuals.index.name == "factual"


def test_people_with_one_label_keep_their_own_answers():
    train = training([1, 2, 3])
    people = train.iloc[[2, 5]].set_axis(["same", "same"])

    result = explainer(immutable=["column"]).fit(train).explain(people)

    assert result.frame["column"].tolist() == people["column"].tolist()
    assert result.changes()["before"].tolist() == people["points"].tolist()


STRANGE = ["a b", "c[0]", "x.*+?", "", 0, 1.5, ("u", "v"), pd.Timestamp("2024-01-01")]


def test_column_names_may_be_anything_that_is_unique():
    names = pd.Index(STRANGE, dtype=object, tupleize_cols=False)
    train = pd.DataFrame(np.repeat(np.arange(12.0), 8).reshape(12, 8), columns=names)
    train.iloc[:, [1, 4, 6]] = 5.0
    immutable = ["c[0]", 0, ("u", "v")]

    model = explainer(lambda frame: frame.iloc[:, 0] / 12, immutable=immutable).fit(train)
    result = model.explain(train.head(3))

    assert result.frame.columns.tolist() == STRANGE
    assert not result.changes()["feature"].isin(immutable).any()
    for name in immutable:
        place = STRANGE.index(name)
        assert result.frame.iloc[:, place].tolist() == train.iloc[:3, place].tolist()


def test_the_name_of_the_columns_comes_back():
    train = training([1, 2, 3]).rename_axis(columns="feature")

    result = explainer().fit(train).explain(train.head(2))

    pd.testing.assert_index_equal(result.frame.columns, train.columns)


def test_columns_named_like_ours_are_no_trouble():
    train = training([1, 2, 3]).rename(columns={"column": "factual"})
    train["rank"] = train["status"] = train["feature"] = train["points"]

    result = explainer().fit(train).explain(train.head(2))

    assert result.frame.columns.tolist() == train.columns.tolist()
    assert len(result.changes()) == result.measures["sparsity"].sum()


def test_columns_in_another_order_give_the_same_answer_in_that_order():
    train = training(["b", "c", "a"])
    people = train.head(3)
    seen = []
    model = explainer(lambda frame: seen.append(list(frame)) or score(frame)).fit(train)

    straight = model.explain(people)
    turned = model.explain(people[["points", "column"]])

    pd.testing.assert_frame_equal(turned.frame, straight.frame[["points", "column"]])
    pd.testing.assert_frame_equal(turned.factuals, straight.factuals[["points", "column"]])
    assert all(names == ["column", "points"] for names in seen)


def test_missing_and_extra_columns_are_named():
    schema = Schema.learn(training([1, 2, 3]))
    people = training([1, 2, 3]).rename(columns={"column": "colunm"})

    with pytest.raises(SchemaError, match=r"missing \['column'\], extra \['colunm'\].*any order"):
        schema.encode(people)


def test_an_array_for_a_frame_is_an_error_that_names_the_columns():
    schema = Schema.learn(training([1, 2, 3]))

    with pytest.raises(SchemaError, match=r"without column names.*\['column', 'points'\]"):
        schema.encode(np.zeros((2, 2)))


def test_an_array_of_another_width_is_an_error():
    schema = Schema.learn(np.zeros((4, 3)))

    with pytest.raises(SchemaError, match=r"missing \['x2'\], extra \[\]"):
        schema.encode(np.zeros((4, 2)))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([[1, 2], [3, 4]], "got builtins.list. Convert it first"),
        ({"a": [1, 2]}, "got builtins.dict"),
        (None, "got builtins.NoneType"),
        ("train.csv", "got builtins.str"),
        (sparse.csr_matrix(np.eye(3)), r"csr_matrix.*\.toarray\(\)"),
        (np.arange(3), r"got shape \(3,\). Reshape your data"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (pd.Series([1, 2]), r"got a Series.*frame\.iloc\[\[0\]\]"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        (pd.DataFrame({"a": [], "b": []}), r"0 sample\(s\) \(shape=\(0, 2\)\)"),
        (np.zeros((0, 2)), r"0 sample\(s\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"unique.*more than once: \['a'\]"),
        (pd.DataFrame({("a", "b"): [1], ("a", "c"): [2]}), "several levels of column names"),
        (pd.DataFrame([[1, 2]], columns=["a", None]), "Every column needs a name"),
    ],
)
def test_data_that_are_no_table_are_an_error_that_says_what_to_do(data, says):
    with pytest.raises(SchemaError, match=says):
        Schema.learn(data)


@pytest.mark.parametrize(
    ("immutable", "says"),
    [
        ("Age", r"got 'Age'. Write immutable=\['Age'\]"),
        (5, r"list of column names, got 5"),
        (["age", "Age"], r"not in the data: \['Age'\]. The columns are \['age', 'sex', 0\]"),
        ([["age"]], r"not in the data: \[\['age'\]\]"),
        ([False, True, True], r"not in the data: \[False, True, True\]"),
        (["age", "sex", 0], "All 3 columns are immutable"),
    ],
)
def test_an_immutable_that_cannot_be_is_an_error(immutable, says):
    train = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], 0: [1, 2]})

    with pytest.raises(SchemaError, match=says):
        Schema.learn(train, immutable=immutable)


def test_a_date_among_the_columns_is_only_found_by_itself():
    train = pd.DataFrame([[1, 2], [3, 4]], columns=DAYS[:2])

    with pytest.raises(SchemaError, match="not in the data"):
        Schema.learn(train, immutable=["2024-03-01"])
    assert Schema.learn(train, immutable=[DAYS[0]]).immutable.tolist() == [0]


@pytest.mark.parametrize("listed", [list, tuple, set, frozenset, pd.Index, pd.Series, np.array])
def test_immutables_may_be_listed_in_any_way_and_twice(listed):
    train = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"]})

    schema = Schema.learn(train, immutable=listed(["sex", "sex"]))

    assert schema.immutable.tolist() == [1]


def test_kinds_are_given_by_exact_name():
    train = pd.DataFrame({"zip": [7030, 1000], "zip+4": [1, 2]})

    schema = Schema.learn(train, kinds={"zip": "categorical"})

    assert [feature.kind for feature in schema.features] == ["categorical", "numeric"]


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        (["zip"], r"kinds must map.*got \['zip'\]"),
        ({"postcode": "categorical"}, r"not in the data: \['postcode'\]"),
        ({"zip": "category"}, r"kinds\['zip'\] must be.*got 'category'"),
        ({"zip": str}, r"kinds\['zip'\] must be"),
    ],
)
def test_kinds_that_cannot_be_are_an_error(kinds, says):
    with pytest.raises(SchemaError, match=says):
        Schema.learn(pd.DataFrame({"zip": [7030, 1000]}), kinds=kinds)


def test_a_person_with_an_unseen_immutable_value_is_flagged():
    train = training(["b", "c", "a"])
    people = pd.DataFrame({"column": ["a", "z"], "points": [2, 3]})

    result = explainer(immutable=["column"]).fit(train).explain(people)

    assert result.people["unseen_immutable"].tolist() == ["", "column"]
    assert result.frame["column"].tolist() == ["a", "z"]
