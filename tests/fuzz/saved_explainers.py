"""Saved explainers of every search, storage and kind of frame, for the fuzzing of files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mcce
from mcce import MCCE, ExactSearch, ForestChain, TreeChain
from mcce import constraints as c
from saved import CELLS, any_score, kinds_of, table

N_TRAIN, N_PEOPLE = 150, 12


@dataclass(frozen=True)
class Saved:
    """A saved explainer, its predictor, and people to explain."""

    path: Path
    predictor: Any
    people: Any


def customers(n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers, levels (more than 64 of one), booleans and dates, some missing."""
    chance = np.random.default_rng(seed)
    levels = [f"p{number}" for number in range(70)]
    sizes = pd.CategoricalDtype(["low", "mid", "high", "never"], ordered=True)
    days = pd.Series(chance.integers(0, 40, n_rows) * 86400 * 10**9).astype("datetime64[ns]")
    return pd.DataFrame(
        {
            "age": chance.integers(4, 14, n_rows) * 5,
            "city": pd.Series(chance.choice(["Oslo", "Bergen", "Hamar"], n_rows), dtype=object)
            .mask(chance.random(n_rows) < 0.1, None),
            "income": pd.Series(chance.integers(10, 60, n_rows) / 4).mask(
                chance.random(n_rows) < 0.1
            ),
            "place": pd.Series(chance.choice(levels, n_rows)).astype("category"),
            "size": pd.Series(chance.choice(["low", "mid", "high"], n_rows)).astype(sizes),
            "since": days,
            "children": pd.Series(chance.integers(0, 4, n_rows), dtype="Int64"),
            "member": chance.random(n_rows) < 0.5,
        }
    )  # fmt: skip


def points(frame: pd.DataFrame) -> np.ndarray:
    """Whole numbers, so that probe scores are the same everywhere."""
    total = 2 * (frame["age"] > 40).to_numpy(dtype=int)
    total = total + 2 * (frame["city"].astype(object) == "Oslo").to_numpy(dtype=int)
    total = total + 3 * (frame["income"] > 8).to_numpy(dtype=int)
    total = total + frame["children"].fillna(1).to_numpy(dtype=int)
    return total + frame["member"].to_numpy(dtype=int)


def write_saved(folder: Path) -> dict[str, Saved]:
    """A saved explainer of each kind, by name."""
    train, people = customers(N_TRAIN, 1), customers(N_PEOPLE, 2)
    chain = TreeChain(min_samples_leaf=3, visit_order="correlation")
    rules = [c.only_up("income"), c.frozen("city", where="age > 60"), c.max_changes(3)]
    rules += [c.relation("old", "income + children < 30"), c.levels("size", ["mid", "high"])]
    own = mcce.Search.preset("near", n_targets=3, n_samples=40)
    settings: dict[str, dict[str, Any]] = {
        "paper": {"search": mcce.Search.preset("paper", copies="never"), "n_samples": 60},
        "balanced": {"search": "balanced", "n_samples": 60, "constraints": rules},
        "near": {"search": own, "generator": chain, "n_counterfactuals": 2, "diversity": 0.5},
        "fast": {"search": "fast", "n_samples": 40, "constraints": rules[:2]},
        "exact": {"search": ExactSearch(max_rows=30, max_nodes=2000), "constraints": rules[:3]},
        "both": {"search": "plausible", "generator": TreeChain(decisions=(False, True))},
        "forest": {"search": "sparse", "generator": ForestChain(n_trees=3), "distance": "hvdm"},
        "ctree": {"search": "sparse", "generator": "ctree", "distance": "ivdm"},
        "copula": {"search": "paper", "generator": "copula", "n_samples": 30},
    }
    saved = {}
    for name, given in settings.items():
        explainer = MCCE(points, (7, 99), immutable=["age"], random_state=3, **given).fit(train)
        explainer.save(folder / f"{name}.mcce")
        saved[name] = Saved(folder / f"{name}.mcce", points, people)
    return saved | _write_storages(folder)


def _write_storages(folder: Path) -> dict[str, Saved]:
    """Explainers of columns of every storage, and of every other kind of frame."""
    storages = [name for name in CELLS if "surrogate" not in name]
    everything = table(storages, 60, 4)
    some = table(["int64", "float64", "words", "bool"], 80, 4)
    frames: dict[str, Any] = {"storages": everything, "array": some.iloc[:, :2].to_numpy()}
    if find_spec("polars") and find_spec("pyarrow"):
        import polars
        import pyarrow

        frames |= {"polars": polars.from_pandas(some), "arrow": pyarrow.Table.from_pandas(some)}
    saved = {}
    for name, frame in frames.items():
        kinds = kinds_of(frame) if name == "storages" else None
        settings: dict[str, Any] = {"search": "sparse", "n_samples": 30, "kinds": kinds}
        explainer = MCCE(any_frame, (0.5, 1.0), random_state=1, **settings).fit(frame)
        explainer.save(folder / f"{name}.mcce")
        saved[name] = Saved(folder / f"{name}.mcce", any_frame, frame[:12])
    return saved


def any_frame(frame: Any) -> np.ndarray:
    """A score of any kind of frame."""
    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame(frame) if isinstance(frame, np.ndarray) else frame.to_pandas()
    return any_score(frame)
