"""The paper's data sets: from files, from OpenML, what careless users meet; simulated rows."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from mcce import MCCE, McceError, McceWarning, ParameterError
from mcce.datasets import load_german_credit
from mcce_lab.datasets import (
    NAMES,
    DatasetError,
    card,
    describe,
    load,
    simulate,
    simulate_like,
    total,
)

PAGE = Path(__file__).resolve().parents[2] / "docs/datasets.md"


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)


def tiny(name: str, n_rows: int, **cells: list) -> pd.DataFrame:
    """So many rows of ones and first levels, but for the columns that are given.

    A dash in a name is written as two underscores.
    """
    table = pd.DataFrame(
        {c["name"]: [c.get("levels", [1])[0]] * n_rows for c in card(name)["columns"]}
    )
    return table.assign(**{column.replace("__", "-"): given for column, given in cells.items()})


def write(folder, name: str, table: pd.DataFrame, *, gz: bool = True) -> None:
    """The table as the file that the loader looks for."""
    file = card(name)["file"]
    table.to_csv(folder / (file if gz else file.removesuffix(".gz")), index=False)


def adult(**cells) -> pd.DataFrame:
    known = {
        "age": [39, 50, 18, 38, 28],
        "workclass": ["State-gov", "Private", "Never-worked", "?", "Private"],
        "marital__status": [
            "Never-married",
            "Married-civ-spouse",
            "Divorced",
            "Married-AF-spouse",
            "Married-spouse-absent",
        ],
        "occupation": ["Adm-clerical", "Sales", "?", "?", "Machine-op-inspct"],
        "relationship": ["Not-in-family", "Husband", "Own-child", "Wife", "Unmarried"],
        "race": ["White", "Black", "White", "Other", "White"],
        "sex": ["Male", "Male", "Female", "Female", "Female"],
        "native__country": ["United-States", "Cuba", "United-States", "?", "United-States"],
        "income": ["<=50K", ">50K", "<=50K", "<=50K", ">50K"],
    }
    return tiny("adult", 5, **known | cells)


def fico() -> pd.DataFrame:
    table = tiny(
        "fico",
        5,
        RiskPerformance=["Bad", "Good", "Bad", "Good", "Good"],
        MaxDelq2PublicRecLast12M=[7, 6, 7, -9, 0],
        MaxDelqEver=[8, 6, 6, -9, 6],
    )
    table.loc[3, table.columns != "RiskPerformance"] = -9
    return table


def gmc() -> pd.DataFrame:
    return tiny(
        "gmc",
        20,
        SeriousDlqin2yrs=[1, 0] * 10,
        age=[30] * 19 + [100],
        MonthlyIncome=[np.nan] + [2500.5] * 19,
        NumberOfDependents=[2.0] * 5 + [np.nan] + [2.0] * 14,
    )


def test_adult_as_it_was_published_keeps_unknown_cells_as_a_level(tmp_path):
    table = adult()
    for written in (table.assign(split="train"), table.replace("?", "")):
        write(tmp_path, "adult", written)

        found = load("adult", folder=tmp_path, verify=False)

        assert list(found.features.columns) == [c for c in table.columns if c != "income"]
        assert found.features["workclass"].tolist() == table["workclass"].tolist()
        assert found.features["workclass"].cat.categories[0] == "?"
        assert found.features["native-country"].cat.categories.size == 42
        assert found.target.tolist() == table["income"].tolist()
        assert (found.desired, found.immutable) == (">50K", ["age", "sex"])


def test_adult_in_the_paper_s_form_has_the_authors_groups_and_no_one_who_never_worked(tmp_path):
    write(tmp_path, "adult", adult())

    found = load("adult", form="paper", folder=tmp_path, verify=False)
    raw = load("adult", folder=tmp_path, verify=False).features
    levels = load("adult", form="levels", folder=tmp_path, verify=False).features

    rows = found.features
    assert rows.index.tolist() == found.target.index.tolist() == [0, 1, 3, 4]
    assert rows.shape[1] == 13
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
    pd.testing.assert_frame_equal(levels, raw.drop(columns="education").drop(index=2))


def test_heloc_has_three_forms_and_can_leave_its_empty_records_out(tmp_path):
    write(tmp_path, "fico", fico())

    raw, levels, paper = (
        load("fico", form=form, folder=tmp_path, verify=False)
        for form in ("raw", "levels", "paper")
    )
    known = load("fico", rows="known", folder=tmp_path, verify=False)

    assert (raw.features.dtypes == np.int64).all()
    assert levels.features["MaxDelqEver"].cat.categories.tolist() == ["-9", "6", "8"]
    assert levels.features["MaxDelqEver"].tolist() == ["8", "6", "6", "-9", "6"]
    assert (
        paper.features["MaxDelq2PublicRecLast12M"].tolist() == ["7", "other", "7"] + ["other"] * 2
    )
    assert paper.features["MaxDelqEver"].tolist() == ["other", "6", "6", "other", "6"]
    assert paper.features.select_dtypes("category").shape[1] == 2
    assert paper.features["ExternalRiskEstimate"].tolist() == [1, 1, 1, -9, 1]
    assert (paper.desired, paper.immutable) == ("Good", ["ExternalRiskEstimate"])
    assert known.features.index.tolist() == [0, 1, 2, 4]
    assert known.target.tolist() == ["Bad", "Good", "Bad", "Good"]


def test_give_me_some_credit_keeps_missing_cells_until_rows_are_chosen(tmp_path):
    for missing in ("", "NA"):
        gmc().to_csv(tmp_path / "gmc.csv", index=True, na_rep=missing)

        raw = load("gmc", folder=tmp_path, verify=False)
        paper = load("gmc", form="paper", folder=tmp_path, verify=False)
        near = load("gmc", form="paper", rows="filtered", folder=tmp_path, verify=False)

        complete = [i for i in range(20) if i not in (0, 5)]
        assert raw.features["MonthlyIncome"].isna().tolist() == [True] + [False] * 19
        assert paper.features.index.tolist() == complete
        # 17 ages of 30 and one of 100: it lies sqrt(17), about 4.1, from the mean.
        assert near.features.index.tolist() == complete[:-1]
        assert raw.target.tolist() == [1, 0] * 10
        assert (raw.desired, raw.immutable) == (0, ["age"])


def test_a_wrong_folder_or_file_is_an_error_that_says_which(tmp_path):
    with pytest.raises(DatasetError, match=r"^folder must be a folder that holds data files, got"):
        load("adult", folder=tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DatasetError, match=r"no adult.csv.gz or adult.csv in .* holds notes.txt"):
        load("adult", folder=tmp_path)
    for table, says in [
        (gmc(), r"must hold Adult .*Give Me Some Credit, load\('gmc'\)"),
        (adult().drop(columns=["race", "sex"]), r"lacks the columns \['race', 'sex'\]"),
        (adult().assign(shoe=42), r"has the columns \['shoe'\], which Adult does not"),
        (adult(), r"48842 rows .* has 5 .*verify=False to load"),
    ]:
        write(tmp_path, "adult", table)
        with pytest.raises(DatasetError, match=says):
            load("adult", folder=tmp_path)


def test_a_selection_without_rows_is_refused(tmp_path):
    write(tmp_path, "fico", fico().loc[[3]])

    with pytest.raises(DatasetError, match="holds no rows"):
        load("fico", rows="known", folder=tmp_path, verify=False)


def test_a_cell_that_cannot_be_is_located_and_not_shown(tmp_path):
    for column, cells, message in [
        ("age", [39, "old", 18, 38, 28], "'age' must hold whole .* in 1 rows, first in row 1 .cou"),
        ("age", [39, 1.5, 18, 38, 28], "'age' must hold whole numbers .* first in row 1"),
        ("age", [39, 1, None, 38, 28], "without missing cells, but does not in 1 rows, .* row 2"),
        ("age", [39, 1, "inf", 38, 28], "'age' must hold whole numbers .* row 2"),
        ("race", ["White", "white"] + ["White"] * 3, r"'race' must hold only .* first in row 1"),
        ("income", ["<=50K."] * 5, r"'income' must hold only .* in 5 rows, first in row 0"),
    ]:
        write(tmp_path, "adult", adult().assign(**{column: cells}))
        with pytest.raises(DatasetError, match=message):
            load("adult", folder=tmp_path, verify=False)
    write(tmp_path, "german", tiny("german", 2, Housing=["own", None]))
    with pytest.raises(DatasetError, match=r"'Housing' must hold only .* first in row 1"):
        load("german", folder=tmp_path, verify=False)


def test_rubbish_is_refused(tmp_path):
    whole = gzip.compress(adult().to_csv(index=False).encode())
    for content in (b"", b"age,income\n39", b"\x1f\x8b\x08\x00rubbish", b"\xff\xfe"):
        (tmp_path / "adult.csv").write_bytes(content)
        with pytest.raises(DatasetError, match=r"adult\.csv"):
            load("adult", folder=tmp_path, verify=False)
    (tmp_path / "adult.csv").unlink()
    (tmp_path / "adult.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match=r"adult.csv.gz' cannot be read .* copy it again"):
        load("adult", folder=tmp_path)


@pytest.fixture
def openml(monkeypatch):
    """Lets a stand-in for OpenML hold a table, so that no test calls the network."""
    calls = []

    def hold(answer):
        def fetch_openml(**given):
            calls.append(given)
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(frame=answer.copy())

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
        return calls

    return hold


def uploaded_gmc(*labels) -> pd.DataFrame:
    table = tiny("gmc", 2).rename(columns={"SeriousDlqin2yrs": "FinancialDistressNextTwoYears"})
    return table.assign(FinancialDistressNextTwoYears=pd.Categorical(labels))


def test_openml_is_asked_only_if_no_file_is_there(openml, tmp_path):
    calls = openml(AssertionError("called"))

    load("german")
    with pytest.raises(DatasetError, match=r"no adult\.csv\.gz"):
        load("adult", folder=tmp_path)

    assert calls == []


def test_adult_is_found_by_its_number_and_missing_cells_are_unknown(openml):
    table = tiny("adult", 3, workclass=["Private", None, "State-gov"])
    table = table.rename(columns={"income": "class"})
    words = table.select_dtypes(exclude="number").columns
    calls = openml(table.astype(dict.fromkeys(words, "category")))

    found = load("adult", verify=False)

    assert calls == [{"data_id": 1590, "as_frame": True, "n_retries": 1}]
    assert found.features["workclass"].tolist() == ["Private", "?", "State-gov"]
    assert found.features["workclass"].cat.categories.size == 9
    assert found.target.tolist() == ["<=50K"] * 3
    assert found.target.name == "income"


def test_give_me_some_credit_gets_kaggle_s_labels(openml):
    openml(uploaded_gmc("Yes", "No").astype({"age": "uint8"}))

    found = load("gmc", verify=False)

    assert found.target.tolist() == [1, 0]
    assert found.target.dtype == found.features["age"].dtype == np.int64


def test_an_upload_that_is_something_else_is_refused(openml):
    special = tiny("fico", 2, MSinceMostRecentDelq=[3.0, np.nan])
    for name, upload, says in [
        ("fico", special, "OpenML 46932: column 'MSinceMostRecentDelq' must hold"),
        (
            "fico",
            tiny("fico", 2).rename(columns={"NumInqLast6M": "num_inq_last_6m"}),
            r"OpenML 46932 must hold FICO HELOC but lacks .*NumInq",
        ),
        ("gmc", uploaded_gmc("Yes", "Maybe"), r"must hold only \[0, 1\], but does not in 1 rows"),
    ]:
        openml(upload)
        with pytest.raises(DatasetError, match=says):
            load(name, verify=False)
    openml(tiny("fico", 2))
    with pytest.raises(DatasetError, match=r"OpenML 46932 must hold 10459 rows .* has 2"):
        load("fico")


def test_without_internet_the_error_says_which_file_to_put_where(openml, tmp_path, monkeypatch):
    for failure in (URLError("no route"), TimeoutError("slow"), ValueError("412")):
        openml(failure)

        with pytest.raises(DatasetError, match=r"OpenML 1590") as caught:
            load("adult")
        for expected in ("adult.csv.gz or adult.csv", "folder=", "MCCE_DATA", "10.24432/C5XW20"):
            assert expected in str(caught.value)
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"not in '.*' \(MCCE_DATA\)"):
        load("adult")


@pytest.mark.parametrize("name", ["german", "fico"])
def test_real_files_have_the_rows_features_and_levels_of_their_card(data_folder, name):
    check_card(data_folder, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "gmc"])
def test_large_files_have_the_rows_features_and_levels_of_their_card(data_folder, name):
    check_card(data_folder, name)


COUNTS = {
    ("adult", "worked"): {"<=50K": 37145, ">50K": 11687},
    ("gmc", "complete"): {0: 111912, 1: 8357},
    ("gmc", "filtered"): {0: 107686, 1: 7841},
    ("fico", "known"): {"Bad": 5136, "Good": 4735},
}


def check_card(folder, name):
    """Every form and selection of a real file is as its card says."""
    raw = load(name, folder=folder)
    of, rows = raw.card, raw.features.assign(**{raw.card["target"]: raw.target})
    for column in of["columns"]:
        if column["name"] in rows:
            cells = rows[column["name"]]
            assert cells.isna().sum() == column.get("n_missing", 0)
            assert "levels" not in column or set(cells) == set(column["levels"])
    for form, expected in of["forms"].items():
        data = load(name, form=form, folder=folder)
        assert data.features.shape[1] == expected["features"]
        assert len(data.features) == of["selections"][expected["rows"]]["rows"]
        counts = COUNTS.get((name, expected["rows"]))
        assert counts is None or data.target.value_counts().to_dict() == counts
        assert data.features.index.equals(data.target.index)
        assert data.immutable == expected["immutable"]
        n_levels = {data.features[c].nunique() for c in data.features.select_dtypes("category")}
        assert form != "paper" or n_levels <= {2}
    for selection in of["selections"].keys() - {form["rows"] for form in of["forms"].values()}:
        target = load(name, rows=selection, folder=folder).target
        assert len(target) == of["selections"][selection]["rows"]
        counts = COUNTS.get((name, selection))
        assert counts is None or target.value_counts().to_dict() == counts


def test_a_real_file_under_another_name_or_cut_short_is_refused(data_folder, tmp_path):
    german, heloc = (data_folder / card(name)["file"] for name in ("german", "fico"))
    (tmp_path / heloc.name).write_bytes(german.read_bytes())
    with pytest.raises(DatasetError, match=r"load\('german'\)"):
        load("fico", folder=tmp_path)
    (tmp_path / heloc.name).write_bytes(heloc.read_bytes()[:-1000])
    with pytest.raises(DatasetError, match="cannot be read"):
        load("fico", folder=tmp_path)
    assert set(NAMES) == {"german", "adult", "gmc", "fico"}
    theirs, ours = load("german", folder=data_folder), load("german")
    pd.testing.assert_frame_equal(theirs.features, ours.features)


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
    found = load("adult", form="paper", folder=data_folder)
    raw = load("adult", rows="worked", folder=data_folder).features

    assert list(found.features.columns) == list(authors.columns.drop("income"))
    assert (found.target == found.desired).astype(int).tolist() == authors["income"].tolist()
    for name, ours in found.features.items():
        known = (raw[name] != "?").to_numpy()
        assert ours[known].tolist() == authors[name][known].tolist(), name
    unlike = found.features["native-country"].astype(str).to_numpy() != authors["native-country"]
    assert 0 < unlike.sum() <= (raw["native-country"] == "?").sum()


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
    inside = {
        path.name
        for package in ("mcce", "mcce_lab")
        for path in files(f"{package}.datasets").iterdir()
    }
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
        (lambda: load("heloc"), r'name must be one of "german", .*"fico", got .heloc.'),
        (lambda: load(["german"]), r"name must be one of .* got \['german'\]"),
        (lambda: load("german", form="binary"), 'form must be one of "raw", "levels", "paper"'),
        (lambda: load("german", rows="quarter"), 'rows must be one of "all", got .quarter.'),
        (lambda: load("german", folder=3), "folder must be a path or None, got 3"),
        (lambda: load("german", verify=1), "verify must be True or False, got 1"),
        (lambda: describe("credit"), "name must be one of"),
        (lambda: simulate(0, 5), "n_rows must be a whole number from 1 to .*, got 0"),
        (lambda: simulate(5, 2.5), "n_features must be a whole number from 1 .*, got 2.5"),
        (lambda: simulate(5, 2, n_immutable=3), "n_immutable must be .* to 2, got 3"),
        (lambda: simulate(5, 2, correlation=1.1), "correlation must be a number from 0 to 1"),
        (lambda: simulate(5, 2, seed=-1), "seed must be a whole number from 0 .*, got -1"),
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
    explainer = MCCE(
        total, train.desired, immutable=train.immutable, search="paper", random_state=0
    )

    result = explainer.fit(train.features).explain(people.features[people.target <= 0])

    assert (total(result.frame) > 0).all()
    assert len(result.frame) > 0
    assert simulate_like("fico").features.shape == (10459, 23)
    assert simulate_like("adult").immutable == ["x0", "x1"]


def test_german_credit_is_that_of_the_package():
    ours, theirs = load("german"), load_german_credit()

    pd.testing.assert_frame_equal(ours.features, theirs.features)
    pd.testing.assert_series_equal(ours.target, theirs.target)
    assert (ours.desired, ours.immutable) == (theirs.desired, theirs.immutable)


def test_the_page_of_data_sets_shows_the_cards_as_they_are():
    page = PAGE.read_text(encoding="utf-8")

    shown = page[page.index("## German Credit") :]

    assert shown == "\n\n".join(map(describe, NAMES)) + "\n"
