"""Tables with planted relations: exact, with broken rows, or with a relative error."""

from __future__ import annotations

import numpy as np
import pandas as pd

PLAN = {"basic": 20.0, "plus": 35.0, "max": 60.0}
DEVICE = {"none": 0.0, "phone": 12.5, "tablet": 8.0}
SECTOR = dict(zip("abcdefgh", "xxyyzzzw", strict=True))
NET = {"slow": 25.0, "fast": 50.0, "no": 0.0}
# Kind and columns of every planted relation.
PLANTED = {
    ("product", frozenset({"total", "months", "price"})),
    ("linear", frozenset({"sum", "net", "tax", "fee"})),
    ("linear", frozenset({"bill", "plan", "device"})),
    ("ordering", frozenset({"start", "end"})),
    ("equivalence", frozenset({"days", "outcome"})),
    ("dependency", frozenset({"job", "sector"})),
}
SERVICES = {
    ("product", frozenset({"total", "tenure", "monthly"})),
    ("linear", frozenset({"monthly", "net", "phone", "backup", "television"})),
    ("linear", frozenset({"paid", "total", "open"})),
    ("ordering", frozenset({"used", "limit"})),
    ("equivalence", frozenset({"net", "television"})),
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


def services(
    n_rows: int = 1500, seed: int = 0, *, broken: float = 0.0, error: float = 0.0
) -> pd.DataFrame:
    """Customers of a telephone company: another table, with every kind but a dependency.

    ``monthly`` is a price list of four services, ``total`` is ``tenure * monthly``, ``paid`` is
    ``total - open``, ``used`` never exceeds ``limit``, and whoever has no net has no television.
    """
    random = np.random.default_rng(seed)
    net = pd.Series(random.choice(list(NET), n_rows, p=[0.35, 0.45, 0.2]))
    tenure = random.integers(1, 73, n_rows)
    phone, backup = (random.choice(["yes", "no"], n_rows) for _ in range(2))
    wants = random.choice(["yes", "no"], n_rows)
    television = np.where(net == "no", "no net", wants)
    monthly = 15 + net.map(NET) + 20.0 * (phone == "yes") + 7.5 * (backup == "yes")
    monthly += 10.0 * (television == "yes")
    monthly *= 1 + error * random.standard_normal(n_rows)
    total = tenure * monthly * (1 + error * random.standard_normal(n_rows))
    still_open = np.round(random.gamma(2, 20, n_rows), 2)
    limit = random.integers(5, 100, n_rows)
    frame = pd.DataFrame(
        {
            "tenure": tenure,
            "net": net,
            "phone": phone,
            "backup": backup,
            "television": television,
            "monthly": monthly,
            "total": total,
            "open": still_open,
            "paid": (total - still_open) * (1 + error * random.standard_normal(n_rows)),
            "limit": limit,
            "used": np.minimum(limit, random.integers(0, 60, n_rows)),
            "contract": random.choice(["month", "year", "two years"], n_rows),
            "age": random.integers(18, 90, n_rows),
        }
    )
    for target in ("monthly", "total", "paid", "used", "television"):
        rows = random.choice(n_rows, int(broken * n_rows), replace=False)
        cells = frame[target].to_numpy(copy=True)
        cells[rows] = cells[random.permutation(n_rows)[: rows.size]]
        frame[target] = cells
    return frame


def deviations(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """How far rows are from each planted relation: a share of the formula, or 0 and 1."""
    if "net" in frame and "tenure" in frame:
        monthly = 15 + frame["net"].map(NET).astype(float) + 20.0 * (frame["phone"] == "yes")
        monthly += 7.5 * (frame["backup"] == "yes") + 10.0 * (frame["television"] == "yes")
        formulas = {
            "product": ("total", frame["tenure"] * frame["monthly"]),
            "price list": ("monthly", monthly),
            "sum": ("paid", frame["total"] - frame["open"]),
        }
        ordered = frame["used"] <= frame["limit"]
        alike = (frame["net"] == "no") == (frame["television"] == "no net")
        follows = pd.Series(True, index=frame.index)
    else:
        bill = frame["plan"].map(PLAN).astype(float) + frame["device"].map(DEVICE).astype(float)
        formulas = {
            "product": ("total", frame["months"] * frame["price"]),
            "price list": ("bill", bill),
            "sum": ("sum", frame["net"] + frame["tax"] + frame["fee"]),
        }
        ordered = frame["start"] < frame["end"]
        alike = frame["days"].isna() == (frame["outcome"] == "never")
        follows = frame["job"].map(SECTOR).astype(str) == frame["sector"].astype(str)
    found = {
        kind: (np.abs(frame[target] - value) / np.maximum(np.abs(value), 1)).to_numpy()
        for kind, (target, value) in formulas.items()
    }
    kinds = {"ordering": ordered, "equivalence": alike, "dependency": follows}
    return found | {kind: 1.0 - np.asarray(holds, dtype=float) for kind, holds in kinds.items()}


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
