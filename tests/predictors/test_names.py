"""Which columns a predictor knows, and what happens with the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mcce
from mcce import MCCE, PredictorError, SchemaError
from mcce.predictors.adapters import known_columns

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "region": RNG.choice(["north", "south"], 60),
        "salary": RNG.normal(50, 9, 60),
        "my debt": RNG.normal(5, 2, 60),
    }
)
KNOWN = ["my debt", "salary"]
TARGET = (TABLE["salary"] + RNG.normal(0, 3, 60) > 50).astype(int)


def pipeline():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(TABLE[KNOWN], TARGET)


def by_name():
    columns = ColumnTransformer([("numbers", StandardScaler(), KNOWN)])
    return make_pipeline(columns, LogisticRegression()).fit(TABLE, TARGET)


def lightgbm_model(native):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=9, min_child_samples=5, verbose=-1)
    fitted = model.fit(TABLE[KNOWN], TARGET)
    return fitted.booster_ if native else fitted


def xgboost_model(native):
    xgboost = pytest.importorskip("xgboost")
    fitted = xgboost.XGBClassifier(n_estimators=9).fit(TABLE[KNOWN], TARGET)
    return fitted.get_booster() if native else fitted


def catboost_model():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=9, verbose=0, allow_writing_files=False)
    return model.fit(TABLE[KNOWN], TARGET)


MODELS = {
    "pipeline": pipeline,
    "LGBMClassifier": lambda: lightgbm_model(native=False),
    "lightgbm.Booster": lambda: lightgbm_model(native=True),
    "XGBClassifier": lambda: xgboost_model(native=False),
    "xgboost.Booster": lambda: xgboost_model(native=True),
    "CatBoostClassifier": catboost_model,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_mutable_column_that_the_predictor_does_not_know_is_an_error(name):
    explainer = MCCE(MODELS[name](), immutable=["my debt"], random_state=0)

    with pytest.raises(SchemaError, match=r"trained without the columns \['region'\].*immutable"):
        explainer.fit(TABLE)


@pytest.mark.parametrize("name", MODELS)
def test_an_immutable_column_that_the_predictor_does_not_know_conditions_the_draws(name):
    model = MODELS[name]()
    explainer = MCCE(model, immutable=["region"], random_state=0).fit(TABLE)

    result = explainer.explain(TABLE)

    assert len(result.frame) > 5
    assert result.frame.columns.tolist() == TABLE.columns.tolist()
    if hasattr(model, "predict_proba"):
        assert (model.predict_proba(result.frame[KNOWN])[:, 1] >= 0.5).all()


def test_such_an_explainer_is_saved_and_loaded(tmp_path):
    model = pipeline()
    explainer = MCCE(model, immutable=["region"], random_state=0).fit(TABLE)

    explainer.save(tmp_path / "loans.mcce")
    loaded = mcce.load(tmp_path / "loans.mcce", model)

    assert loaded.explain(TABLE).frame.equals(explainer.explain(TABLE).frame)


def test_relax_does_not_lift_a_column_that_the_predictor_does_not_know():
    explainer = MCCE(pipeline(), immutable=["region", "salary"], random_state=0).fit(TABLE)

    table = explainer.relax(TABLE, TABLE)

    assert set(table["lifted"]) == {"salary"}


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_names_are_known_in_other_kinds_of_frames(kind):
    pytest.importorskip(kind)
    if kind == "polars":
        import polars

        rows = polars.from_pandas(TABLE)
    else:
        import pyarrow

        rows = pyarrow.Table.from_pandas(TABLE)

    with pytest.raises(SchemaError, match=r"trained without the columns \['region'\]"):
        MCCE(pipeline(), random_state=0).fit(rows)


def test_columns_that_the_data_lack_are_named_at_fit():
    with pytest.raises(PredictorError, match=r"columns that the data lack: \['my debt'\]"):
        MCCE(pipeline(), random_state=0).fit(TABLE[["salary"]])


def test_a_column_that_the_predictor_was_trained_on_but_drops_may_be_absent():
    result = MCCE(by_name(), random_state=0).fit(TABLE[KNOWN]).explain(TABLE[KNOWN])

    assert len(result.frame) > 5


def test_a_predictor_without_names_gets_every_column():
    seen = []

    def score(frame):
        seen.append(list(frame.columns))
        return frame["salary"] / 100

    MCCE(score, (0.5, 1.0), random_state=0).fit(TABLE)

    assert seen == [TABLE.columns.tolist()]


def test_arrays_have_no_names_to_compare():
    model = LogisticRegression().fit(TABLE[KNOWN].to_numpy(), TARGET)

    assert known_columns(model) is None
    assert MCCE(model, random_state=0).fit(TABLE[KNOWN].to_numpy()).decision_.names is None
