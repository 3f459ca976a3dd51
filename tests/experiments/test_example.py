"""The example person: the published table as printed, and our counterfactuals next to it."""

from __future__ import annotations

import pandas as pd
import pytest

from mcce.cli import main
from mcce.errors import DatasetError
from mcce.experiments.example import _mark_changes, find_paper_person, published_table


def test_the_published_table_is_read_as_published_table():
    table = published_table().set_index("method")

    assert table.notna().all(axis=None)
    assert table.shape == (8, 13)
    own, ours = table.loc["Original"], table.loc["MCCE"]
    assert (own != ours).sum() == 3, "fnlwgt, gain and hours"
    assert table.loc["CRUDS", "education-num"] == 21
    assert table.loc["CLUE", ["age", "capital-loss"]].tolist() == [11, -62]


def test_the_person_is_found_by_all_their_values():
    rows = published_table().drop(columns="method")

    assert find_paper_person(rows.iloc[::-1]).index.tolist() == [0]
    with pytest.raises(DatasetError, match="266015"):
        find_paper_person(rows.iloc[1:])


def test_own_values_are_dots_and_changes_are_counted():
    table = pd.DataFrame(
        {"method": ["person", "m"], "source": ["", "ours"], "score": [None, 0.7], "a": [1, 1]}
    ).assign(b=["x", "y"])

    marked = _mark_changes(table)

    assert marked["a"].tolist() == [1, "·"]
    assert marked["b"].tolist() == ["x", "y"]
    assert marked["changes"].tolist() == [0, 1]


def test_other_data_sets_show_their_first_declined_person(tmp_path, bench_cache):
    pytest.importorskip("matplotlib")

    assert main(["experiments", "example", "--quick", "--out", str(tmp_path)]) == 0

    table = pd.read_csv(tmp_path / "example-german.csv")
    assert table["method"].tolist() == ["person", *(f"MCCE {s}" for s in SEARCHES)]
    assert table.loc[0, ["score", "changes"]].tolist() == [0.23, 0], "declined, and unchanged"
    assert (table.loc[1:, "score"] >= 0.5).all()
    assert (table.loc[1:, "changes"] >= 1).all()
    assert table.loc[1:, ["Purpose", "Age", "PersonalStatusSex"]].eq("·").all(axis=None)


SEARCHES = ("paper", "balanced", "sparse", "plausible")
