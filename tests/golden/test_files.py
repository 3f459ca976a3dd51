"""A saved file of the current format still loads, and gives the answers that it gave then.

Write the file and its answers anew, after a change of the format or where answers are meant to
change, with ``PYTHONPATH=tests/helpers python tests/golden/test_files.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import mcce
from mcce import MCCE, TreeChain
from mcce import constraints as c
from pins import HOW_SURE
from saved import answers

SAVED = Path(__file__).with_name("explainer.mcce")
ANSWERS = Path(__file__).with_name("explainer.csv")
N_TRAIN, N_PEOPLE = 120, 20


def customers() -> pd.DataFrame:
    """Columns of several storages, with missing numbers and levels; people are the last rows."""
    chance = np.random.default_rng(5)
    n = N_TRAIN + N_PEOPLE
    days = pd.Series(chance.integers(0, 40, n) * 100 * 86400 * 10**9).astype("datetime64[ns]")
    sizes = pd.CategoricalDtype(["low", "mid", "high", "never"], ordered=True)
    holes = [pd.Series(chance.integers(0, 10, n) == 0) for _ in range(3)]
    cities = np.array(["Oslo", "Bærum", "Ås"])[chance.integers(0, 3, n)]
    frame = pd.DataFrame(
        {
            "age": chance.integers(4, 14, n) * 5,
            "city": pd.Series(cities, dtype=object).mask(holes[0], None),
            "children": pd.Series(chance.integers(0, 4, n), dtype="Int64").mask(holes[1]),
            "size": pd.Series(chance.choice(["low", "mid", "high"], n)).astype(sizes),
            "since": (days + pd.Timedelta(days=16000)).dt.tz_localize("UTC"),
            "income": pd.Series(chance.integers(10, 60, n) / 4).mask(holes[2]),
            "debt": chance.integers(0, 30, n),
            "member": chance.integers(0, 2, n) == 1,
        }
    )
    return frame.assign(due=2 * frame["debt"] + 5)


def points(frame: pd.DataFrame) -> np.ndarray:
    """Points, in whole numbers."""
    total = 3 * (frame["age"] > 40).to_numpy(dtype=int)
    total = total + frame["children"].fillna(2).to_numpy(dtype=int)
    total = total + 2 * (frame["city"].astype(object) == "Oslo").to_numpy(dtype=int)
    total = total + 3 * frame["size"].astype(object).isin(["mid", "high"]).to_numpy(dtype=int)
    total = total + 2 * (frame["income"] > 8).to_numpy(dtype=int)
    total = total + 2 * (frame["due"] < 29).to_numpy(dtype=int)
    late = (frame["since"] > pd.Timestamp("2020-06-01", tz="UTC")).to_numpy(dtype=int)
    return total + late + frame["member"].to_numpy(dtype=int)


def fitted() -> MCCE:
    rules = [
        c.only_down("debt"),
        c.change("income", at_least="-10 %", at_most=5),
        c.frozen("city", where="age > 60"),
        c.relation("debts can be paid", "debt <= 6 * income"),
        c.transitions("city", {"Ås": ["Oslo"], "Bærum": ["Ås", "Oslo"]}),
        c.weight("income", 2.5),
        c.step("income", 0.5),
        c.not_down("since"),
    ]
    explainer = MCCE(
        points,
        (11, 20),
        immutable=["age"],
        constraints=rules,
        search="balanced",
        generator=TreeChain(min_samples_leaf=10, max_depth=6),
        n_counterfactuals=2,
        n_samples=100,
        random_state=2023,
    )
    return explainer.fit(customers().head(N_TRAIN))


def described(explainer: MCCE) -> str:
    """Answers and their measures, as text."""
    result = answers(explainer, customers().tail(N_PEOPLE))
    measures = result.measures.drop(columns=HOW_SURE).astype(float, errors="ignore").round(9)
    return result.frame.join(measures).to_csv(lineterminator="\n")


def test_the_pinned_file_gives_its_answers_also_when_it_is_saved_again(tmp_path):
    loaded = mcce.load(SAVED, points)
    loaded.save(tmp_path / "again.mcce")

    expected = ANSWERS.read_text(encoding="utf-8")
    assert expected.count("\n") > N_PEOPLE / 2
    assert described(loaded) == expected
    assert described(mcce.load(tmp_path / "again.mcce", points)) == expected


def test_an_explainer_that_is_fitted_anew_gives_the_answers_of_the_file():
    explainer = fitted()

    assert described(explainer) == ANSWERS.read_text(encoding="utf-8")
    assert "due = 2 * debt + 5" in set(explainer.relations_["relation"])


if __name__ == "__main__":
    explainer = fitted()
    explainer.save(SAVED)
    ANSWERS.write_text(described(explainer), encoding="utf-8")
