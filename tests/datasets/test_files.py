"""Data sets from a folder: forms checked by hand on tiny files, and what careless users meet."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from mcce import DatasetError, McceError, McceWarning
from mcce.datasets import card, load, sources
from mcce.datasets.checking import digest
from tiny_sets import tiny, write


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)


ADULT = tiny(
    "adult",
    5,
    age=[39, 50, 18, 38, 28],
    workclass=["State-gov", "Private", "Never-worked", "?", "Private"],
    marital__status=[
        "Never-married",
        "Married-civ-spouse",
        "Divorced",
        "Married-AF-spouse",
        "Married-spouse-absent",
    ],
    occupation=["Adm-clerical", "Sales", "?", "?", "Machine-op-inspct"],
    relationship=["Not-in-family", "Husband", "Own-child", "Wife", "Unmarried"],
    race=["White", "Black", "White", "Other", "White"],
    sex=["Male", "Male", "Female", "Female", "Female"],
    native__country=["United-States", "Cuba", "United-States", "?", "United-States"],
    income=["<=50K", ">50K", "<=50K", "<=50K", ">50K"],
)


def test_adult_as_it_was_published_keeps_unknown_cells_as_a_level(tmp_path):
    write(tmp_path, "adult", ADULT.assign(split="train"))

    adult = load("adult", folder=tmp_path, verify=False)

    assert list(adult.features.columns) == [c for c in ADULT.columns if c != "income"]
    assert adult.features["workclass"].tolist() == ADULT["workclass"].tolist()
    assert adult.features["workclass"].cat.categories[0] == "?"
    assert adult.features["native-country"].cat.categories.size == 42
    assert adult.target.tolist() == ADULT["income"].tolist()
    assert (adult.desired, adult.immutable) == (">50K", ["age", "sex"])


def test_adult_in_the_paper_s_form_has_the_authors_groups_and_no_one_who_never_worked(tmp_path):
    write(tmp_path, "adult", ADULT)

    adult = load("adult", form="paper", folder=tmp_path, verify=False)

    rows = adult.features
    assert rows.index.tolist() == adult.target.index.tolist() == [0, 1, 3, 4]
    assert rows.shape[1] == 13
    assert "education" not in rows
    assert rows["age"].tolist() == [39, 50, 38, 28]
    cells = {name: rows[name].tolist() for name in rows.select_dtypes("category")}
    assert cells == {
        "workclass": ["Non-Private", "Private", "Non-Private", "Private"],
        "marital-status": ["Non-Married", "Married", "Married", "Non-Married"],
        "occupation": ["Managerial-Specialist", "Other", "Other", "Managerial-Specialist"],
        "relationship": ["Non-Husband", "Husband", "Non-Husband", "Non-Husband"],
        "race": ["White", "Non-White", "Non-White", "White"],
        "sex": ["Male", "Male", "Female", "Female"],
        "native-country": ["US", "Non-US", "Non-US", "US"],
    }
    assert rows["occupation"].cat.categories.tolist() == ["Managerial-Specialist", "Other"]


def test_adult_with_levels_has_the_paper_s_rows_and_features_but_all_levels(tmp_path):
    write(tmp_path, "adult", ADULT)

    raw = load("adult", folder=tmp_path, verify=False).features
    levels = load("adult", form="levels", folder=tmp_path, verify=False).features

    pd.testing.assert_frame_equal(levels, raw.drop(columns="education").drop(index=2))


FICO = tiny(
    "fico",
    5,
    RiskPerformance=["Bad", "Good", "Bad", "Good", "Good"],
    MaxDelq2PublicRecLast12M=[7, 6, 7, -9, 0],
    MaxDelqEver=[8, 6, 6, -9, 6],
)
FICO.loc[3, FICO.columns != "RiskPerformance"] = -9


def test_heloc_in_the_paper_s_form_has_two_categories(tmp_path):
    write(tmp_path, "fico", FICO)

    fico = load("fico", form="paper", folder=tmp_path, verify=False)

    assert fico.features["MaxDelq2PublicRecLast12M"].tolist() == ["7", "other", "7"] + ["other"] * 2
    assert fico.features["MaxDelqEver"].tolist() == ["other", "6", "6", "other", "6"]
    assert fico.features.select_dtypes("category").shape[1] == 2
    assert fico.features["ExternalRiskEstimate"].tolist() == [1, 1, 1, -9, 1]
    assert (fico.desired, fico.immutable) == ("Good", ["ExternalRiskEstimate"])


def test_heloc_can_leave_its_empty_records_out(tmp_path):
    write(tmp_path, "fico", FICO)

    raw = load("fico", folder=tmp_path, verify=False)
    known = load("fico", rows="known", folder=tmp_path, verify=False)

    assert (raw.features.dtypes == np.int64).all()
    assert known.features.index.tolist() == [0, 1, 2, 4]
    assert known.target.tolist() == ["Bad", "Good", "Bad", "Good"]


def test_heloc_with_levels_has_its_codes_as_levels_in_their_order(tmp_path):
    write(tmp_path, "fico", FICO)

    codes = load("fico", form="levels", folder=tmp_path, verify=False).features["MaxDelqEver"]

    assert codes.cat.categories.tolist() == ["-9", "6", "8"]
    assert codes.tolist() == ["8", "6", "6", "-9", "6"]


GMC = tiny(
    "gmc",
    20,
    SeriousDlqin2yrs=[1, 0] * 10,
    age=[30] * 19 + [100],
    MonthlyIncome=[np.nan] + [2500.5] * 19,
    NumberOfDependents=[2.0] * 5 + [np.nan] + [2.0] * 14,
)


@pytest.mark.parametrize("missing", ["", "NA"])
def test_give_me_some_credit_keeps_missing_cells_until_rows_are_chosen(tmp_path, missing):
    GMC.to_csv(tmp_path / "gmc.csv", index=True, na_rep=missing)

    raw = load("gmc", folder=tmp_path, verify=False)
    paper = load("gmc", form="paper", folder=tmp_path, verify=False)

    assert raw.features["MonthlyIncome"].isna().tolist() == [True] + [False] * 19
    assert len(raw.features) == 20
    assert paper.features.index.tolist() == [i for i in range(20) if i not in (0, 5)]
    assert not paper.features.isna().any(axis=None)
    assert raw.target.tolist() == [1, 0] * 10
    assert (raw.desired, raw.immutable) == (0, ["age"])


def test_give_me_some_credit_can_leave_outliers_out(tmp_path):
    write(tmp_path, "gmc", GMC)

    near = load("gmc", form="paper", rows="filtered", folder=tmp_path, verify=False)

    # 17 ages of 30 and one of 100 (18 complete rows): it lies sqrt(17), about 4.1, from the mean.
    assert near.features.index.tolist() == [i for i in range(19) if i not in (0, 5)]


def test_the_listed_quarter_comes_in_the_order_of_its_list(tmp_path):
    write(tmp_path, "gmc", GMC)
    (tmp_path / "gmc_quarter_rows.csv").write_text("7\n3\n12\n")

    quarter = load("gmc", form="paper", rows="quarter", folder=tmp_path, verify=False)

    assert quarter.features.index.tolist() == quarter.target.index.tolist() == [7, 3, 12]
    assert quarter.target.tolist() == [0, 0, 1]


@pytest.mark.parametrize("lines", ["7\n20\n", "7\n-1\n", "7\n7\n", "7\n1.5\n", "7\nx\n"])
def test_a_list_of_rows_that_are_not_there_is_refused(tmp_path, lines):
    write(tmp_path, "gmc", GMC)
    (tmp_path / "gmc_quarter_rows.csv").write_text(lines)

    with pytest.raises(DatasetError, match=r"row numbers from 0 to 19.* but line 2 does not"):
        load("gmc", rows="quarter", folder=tmp_path, verify=False)


def test_the_quarter_needs_its_list(tmp_path):
    write(tmp_path, "gmc", GMC)

    with pytest.raises(DatasetError, match=r"needs gmc_quarter_rows.csv.gz or gmc_quarter_rows"):
        load("gmc", rows="quarter", folder=tmp_path, verify=False)


def test_of_equally_frequent_levels_the_first_is_kept(tmp_path):
    write(tmp_path, "german", tiny("german", 2, Housing=["rent", "own"]))

    housing = load("german", form="paper", folder=tmp_path, verify=False).features["Housing"]

    assert housing.tolist() == ["other", "own"]


def test_a_folder_that_the_environment_names_is_searched_first(tmp_path, monkeypatch):
    write(tmp_path, "german", tiny("german", 3), gz=False)
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))

    assert len(load("german", verify=False).features) == 3
    (tmp_path / "german.csv").unlink()
    assert len(load("german").features) == 1000


def test_a_folder_that_is_passed_is_the_only_place_searched(tmp_path, monkeypatch):
    write(tmp_path, "german", tiny("german", 3))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))

    with pytest.raises(DatasetError, match=r"no german.csv.gz or german.csv in .* holds nothing"):
        load("german", folder=tmp_path / "empty")


def test_a_path_that_is_no_folder_is_named_in_the_error(tmp_path, monkeypatch):
    with pytest.raises(DatasetError, match=r"^folder must be a folder that holds data files, got"):
        load("adult", folder=tmp_path / "nowhere")
    monkeypatch.setenv("MCCE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"^MCCE_DATA must be a folder that holds data files"):
        load("adult")


def test_the_error_of_a_wrong_folder_lists_its_files(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")

    with pytest.raises(DatasetError, match=r"no adult.csv.gz or adult.csv in .* holds notes.txt"):
        load("adult", folder=tmp_path)


def test_a_file_of_another_data_set_is_recognised(tmp_path):
    write(tmp_path, "adult", GMC)

    with pytest.raises(DatasetError, match=r"must hold Adult .*Give Me Some Credit, load\('gmc'\)"):
        load("adult", folder=tmp_path)


def test_a_gzip_that_was_cut_short_is_refused(tmp_path):
    content = gzip.compress(ADULT.to_csv(index=False).encode())
    (tmp_path / "adult.csv.gz").write_bytes(content[: len(content) // 2])

    with pytest.raises(DatasetError, match=r"adult.csv.gz' cannot be read .* copy it again"):
        load("adult", folder=tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"age,income\n39", b"\x1f\x8b\x08\x00rubbish", b"\xff\xfe"]
)
@pytest.mark.parametrize("file", ["adult.csv", "adult.csv.gz"])
def test_rubbish_is_an_error_of_ours(tmp_path, file, content):
    (tmp_path / file).write_bytes(content)

    with pytest.raises(DatasetError, match=r"adult.csv"):
        load("adult", folder=tmp_path, verify=False)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("adult.csv.gz", gzip.compress(b"0" * (sources.MOST_BYTES + 1), compresslevel=1)),
        ("adult.csv", b"," * (sources.MOST_LINE + 1)),
        ("adult.csv", b"a,b\n" + b"," * (sources.MOST_LINE + 1)),
        ("adult.csv", b"," * 10_000 + b"\n" + b"1\n" * 5_000),
    ],
    ids=["unpacked", "header", "line", "cells"],
)
def test_a_small_file_of_a_huge_table_is_refused(tmp_path, file, content):
    (tmp_path / file).write_bytes(content)

    with pytest.raises(DatasetError, match=r"more than .* It may be another file: copy it again"):
        load("adult", folder=tmp_path)


def test_a_file_that_is_larger_than_any_data_set_is_not_read(tmp_path):
    with (tmp_path / "adult.csv").open("wb") as stream:
        stream.truncate(2**40)

    with pytest.raises(DatasetError, match="holds more than"):
        load("adult", folder=tmp_path)


def test_a_missing_column_is_named(tmp_path):
    write(tmp_path, "adult", ADULT.drop(columns=["race", "sex"]))

    with pytest.raises(DatasetError, match=r"lacks the columns \['race', 'sex'\]"):
        load("adult", folder=tmp_path)


def test_a_column_too_many_is_named(tmp_path):
    write(tmp_path, "adult", ADULT.assign(shoe=42))

    with pytest.raises(DatasetError, match=r"has the columns \['shoe'\], which Adult does not"):
        load("adult", folder=tmp_path)


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        (
            "age",
            [39, "old", 18, 38, 28],
            "'age' must hold whole .* in 1 rows, first in row 1 .counted",
        ),
        ("age", [39, 1.5, 18, 38, 28], "'age' must hold whole numbers .* first in row 1"),
        (
            "age",
            [39, 1, None, 38, 28],
            "without missing cells, but does not in 1 rows, first in row 2",
        ),
        ("age", [39, 1, "inf", 38, 28], "'age' must hold whole numbers .* row 2"),
        (
            "race",
            ["White", "white"] + ["White"] * 3,
            r"'race' must hold only .* in 1 rows, first in row 1",
        ),
        ("income", ["<=50K."] * 5, r"'income' must hold only .* in 5 rows, first in row 0"),
    ],
)
def test_a_cell_that_cannot_be_is_located_and_not_shown(tmp_path, column, cells, message):
    write(tmp_path, "adult", ADULT.assign(**{column: cells}))

    with pytest.raises(DatasetError, match=message):
        load("adult", folder=tmp_path, verify=False)


def test_a_missing_category_is_refused_where_no_level_stands_for_it(tmp_path):
    write(tmp_path, "german", tiny("german", 2, Housing=["own", None]))

    with pytest.raises(
        DatasetError, match=r"'Housing' must hold only .* in 1 rows, first in row 1"
    ):
        load("german", folder=tmp_path, verify=False)


def test_an_empty_cell_of_adult_is_unknown(tmp_path):
    write(tmp_path, "adult", ADULT.replace("?", ""))

    adult = load("adult", folder=tmp_path, verify=False).features

    assert adult["workclass"].tolist() == ADULT["workclass"].tolist()


def test_a_part_of_the_rows_is_refused_unless_it_is_wanted(tmp_path):
    write(tmp_path, "adult", ADULT)

    with pytest.raises(DatasetError, match=r"48842 rows .* has 5 .*verify=False to load"):
        load("adult", folder=tmp_path)


@pytest.mark.parametrize(("rows", "kept"), [("all", 0), ("known", 1)])
def test_no_rows_at_all_are_an_error(tmp_path, rows, kept):
    write(tmp_path, "fico", FICO.loc[[3]].head(kept))

    with pytest.raises(DatasetError, match="holds no rows"):
        load("fico", form="paper", rows=rows, folder=tmp_path, verify=False)


def test_other_cells_in_as_many_rows_are_noticed(tmp_path):
    german = load("german", form="levels")
    table = german.features.assign(Sex=load("german").features["Sex"], Risk=german.target)
    write(tmp_path, "german", table)
    load("german", folder=tmp_path)
    table.loc[700, "Age"] += 1
    write(tmp_path, "german", table)

    with pytest.warns(McceWarning, match="some cells differ"):
        load("german", folder=tmp_path)
    load("german", folder=tmp_path, verify=False)


def test_the_digest_is_of_the_cells_not_of_their_order():
    of, table = card("gmc"), GMC.copy()
    shuffled = table.sample(frac=1, random_state=0)

    assert digest(shuffled, of) == digest(table, of)
    for column in table.columns:
        other = table.copy()
        other.loc[3, column] = 1 - other.loc[3, column]
        assert (digest(other, of) == digest(table, of)) == other.equals(table)


def test_every_error_of_a_data_set_is_an_os_error_and_a_value_error_too():
    assert issubclass(DatasetError, McceError)
    assert issubclass(DatasetError, OSError)
    assert issubclass(DatasetError, ValueError)
