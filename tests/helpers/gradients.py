"""Black boxes with gradients, and the methods that need torch with settings that run quickly."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from mcce import McceWarning
from mcce_lab import baselines

IMMUTABLE = ["sex", "age"]
JOBS = ["clerk", "farmer", "judge", "pilot"]

# Enough for an answer, and no more.
QUICK: dict[str, dict[str, Any]] = {
    "Wachter": {"weights": (0.1, 0.5), "n_steps": 60},
    "CCHVAE": {"hidden": (16,), "n_latent": 4, "n_epochs": 4, "n_rings": 60, "n_samples": 20},
    "REViSE": {"hidden": (16,), "n_latent": 4, "n_epochs": 8, "n_steps": 60},
    "CLUE": {"width": 16, "n_latent": 4, "n_epochs": 4, "n_steps": 60, "desired_weight": 3.0},
    "CRUDS": {"hidden": 16, "n_latent": 4, "n_epochs": 4, "n_steps": 60, "n_starts": 2},
    "CEM": {"hidden": (8, 4), "n_epochs": 2, "n_rounds": 2, "n_steps": 40},
}
METHODS = list(QUICK)
NEEDS_GRADIENTS = [name for name in METHODS if name != "CCHVAE"]


def loans() -> pd.DataFrame:
    """Numbers, booleans, and strings with a rare level."""
    chance = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": chance.integers(20, 60, 240),
            "sex": chance.choice(["f", "m"], 240),
            "job": chance.choice(JOBS, 240, p=[0.5, 0.3, 0.19, 0.01]),
            "salary": chance.integers(8, 80, 240) / 4,
            "owns": chance.random(240) < 0.4,
        }
    )


def quick(name: str, predictor: Any, desired: Any = (0.5, 1.0), **settings: Any) -> Any:
    """An unfitted method with quick settings."""
    return getattr(baselines, name)(predictor, desired, **{**QUICK[name], **settings})


class Logistic:
    """The logistic function of a weighted sum of a frame's columns, levels as indicators.

    Parameters
    ----------
    weights
        The weight of a number by column name, and of levels by column name and level.
    bias
        What is added.
    """

    offers_gradients = True

    def __init__(self, weights: dict[str, float | dict[Any, float]], bias: float) -> None:
        self.weights, self.bias = weights, bias

    def __call__(self, rows: Any) -> np.ndarray:
        return 1 / (1 + np.exp(-self.encode_inputs(rows) @ self.slopes - self.bias))

    @property
    def slopes(self) -> np.ndarray:
        parts = [w.values() if isinstance(w, dict) else [w] for w in self.weights.values()]
        return np.array([slope for part in parts for slope in part])

    def encode_inputs(self, rows: Any) -> np.ndarray:
        cells = pd.DataFrame({name: np.asarray(rows[name]) for name in self.weights})
        columns = []
        for name, weight in self.weights.items():
            if isinstance(weight, dict):
                columns += [cells[name] == level for level in weight]
            else:
                columns.append(cells[name])
        return np.column_stack(columns).astype(np.float64)

    def differentiate(self, inputs: Any) -> Any:
        import torch

        slopes = torch.as_tensor(self.slopes, device=inputs.device)
        return torch.sigmoid(inputs @ slopes + self.bias)


class Complete(Logistic):
    """The same, with zero in place of missing numbers."""

    def encode_inputs(self, rows: Any) -> np.ndarray:
        return np.nan_to_num(super().encode_inputs(rows))


def credit() -> Logistic:
    """A black box that accepts about half of the rows of ``loans``, missing numbers or not."""
    jobs = dict(zip(JOBS, (-0.5, 0.0, 1.5, 2.0), strict=True))
    return Complete({"age": 0.02, "salary": 0.3, "owns": 0.8, "job": jobs}, -4.6)


@cache
def fitted(name: str) -> Any:
    """A fitted method, which tests must not change."""
    return quick(name, credit(), immutable=IMMUTABLE).fit(loans())


def explain(explainer: Any, frame: Any) -> Any:
    """A result without the warning about people who have no answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.explain(frame)


def people(n_people: int = 12) -> pd.DataFrame:
    """Some people whom it declines."""
    frame = loans()
    return frame[credit()(frame) < 0.5].head(n_people)


def line(n_rows: int = 1001) -> pd.DataFrame:
    """One number from 0 to 1 in steps of a thousandth, so that points are the rows themselves."""
    return pd.DataFrame({"x": np.linspace(0, 1, n_rows).round(3)})


def step_at(bias: float, slope: float = 10.0) -> Logistic:
    """A black box of ``line`` with the decision at ``bias``."""
    return Logistic({"x": slope}, -slope * bias)


class Identity:
    """An auto-encoder whose code is the row: a point's mutable axes."""

    def __init__(self, layout: Any) -> None:
        self.layout = layout

    def encode(self, points: Any) -> tuple[Any, None]:
        return points[:, self.layout.mutable], None

    def decode(self, codes: Any, own: Any) -> Any:
        return self.layout.place(codes, own)
