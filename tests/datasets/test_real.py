"""The paper's data sets themselves, if they are next to the checkout."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce.datasets import NAMES, card, load

FORMS = [(name, form) for name in NAMES for form in card(name)["forms"]]
SELECTIONS = [(name, rows) for name in NAMES for rows in card(name)["selections"]]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_a_form_has_the_rows_features_and_levels_of_its_card(data_folder, name, form):
    data = load(name, form=form, folder=data_folder)

    expected = data.card["forms"][form]
    assert data.features.shape[1] == expected["features"]
    assert len(data.features) == data.card["selections"][expected["rows"]]["rows"]
    assert data.features.index.equals(data.target.index)
    assert data.immutable == expected["immutable"]
    n_levels = {data.features[c].nunique() for c in data.features.select_dtypes("category")}
    assert form != "paper" or n_levels <= {2}


@pytest.mark.parametrize(("name", "rows"), SELECTIONS)
def test_a_selection_has_as_many_rows_as_its_card_says(data_folder, name, rows):
    data = load(name, rows=rows, folder=data_folder)

    assert len(data.features) == data.card["selections"][rows]["rows"]


@pytest.mark.parametrize("name", NAMES)
def test_a_card_counts_missing_cells_and_every_declared_level_occurs(data_folder, name):
    table = load(name, folder=data_folder)

    rows = table.features.assign(**{table.card["target"]: table.target})
    for column in table.card["columns"]:
        if column["name"] in rows:
            cells = rows[column["name"]]
            assert cells.isna().sum() == column.get("n_missing", 0)
            assert "levels" not in column or set(cells) == set(column["levels"])


@pytest.mark.parametrize(
    ("name", "rows", "counts"),
    [
        ("adult", "worked", {"<=50K": 37145, ">50K": 11687}),
        ("gmc", "complete", {0: 111912, 1: 8357}),
        ("gmc", "filtered", {0: 107686, 1: 7841}),
        ("fico", "known", {"Bad": 5136, "Good": 4735}),
    ],
)
def test_a_selection_has_these_labels(data_folder, name, rows, counts):
    target = load(name, rows=rows, folder=data_folder).target

    assert target.value_counts().to_dict() == counts


@pytest.mark.slow
def test_the_listed_quarter_is_a_quarter_of_the_rows_without_outliers(data_folder):
    quarter = load("gmc", rows="quarter", folder=data_folder).features
    filtered = load("gmc", rows="filtered", folder=data_folder).features

    assert quarter.index.isin(filtered.index).all()
    assert len(quarter) == -(-len(filtered) // 4)
    pd.testing.assert_frame_equal(quarter, filtered.loc[quarter.index])


def test_german_credit_in_the_package_is_that_of_the_folder(data_folder):
    pd.testing.assert_frame_equal(
        load("german", folder=data_folder).features, load("german").features
    )


def test_the_paper_s_form_of_german_credit_is_the_authors(reference_folder):
    authors = pd.read_csv(reference_folder / "german" / "train.csv.gz", index_col="row")
    german = load("german", form="paper")

    assert (german.target == german.desired).astype(int).tolist() == authors.pop("good").tolist()
    for (name, ours), (_, theirs) in zip(german.features.items(), authors.items(), strict=True):
        if isinstance(ours.dtype, pd.CategoricalDtype):
            assert ((ours == "other") == (theirs == "other")).all(), name
        else:
            assert ours.tolist() == theirs.tolist(), name


@pytest.mark.slow
def test_the_paper_s_form_of_adult_is_the_authors_but_for_unknown_cells(
    data_folder, reference_folder
):
    authors = pd.read_csv(reference_folder / "adult" / "train.csv.gz", index_col="row")
    adult = load("adult", form="paper", folder=data_folder)
    raw = load("adult", rows="worked", folder=data_folder).features

    assert list(adult.features.columns) == list(authors.columns.drop("income"))
    assert (adult.target == adult.desired).astype(int).tolist() == authors["income"].tolist()
    for name, ours in adult.features.items():
        known = (raw[name] != "?").to_numpy()
        assert ours[known].tolist() == authors[name][known].tolist(), name
    unlike = adult.features["native-country"].astype(str).to_numpy() != authors["native-country"]
    assert 0 < unlike.sum() <= (raw["native-country"] == "?").sum()


@pytest.mark.parametrize(("name", "wrong"), [("adult", "gmc"), ("fico", "german")])
def test_a_real_file_under_another_name_is_recognised(data_folder, tmp_path, name, wrong):
    content = (data_folder / card(wrong)["file"]).read_bytes()
    (tmp_path / card(name)["file"]).write_bytes(content)

    with pytest.raises(ValueError, match=rf"load\('{wrong}'\)"):
        load(name, folder=tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_file_that_was_cut_short_is_refused(data_folder, tmp_path, name):
    content = (data_folder / card(name)["file"]).read_bytes()
    (tmp_path / card(name)["file"]).write_bytes(content[:-1000])

    with pytest.raises(ValueError, match="cannot be read"):
        load(name, folder=tmp_path)
