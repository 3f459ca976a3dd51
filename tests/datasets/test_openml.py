"""Data sets from OpenML, with a stand-in for it: no test calls the network."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from mcce import DatasetError
from mcce.datasets import load
from tiny_sets import tiny


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MCCE_DATA", raising=False)


@pytest.fixture
def openml(monkeypatch):
    """Lets OpenML hold a table; the calls are listed."""
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


def test_german_credit_never_calls_it(openml):
    calls = openml(AssertionError("called"))

    load("german")

    assert calls == []


def test_adult_is_found_by_its_number_and_missing_cells_are_unknown(openml):
    table = tiny("adult", 3, workclass=["Private", None, "State-gov"])
    table = table.rename(columns={"income": "class"})
    words = table.select_dtypes(exclude="number").columns
    calls = openml(table.astype(dict.fromkeys(words, "category")))

    adult = load("adult", verify=False)

    assert calls == [{"data_id": 1590, "as_frame": True, "n_retries": 1}]
    assert adult.features["workclass"].tolist() == ["Private", "?", "State-gov"]
    assert adult.features["workclass"].cat.categories.size == 9
    assert adult.target.tolist() == ["<=50K"] * 3
    assert adult.target.name == "income"
    assert not isinstance(adult.target.dtype, pd.CategoricalDtype)


def test_give_me_some_credit_gets_kaggle_s_labels(openml):
    table = tiny("gmc", 2).rename(columns={"SeriousDlqin2yrs": "FinancialDistressNextTwoYears"})
    table = table.assign(FinancialDistressNextTwoYears=pd.Categorical(["Yes", "No"]))
    calls = openml(table.astype({"age": "uint8"}))

    gmc = load("gmc", verify=False)

    assert calls[0]["data_id"] == 46929
    assert gmc.target.tolist() == [1, 0]
    assert gmc.target.dtype == gmc.features["age"].dtype == np.int64


def test_an_upload_with_special_codes_taken_out_is_refused(openml):
    table = tiny("fico", 2, MSinceMostRecentDelq=[3.0, np.nan])
    calls = openml(table.assign(RiskPerformance=pd.Categorical(["Bad", "Good"])))

    with pytest.raises(DatasetError, match="OpenML 46932: column 'MSinceMostRecentDelq' must hold"):
        load("fico", verify=False)
    assert calls[0]["data_id"] == 46932


def test_an_upload_with_other_names_is_refused(openml):
    openml(tiny("fico", 2).rename(columns={"NumInqLast6M": "num_inq_last_6m"}))

    with pytest.raises(DatasetError, match=r"OpenML 46932 must hold FICO HELOC but lacks .*NumInq"):
        load("fico")


def test_an_upload_with_other_labels_is_refused(openml):
    table = tiny("gmc", 2).rename(columns={"SeriousDlqin2yrs": "FinancialDistressNextTwoYears"})
    openml(table.assign(FinancialDistressNextTwoYears=pd.Categorical(["Yes", "Maybe"])))

    with pytest.raises(DatasetError, match=r"must hold only \[0, 1\], but does not in 1 rows"):
        load("gmc", verify=False)


def test_an_upload_of_another_size_is_refused(openml):
    openml(tiny("fico", 2))

    with pytest.raises(DatasetError, match=r"OpenML 46932 must hold 10459 rows .* has 2"):
        load("fico")


@pytest.mark.parametrize("failure", [URLError("no route"), TimeoutError("slow"), ValueError("412")])
def test_without_internet_the_error_says_which_file_to_put_where(openml, failure):
    openml(failure)

    with pytest.raises(DatasetError, match=r"OpenML 1590") as caught:
        load("adult")
    for expected in ("adult.csv.gz or adult.csv", "folder=", "MCCE_DATA", "10.24432/C5XW20"):
        assert expected in str(caught.value)


def test_the_error_names_the_folder_that_was_searched_before(openml, tmp_path, monkeypatch):
    openml(URLError("no route"))
    monkeypatch.setenv("MCCE_DATA", str(tmp_path))

    with pytest.raises(DatasetError, match=r"not in '.*' \(MCCE_DATA\)"):
        load("adult")


def test_a_folder_that_is_passed_never_calls_it(openml, tmp_path):
    calls = openml(AssertionError("called"))

    with pytest.raises(DatasetError, match=r"no adult\.csv\.gz"):
        load("adult", folder=tmp_path)
    assert calls == []


def test_the_quarter_is_not_taken_from_a_download(openml):
    table = tiny("gmc", 2).rename(columns={"SeriousDlqin2yrs": "FinancialDistressNextTwoYears"})
    openml(table.assign(FinancialDistressNextTwoYears=["Yes", "No"]))

    with pytest.raises(DatasetError, match="one folder, since a download may"):
        load("gmc", rows="quarter", verify=False)
