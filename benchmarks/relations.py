"""Relations between columns: planted ones that are found, none where none is, real rows kept.

``python benchmarks/relations.py [--seeds 20] [--rows 1500] [--nulls 10]``. Each law is planted in a
table of its own, with columns that have nothing to do with it beside. It counts as found if the
relations that hold in all training rows exclude 95 % of new rows whose target is permuted and which
break it, and hardly any new row that keeps it. Then every column is permuted: nothing should be
found. Last, of each real data set, one half is searched for relations, and the rows of the other
half that break one of them are counted.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cases import load
from mcce.relations.discovery import find_relations
from mcce.tables.schema import Schema
from measure import Table, log, write

Random: TypeAlias = np.random.Generator
Bools: TypeAlias = NDArray[np.bool_]
DAY = pd.Timedelta(days=1)
SHARE, TAX = {"a": 0.0, "b": 0.3, "c": 1.0}, {"a": 0.19, "b": 0.07, "c": 0.22}
FOUND, KEPT = 0.95, 0.01
DATA_SETS = ("german", "adult", "gmc", "fico")


@dataclass(frozen=True)
class Law:
    """Columns that keep a law, the one that is permuted to break it, and a check of rows."""

    make: Callable[[pd.DataFrame, Random], dict[str, Any]]
    target: str
    holds: Callable[[pd.DataFrame], Any]


def near(column: Any, formula: Any, most: float) -> Any:
    """Whether numbers are near those of a formula."""
    return np.abs(column - formula) <= most + 1e-9


def days(random: Random, n_rows: int, most: int) -> Any:
    """Lengths of time in whole days."""
    return pd.to_timedelta(random.integers(1, most, n_rows), unit="D")


def size_of(numbers: Any) -> Any:
    """A class of each number."""
    return np.where(numbers > 120, "l", np.where(numbers > 60, "m", "s"))


# Of the columns of ``table``: x, y, z are numbers, n and m counts, g and h levels, d dates.
LAWS: dict[str, Law] = {
    "sum": Law(
        lambda f, r: {"t": f["x"] + 2 * f["y"] - f["z"]},
        "t",
        lambda f: near(f["t"], f["x"] + 2 * f["y"] - f["z"], 0.01),
    ),
    "sum of prices": Law(
        lambda f, r: {"t": f["g"].map(TAX) * 100 + f["h"].map(SHARE) * 10 + f["n"]},
        "t",
        lambda f: near(f["t"], f["g"].map(TAX) * 100 + f["h"].map(SHARE) * 10 + f["n"], 0.01),
    ),
    "sum with a rare term": Law(
        lambda f, r: {
            "k": (rare := (r.random(len(f)) < 0.015) * r.integers(1, 3, len(f))),
            "t": f["n"] + f["m"] + rare,
        },
        "t",
        lambda f: f["t"] == f["n"] + f["m"] + f["k"],
    ),
    "product": Law(
        lambda f, r: {"t": (f["n"] * f["x"]).round(2)},
        "t",
        lambda f: near(f["t"], f["n"] * f["x"], 0.005),
    ),
    "product of three": Law(
        lambda f, r: {"t": (0.5 * f["n"] * f["x"] * f["m"]).round(2)},
        "t",
        lambda f: near(f["t"], 0.5 * f["n"] * f["x"] * f["m"], 0.005),
    ),
    "ratio": Law(
        lambda f, r: {"t": (100 * f["x"] / f["y"]).round(1)},
        "t",
        lambda f: near(f["t"], 100 * f["x"] / f["y"], 0.05),
    ),
    "sum over a column": Law(
        lambda f, r: {"t": (100 * (f["x"] + f["z"]) / f["y"]).round(1)},
        "t",
        lambda f: near(f["t"], 100 * (f["x"] + f["z"]) / f["y"], 0.5),
    ),
    "share by level": Law(
        lambda f, r: {"t": (f["g"].map(SHARE) * f["x"]).round(2)},
        "t",
        lambda f: near(f["t"], f["g"].map(SHARE) * f["x"], 0.005),
    ),
    "rate by level": Law(
        lambda f, r: {"t": (f["g"].map(TAX) * f["x"]).round(2)},
        "t",
        lambda f: near(f["t"], f["g"].map(TAX) * f["x"], 0.005),
    ),
    "ordering": Law(
        lambda f, r: {"t": f["n"] + r.integers(0, 12, len(f))}, "t", lambda f: f["t"] >= f["n"]
    ),
    "ordering of dates": Law(
        lambda f, r: {"t": f["d"] + days(r, len(f), 300)}, "t", lambda f: f["t"] >= f["d"]
    ),
    "difference": Law(
        lambda f, r: {
            "a": (age := r.integers(18, 67, len(f))),
            "t": np.floor((age - 18) * r.beta(2, 1.5, len(f))),
        },
        "t",
        lambda f: f["t"] <= f["a"] - 17,
    ),
    "share at most": Law(
        lambda f, r: {"t": (f["x"] * 0.5 * r.beta(1.2, 1.5, len(f))).round(2)},
        "t",
        lambda f: f["t"] <= 0.55 * f["x"],
    ),
    "sum within limits": Law(
        lambda f, r: {"t": f["n"] + f["m"] + r.integers(-2, 3, len(f))},
        "t",
        lambda f: near(f["t"], f["n"] + f["m"], 2),
    ),
    "product within limits": Law(
        lambda f, r: {"t": (f["n"] * f["x"] * r.uniform(0.7, 1.3, len(f))).round(2)},
        "t",
        lambda f: near(f["t"] / (f["n"] * f["x"]), 1, 0.35),
    ),
    "missing for a level": Law(
        lambda f, r: {"t": np.where(f["g"] == "b", np.nan, r.integers(1, 30, len(f)))},
        "t",
        lambda f: f["t"].isna() == (f["g"] == "b"),
    ),
    "missing for two levels": Law(
        lambda f, r: {"t": pd.Series(r.choice(["k", "l"], len(f))).where(f["g"] == "b", None)},
        "t",
        lambda f: f["t"].isna() == (f["g"] != "b"),
    ),
    "missing for 0": Law(
        lambda f, r: {
            "k": (count := r.poisson(0.5, len(f))),
            "t": np.where(count == 0, np.nan, r.integers(1, 90, len(f))),
        },
        "t",
        lambda f: f["t"].isna() == (f["k"] == 0),
    ),
    "code and name": Law(
        lambda f, r: {
            "k": (code := pd.Series(r.choice([*"abcdefgh"], len(f)))),
            "t": code.map(dict(zip("abcdefgh", "xxyyzzzw", strict=True))),
        },
        "t",
        lambda f: f["t"] == f["k"].map(dict(zip("abcdefgh", "xxyyzzzw", strict=True))),
    ),
    "part of a date": Law(
        lambda f, r: {"t": f["d"].dt.month_name()}, "t", lambda f: f["t"] == f["d"].dt.month_name()
    ),
    "days between dates": Law(
        lambda f, r: {"e": (end := f["d"] + days(r, len(f), 20)), "t": (end - f["d"]).dt.days},
        "t",
        lambda f: f["t"] == (f["e"] - f["d"]).dt.days,
    ),
    "class of a number": Law(
        lambda f, r: {"t": size_of(f["x"])}, "t", lambda f: f["t"] == size_of(f["x"])
    ),
}


def main() -> None:
    """Print and write the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--nulls", type=int, default=10, help="permuted tables of each law")
    parser.add_argument("--laws", nargs="+", default=[*LAWS], choices=LAWS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = [
        Table("Planted", ("law", "found", "excludes", "rejects", "listed"), [*_planted(options)]),
        Table("Permuted", ("tables", "with relations"), [_permuted(options)]),
        Table("Real rows", ("data", "relations", "rows", "broken"), [*_real()]),
    ]
    write(tables, "relations")
    for table in tables:
        print(table.markdown())


def _planted(options: argparse.Namespace) -> Iterator[list[str]]:
    total = 0
    for name in options.laws:
        law = LAWS[name]
        found = np.array([_measure(law, seed, options.rows) for seed in range(options.seeds)])
        is_found = (found[:, 0] >= FOUND) & (found[:, 1] <= KEPT)
        total += int(is_found.sum())
        excluded, rejected, listed = found.mean(axis=0)
        log(f"{name}: {is_found.sum()} of {is_found.size}")
        counted = f"{is_found.sum()} of {is_found.size}"
        yield [name, counted, f"{excluded:.3f}", f"{rejected:.4f}", f"{listed:.1f}"]
    yield ["all", f"{total} of {len(options.laws) * options.seeds}", "", "", ""]


def _measure(law: Law, seed: int, n_rows: int) -> tuple[float, float, int]:
    """Shares of rows excluded that break a law and that keep it; how many relations there are."""
    random = np.random.default_rng(seed)
    frame, new = table(law, n_rows, random), table(law, n_rows, random)
    broken = new.assign(**{law.target: new[law.target].to_numpy()[random.permutation(n_rows)]})
    broken = broken[~np.asarray(law.holds(broken), dtype=bool)].reset_index(drop=True)
    found = find_relations(Schema.learn_rows(frame))
    enforced = [one.relation for one in found if one.enforced]
    return _broken(enforced, broken), _broken(enforced, new), len(found)


def _broken(relations: list[Any], rows: pd.DataFrame) -> float:
    """The share of rows that break one of some relations."""
    breaks: Bools = np.zeros(len(rows), dtype=bool)
    for relation in relations:
        breaks |= ~relation.holds(rows)
    return float(breaks.mean())


def table(law: Law, n_rows: int, random: Random) -> pd.DataFrame:
    """Rows that keep a law, with columns that have nothing to do with it."""
    start = pd.Timestamp("2022-01-01") + days(random, n_rows, 900)
    frame = pd.DataFrame(
        {
            "x": random.gamma(3, 30, n_rows).round(2) + 1,
            "y": random.gamma(4, 400, n_rows).round(0) + 50,
            "z": random.lognormal(3, 1, n_rows).round(2),
            "n": random.integers(1, 13, n_rows),
            "m": 1 + random.poisson(1.5, n_rows),
            "g": random.choice([*SHARE], n_rows, p=[0.5, 0.3, 0.2]),
            "h": random.choice([*TAX], n_rows),
            "d": start,
        }
    )
    frame["noise"] = random.normal(size=n_rows)
    frame["more"] = frame["noise"] + 0.5 * random.normal(size=n_rows)
    frame["income"] = (2000 + 500 * frame["n"] + random.gamma(2, 500, n_rows)).round(-1)
    frame["city"] = random.choice([*"klmnopq"], n_rows)
    frame["holes"] = np.where(random.random(n_rows) < 0.2, np.nan, random.integers(0, 50, n_rows))
    return frame.assign(**law.make(frame, random))


def _permuted(options: argparse.Namespace) -> list[str]:
    n_found, n_tables = 0, 0
    for name in options.laws:
        for seed in range(options.nulls):
            random = np.random.default_rng(1000 + seed)
            frame = table(LAWS[name], options.rows, random)
            columns = {one: frame[one].to_numpy()[random.permutation(len(frame))] for one in frame}
            found = find_relations(Schema.learn_rows(pd.DataFrame(columns)))
            n_found, n_tables = n_found + bool(found), n_tables + 1
            for one in found:
                log(f"permuted {name}, {seed}: {one.relation.name}")
    return [str(n_tables), str(n_found)]


def _real() -> Iterator[list[str]]:
    for name in DATA_SETS:
        case = load(name)
        if case is not None:
            order = np.random.default_rng(0).permutation(len(case.train))
            half = len(order) // 2
            seen, new = (case.train.iloc[rows] for rows in (order[:half], order[half:]))
            found = find_relations(Schema.learn_rows(seen.reset_index(drop=True)))
            listed = [one.relation for one in found]
            share = _broken(listed, new.reset_index(drop=True))
            yield [name, str(len(found)), str(len(new)), f"{share:.4f}"]


if __name__ == "__main__":
    main()
