"""The authors' answers and the black boxes they explained, read from a folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Network:
    """A small ReLU network on raw columns: standardise, layers, sigmoid."""

    arrays: dict[str, np.ndarray]

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        inputs = [self._input(frame, str(name)) for name in self.arrays["input_names"]]
        hidden = np.column_stack(inputs) - self.arrays["natural_mean"]
        hidden /= self.arrays["natural_sd"]
        n_layers = len([name for name in self.arrays if name.startswith("coef_")])
        for layer in range(n_layers):
            hidden = hidden @ self.arrays[f"coef_{layer}"] + self.arrays[f"intercept_{layer}"]
            if layer < n_layers - 1:
                hidden = np.maximum(hidden, 0.0)
        return 1.0 / (1.0 + np.exp(-hidden[:, 0]))

    @staticmethod
    def _input(frame: pd.DataFrame, name: str) -> np.ndarray:
        if name in frame.columns:
            return frame[name].to_numpy(dtype=np.float64)
        column = max((c for c in frame.columns if name.startswith(f"{c}_")), key=len)
        return (frame[column] == name[len(column) + 1 :]).to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class Reference:
    """One case: training rows, people, the black box, and the authors' answers."""

    meta: dict[str, Any]
    train: pd.DataFrame
    people: pd.DataFrame
    stated_scores: np.ndarray
    network: Network
    answers: pd.DataFrame


def load(folder: Path) -> Reference:
    """The case in a folder."""
    meta = json.loads((folder / "meta.json").read_text())
    tables = {
        name: pd.read_csv(folder / f"{name}.csv.gz").set_index("row")
        for name in ("train", "factuals", "reference_cfs")
    }
    people = tables["factuals"].drop(columns=[meta["target"], "pred_prob"])
    with np.load(folder / "model.npz") as arrays:
        network = Network({name: arrays[name] for name in arrays.files})
    return Reference(
        meta=meta,
        train=tables["train"].drop(columns=meta["target"]),
        people=people,
        stated_scores=tables["factuals"]["pred_prob"].to_numpy(),
        network=network,
        answers=tables["reference_cfs"],
    )
