"""Parameters of MCCE: each error names the parameter, what was passed and what to do."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from mcce import (
    MCCE,
    ExactSearch,
    Gower,
    Interval,
    McceError,
    NotFittedError,
    ParameterError,
    Search,
    TreeChain,
)

TRAIN = pd.DataFrame({"points": np.arange(12), "age": [30, 40, 50] * 4})


def score(frame):
    return frame["points"] / 12


def explainer(**settings) -> MCCE:
    return MCCE(score, (0.5, 1.0), **({"n_samples": 20, "random_state": 0} | settings))


class Nameless:
    """Can be fitted and called, but has no name."""

    def fit(self, schema, rows, is_desired):
        return self

    def __call__(self, candidates):
        return np.zeros(candidates.shape)


WRONG = [
    ("n_samples", 0, "whole number from 1 to 2147483647, got 0"),
    ("n_samples", 10.0, "got 10.0"),
    ("n_samples", True, "got True"),
    ("n_samples", "10", "got '10'"),
    ("n_samples", 2**40, "got 1099511627776"),
    ("n_counterfactuals", 0, "whole number from 1"),
    ("n_counterfactuals", "all", "got 'all'"),
    ("diversity", -0.1, "None or a number from 0 to 1, got -0.1"),
    ("diversity", 1.5, "got 1.5"),
    ("diversity", math.nan, "got nan"),
    ("diversity", True, "got True"),
    ("memory", 0, "finite number of megabytes > 0, got 0"),
    ("memory", math.inf, "got inf"),
    ("memory", "1GB", "got '1GB'"),
    ("random_state", -1, "whole number from 0 to 18446744073709551615, got -1"),
    ("random_state", 2**64, "got 18446744073709551616"),
    ("random_state", np.random.RandomState(0), "got RandomState"),
    ("distance", "foo", r"one of \['gower', .* or an object.*got 'foo'"),
    ("distance", Gower, r"the class Gower. Pass an instance: distance=Gower\(\)"),
    ("distance", Nameless(), "an object with name, fit and __call__"),
    ("distance", None, "got None"),
    ("generator", "foo", r"one of \['trees', .*\] or an object with"),
    ("generator", TreeChain, r"the class TreeChain. Pass an instance: generator=TreeChain\(\)"),
    ("generator", object(), "an object with"),
    ("n_jobs", 0, "whole number other than 0, got 0. 1 uses one thread, -1 all cores"),
    ("n_jobs", 1.5, "got 1.5"),
    ("verbose", "yes", "True or False, got 'yes'"),
    ("verbose", -1, "got -1"),
]
WRONG_OF_SEARCH = [
    ("max_sparsity", -1, "whole number from 0"),
    ("max_sparsity", 2.0, "got 2.0"),
    ("max_distance", math.nan, "a number >= 0, got nan"),
    ("max_distance", "far", "got 'far'"),
    ("rank_by", "sparsity", "got 'sparsity'. The decisive key comes first"),
    ("rank_by", [], r"one of .*got \[\]"),
    ("rank_by", ["sparsity", "sparsity"], "one of"),
    ("rank_by", [["sparsity"]], "one of"),
    ("rank_by", None, "got None"),
    ("tolerance", -1, "a finite number >= 0, got -1"),
    ("tolerance", math.inf, "got inf"),
    ("min_plausibility", "low", "got 'low'"),
    ("extra_changes", 0.5, "got 0.5"),
    ("margin", True, "a finite number >= 0, got True"),
    ("margin", "0.1", "got '0.1'"),
    ("copies", True, 'one of .*"never".*got True'),
    ("copies", ["never"], r"got \['never'\]"),
    ("consequences", pd.NA, "one of"),
    ("consequences", np.array([1, 2]), "one of"),
]


def test_a_parameter_that_cannot_work_is_an_error_that_names_it():
    for name, value, says in WRONG:
        with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
            explainer(**{name: value}).fit(TRAIN)


def test_a_parameter_of_a_search_that_cannot_work_is_an_error_that_names_it():
    for name, value, says in WRONG_OF_SEARCH:
        with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
            Search("paper", **{name: value})
        if name in ExactSearch.__dataclass_fields__:
            with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
                ExactSearch(**{name: value})


def test_what_a_search_looks_for_is_no_parameter_of_the_explainer():
    for name in ("max_sparsity", "max_distance", "rank_by", "max_samples", "tolerance"):
        with pytest.raises(TypeError, match=name):
            explainer(**{name: None})
        with pytest.raises(ValueError, match=name):
            explainer().set_params(**{name: None})
    for name in ("rank_by", "tolerance"):
        with pytest.raises(TypeError, match=name):
            ExactSearch(**{name: getattr(Search("paper"), name)})


def test_a_wrong_parameter_raises_before_the_predictor_is_called():
    def untouchable(frame):
        raise AssertionError("asked before the parameters were checked")

    for name, value in [("n_jobs", 0), ("generator", "foo"), ("distance", "foo")]:
        with pytest.raises(ParameterError, match=name):
            MCCE(untouchable, (0.5, 1.0), **{name: value}).fit(TRAIN)
    for name in ("immutable", "kinds", "score_class", "predictor"):
        with pytest.raises(McceError):
            explainer().set_params(**{name: np.array(3)}).fit(TRAIN)


def test_parameters_set_between_fit_and_explain_are_checked_too():
    for name, value in [("n_samples", 0), ("search", "best"), ("memory", 0)]:
        model = explainer().fit(TRAIN)

        with pytest.raises(ParameterError, match=name):
            model.set_params(**{name: value}).explain(TRAIN.head(1))
    with pytest.raises(ParameterError, match="callback must be None or a function, got 5"):
        explainer().fit(TRAIN).explain(TRAIN.head(1), callback=5)


SENSIBLE = [
    {"n_samples": np.int64(20), "random_state": np.uint64(3)},
    {"n_samples": np.int64(20), "search": {"max_samples": np.int64(5)}},
    {"search": {"max_sparsity": np.int8(2), "max_distance": math.inf}},
    {"search": {"max_distance": np.float32(1.0), "tolerance": 0}},
    {"search": {"rank_by": ("distance", "sparsity")}},
    {"search": {"copies": "last", "margin": np.float32(0.0)}},
    {"search": {"min_plausibility": np.float32(0.0), "extra_changes": np.int64(0)}},
    {"distance": Gower(), "generator": TreeChain(), "n_jobs": -1, "verbose": 1},
    {"random_state": 2**64 - 1, "memory": 1e-9},
    {"random_state": None, "n_jobs": 2},
    {"n_counterfactuals": 2**31 - 1, "diversity": 1},
    {"diversity": np.float32(0.5)},
]


def test_unusual_but_sensible_parameters_work():
    for settings in SENSIBLE:
        given = dict(settings)
        if "search" in given:
            given["search"] = Search("paper", **given["search"])

        result = explainer(**given).fit(TRAIN).explain(TRAIN.head(2))

        assert (result.people["status"] == "answered").all(), settings


def test_explaining_before_fitting_is_an_error():
    for method in (MCCE.explain, MCCE.log_likelihood):
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call fit"):
            method(explainer(), TRAIN)


def test_what_fit_built_on_cannot_be_changed_unnoticed():
    for name, value in [
        ("immutable", ["age"]),
        ("desired", (0.9, 1.0)),
        ("desired", Interval(0.9, 1.0)),
        ("kinds", {"age": "categorical"}),
        ("predictor", lambda frame: frame["age"]),
        ("random_state", 1),
        ("generator", TreeChain(max_depth=1)),
        ("score_class", 1),
    ]:
        model = explainer().fit(TRAIN).set_params(**{name: value})

        with pytest.raises(NotFittedError, match=f"{name} was changed after fit.*Fit again"):
            model.explain(TRAIN.head(1))


def test_setting_a_parameter_to_what_it_was_is_no_change_but_adding_to_a_list_is():
    immutable = []
    model = explainer(immutable=immutable).fit(TRAIN)

    model.set_params(desired=(0.5, 1.0), random_state=0)
    assert len(model.explain(TRAIN.head(1)).frame) == 1
    immutable.append("age")

    with pytest.raises(NotFittedError, match="immutable was changed"):
        model.explain(TRAIN.head(1))
