"""Frames of every kind: what goes in comes out, and the answers do not depend on the kind."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from kinds import KINDS, SIZES, cells, pa, pl, records, scores, take, types_of
from mcce import MCCE
from searches import bounded


class Picky(BaseEstimator):
    """Refuses any other kind of frame than the one it was trained on."""

    def fit(self, data: Any) -> Any:
        self.kind_, self.types_ = type(data), types_of(data)
        self.is_fitted_ = True
        return self

    def scores(self, data: Any) -> np.ndarray:
        assert type(data) is self.kind_
        assert types_of(data) == self.types_
        return scores(data)


class Binary(ClassifierMixin, Picky):
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, data: Any) -> np.ndarray:
        yes = self.scores(data)
        return np.column_stack([1 - yes, yes])


class Multiclass(ClassifierMixin, Picky):
    classes_ = np.array(["high", "low", "mid"])

    def predict(self, data: Any) -> np.ndarray:
        return np.array(["low", "mid", "high"])[(3 * self.scores(data)).astype(int)]


class Amount(RegressorMixin, Picky):
    def predict(self, data: Any) -> np.ndarray:
        return 1000 * self.scores(data)


TASKS = {
    "binary": (Binary, (0.6, 1.0)),
    "multiclass": (Multiclass, ["high", "mid"]),
    "regression": (Amount, (600, 900)),
}


def fitted(kind: str, task: str, **settings: Any) -> MCCE:
    train = KINDS[kind]()
    predictor, desired = TASKS[task]
    settings = {"immutable": ["age", "member"], "n_samples": 60, "random_state": 0} | settings
    return MCCE(predictor().fit(train), desired, **settings).fit(train)


def people(kind: str) -> Any:
    return take(KINDS[kind](), 30, 70)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_those_of_any_other_kind_and_come_in_their_own(kind, task):
    given = people(kind)

    result = fitted(kind, task, n_counterfactuals=2).explain(given)

    reference = fitted("pandas", task, n_counterfactuals=2).explain(people("pandas"))
    assert type(result.frame) is type(given)
    for rows in (result.frame, result.factuals, result.nearest_misses):
        assert types_of(rows) == types_of(given)
    assert records(result.factuals) == records(given)
    assert records(result.frame) == records(reference.frame)
    assert len(result.frame) > 20
    assert any(cell is None for row in records(result.frame) for cell in row.values())
    plain = result.to_pandas()
    pd.testing.assert_frame_equal(plain.measures, reference.measures, check_exact=True)
    pd.testing.assert_frame_equal(plain.people, reference.people, check_exact=True)
    assert repr(result) == repr(reference)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_may_not_change_and_cells_that_did_not_are_as_they_came(kind):
    given = people(kind)

    result = fitted(kind, "binary").explain(given)

    own, returned = records(given), records(result.frame)
    changed = result.to_pandas().measures["sparsity"].tolist()
    for owner, row, sparsity in zip(result.owner, returned, changed, strict=True):
        assert (row["age"], row["member"]) == (own[owner]["age"], own[owner]["member"])
        assert sum(row[name] != own[owner][name] for name in row) == sparsity


@pytest.mark.parametrize("brought", KINDS)
@pytest.mark.parametrize("trained", KINDS)
def test_people_may_come_in_another_kind_than_training(trained, brought):
    given = people(brought)

    # The predictor is Picky: it sees the training kind and types, or fails.
    if "pandas" in trained and "pandas" in brought:
        train = KINDS[trained]()
        explainer = MCCE(scores, (0.6, 1.0), immutable=["age", "member"], n_samples=60)
        result = explainer.set_params(random_state=0).fit(train).explain(given)
    else:
        result = fitted(trained, "binary").explain(given)

    reference = fitted("pandas", "binary").explain(people("pandas"))
    assert records(result.frame) == records(reference.frame)
    assert type(result.frame) is type(given)
    if "pandas" not in trained or "pandas" not in brought:
        assert types_of(result.frame) == types_of(given)


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("kind", [*KINDS, "numpy"])
def test_numbers_give_the_same_answers_in_an_array(kind):
    columns = {name: [-1 if x is None else x for x in cells()[name]] for name in ("age", "income")}
    plain = pd.DataFrame(columns, dtype="float64")
    makers = {
        "pandas": lambda: plain,
        "pandas nullable": lambda: plain.astype("Float64"),
        "pandas in Arrow": lambda: plain.astype(pd.ArrowDtype(pa.float64())),
        "polars": lambda: pl.DataFrame(columns, schema_overrides={"age": pl.Float64}),
        "pyarrow": lambda: pa.table({name: pa.array(plain[name]) for name in plain}),
        "numpy": plain.to_numpy,
    }
    data = makers[kind]()

    def score(rows):
        as_frame = pd.DataFrame(rows, columns=["age", "income"]) if kind == "numpy" else rows
        assert type(rows) is type(data)
        return scores(as_frame)

    names = ["age", "income"] if kind == "numpy" else None
    explainer = MCCE(score, (0.6, 1.0), immutable=["age"], n_samples=60, random_state=0)
    result = explainer.fit(data, feature_names=names).explain(data[:20])

    reference = MCCE(scores, (0.6, 1.0), immutable=["age"], n_samples=60, random_state=0)
    expected = reference.fit(plain).explain(plain[:20])
    assert records(result.frame) == records(expected.frame)
    assert len(expected.frame) > 5


def test_a_pipeline_trained_on_polars_explains_polars_as_one_on_pandas_explains_pandas():
    answer = scores(KINDS["pandas"]()) > 0.5
    results = {}
    for kind in ("pandas", "polars"):
        train = KINDS[kind]()
        train = train.drop(columns="since") if kind == "pandas" else train.drop("since")
        levels = [["Bergen", "Moss", "Oslo", "Å"], SIZES[:3], [False, True]]
        encode = OrdinalEncoder(
            categories=levels, handle_unknown="use_encoded_value", unknown_value=-1
        )
        transform = make_column_transformer(
            (encode, ["city", "size", "member"]), remainder="passthrough"
        )
        pipeline = make_pipeline(transform, HistGradientBoostingClassifier(max_iter=20))
        pipeline.fit(train, answer)
        results[kind] = MCCE(pipeline, n_samples=60, random_state=0).fit(train).explain(train[:30])
        valid = pipeline.predict(results[kind].frame)
        assert valid.all()

    assert records(results["polars"].frame) == records(results["pandas"].frame)


def test_tables_about_the_answers_have_their_labels_as_columns():
    train = KINDS["polars"]()
    explainer = fitted("polars", "binary", n_counterfactuals=2, search=bounded(max_sparsity=1))
    given = train[30:70]

    with pytest.warns(UserWarning, match="no counterfactual"):
        result = explainer.explain(given)

    plain = result.to_pandas()
    assert result.measures.columns == ["factual", "rank", "score", "sparsity", "gower", "l1"]
    assert result.measures["factual"].to_list() == result.owner.tolist()
    assert len(result.measures) == len(result.frame)
    assert result.people["factual"].to_list() == list(range(40))
    assert result.missing["factual"].to_list() == plain.missing.index.tolist()
    nearest = result.people.filter(pl.col("nearest_score").is_not_null())
    assert nearest["factual"].to_list() == plain.nearest_misses.index.tolist()
    assert len(nearest) == len(result.nearest_misses) > 0
    assert result.summary()["n_factuals"].to_list() == [40]
    assert len(result.changes()) == result.measures["sparsity"].sum()


def test_changes_are_reported_as_texts_where_a_column_has_one_type():
    changes = fitted("polars", "binary").explain(people("polars")).changes()

    reference = fitted("pandas in Arrow", "binary").explain(people("pandas in Arrow")).changes()
    assert changes.columns == ["factual", "rank", "feature", "before", "after", "kind"]
    assert changes.dtypes[2:] == [pl.String] * 4
    for name in ("before", "after"):
        expected = [None if pd.isna(cell) else str(cell) for cell in reference[name]]
        assert changes[name].to_list() == expected


def test_nobody_in_polars_is_an_empty_result_of_the_same_types():
    explainer = fitted("polars", "binary")

    nobody, somebody = explainer.explain(people("polars")[:0]), explainer.explain(people("polars"))

    for name in ("frame", "factuals", "nearest_misses", "measures", "people"):
        assert getattr(nobody, name).schema == getattr(somebody, name).schema
        assert len(getattr(nobody, name)) == 0
    assert nobody.changes().columns == somebody.changes().columns


def test_columns_come_back_in_the_order_in_which_they_came():
    given = people("polars")
    turned = given.select(reversed(given.columns))
    explainer = fitted("polars", "binary")

    result = explainer.explain(turned)

    assert result.frame.columns == turned.columns
    assert result.frame.select(given.columns).equals(explainer.explain(given).frame)


@pytest.mark.parametrize("kind", KINDS)
def test_an_explainer_for_any_kind_survives_a_pickle(kind):
    explainer = MCCE(scores, (0.6, 1.0), n_samples=60, random_state=0).fit(KINDS[kind]())
    given = people(kind)

    copy = pickle.loads(pickle.dumps(explainer))

    assert records(copy.explain(given).frame) == records(explainer.explain(given).frame)
    assert types_of(copy.explain(given).frame) == types_of(given)


@pytest.mark.parametrize("kind", KINDS)
def test_log_likelihood_reads_every_kind(kind):
    likelihood = fitted(kind, "binary").log_likelihood(people(kind))

    expected = fitted("pandas", "binary").log_likelihood(people("pandas"))
    assert np.array_equal(likelihood, expected)
