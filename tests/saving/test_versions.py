"""Explainers of every search that were saved once still give the answers that they gave then."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mcce
from mcce import MCCE, ExactSearch, NotFittedError, Search, TreeChain
from mcce import constraints as c
from pins import (
    assert_pinned,
    build,
    describe_result,
    explain,
    own_exact_search,
    own_search,
    written,
)

FOLDER = Path(__file__).parents[1] / "data"
N_TRAIN, N_PEOPLE = 250, 30


@cache
def customers() -> pd.DataFrame:
    """Columns of several storages, with missing numbers and levels; people are the last rows."""
    chance = np.random.default_rng(5)
    n = N_TRAIN + N_PEOPLE
    days = pd.Series(chance.integers(0, 400, n) * 10 * 86400 * 10**9).astype("datetime64[ns]")
    sizes = pd.CategoricalDtype(["low", "mid", "high", "never"], ordered=True)
    holes = [pd.Series(chance.integers(0, 10, n) == 0) for _ in range(4)]
    return pd.DataFrame(
        {
            "age": chance.integers(4, 14, n) * 5,
            "sex": pd.Series(np.array(["f", "m"])[chance.integers(0, 2, n)], dtype=object),
            "city": pd.Series(
                np.array(["Oslo", "Bærum", "Ås"])[chance.integers(0, 3, n)], dtype=object
            ).mask(holes[0], None),
            "children": pd.Series(chance.integers(0, 4, n), dtype="Int64").mask(holes[1]),
            "size": pd.Series(np.array(["low", "mid", "high"])[chance.integers(0, 3, n)])
            .astype(sizes)
            .mask(holes[2]),
            "since": (days + pd.Timedelta(days=16000)).dt.tz_localize("UTC"),
            "income": pd.Series(chance.integers(10, 60, n) / 4).mask(holes[3]),
            "debt": chance.integers(0, 30, n),
            "member": chance.integers(0, 2, n) == 1,
        }
    )


def points(frame: pd.DataFrame) -> np.ndarray:
    """Whole numbers, so that the score has the same bits everywhere."""
    total = 3 * (frame["age"] > 40).to_numpy(dtype=int)
    total = total + frame["children"].fillna(2).to_numpy(dtype=int)
    total = total + 2 * (frame["city"].astype(object) == "Oslo").to_numpy(dtype=int)
    total = total + 3 * frame["size"].astype(object).isin(["mid", "high"]).to_numpy(dtype=int)
    total = total + 2 * (frame["income"] > 8).to_numpy(dtype=int)
    total = total + 2 * (frame["debt"] < 12).to_numpy(dtype=int)
    late = (frame["since"] > pd.Timestamp("2020-06-01", tz="UTC")).to_numpy(dtype=int)
    return total + late + frame["member"].to_numpy(dtype=int)


def verdict(frame: pd.DataFrame) -> np.ndarray:
    return np.array(["no", "perhaps", "yes"])[np.digitize(points(frame), [8, 11])]


class Classifier:
    """Probabilities in 16ths, which floats hold exactly."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        yes = np.minimum(points(frame), 16) / 16
        return np.stack([1 - yes, yes], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[(self.predict_proba(frame)[:, 1] >= 0.5).astype(int)]


RULES = [
    c.only_down("debt"),
    c.change("income", at_least="-10 %", at_most=5),
    c.frozen("city", where="age > 60"),
    c.relation("debts can be paid", "debt <= 6 * income"),
    c.together("member", "children"),
    c.weight("income", 2.5),
    c.step("income", 0.5),
    c.transitions("city", {"Ås": ["Oslo"], "Bærum": ["Ås", "Oslo"]}),
    c.levels("size", ["mid", "high"]),
    c.not_down("since"),
]
CHAIN = TreeChain(min_samples_leaf=10, max_depth=6, visit_order="correlation")
SCORE: tuple[Any, Any] = (points, (12, 20))
# Files before the fifth version replace numbers that training never held.
AS_BEFORE = ExactSearch(keep_unseen=False)
FAST_BEFORE = Search.preset("fast", keep_unseen=False, back_off=False)
# For each file: the predictor and what is desired of it, the search, the settings.
FILES: dict[str, tuple[tuple[Any, Any], Any, dict[str, Any]]] = {
    "paper": (
        SCORE,
        "paper",
        {"draws": 200, "most_draws": 400, "rank_by": ["distance"], "tolerance": 0.02}
        | {"nearest": 0.4, "constraints": RULES},
    ),
    "sparse": (
        SCORE,
        "sparse",
        {"fewest": 2, "draws": 50, "most_draws": 500, "constraints": [*RULES, c.max_changes(3)]},
    ),
    "balanced": (
        (Classifier(), (0.75, 1.0)),
        "balanced",
        {"n_answers": 3, "diversity": 0.5, "nearest": 0.3, "constraints": RULES[:4]},
    ),
    "plausible": (
        (verdict, ["yes"]),
        "plausible",
        {"no_copies": True, "tolerance": 0.05, "constraints": RULES[4:]},
    ),
    "near": (
        SCORE,
        "near",
        {"generator": CHAIN, "n_answers": 2, "fewest": 3, "nearest": 0.25, "constraints": RULES},
    ),
    "fast": (
        (Classifier(), "yes"),
        FAST_BEFORE,
        {"n_answers": 3, "diversity": 0.25, "rank_by": ["distance", "sparsity"]}
        | {"draws": 80, "most_draws": 160, "constraints": RULES},
    ),
    "exact": (
        SCORE,
        AS_BEFORE,
        {"n_answers": 2, "fewest": 3, "nearest": 0.3, "no_copies": True, "constraints": RULES},
    ),
    "own_search": (
        SCORE,
        own_search(),
        {"n_answers": 2, "diversity": 0.75, "fewest": 4, "constraints": RULES},
    ),
    "own_exact_search": (
        (verdict, ["perhaps", "yes"]),
        replace(own_exact_search(), keep_unseen=False),
        {"most_draws": 150, "constraints": RULES[:6]},
    ),
    "plain_paper": (SCORE, "paper", {}),
    "plain_exact": (SCORE, AS_BEFORE, {}),
}


# Saved by the third version of the format as well; "balanced" by the sixth, too.
V3 = ("balanced", "exact")
# Their searches need what files before the fifth version do not hold.
OUTDATED = ("balanced", "near", "own_search", "plausible", "sparse")
CURRENT = [name for name in FILES if name not in OUTDATED]


def path_of(name: str, version: int = 1) -> Path:
    return FOLDER / f"saved_v{version}_{name}.mcce"


def fitted(name: str) -> MCCE:
    (predictor, desired), search, settings = FILES[name]
    explainer = build(predictor, desired, search, immutable=["age", "sex"], **settings)
    return explainer.fit(customers().head(N_TRAIN))


def described(explainer: MCCE) -> list[Any]:
    return describe_result(explain(explainer, customers().tail(N_PEOPLE)))


def write() -> None:
    """Write the saved files and their answers anew."""
    for name in FILES:
        explainer = fitted(name)
        explainer.save(path_of(name))
        text = written(["answers", *described(explainer)])
        path_of(name).with_suffix(".jsonl").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", CURRENT)
def test_a_saved_explainer_still_gives_its_answers(name):
    loaded = mcce.load(path_of(name), FILES[name][0][0])

    assert_pinned(described(loaded), path_of(name).with_suffix(".jsonl"), "answers")


@pytest.mark.parametrize("name", V3[1:])
def test_a_file_of_the_third_format_still_gives_its_answers(name):
    path = path_of(name, version=3)

    loaded = mcce.load(path, FILES[name][0][0])

    assert_pinned(described(loaded), path.with_suffix(".jsonl"), "answers")


def test_a_file_of_the_sixth_format_gives_its_answers_and_ranges(tmp_path):
    path, predictor = path_of("balanced", version=6), FILES["balanced"][0][0]
    mcce.load(path, predictor).save(tmp_path / "again.mcce")

    for saved in (path, tmp_path / "again.mcce"):
        loaded = mcce.load(saved, predictor)
        ranges = loaded.ranges(explain(loaded, customers().tail(N_PEOPLE)))

        assert_pinned(described(loaded), path.with_suffix(".jsonl"), "answers")
        assert ranges["low"].notna().any()
        # It did not count training values yet.
        assert ranges["n_training"].isna().all()


@pytest.mark.parametrize("name", CURRENT)
def test_an_explainer_fitted_anew_gives_the_answers_of_the_saved_one(name):
    explainer = fitted(name)
    # Older files have no plausibility, so their answers have no measure of it.
    explainer.fitted_ = replace(explainer.fitted_, plausibility=None)

    assert_pinned(described(explainer), path_of(name).with_suffix(".jsonl"), "answers")


@pytest.mark.parametrize("name", CURRENT)
def test_a_saved_explainer_can_be_saved_again(name, tmp_path):
    predictor = FILES[name][0][0]
    mcce.load(path_of(name), predictor).save(tmp_path / "again.mcce")

    again = mcce.load(tmp_path / "again.mcce", predictor)

    assert_pinned(described(again), path_of(name).with_suffix(".jsonl"), "answers")


@pytest.mark.parametrize(
    "path", [*map(path_of, OUTDATED), path_of("balanced", version=3)], ids=lambda path: path.stem
)
def test_an_old_file_whose_search_needs_plausibility_asks_for_a_refit(path, tmp_path):
    name = path.stem.split("_", 2)[2]
    loaded = mcce.load(path, FILES[name][0][0])

    with pytest.raises(NotFittedError, match=r"an earlier version of mcce\. Fit again"):
        described(loaded)
    with pytest.raises(NotFittedError, match=r"an earlier version of mcce\. Fit again"):
        loaded.save(tmp_path / "again.mcce")

    assert described(loaded.set_params(search="paper", n_counterfactuals=1, diversity=None))
