"""What is true of the data sets without any file but those of the package."""

from __future__ import annotations

import doctest
import hashlib
import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ParameterError
from mcce.datasets import (
    NAMES,
    card,
    describe,
    load,
    load_german_credit,
    simulate,
    simulate_like,
    total,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)


def test_german_credit_is_the_file_its_card_describes():
    german = load_german_credit()
    content = files("mcce.datasets").joinpath("german_credit.csv.gz").read_bytes()

    assert hashlib.sha256(content).hexdigest() == german.card["sha256"]
    assert len(german.features) == len(german.target) == german.card["rows"]
    assert german.target.value_counts().to_dict() == german.card["target_counts"]


def test_german_credit_has_the_paper_s_features():
    german = load_german_credit()

    assert german.features.shape[1] == 20
    assert german.features.select_dtypes("number").shape[1] == 7
    assert set(german.immutable) <= set(german.features.columns)
    assert german.desired in set(german.target)


def test_categories_have_the_declared_levels_in_their_order():
    features = load("german").features

    declared = {c["name"]: c["levels"] for c in card("german")["columns"] if "levels" in c}
    for name in features.select_dtypes("category"):
        assert features[name].cat.categories.tolist() == declared[name] == sorted(declared[name])
        assert not features[name].cat.ordered
    assert features.select_dtypes(exclude=["category", "int64"]).empty


def test_the_paper_s_form_of_german_credit_has_the_most_frequent_level_or_other():
    raw, paper = load("german", form="levels").features, load("german", form="paper").features

    assert list(paper.columns) == list(raw.columns)
    for name in raw.select_dtypes("category"):
        most = raw[name].value_counts().idxmax()
        assert set(paper[name].cat.categories) == {most, "other"}
        assert ((paper[name] == most) == (raw[name] == most)).all()
    numbers = raw.select_dtypes("number")
    pd.testing.assert_frame_equal(paper[numbers.columns], numbers)


def test_sex_stands_for_the_combined_column_in_the_raw_form_only():
    raw, levels = load("german"), load("german", form="levels")

    assert "PersonalStatusSex" not in raw.features
    assert "Sex" not in levels.features
    assert raw.immutable == ["Purpose", "Age", "Sex"]
    assert levels.immutable == load("german", form="paper").immutable
    assert levels.immutable == ["Purpose", "Age", "PersonalStatusSex"]
    women = levels.features["PersonalStatusSex"].str.startswith("female")
    assert ((raw.features["Sex"] == "female") == women).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_card_names_source_licence_columns_and_cautions(name):
    of = card(name)

    assert all(of[key] for key in ("name", "summary", "attribution", "licence", "caution"))
    columns = {column["name"]: column for column in of["columns"]}
    assert sum(of["target_counts"].values()) == of["rows"] == of["selections"]["all"]["rows"]
    assert of["desired"] in columns[of["target"]]["levels"]
    assert {column["kind"] for column in of["columns"]} <= {"whole", "real", "category"}
    for form in of["forms"].values():
        assert form["rows"] in of["selections"]
        assert form["features"] == len(columns) - 1 - len(form.get("without", []))
        assert set(form["immutable"]) <= set(columns) - set(form.get("without", []))
    assert ("bundled" in of) == (name == "german")


def test_only_open_licences_are_said_to_be_open():
    licences = {name: card(name)["licence"] for name in NAMES}

    assert licences["german"] == licences["adult"] == "CC BY 4.0"
    assert all("no open licence" in licences[name] for name in ("gmc", "fico"))
    assert "10.24432/C5NC77" in card("german")["attribution"]
    assert "wrong" in card("german")["caution"]


def test_no_data_but_german_credit_are_in_the_package():
    inside = {path.name for path in files("mcce.datasets").iterdir()}

    assert {name for name in inside if ".csv" in name} == {"german_credit.csv.gz"}


def test_the_page_shows_the_cards_as_they_are_and_its_example_runs():
    page = PAGE.read_text(encoding="utf-8")

    start = page.index("## German Credit")
    assert page[start:] == "\n\n".join(map(describe, NAMES)) + "\n"
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.testfile(str(PAGE), module_relative=False, optionflags=flags).failed == 0


def test_a_card_is_the_user_s_own_copy():
    card("german")["rows"] = 0

    assert card("german")["rows"] == 1000
    assert json.loads(json.dumps(load("german").card)) == card("german")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load("heloc"), r"name must be one of 'german', .*'fico', got 'heloc'"),
        (lambda: load(["german"]), r"name must be one of .* got \['german'\]"),
        (lambda: load("german", form="binary"), "form must be one of 'raw', 'levels', 'paper'"),
        (lambda: load("german", form=None), "form must be one of .* got None"),
        (lambda: load("german", rows="quarter"), "rows must be one of 'all', got 'quarter'"),
        (lambda: load("german", folder=3), "folder must be a path or None, got 3"),
        (lambda: load("german", folder=""), "folder must be a path or None, got ''"),
        (lambda: load("german", verify=1), "verify must be True or False, got 1"),
        (lambda: describe("credit"), "name must be one of"),
        (lambda: simulate(0, 5), "n_rows must be a whole number >= 1, got 0"),
        (lambda: simulate(5, 2.5), "n_features must be a whole number >= 1, got 2.5"),
        (lambda: simulate(5, True), "n_features must be a whole number"),
        (lambda: simulate(5, 2, n_immutable=3), "n_immutable must be .* <= 2, got 3"),
        (lambda: simulate(5, 2, correlation=1.1), "correlation must be a number from 0 to 1"),
        (lambda: simulate(5, 2, seed=-1), "seed must be a whole number >= 0, got -1"),
        (lambda: simulate_like("iris"), "name must be one of"),
    ],
)
def test_an_argument_that_cannot_work_is_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_simulated_rows_have_the_paper_s_moments():
    rows = simulate(200_000, 4, seed=3).features

    # Four standard errors of a mean, a variance and a correlation of so many rows.
    assert rows.mean().abs().max() < 4 / np.sqrt(200_000)
    wanted = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert np.abs(np.cov(rows, rowvar=False) - wanted).max() < 4 * np.sqrt(2 / 200_000)


def test_simulated_targets_are_the_sums_and_half_are_desired():
    rows = simulate(10_000, 7, seed=1)

    assert np.allclose(rows.target, rows.features.sum(axis=1), rtol=0, atol=1e-12)
    assert (total(rows.features) == rows.target).all()
    assert rows.desired.contains(rows.target.to_numpy()).mean() == pytest.approx(0.5, abs=0.03)
    assert not rows.desired.contains(np.array([0.0]))[0]


def test_seeds_give_the_same_rows_again_and_other_rows():
    first, again, other = (simulate(50, 3, seed=seed).features for seed in (1, 1, 2))

    pd.testing.assert_frame_equal(first, again)
    assert not np.isin(first, other).any()


@pytest.mark.parametrize(
    ("name", "shape", "n_immutable"),
    [("adult", (48832, 13), 2), ("gmc", (120269, 10), 1), ("fico", (10459, 23), 1)],
)
def test_rows_that_mimic_a_data_set_have_its_size(name, shape, n_immutable):
    rows = simulate_like(name)

    assert rows.features.shape == shape
    assert rows.immutable == [f"x{i}" for i in range(n_immutable)]


def test_simulated_people_get_answers():
    train, people = simulate(500, 4, n_immutable=1), simulate(40, 4, seed=1)
    explainer = MCCE(total, train.desired, immutable=train.immutable, random_state=0)

    result = explainer.fit(train.features).explain(people.features[people.target <= 0])

    assert (total(result.frame) > 0).all()
    assert len(result.frame) > 0
