"""What fit finds of columns without being told: identifiers, constants, the outcome."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, McceWarning


def people(n_rows, n_levels, dtype=object):
    names = pd.Series([f"person {row % n_levels}" for row in range(n_rows)], dtype=dtype)
    return pd.DataFrame({"name": names, "salary": np.arange(n_rows, dtype=float)})


def numbered(values, **more):
    return pd.DataFrame({"row": values, "salary": np.linspace(0, 1, len(values)) ** 2, **more})


def score(frame):
    return (frame["salary"] > frame["salary"].median()).to_numpy(dtype=float)


def fit(frame, **more):
    return MCCE(score, desired=(0.5, 1.0), **more).fit(frame)


@pytest.mark.parametrize("immutable", [[], ["name"]])
def test_a_column_with_a_level_per_row_is_named_without_its_levels(immutable):
    with pytest.warns(
        McceWarning, match=r"Almost every row has its own level in \['name'\]"
    ) as said:
        MCCE(score, desired=(0.5, 1.0), immutable=immutable).fit(people(200, 190))

    assert "person" not in str(said[0].message)
    assert said[0].filename == __file__


def test_mutable_row_numbers_are_noticed():
    for values in (
        np.arange(200),
        np.random.default_rng(0).permutation(300)[:200],
        np.arange(200)[::-1] * 1000,
        pd.array(np.arange(200), dtype="Int64"),
        np.repeat(np.arange(200), np.where(np.arange(200) == 7, 2, 1)),
    ):
        with pytest.warns(
            McceWarning, match=r"\['row'\] look like row numbers.*make them immutable"
        ):
            fit(numbered(values))


def test_mutable_constants_are_noticed_together_with_row_numbers():
    with pytest.warns(McceWarning, match="row numbers") as said:
        fit(numbered(np.arange(200), country="NO", unit=1.0))

    assert len(said) == 1
    assert "['country', 'unit'] have one value in all rows" in str(said[0].message)
    assert "NO'" not in str(said[0].message)


def test_other_columns_and_immutable_ones_are_left_in_peace():
    chance = np.random.default_rng(0)
    ordered = pd.CategoricalDtype([f"person {row}" for row in range(200)], ordered=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for frame in (
            people(200, 40),
            people(50, 50),
            people(200, 200, ordered),
            numbered(chance.normal(size=200)),
            numbered(np.arange(200) / 7),
            numbered(chance.integers(18, 90, 200)),
            numbered(chance.integers(500, 90_000, 200)),
        ):
            fit(frame)
        fit(numbered(np.arange(200), country="NO"), immutable=["row", "country"])


# ---------------------------------------------------------------------------------------------
# Roles.


def shop(n_rows=600, seed=0):
    """Two numbers that decide, one that follows neither, and a channel."""
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": chance.normal(50, 10, n_rows).round(1),
            "debt": chance.gamma(2.0, 10.0, n_rows).round(1),
            "shoes": chance.integers(35, 48, n_rows),
            "channel": chance.choice(["web", "shop", "phone"], n_rows),
        }
    )


def decide(frame):
    return frame["income"] - frame["debt"] + 5 * (frame["channel"] == "web")


def planted():
    """What is no action for anybody, by the role that it has."""
    chance = np.random.default_rng(1)
    names = np.array([f"K{at:05d}" for at in range(300)])
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.sort(chance.integers(0, 90, 600)), "D")
    columns = {
        "customer": names[chance.integers(0, 300, 600)],
        "entered": days,
        "batch": np.arange(600) // 6,
        "country": np.full(600, "NO"),
        "id": [f"{at:x}" for at in range(600)],
    }
    roles = dict.fromkeys(columns, "identifier") | {"country": "constant", "shoes": "ignored"}
    return shop().assign(**columns), roles


def found(explainer):
    table = explainer.flagged_columns_
    return dict(zip(table["column"], table["flag"], strict=True))


def fit_quietly(frame, y=None, predictor=decide, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"desired": (40.0, np.inf), "random_state": 0} | more
        return MCCE(predictor, **more).fit(frame, y)


def test_planted_roles_are_found_also_in_shuffled_rows_and_saved(tmp_path):
    frame, roles = planted()
    for rows in (frame, frame.sample(frac=1, random_state=0), frame.iloc[::-1]):
        explainer = fit_quietly(rows)
        assert found(explainer) == roles
    explainer.save(tmp_path / "shop.mcce")
    pd.testing.assert_frame_equal(
        mcce.load(tmp_path / "shop.mcce", decide).flagged_columns_, explainer.flagged_columns_
    )


def test_held_columns_stay_unless_the_user_names_them_or_the_search_is_the_paper_s():
    frame, roles = planted()
    people = frame[decide(frame) < 40].head(20)
    result = fit_quietly(frame).explain(people)
    assert len(result.frame) == 20
    assert not set(result.changes()["feature"]) & (set(roles) - {"shoes"})

    held = {"customer", "entered", "batch", "country", "id"}
    for settings, expected in (
        ({}, held),
        ({"mutable": ["income", "customer", "id"]}, set()),
        ({"constraints": [mcce.constraints.only_up("batch")]}, held - {"batch"}),
        ({"search": "paper"}, set()),
    ):
        constraints = fit_quietly(frame, **settings)._prepare(None)[2]
        assert constraints.frozen_for_everybody == expected


def test_columns_that_describe_rows_have_no_role():
    frame = shop()
    for sorted_by in ("income", "debt", "shoes"):
        rows = frame.sort_values(sorted_by, ignore_index=True)
        assert set(found(fit_quietly(rows))) <= {"shoes"}
        labels = (decide(rows) + np.random.default_rng(0).normal(0, 3, 600) > 40).to_numpy()
        assert set(found(fit_quietly(rows, labels))) <= {"shoes"}


@pytest.mark.parametrize("left", ["copy", "recoded", "threshold", "name", "number"])
def test_the_outcome_among_the_columns_is_named(left):
    frame = shop()
    labels = pd.Series(np.where(decide(frame) > 38, "good", "bad"), name="paid")
    if left == "number":
        labels = pd.Series(decide(frame).round(2), name="paid")
    column = {
        "copy": labels,
        "recoded": (labels == "good").astype(int),
        "threshold": decide(frame) * 3 + 1,
        "name": np.random.default_rng(0).permutation(labels),
        "number": decide(frame).round(2) * 2 + 5,
    }[left]
    name = "paid" if left == "name" else "left"
    with pytest.warns(
        McceWarning, match=f"'{name}' looks like the outcome: .*Leave it out"
    ) as said:
        explainer = MCCE(decide, (40.0, np.inf)).fit(frame.assign(**{name: column}), labels)
    assert said[0].filename == __file__
    assert found(explainer)[name] == "outcome"


def test_without_labels_only_a_column_that_is_no_input_can_be_the_outcome():
    frame = shop()
    accepted = (decide(frame) >= 40).astype(int)
    assert found(fit_quietly(frame.assign(paid=accepted)))["paid"] == "outcome"
    assert found(fit_quietly(frame.assign(paid=accepted), search="paper")) == {"paid": "outcome"}
    # A stump decides by one of its inputs, which another column may repeat in another unit.
    stump = fit_quietly(
        frame.assign(cents=frame["income"] * 100), predictor=lambda rows: rows["income"]
    )
    assert "outcome" not in found(stump).values()


def test_everybody_accepted_and_nobody_accepted_are_said_before_anything_is_searched():
    for desired, says in (((-999.0, 999.0), "Every"), ((500.0, 600.0), "No")):
        with pytest.warns(McceWarning, match=f"{says} training row has the desired decision"):
            MCCE(decide, desired, search="paper").fit(shop())
