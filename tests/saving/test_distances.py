"""Distances in saved files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcce
from bank import bank, score
from mcce import HEOM, HVDM, IVDM, L1, MCCE, Gower, SavedFileError
from mcce.saving import archive
from searches import assert_same, explain

DISTANCES = [
    "gower",
    "l1",
    "heom",
    "hvdm",
    "ivdm",
    Gower(missing="ignore"),
    L1(missing="ignore"),
    HEOM(),
    HVDM(variant="N1", alpha=0.0, missing="ignore"),
    HVDM(alpha=0.5, variant="N3"),
    IVDM(n_bins=9, alpha=np.float64(2.0)),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "explainer.mcce"


def fit(distance, search="paper"):
    settings = {"immutable": ["age"], "n_samples": 60, "random_state": 0, "search": search}
    return MCCE(score, (0.8, 3.0), distance=distance, **settings).fit(bank(150, seed=1))


@pytest.mark.parametrize("distance", DISTANCES, ids=repr)
def test_a_loaded_explainer_measures_as_the_saved_one(path, distance):
    explainer, people = fit(distance), bank(30, seed=2)
    explainer.save(path)

    loaded = mcce.load(path, score)

    assert repr(loaded.distance) == repr(distance)
    assert_same(explain(loaded, people), explain(explainer, people))


def test_so_does_a_search_beyond_the_paper(path):
    explainer, people = fit("ivdm", "near"), bank(15, seed=2)
    explainer.save(path)

    assert_same(explain(mcce.load(path, score), people), explain(explainer, people))


def altered(path, change):
    """The file with what its distance learned changed."""
    document = archive.read(path, None)
    document["distance"] = change(document["distance"])
    archive.write(path, document, None)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda learned: None,
        lambda learned: {"shares": learned["shares"]},
        lambda learned: learned | {"more": np.ones(3)},
        lambda learned: learned | {"shares": learned["shares"][:-1]},
        lambda learned: learned | {"shares": learned["shares"].astype(np.float32)},
        lambda learned: learned | {"shares": learned["shares"] - 1},
        lambda learned: learned | {"shares": learned["shares"] + 1},
        lambda learned: learned | {"shares": learned["shares"] * np.nan},
        lambda learned: learned | {"spreads": -learned["spreads"]},
        lambda learned: learned | {"spreads": learned["spreads"] * 0},
        lambda learned: learned | {"spreads": learned["spreads"] + np.inf},
        lambda learned: learned | {"spreads": "no array"},
    ],
)
def test_what_no_distance_can_have_learned_is_refused(path, change):
    fit("hvdm").save(path)

    with pytest.raises(SavedFileError, match="distance"):
        mcce.load(altered(path, change), score)


def test_a_distance_that_learns_nothing_has_no_arrays(path):
    fit("gower").save(path)

    with pytest.raises(SavedFileError, match="its distance learned"):
        mcce.load(altered(path, lambda nothing: {"shares": np.ones((3, 2))}), score)


def test_a_parameter_that_no_distance_has_is_refused(path):
    fit(HVDM(alpha=0.5)).save(path)
    document = archive.read(path, None)
    document["parameters"]["distance"] = {"distance": ["hvdm", {"dict": [["alpha", -3]]}]}
    archive.write(path, document, None)

    with pytest.raises(SavedFileError):
        mcce.load(path, score)


def test_the_frame_of_answers_is_not_changed_by_a_round_trip_of_a_round_trip(path):
    fit("hvdm").save(path)
    first = mcce.load(path, score)
    first.save(path)

    people = bank(10, seed=3)

    pd.testing.assert_frame_equal(
        explain(mcce.load(path, score), people).frame, explain(first, people).frame
    )
