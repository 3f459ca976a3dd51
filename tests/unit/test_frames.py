"""Frames of every kind: what goes in comes out, and the answers do not depend on the kind."""

from __future__ import annotations

import datetime
import pickle
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from bank import EDUCATION, bank, score
from kinds import KINDS, START, pa, pl, records, scores, take, types_of
from mcce import MCCE, MissingExtraError, Schema, SchemaError, Search, load
from mcce import constraints as c


class Picky(BaseEstimator):
    """Refuses any other kind of frame than the one it was trained on."""

    def fit(self, data):
        self.kind_, self.types_ = type(data), types_of(data)
        return self

    def scores(self, data):
        assert type(data) is self.kind_
        assert types_of(data) == self.types_
        return scores(data)


class Binary(ClassifierMixin, Picky):
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, data):
        yes = self.scores(data)
        return np.column_stack([1 - yes, yes])


class Multiclass(ClassifierMixin, Picky):
    classes_ = np.array(["high", "low", "mid"])

    def predict(self, data):
        return np.array(["low", "mid", "high"])[(3 * self.scores(data)).astype(int)]


class Amount(RegressorMixin, Picky):
    def predict(self, data):
        return 1000 * self.scores(data)


TASKS = {
    "binary": (Binary, (0.6, 1.0)),
    "multiclass": (Multiclass, ["high", "mid"]),
    "regression": (Amount, (600, 900)),
}


def fit(kind, task="binary", **settings) -> MCCE:
    train = KINDS[kind]()
    predictor, desired = TASKS[task]
    settings = {
        "search": "paper",
        "immutable": ["age", "member"],
        "n_samples": 60,
        "random_state": 0,
    } | settings
    return MCCE(predictor().fit(train), desired, **settings).fit(train)


@cache
def fitted(kind, task="binary") -> MCCE:
    return fit(kind, task, n_counterfactuals=2)


def people(kind):
    return take(KINDS[kind](), 30, 60)


@cache
def answers_of_pandas(task="binary"):
    return fitted("pandas", task).explain(people("pandas"))


@pytest.mark.parametrize(
    ("kind", "task"),
    [(kind, "binary") for kind in KINDS] + [("polars", "multiclass"), ("pyarrow", "regression")],
)
def test_the_answers_are_those_of_any_other_kind_and_come_in_their_own(kind, task):
    given = people(kind)

    result = fitted(kind, task).explain(given)

    reference = answers_of_pandas(task)
    assert type(result.frame) is type(given)
    for rows in (result.frame, result.factuals, result.nearest_misses):
        assert types_of(rows) == types_of(given)
    assert records(result.factuals) == records(given)
    assert records(result.frame) == records(reference.frame)
    assert len(result.frame) > 10
    plain = result.to_pandas()
    pd.testing.assert_frame_equal(plain.measures, reference.measures, check_exact=True)
    pd.testing.assert_frame_equal(plain.people, reference.people, check_exact=True)
    assert repr(result) == repr(reference)
    own, sparsity = records(given), plain.measures["sparsity"].tolist()
    for owner, row, n_changes in zip(result.owner, records(result.frame), sparsity, strict=True):
        assert (row["age"], row["member"]) == (own[owner]["age"], own[owner]["member"])
        assert sum(row[name] != own[owner][name] for name in row) == n_changes


@pytest.mark.parametrize(
    ("trained", "brought"),
    [
        ("pandas", "polars"),
        ("polars", "pandas in Arrow"),
        ("pyarrow", "polars"),
        ("pandas nullable", "pyarrow"),
    ],
)
def test_people_may_come_in_another_kind_than_training(trained, brought):
    given = people(brought)

    # The predictor is Picky: it sees the training kind and types, or fails.
    result = fitted(trained).explain(given)

    assert records(result.frame) == records(answers_of_pandas().frame)
    assert type(result.frame) is type(given)
    assert types_of(result.frame) == types_of(given)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_an_explainer_for_another_kind_survives_a_pickle_and_measures_likelihood(kind):
    explainer = MCCE(scores, (0.6, 1.0), search="paper", n_samples=60, random_state=0).fit(
        KINDS[kind]()
    )
    given = people(kind)

    result = pickle.loads(pickle.dumps(explainer)).explain(given)

    assert records(result.frame) == records(explainer.explain(given).frame)
    assert types_of(result.frame) == types_of(given)
    expected = fitted("pandas").log_likelihood(people("pandas"))
    assert np.array_equal(fitted(kind).log_likelihood(given), expected)


def test_tables_about_the_answers_have_their_labels_as_columns():
    explainer = fit("polars", search=Search("paper", max_sparsity=1))

    with pytest.warns(UserWarning, match="no counterfactual"):
        result = explainer.explain(people("polars"))

    plain = result.to_pandas()
    measures = ["score", "sparsity", "gower", "l1"]
    measures += ["margin", "margin_steps", "robust", "margin_word"]
    assert result.measures.columns == ["factual", "rank", *measures]
    assert result.measures["factual"].to_list() == result.owner.tolist()
    assert result.people["factual"].to_list() == list(range(30))
    assert result.missing["factual"].to_list() == plain.missing.index.tolist()
    nearest = result.people.filter(pl.col("nearest_score").is_not_null())
    assert nearest["factual"].to_list() == plain.nearest_misses.index.tolist()
    assert len(nearest) == len(result.nearest_misses) > 0
    assert result.summary()["n_factuals"].to_list() == [30]


def test_changes_are_reported_as_texts_where_a_column_has_one_type():
    changes = fitted("polars").explain(people("polars")).changes()

    reference = fitted("pandas in Arrow").explain(people("pandas in Arrow")).changes()
    assert changes.columns == ["factual", "rank", "feature", "before", "after", "kind"]
    assert changes.dtypes[2:] == [pl.String] * 4
    for name in ("before", "after"):
        expected = [None if pd.isna(cell) else str(cell) for cell in reference[name]]
        assert changes[name].to_list() == expected


def test_nobody_in_polars_is_an_empty_result_of_the_same_types():
    explainer = fitted("polars")

    nobody, somebody = explainer.explain(people("polars")[:0]), explainer.explain(people("polars"))

    for name in ("frame", "factuals", "nearest_misses", "measures", "people"):
        assert getattr(nobody, name).schema == getattr(somebody, name).schema
        assert len(getattr(nobody, name)) == 0
    assert nobody.changes().columns == somebody.changes().columns


def test_columns_come_back_in_the_order_in_which_they_came():
    given = people("polars")
    turned = given.select(reversed(given.columns))

    result = fitted("polars").explain(turned)

    assert result.frame.columns == turned.columns
    assert records(result.frame.select(given.columns)) == records(answers_of_pandas().frame)


# Types that must survive, with cells to change to.
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(1)
POLARS = {
    "Int8": (pl.Int8, [1, 2]),
    "UInt64": (pl.UInt64, [2**64 - 1, 2**64 - 2]),
    "Float32": (pl.Float32, [0.1, float("nan")]),
    "Boolean": (pl.Boolean, [True, False]),
    "String": (pl.String, ["", "ø"]),
    "Categorical": (pl.Categorical, ["b", "a"]),
    "Enum": (pl.Enum(["b", "a", "never"]), ["b", "a"]),
    "Date": (pl.Date, [NOON.date(), (START - DAY).date()]),
    "Datetime": (pl.Datetime("ms"), [START, START + DAY]),
    "zone": (pl.Datetime("ns", "Europe/Oslo"), [NOON, NOON + DAY]),
    "Duration": (pl.Duration("us"), [DAY, 2 * DAY]),
    "Null": (pl.Null, [None, None]),
}
PYARROW = {
    "int16": (pa.int16(), [1, 2]),
    "uint64": (pa.uint64(), [2**64 - 1, 2**64 - 2]),
    "float": (pa.float32(), [0.1, float("nan")]),
    "bool": (pa.bool_(), [True, False]),
    "large": (pa.large_string(), ["", "ø"]),
    "texts": (pa.dictionary(pa.int8(), pa.string()), ["b", "a"]),
    "numbers": (pa.dictionary(pa.int64(), pa.int32()), [3, 1]),
    "date64": (pa.date64(), [NOON.date(), START.date()]),
    "seconds": (pa.timestamp("s"), [START, START + DAY]),
    "zone": (pa.timestamp("ns", "Europe/Oslo"), [NOON, NOON]),
    "duration": (pa.duration("ms"), [DAY, 2 * DAY]),
    "null": (pa.null(), [None, None]),
}


def points(data):
    return np.asarray(data["points"]) / 24


def explain_types(train, immutable):
    settings = {"immutable": immutable, "n_samples": 40, "random_state": 0}
    return MCCE(points, (0.5, 1), **settings).fit(train).explain(take(train, 0, 6))


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
def test_types_of_polars_come_back(immutable):
    for name, (kind, cells) in POLARS.items():
        column = pl.Series([*cells, None] * 8, dtype=kind)
        train = pl.DataFrame({"column": column, "points": range(24)})
        before = train.clone()

        result = explain_types(train, immutable)

        assert result.frame.schema == train.schema, name
        assert result.factuals.equals(before.head(6)), name
        assert train.equals(before), name
        assert not immutable or result.frame["column"].equals(before["column"].head(6)), name


@pytest.mark.parametrize("immutable", [[], ["column"]], ids=["mutable", "immutable"])
def test_types_of_pyarrow_come_back(immutable):
    for name, (kind, cells) in PYARROW.items():
        piece = pa.array([*cells, None], getattr(kind, "value_type", kind))
        if pa.types.is_dictionary(kind):
            levels = pa.array(cells, kind.value_type)
            piece = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], kind.index_type), levels)
        train = pa.table({"column": pa.chunked_array([piece] * 8), "points": list(range(24))})

        result = explain_types(train, immutable)

        assert result.frame.schema == train.schema, name
        # NaN equals nothing, so that cells are compared as they are written.
        own = str(take(train, 0, 6).to_pylist())
        assert str(result.factuals.to_pylist()) == own, name
        if immutable:
            returned = result.frame["column"].to_pylist()
            assert str(returned) == str(take(train, 0, 6)["column"].to_pylist()), name


def test_levels_that_no_row_has_stay_in_a_dictionary_and_numbers_of_levels_do_not_move():
    numbers, levels = pa.array([1, 2, None] * 8, pa.int8()), ["never", "b", "a"]
    column = pa.DictionaryArray.from_arrays(numbers, levels)
    train = pa.table({"column": column, "points": list(range(24))})
    seen = []

    def score(table):
        seen.append(table["column"].combine_chunks().dictionary.to_pylist())
        return points(table)

    result = (
        MCCE(score, (0.5, 1), search="paper", random_state=0).fit(train).explain(train.slice(0, 6))
    )

    assert result.frame["column"].combine_chunks().dictionary.to_pylist() == levels
    assert all(received == levels for received in seen)


def test_people_with_narrower_types_get_them_back_only_if_every_answer_fits():
    train = pl.DataFrame({"points": range(24), "size": [i % 3 for i in range(24)]})
    narrow = train.head(4).with_columns(pl.col("size").cast(pl.Int8))
    tight = narrow.with_columns(pl.col("points").cast(pl.Int8))
    wide = train.with_columns(pl.col("points") * 1000)
    explainer = MCCE(points, (0.5, 1), search="paper", random_state=0)

    fits = explainer.fit(train).explain(narrow).frame
    grows = explainer.set_params(desired=(500, 1000)).fit(wide).explain(tight).frame

    assert fits.schema == narrow.schema
    assert grows.schema == {"points": pl.Int64, "size": pl.Int8}


@pytest.mark.filterwarnings("ignore:.*look like codes")
def test_levels_too_many_for_the_numbers_of_a_dictionary_get_more_room():
    levels = [str(i) for i in range(300)]
    train = pa.table({"points": list(map(float, range(600))), "city": levels * 2})
    city = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int8()), ["z"])
    given = pa.table({"points": [1, 2, 3], "city": city})
    explainer = MCCE(
        lambda table: np.asarray(table["points"]) / 600, (0.99, 1), search="paper", random_state=0
    )

    result = explainer.fit(train).explain(given)

    assert pa.types.is_dictionary(result.frame.schema.field("city").type)
    assert set(result.frame["city"].to_pylist()) <= set(levels)


def test_a_category_takes_in_the_levels_of_the_answers_and_nothing_takes_any_type():
    train = pl.DataFrame({"points": range(24), "city": ["a", "b", "c"] * 8, "gap": [None] * 24})
    explainer = MCCE(points, (0.5, 1), immutable=["gap"], search="paper", random_state=0).fit(train)
    given = train.head(4).with_columns(pl.lit("z").cast(pl.Categorical).alias("city"))

    for cell in ("a", 3, START):
        result = explainer.explain(given.with_columns(gap=pl.lit(cell)))

        assert result.frame.schema["city"] == pl.Categorical
        assert set(result.frame["city"].to_list()) <= {"a", "b", "c"}
        assert set(result.frame["gap"].to_list()) == {cell}


def test_an_enum_is_ordered_and_a_category_is_not():
    train = KINDS["polars"]()
    loose = train.with_columns(pl.col("size").cast(pl.Categorical))

    assert Schema.learn(train).features[3].ordered
    assert not Schema.learn(loose).features[3].ordered


def test_whole_numbers_of_training_are_not_rounded_to_make_room_for_gaps():
    exact = [2**60 + 1, 2**60 + 3]
    train = pd.DataFrame({"points": range(24), "column": exact * 12})
    gap = pl.Series([None, None], dtype=pl.Int64)
    given = pl.DataFrame({"points": [1, 2], "column": gap})

    def score(frame):
        return frame["column"].isin(exact) * points(frame)

    result = MCCE(score, (0.5, 1), search="paper", random_state=0).fit(train).explain(given)

    assert set(result.frame["column"].to_list()) <= set(exact)
    assert result.frame.schema == given.schema


def test_a_predictor_trained_on_objects_receives_null_as_none():
    train = pd.DataFrame({"points": range(24), "city": pd.Series(["a", None] * 12, dtype=object)})
    received = []

    def score(frame):
        received.extend(frame["city"])
        return points(frame)

    MCCE(score, (0.5, 1), random_state=0).fit(train).explain(pl.from_pandas(train.head(4)))

    assert {cell if isinstance(cell, str) else type(cell) for cell in received} == {"a", type(None)}


class Wrapped:
    """As narwhals wraps frames."""

    def to_native(self): ...


NO_FRAMES = [
    (lambda: pl.LazyFrame({"a": [1]}), r"LazyFrame, whose rows are not.*\.collect"),
    (lambda: pl.Series([1, 2]), r"got a polars.*Series.*frame\[:1\]"),
    (lambda: pa.record_batch({"a": [1]}), "got a pyarrow.lib.RecordBatch"),
    (lambda: (i for i in range(3)), r"got builtins\.generator"),
    (lambda: Wrapped(), r"\.to_native\(\)"),
    (lambda: pl.DataFrame({"a": [1]}, schema={"a": pl.Int128}), "Column 'a' has type Int128"),
    (lambda: pa.table([[1], [2]], names=["a", "a"]), r"names must be unique.*\['a'\]"),
    (lambda: pl.DataFrame({"a": []}, schema={"a": pl.Int64}), r"0 sample\(s\)"),
    (lambda: pl.DataFrame(), r"0 feature\(s\)"),
    (lambda: pl.DataFrame({"a": [[1]]}), r"Column 'a' has type List, which"),
    (lambda: pl.DataFrame({"a": [b"1"]}), "Column 'a' has type Binary"),
    (lambda: pl.DataFrame({"a": [object()]}), "Column 'a' has type Object"),
    (lambda: pl.DataFrame({"a": [1]}, schema={"a": pl.Decimal(10, 2)}), "'a' has type Decimal"),
    (lambda: pa.table({"a": pa.array(np.zeros(1, np.float16))}), "'a' has type (halffl|Float16)"),
    (lambda: pa.table({"a": pa.array([b"1"]).dictionary_encode()}), "Column 'a' has type"),
    (
        lambda: pa.table({"a": pa.DictionaryArray.from_arrays([0, 1], ["x", "x"])}),
        "Column 'a' has type dictionary.*levels are not unique",
    ),
    (lambda: pl.DataFrame({"a": [float("inf")]}), "Column 'a' holds infinity in 1"),
]


def test_data_that_cannot_be_read_are_an_error_that_says_what_to_do():
    for make, says in NO_FRAMES:
        with pytest.raises(SchemaError, match=rf"(?s){says}"):
            Schema.learn(make())
    numbered = Schema.learn(pd.DataFrame(np.arange(8).reshape(4, 2), columns=[0, 1]))
    with pytest.raises(SchemaError, match=r"missing \[.*\], extra \['0', '1'\]"):
        numbered.encode(pl.DataFrame({"0": [1], "1": [2]}))


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtraError, match=r'needs pyarrow,.*pip install "\.\[frames\]"'):
        Schema.learn(pl.DataFrame({"a": [1]}))
    with pytest.raises(SchemaError, match=r"got builtins\.list"):
        Schema.learn([1, 2])


def test_a_frame_of_an_unsupported_library_is_refused():
    class Frame:
        def to_pandas(self): ...

    with pytest.raises(SchemaError, match=r"got a .*Frame. .*convert frames of other .*to_pandas"):
        Schema.learn(Frame())


def test_an_array_takes_names_at_fit_and_answers_as_a_frame():
    data = np.column_stack([np.arange(24.0), np.arange(24) % 2])
    frame = pd.DataFrame(data, columns=["points", "age"])
    settings = {"immutable": ["age"], "n_samples": 40, "random_state": 0}
    explainer = MCCE(lambda rows: rows[:, 0] / 24, (0.5, 1), **settings)

    result = explainer.fit(data, feature_names=["points", "age"]).explain(data[:3])

    assert explainer.feature_names_in_.tolist() == ["points", "age"]
    pd.testing.assert_frame_equal(explainer.explain(frame[:3]).frame, result.frame)
    of_frame = MCCE(points, (0.5, 1), **settings).fit(frame).explain(frame[:3])
    pd.testing.assert_frame_equal(of_frame.frame, result.frame)
    with pytest.raises(SchemaError, match=r"has 1 columns, but there are 2 names.*\['points'"):
        explainer.explain(data[:, :1])


def test_names_that_do_not_fit_an_array_are_an_error():
    array = np.zeros((3, 2))
    for data, names, says in [
        (array, ["a"], r"has 2 columns, but there are 1 names for them: \['a'\]"),
        (array, "ab", "feature_names must list one name per column, got 'ab'"),
        (array, 2, "feature_names must list one name per column, got 2"),
        (array, ["a", "a"], r"more than once: \['a'\]"),
        (array, ["a", None], "Every column needs a name"),
        (array, ["b", "a\ud800"], "half a surrogate pair"),
        (pd.DataFrame({"a": [1]}), ["b"], "a DataFrame with names of its own"),
    ]:
        with pytest.raises(SchemaError, match=says):
            MCCE(points, (0.5, 1)).fit(data, feature_names=names)


RULES = [
    c.only_up("education"),
    c.change("salary", at_most="30 %"),
    c.frozen("age", where="years > 15"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.step("years", 2),
]


def as_polars(frame):
    converted = frame.assign(education=frame["education"].astype(object)).astype(
        {"housing": object, "sex": object}
    )
    education = pl.Series("education", converted["education"].tolist(), dtype=pl.Enum(EDUCATION))
    others = pl.from_pandas(converted.drop(columns="education"))
    return others.with_columns(education).select(frame.columns.tolist())


def score_polars(frame):
    assert isinstance(frame, pl.DataFrame)
    converted = frame.to_pandas()
    texts = converted["education"].astype(str)
    return score(converted.assign(education=pd.Categorical(texts, EDUCATION, ordered=True)))


def in_polars(rules, predictor=score_polars, train=None):
    made = MCCE(predictor, (0.8, 10), immutable=["sex"], constraints=rules, random_state=0)
    return made.set_params(n_samples=100).fit(as_polars(bank(200)) if train is None else train)


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_constraints_and_saved_files_mean_the_same_in_polars(tmp_path):
    plain = bank(20, seed=1)
    explainer, people = in_polars(RULES), as_polars(plain)
    ours = explainer.explain(people)
    theirs = in_polars(RULES, score, bank(200)).explain(plain)

    explainer.save(tmp_path / "bank.mcce")
    again = load(tmp_path / "bank.mcce", score_polars).explain(people)

    assert records(ours.frame) == records(theirs.frame)
    assert ours.people["reason"].to_list() == theirs.people["reason"].tolist()
    assert again.frame.equals(ours.frame)
    assert again.frame.schema == people.schema


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_functions_of_users_and_further_tables_have_the_kind_of_training():
    seen = []

    def old(people):
        seen.append(type(people))
        return people["age"] > 40

    def sound(rows):
        seen.append(type(rows))
        return (rows["years"] <= rows["age"] - 16).to_numpy()

    rules = [c.frozen("salary", where=old), c.relation("sound", sound), c.max_changes(2)]
    explainer, people = in_polars(rules), as_polars(bank(10, seed=1))
    result = explainer.explain(people)

    lifted, firm = explainer.relax(people), explainer.robustness(result)
    ranges = explainer.ranges(result)

    assert set(seen) == {pl.DataFrame}
    assert (result.frame["years"] <= result.frame["age"] - 16).all()
    for table in (lifted, firm, ranges):
        assert isinstance(table, pl.DataFrame)
    assert len(firm) == len(result.frame)
    assert len(ranges) == len(result.changes())


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_dates_of_people_in_another_unit_are_as_far_away():
    chance = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(chance.integers(0, 400, 100), unit="D")
    train = pd.DataFrame({"since": days.astype("datetime64[ns]"), "x": chance.normal(size=100)})
    late = lambda frame: (frame["since"] > pd.Timestamp("2024-12-01")).to_numpy(dtype=float)
    explainer = MCCE(late, (1, 1), n_samples=100, random_state=0).fit(train)
    expected = explainer.explain(train.head(10)).measures

    for unit in ("s", "us"):
        people = train.head(10).astype({"since": f"datetime64[{unit}]"})
        far = explainer.explain(people)
        limited = explainer.explain(people, constraints=[c.change("since", at_most="300 days")])

        pd.testing.assert_frame_equal(far.measures, expected)
        before = people["since"].to_numpy()[limited.owner]
        assert (limited.frame["since"].to_numpy() - before <= np.timedelta64(300, "D")).all()
