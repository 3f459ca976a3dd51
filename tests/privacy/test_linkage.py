"""Linkage: sizes of classes, and what an attacker can and cannot know."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mcce import ParameterError, metrics, privacy


def test_unique_quasi_identifiers_have_classes_of_nobody_or_one():
    training = pd.DataFrame({"income": np.arange(50.0), "debt": np.arange(50) % 7})
    released = pd.DataFrame({"income": np.arange(25, 75.0), "debt": 3})

    sizes = privacy.class_sizes(released, training, ["income"])

    assert set(sizes["k"]) == {0, 1}
    assert sizes["k"].sum() == 25
    assert sizes["homogeneous"].sum() == np.sum(training["debt"][25:] == 3)


def test_widening_everything_fits_everybody():
    training = pd.DataFrame({"income": np.arange(50.0), "job": ["a", "b"] * 25, "debt": 1})
    released = training.assign(job="b")[:5]
    known = {"income": np.inf, "job": np.inf}

    assert privacy.class_sizes(released, training, known)["k"].tolist() == [50] * 5
    assert privacy.class_sizes(released, training, {"income": 60.0})["k"].tolist() == [50] * 5
    assert privacy.class_sizes(released, training, {"income": 2})["k"].tolist() == [3, 4, 5, 5, 5]


def test_sizes_are_those_of_brute_force_with_missing_cells():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.choice([20.0, 30.0, 40.0, np.nan], 80),
            "job": rng.choice(["a", "b", None], 80),
            "sum": rng.integers(0, 3, 80),
        }
    )
    training, released = people[:50], people[50:]

    sizes = privacy.class_sizes(released, training, {"age": 10, "job": 0})

    for row, (_, found) in zip(released.itertuples(), sizes.iterrows(), strict=True):
        near = (training["age"] - row.age).abs() <= 10
        near |= training["age"].isna() & np.isnan(row.age)
        same = training["job"].isna() if pd.isna(row.job) else training["job"] == row.job
        fits = training[near & same]
        assert found["k"] == len(fits)
        assert found["homogeneous"] == (len(fits) > 0 and (fits["sum"] == row.sum).all())
    assert sizes.index.equals(released.index)


def test_immutable_features_are_left_out_with_the_reason():
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 70, 90), "job": ["a", "b", "c"] * 30})
    parts = people[:30], people[30:60], people[60:]

    found = privacy.audit_rows(
        parts[2], *parts, immutable=["age"], quasi_identifiers=["age", "job"]
    )

    assert found.quasi_identifiers == ("job",)
    assert "nobody can change it" in found.excluded["age"]
    assert found["linkage_unique"].value == 0
    assert found["linkage_small"].value == 0
    assert "linkage_homogeneous" not in found.to_frame().index


def test_linkage_has_its_null():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.integers(0, 12, (600, 3)), columns=["a", "b", "c"])
    training, holdout, reference = people[:200], people[200:400], people[400:]
    known = {"quasi_identifiers": ["a", "b"], "private": ["c"]}

    fresh = privacy.audit_rows(reference, training, holdout, reference, **known)
    copied = privacy.audit_rows(training, training, holdout, reference, **known)

    sizes = privacy.class_sizes(reference, training, ["a", "b"], private=["c"])
    assert fresh["linkage_unique"].value == (sizes["k"] == 1).mean()
    assert fresh["linkage_small"].value == sizes["k"].between(1, 9).mean()
    assert fresh["linkage_homogeneous"].value == sizes["homogeneous"].mean()
    assert fresh["linkage_unique"].null == pytest.approx(fresh["linkage_unique"].value, abs=0.1)
    assert copied["linkage_homogeneous"].finding == "leak"
    assert copied["linkage_homogeneous"].value > 4 * copied["linkage_homogeneous"].null


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (
            ["absent"],
            "quasi_identifiers names columns that are not in the training data: .'absent'",
        ),
        ([], "No quasi-identifier is left: none was named"),
        (["age"], "No quasi-identifier is left: .'age'. cannot change"),
        ({"income": -1}, "The width of 'income' must be a number >= 0, got -1"),
        ({"job": 2}, "The width of 'job', a category, must be 0 or infinity, got 2"),
    ],
)
def test_wrong_quasi_identifiers_are_named(known, words):
    training = pd.DataFrame({"age": range(4), "income": range(4), "job": list("abcd")})
    evaluator = metrics.Evaluator.fit(training, immutable=["age"])

    with pytest.raises(ParameterError, match=words):
        privacy.class_sizes(training, evaluator, known)


def test_unknown_private_columns_are_named():
    training = pd.DataFrame({"income": range(4), "job": list("abcd")})

    with pytest.raises(ParameterError, match="private names columns"):
        privacy.class_sizes(training, training, ["job"], private=["absent"])
