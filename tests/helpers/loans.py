"""A small table of loans for the tests of predictors, and what must be true of every answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Counterfactuals

N_TRAIN = 240
IMMUTABLE = ["sex", "age"]
JOBS = ["clerk", "farmer", "judge", "pilot"]
DESIRED = {"binary": "yes", "multiclass": ["fair", "good"], "regression": (0.55, 10.0)}


def other_kinds(frame: pd.DataFrame) -> list[Any]:
    """The frame in each other library of frames that is installed."""
    try:
        import polars
        import pyarrow
    except ImportError:
        return []
    plain = frame.reset_index(drop=True)
    return [polars.from_pandas(plain), pyarrow.Table.from_pandas(plain, preserve_index=False)]


def loans(*, gaps: bool = False, boxed: bool = False) -> pd.DataFrame:
    """Numbers, strings with a rare level, and booleans; optionally categories or missing cells.

    All numbers are exact in single precision.
    """
    chance = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": chance.integers(20, 60, N_TRAIN),
            "sex": chance.choice(["f", "m"], N_TRAIN),
            "job": chance.choice(JOBS, N_TRAIN, p=[0.5, 0.3, 0.19, 0.01]),
            "salary": chance.integers(8, 80, N_TRAIN) / 4,
            "owns": chance.random(N_TRAIN) < 0.4,
        }
    )
    frame.loc[3, "job"] = "pilot"
    if boxed:
        frame = frame.astype({"sex": "category", "job": "category"})
    if gaps:
        frame.loc[::9, "salary"] = np.nan
        frame.loc[4::11, "job"] = None
    return frame


def numbers() -> pd.DataFrame:
    """The columns that are numbers or booleans, and sex as one of them."""
    frame = loans().drop(columns="job")
    return frame.assign(sex=(frame["sex"] == "f").astype(float))


def merit(frame: pd.DataFrame) -> np.ndarray:
    """What the labels are made of: a number from 0 to 1 that every column has a part in."""
    job = frame["job"].isin(["judge", "pilot"]) if "job" in frame else frame["age"] > 40
    salary = frame["salary"].fillna(8.0)
    return (0.5 * salary / 20 + 0.25 * job + 0.15 * frame["owns"] + frame["age"] / 600).to_numpy()


def target(frame: pd.DataFrame, task: str) -> np.ndarray:
    """Merit itself, or its labels as strings."""
    if task == "regression":
        return merit(frame)
    if task == "binary":
        return np.where(merit(frame) > 0.5, "yes", "no")
    return np.array(["bad", "fair", "good"])[np.digitize(merit(frame), [0.35, 0.6])]


def numbered(frame: pd.DataFrame, task: str) -> np.ndarray:
    """The target with its labels as numbers in alphabetical order."""
    wanted = target(frame, task)
    return wanted if task == "regression" else np.unique(wanted, return_inverse=True)[1]


@cache
def boxed() -> pd.DataFrame:
    """Loans as boosters take them: categories, with missing cells. Nobody may change them."""
    return loans(gaps=True, boxed=True)


@cache
def xgboost_model():
    """A classifier of 0 and 1 on categories with missing cells."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    model = xgboost.XGBClassifier(n_estimators=10, enable_categorical=True, n_jobs=1)
    return model.fit(boxed(), numbered(boxed(), "binary"))


@cache
def lightgbm_model():
    """A classifier of 0 and 1 on categories with missing cells."""
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=3, verbose=-1, n_jobs=1)
    return model.fit(boxed(), numbered(boxed(), "binary"))


@cache
def catboost_model():
    """A classifier of 0 and 1 on categories without missing cells, which it would refuse."""
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    frame = loans(boxed=True)
    model = catboost.CatBoostClassifier(
        iterations=10, verbose=False, allow_writing_files=False, thread_count=1
    )
    return model.fit(frame, numbered(frame, "binary"), cat_features=["sex", "job"])


def explain(
    predictor: Any, desired: Any, frame: pd.DataFrame, people: pd.DataFrame, **settings: Any
):
    settings = {"search": "paper", "n_samples": 200, "random_state": 0} | settings
    explainer = MCCE(predictor, desired, immutable=IMMUTABLE, **settings)
    return explainer.fit(frame).explain(people)


def assert_answers_valid(
    predictor: Any,
    desired: Any,
    frame: pd.DataFrame,
    valid: Callable[[pd.DataFrame], Any],
    *,
    kinds: bool = True,
) -> Counterfactuals:
    """Explain some people and check the answers by ``valid``, which calls the raw library.

    ``kinds`` says whether they are explained again as other kinds of frames.
    """
    wanted = np.asarray(valid(frame), dtype=bool)
    people = frame[~wanted].head(8)

    settings = {"search": "paper", "n_samples": 200, "random_state": 0}
    explainer = MCCE(predictor, desired, immutable=IMMUTABLE, **settings)
    explainer.set_params(n_counterfactuals=2).fit(frame)
    result = explainer.explain(people)

    assert 0 < wanted.sum() < len(frame)
    assert (result.people["status"] == "answered").all()
    assert len(result.frame) > len(people)
    assert np.asarray(valid(result.frame), dtype=bool).all()
    own = people.loc[result.frame.index.get_level_values("factual")]
    for name in IMMUTABLE:
        pd.testing.assert_series_equal(
            result.frame[name].reset_index(drop=True),
            own[name].reset_index(drop=True),
            check_exact=True,
        )
    pd.testing.assert_series_equal(result.frame.dtypes, frame.dtypes)
    pairs = zip(other_kinds(people), other_kinds(result.frame), strict=True)
    for given, expected in pairs if kinds else ():
        other = explainer.explain(given)
        assert type(other.frame) is type(given)
        assert cells(other.frame) == cells(expected)
        assert other.to_pandas().measures["score"].tolist() == result.measures["score"].tolist()
    return result


def cells(frame: Any) -> list[dict[str, Any]]:
    """Rows of a frame of another kind as plain cells."""
    return frame.to_pylist() if hasattr(frame, "to_pylist") else frame.to_dicts()


def same(first: Counterfactuals, second: Counterfactuals) -> None:
    """The same counterfactuals, and the same scores up to single precision."""
    pd.testing.assert_frame_equal(first.frame, second.frame)
    np.testing.assert_allclose(first.measures["score"], second.measures["score"], atol=2e-6)
