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
from searches import bounded

TRAIN = pd.DataFrame({"points": np.arange(12), "age": [30, 40, 50] * 4})


def score(frame):
    return frame["points"] / 12


def explainer(**settings) -> MCCE:
    return MCCE(score, (0.5, 1.0), **({"n_samples": 20, "random_state": 0} | settings))


class Nameless:
    """Can be fitted and called, but has no name."""

    def fit(self, schema, rows, decision):
        return self

    def __call__(self, candidates):
        return np.zeros(candidates.shape)


WRONG = [
    ("n_samples", 0, "whole number from 1 to 2147483647, got 0"),
    ("n_samples", -1, "got -1"),
    ("n_samples", 1.5, "got 1.5"),
    ("n_samples", 10.0, "got 10.0"),
    ("n_samples", True, "got True"),
    ("n_samples", "10", "got '10'"),
    ("n_samples", 2**40, "got 1099511627776"),
    ("n_counterfactuals", 0, "whole number from 1"),
    ("n_counterfactuals", "all", "got 'all'"),
    ("diversity", -0.1, "None or a number from 0 to 1, got -0.1"),
    ("diversity", 1.5, "got 1.5"),
    ("diversity", math.nan, "got nan"),
    ("diversity", "much", "got 'much'"),
    ("diversity", True, "got True"),
    ("memory", 0, "finite number of megabytes > 0, got 0"),
    ("memory", -5, "got -5"),
    ("memory", math.inf, "got inf"),
    ("memory", math.nan, "got nan"),
    ("memory", "1GB", "got '1GB'"),
    ("random_state", -1, "whole number from 0 to 18446744073709551615, got -1"),
    ("random_state", 1.5, "got 1.5"),
    ("random_state", 2**64, "got 18446744073709551616"),
    ("random_state", np.random.RandomState(0), r"got RandomState"),
    ("distance", "foo", r"one of \['gower', .* or an object.*got 'foo'"),
    ("distance", Gower, r"the class Gower. Pass an instance: distance=Gower\(\)"),
    ("distance", Nameless(), "an object with name, fit and __call__"),
    ("distance", None, "got None"),
    ("distance", len, "an object with name, fit"),
    ("generator", "foo", r"one of \[.*'trees'\] or an object with"),
    ("generator", object(), "an object with"),
    ("generator", TreeChain, r"the class TreeChain. Pass an instance: generator=TreeChain\(\)"),
    ("generator", None, "got None"),
    ("n_jobs", 0, "whole number other than 0, got 0. 1 uses one thread, -1 all cores"),
    ("n_jobs", "x", "got 'x'"),
    ("n_jobs", 1.5, "got 1.5"),
    ("n_jobs", True, "got True"),
    ("verbose", "yes", "True or False, got 'yes'"),
    ("verbose", None, "got None"),
    ("verbose", -1, "got -1"),
]


# Of a search.
WRONG_OF_SEARCH = [
    ("max_sparsity", -1, "whole number from 0"),
    ("max_sparsity", 2.0, "got 2.0"),
    ("max_distance", math.nan, "a number >= 0, got nan"),
    ("max_distance", -0.1, "got -0.1"),
    ("max_distance", "far", "got 'far'"),
    ("rank_by", "sparsity", r"got 'sparsity'. Write e.g. rank_by=\[\"distance\"\]"),
    ("rank_by", [], r"or both, most important first, got \[\]"),
    ("rank_by", ["x"], r"got \['x'\]"),
    ("rank_by", ["sparsity", "sparsity"], "or both"),
    ("rank_by", [["sparsity"]], "or both"),
    ("rank_by", None, "got None"),
    ("rank_by", 5, "got 5"),
    ("tolerance", -1, "a finite number >= 0, got -1"),
    ("tolerance", math.nan, "got nan"),
    ("tolerance", math.inf, "got inf"),
    ("tolerance", None, "got None"),
    ("allow_implausible", 2, "True or False, got 2"),
    ("allow_implausible", 1, "got 1"),
    ("keep_unseen", "no", "got 'no'"),
    ("back_off", 0, "True or False, got 0"),
    ("back_off", None, "got None"),
    ("margin", True, "a finite number >= 0, got True"),
    ("margin", np.bool_(True), "got np.True_"),
    ("margin", "0.1", "got '0.1'"),
    ("copies", True, "one of .*'never'.*got True"),
    ("copies", ["never"], r"got \['never'\]"),
]


@pytest.mark.parametrize(("name", "value", "says"), WRONG)
def test_a_parameter_that_cannot_work_is_an_error_that_names_it(name, value, says):
    with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
        explainer(**{name: value}).fit(TRAIN)


@pytest.mark.parametrize(("name", "value", "says"), WRONG_OF_SEARCH)
def test_a_parameter_of_a_search_that_cannot_work_is_an_error_that_names_it(name, value, says):
    with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
        Search.preset("paper", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [case for case in WRONG_OF_SEARCH if case[0] in ExactSearch.__dataclass_fields__],
)
def test_the_parameters_of_an_exact_search_are_checked_too(name, value, says):
    with pytest.raises(ParameterError, match=rf"{name} must .*{says}"):
        ExactSearch(**{name: value})


@pytest.mark.parametrize("name", ["rank_by", "tolerance"])
def test_an_exact_search_has_a_ranking_of_its_own(name):
    with pytest.raises(TypeError, match=name):
        ExactSearch(**{name: getattr(Search.preset("paper"), name)})


@pytest.mark.parametrize(
    "name", ["max_sparsity", "max_distance", "rank_by", "max_samples", "tolerance"]
)
def test_what_a_search_looks_for_is_no_parameter_of_the_explainer(name):
    with pytest.raises(TypeError, match=name):
        explainer(**{name: None})
    with pytest.raises(ValueError, match=name):
        explainer().set_params(**{name: None})


def test_a_wrong_parameter_raises_before_the_predictor_is_called():
    def untouchable(frame):
        raise AssertionError("asked before the parameters were checked")

    for name, value in [("n_jobs", 0), ("generator", "foo"), ("distance", "foo")]:
        with pytest.raises(ParameterError, match=name):
            MCCE(untouchable, (0.5, 1.0), **{name: value}).fit(TRAIN)


@pytest.mark.parametrize(("name", "value"), [("n_samples", 0), ("search", "best"), ("memory", 0)])
def test_parameters_set_between_fit_and_explain_are_checked_too(name, value):
    model = explainer().fit(TRAIN)

    with pytest.raises(ParameterError, match=name):
        model.set_params(**{name: value}).explain(TRAIN.head(1))


@pytest.mark.parametrize(
    "settings",
    [
        {"n_samples": np.int64(20), "random_state": np.uint64(3)},
        {"search": bounded(max_sparsity=np.int8(2))},
        {"search": bounded(max_distance=math.inf)},
        {"search": bounded(max_distance=np.float32(1.0), tolerance=0)},
        {"search": bounded(rank_by=["distance"])},
        {"search": bounded(rank_by=("distance", "sparsity"))},
        {"n_samples": None, "search": bounded(n_samples=np.int64(20), max_samples=np.int64(20))},
        {"distance": Gower()},
        {"generator": TreeChain()},
        {"n_jobs": 2},
        {"n_jobs": -1},
        {"verbose": 1},
        {"random_state": 2**64 - 1},
        {"random_state": None},
        {"memory": 1e-9},
        {"search": bounded(copies="last")},
        {"search": bounded(margin=np.float32(0.0))},
        {"search": bounded(keep_unseen=np.True_, back_off=np.False_)},
        {"n_counterfactuals": 2**31 - 1},
        {"n_counterfactuals": 2**31 - 1, "diversity": 1},
        {"diversity": np.float32(0.5)},
    ],
)
def test_unusual_but_sensible_parameters_work(settings):
    result = explainer(**settings).fit(TRAIN).explain(TRAIN.head(2))

    assert (result.people["status"] == "answered").all()


def test_the_bounds_themselves_are_kept():
    with pytest.warns(UserWarning, match="no counterfactual"):
        result = explainer(search=bounded(max_sparsity=0)).fit(TRAIN).explain(TRAIN.head(2))

    assert result.missing["reason"].str.contains("max_sparsity=0").all()


def test_explaining_before_fitting_is_an_error():
    for method in (MCCE.explain, MCCE.log_likelihood):
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call fit"):
            method(explainer(), TRAIN)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("immutable", ["age"]),
        ("desired", (0.9, 1.0)),
        ("desired", Interval(0.9, 1.0)),
        ("kinds", {"age": "categorical"}),
        ("predictor", lambda frame: frame["age"]),
        ("random_state", 1),
        ("generator", TreeChain(max_depth=1)),
        ("score_class", 1),
    ],
)
def test_what_fit_built_on_cannot_be_changed_unnoticed(name, value):
    model = explainer().fit(TRAIN).set_params(**{name: value})

    with pytest.raises(NotFittedError, match=f"{name} was changed after fit.*Fit again"):
        model.explain(TRAIN.head(1))


def test_an_immutable_added_to_the_list_after_fit_is_noticed():
    immutable = []
    model = explainer(immutable=immutable).fit(TRAIN)

    immutable.append("age")

    with pytest.raises(NotFittedError, match="immutable was changed"):
        model.explain(TRAIN.head(1))


def test_setting_a_parameter_to_what_it_was_is_no_change():
    model = explainer(immutable=["age"]).fit(TRAIN)

    model.set_params(immutable=["age"], desired=(0.5, 1.0), random_state=0)

    assert len(model.explain(TRAIN.head(1)).frame) == 1


def test_a_callback_must_be_a_function():
    with pytest.raises(ParameterError, match=r"callback must be None or a function, got 5"):
        explainer().fit(TRAIN).explain(TRAIN.head(1), callback=5)


def test_our_errors_are_the_builtin_ones_too():
    with pytest.raises(ValueError, match="n_samples") as caught:
        explainer(n_samples=0).fit(TRAIN)

    assert isinstance(caught.value, McceError)


@pytest.mark.parametrize("name", ["immutable", "kinds", "score_class", "predictor"])
def test_an_array_without_dimensions_is_refused_in_words(name):
    with pytest.raises(McceError):
        explainer().set_params(**{name: np.array(3)}).fit(TRAIN)


@pytest.mark.parametrize("value", [pd.NA, np.array([1, 2]), pd.Series([1, 2]), None])
def test_a_preference_that_is_no_name_is_refused_in_words(value):
    with pytest.raises(ParameterError, match="prefer must be one of"):
        Search(prefer=value)
