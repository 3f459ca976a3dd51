"""Tables with planted relations: exact, with broken rows, or with a relative error."""

from __future__ import annotations

import numpy as np
import pandas as pd

PLAN = {"basic": 20.0, "plus": 35.0, "max": 60.0}
DEVICE = {"none": 0.0, "phone": 12.5, "tablet": 8.0}
SECTOR = dict(zip("abcdefgh", "xxyyzzzw", strict=True))
# Kind and columns of every planted relation.
PLANTED = {
    ("product", frozenset({"total", "months", "price"})),
    ("linear", frozenset({"sum", "net", "tax", "fee"})),
    ("linear", frozenset({"bill", "plan", "device"})),
    ("ordering", frozenset({"start", "end"})),
    ("equivalence", frozenset({"days", "outcome"})),
    ("dependency", frozenset({"job", "sector"})),
}
TARGETS = ("total", "bill", "sum")


def planted(
    n_rows: int = 1500, seed: int = 0, *, broken: float = 0.0, error: float = 0.0
) -> pd.DataFrame:
    """A table in which every relation of ``PLANTED`` holds.

    Parameters
    ----------
    n_rows, seed
        How many rows, and the seed of the draws.
    broken
        Share of rows in which the column that follows is that of another row.
    error
        Relative error of the columns that are computed.
    """
    random = np.random.default_rng(seed)
    frame = _exact(n_rows, random)
    for target in TARGETS:
        frame[target] *= 1 + error * random.standard_normal(n_rows)
    for target in (*TARGETS, "end", "sector", "outcome"):
        rows = random.choice(n_rows, int(broken * n_rows), replace=False)
        cells = frame[target].to_numpy(copy=True)
        cells[rows] = cells[random.permutation(n_rows)[: rows.size]]
        frame[target] = cells
    return frame


def permuted(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The same columns, each in an order of its own: nothing holds between them."""
    random = np.random.default_rng(seed)
    columns = {name: frame[name].to_numpy()[random.permutation(len(frame))] for name in frame}
    return pd.DataFrame(columns)


def _exact(n_rows: int, random: np.random.Generator) -> pd.DataFrame:
    months = random.integers(1, 73, n_rows)
    price = np.round(random.uniform(18, 120, n_rows), 2)
    plan = pd.Series(random.choice(list(PLAN), n_rows, p=[0.5, 0.3, 0.2]))
    device = pd.Series(random.choice(list(DEVICE), n_rows))
    net, tax = (np.round(random.gamma(2, scale, n_rows), 2) for scale in (500, 100))
    fee = np.round(random.uniform(0, 50, n_rows), 2)
    start = random.integers(0, 50, n_rows)
    called = random.random(n_rows) < 0.3
    job = pd.Series(random.choice(list(SECTOR), n_rows))
    days = np.where(called, random.integers(1, 30, n_rows), np.nan)
    outcome = np.where(called, random.choice(["yes", "no"], n_rows), "never")
    return pd.DataFrame(
        {
            "months": months,
            "price": price,
            "total": months * price,
            "plan": plan,
            "device": device,
            "bill": plan.map(PLAN) + device.map(DEVICE),
            "net": net,
            "tax": tax,
            "fee": fee,
            "sum": net + tax + fee,
            "start": start,
            "end": start + random.integers(1, 40, n_rows),
            "days": days,
            "outcome": outcome,
            "job": job,
            "sector": job.map(SECTOR),
            "age": random.integers(18, 90, n_rows),
        }
    )
