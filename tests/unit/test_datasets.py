"""Data sets that need no file but those of the package: German Credit and simulated rows."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, DatasetError, McceError, McceWarning, ParameterError
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
from tiny_sets import tiny, write


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)


def test_german_credit_is_the_file_its_card_describes():
    german = load_german_credit()
    content = files("mcce.datasets").joinpath("german_credit.csv.gz").read_bytes()

    assert hashlib.sha256(content).hexdigest() == german.card["sha256"]
    assert len(german.features) == len(german.target) == german.card["rows"]
    assert german.target.value_counts().to_dict() == german.card["target_counts"]
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


def test_the_paper_s_form_has_the_most_frequent_level_or_other():
    raw, paper = load("german", form="levels").features, load("german", form="paper").features

    assert list(paper.columns) == list(raw.columns)
    for name in raw.select_dtypes("category"):
        most = raw[name].value_counts().idxmax()
        assert set(paper[name].cat.categories) == {most, "other"}
        assert ((paper[name] == most) == (raw[name] == most)).all()
    numbers = raw.select_dtypes("number")
    pd.testing.assert_frame_equal(paper[numbers.columns], numbers)


def test_of_equally_frequent_levels_the_first_is_kept(tmp_path):
    write(tmp_path, "german", tiny("german", 2, Housing=["rent", "own"]))

    housing = load("german", form="paper", folder=tmp_path, verify=False).features["Housing"]

    assert housing.tolist() == ["other", "own"]


def test_sex_stands_for_the_combined_column_in_the_raw_form_only():
    raw, levels = load("german"), load("german", form="levels")

    assert "PersonalStatusSex" not in raw.features
    assert "Sex" not in levels.features
    assert raw.immutable == ["Purpose", "Age", "Sex"]
    assert levels.immutable == ["Purpose", "Age", "PersonalStatusSex"]
    women = levels.features["PersonalStatusSex"].str.startswith("female")
    assert ((raw.features["Sex"] == "female") == women).all()


def test_a_card_names_source_licence_columns_and_cautions():
    for name in NAMES:
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


def test_only_data_with_an_open_licence_are_in_the_package():
    inside = {path.name for path in files("mcce.datasets").iterdir()}
    licences = {name: card(name)["licence"] for name in NAMES}

    assert {name for name in inside if ".csv" in name} == {"german_credit.csv.gz"}
    assert [name for name in NAMES if "bundled" in card(name)] == ["german"]
    assert licences["german"] == licences["adult"] == "CC BY 4.0"
    assert all("no open licence" in licences[name] for name in ("gmc", "fico"))
    assert "wrong" in card("german")["caution"]


def test_a_card_is_the_user_s_own_copy():
    card("german")["rows"] = 0

    assert card("german")["rows"] == 1000
    assert json.loads(json.dumps(load("german").card)) == card("german")


def test_an_argument_that_cannot_work_is_named():
    for call, message in [
        (lambda: load("heloc"), r"name must be one of 'german', .*'fico', got 'heloc'"),
        (lambda: load(["german"]), r"name must be one of .* got \['german'\]"),
        (lambda: load("german", form="binary"), "form must be one of 'raw', 'levels', 'paper'"),
        (lambda: load("german", rows="quarter"), "rows must be one of 'all', got 'quarter'"),
        (lambda: load("german", folder=3), "folder must be a path or None, got 3"),
        (lambda: load("german", verify=1), "verify must be True or False, got 1"),
        (lambda: describe("credit"), "name must be one of"),
        (lambda: simulate(0, 5), "n_rows must be a whole number >= 1, got 0"),
        (lambda: simulate(5, 2.5), "n_features must be a whole number >= 1, got 2.5"),
        (lambda: simulate(5, 2, n_immutable=3), "n_immutable must be .* <= 2, got 3"),
        (lambda: simulate(5, 2, correlation=1.1), "correlation must be a number from 0 to 1"),
        (lambda: simulate(5, 2, seed=-1), "seed must be a whole number >= 0, got -1"),
        (lambda: simulate_like("iris"), "name must be one of"),
    ]:
        with pytest.raises(ParameterError, match=message):
            call()


def test_a_folder_that_the_environment_names_is_searched_first(tmp_path, monkeypatch):
    write(tmp_path, "german", tiny("german", 3), gz=False)
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))
    (tmp_path / "empty").mkdir()

    assert len(load("german", verify=False).features) == 3
    with pytest.raises(DatasetError, match=r"no german.csv.gz or german.csv in .* holds nothing"):
        load("german", folder=tmp_path / "empty")
    (tmp_path / "german.csv").unlink()
    assert len(load("german").features) == 1000
    monkeypatch.setenv("MCCE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"^MCCE_DATA must be a folder that holds data files"):
        load("german")


def test_other_cells_in_as_many_rows_are_noticed(tmp_path):
    german = load("german", form="levels")
    table = german.features.assign(Sex=load("german").features["Sex"], Risk=german.target)
    write(tmp_path, "german", table.sample(frac=1, random_state=0))
    load("german", folder=tmp_path)
    table.loc[700, "Age"] += 1
    write(tmp_path, "german", table)

    with pytest.warns(McceWarning, match="some cells differ"):
        load("german", folder=tmp_path)
    load("german", folder=tmp_path, verify=False)


def test_every_error_of_a_data_set_is_an_os_error_and_a_value_error_too():
    assert issubclass(DatasetError, McceError)
    assert issubclass(DatasetError, OSError)
    assert issubclass(DatasetError, ValueError)


def test_simulated_rows_have_the_paper_s_moments_and_sums_as_targets():
    rows = simulate(100_000, 4, seed=3)

    # Four standard errors of a mean, a variance and a correlation of so many rows.
    assert rows.features.mean().abs().max() < 4 / np.sqrt(100_000)
    wanted = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert np.abs(np.cov(rows.features, rowvar=False) - wanted).max() < 4 * np.sqrt(2 / 100_000)
    assert np.allclose(rows.target, rows.features.sum(axis=1), rtol=0, atol=1e-12)
    assert (total(rows.features) == rows.target).all()
    assert rows.desired.contains(rows.target.to_numpy()).mean() == pytest.approx(0.5, abs=0.01)
    assert not rows.desired.contains(np.array([0.0]))[0]


def test_seeds_give_the_same_rows_again_and_other_rows():
    first, again, other = (simulate(50, 3, seed=seed).features for seed in (1, 1, 2))

    pd.testing.assert_frame_equal(first, again)
    assert not np.isin(first, other).any()


def test_simulated_people_get_answers():
    train, people = simulate(500, 4, n_immutable=1), simulate(40, 4, seed=1)
    explainer = MCCE(total, train.desired, immutable=train.immutable, random_state=0)

    result = explainer.fit(train.features).explain(people.features[people.target <= 0])

    assert (total(result.frame) > 0).all()
    assert len(result.frame) > 0
    assert simulate_like("fico").features.shape == (10459, 23)
    assert simulate_like("adult").immutable == ["x0", "x1"]
