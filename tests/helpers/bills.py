"""Customers whose total is computed from other columns, and a black box that looks at it."""

from __future__ import annotations

import numpy as np
import pandas as pd


def bills(n_rows, seed=0):
    """Bills in whole cents: total = months * price."""
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "months": chance.integers(1, 60, n_rows),
            "price": chance.integers(2000, 12000, n_rows) / 100,
            "age": chance.integers(18, 80, n_rows),
            "plan": chance.choice(["basic", "plus", "pro"], n_rows),
        }
    )
    return frame.assign(total=(frame["months"] * frame["price"]).round(2))


def value(frame):
    """A score that rises with the total and falls with the price."""
    total, price = frame["total"].to_numpy(float), frame["price"].to_numpy(float)
    return total / 1000 - price / 50 + (frame["plan"] == "pro").to_numpy(float)


def deviation(frame):
    """The total minus its formula."""
    months, price = frame["months"].to_numpy(float), frame["price"].to_numpy(float)
    return frame["total"].to_numpy(float) - months * price
