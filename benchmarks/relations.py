"""Relations between columns: what is found, what it costs, and whether answers keep it.

``python benchmarks/relations.py`` prints Markdown tables and writes them to
``out/bench/relations.md``. Tables are made up, with planted relations: exact, with 1 % of rows
broken, and with 1 % relative error.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd

from mcce import MCCE, McceWarning
from mcce.relations.discovery import find_relations
from mcce.search.config import SearchName
from mcce.tables.schema import Schema
from measure import Table, cpu, exponent, log, machine, write
from planted_relations import PLANTED, permuted, planted

VARIANTS: dict[str, dict[str, float]] = {
    "exact": {},
    "1 % broken": {"broken": 0.01},
    "1 % error": {"error": 0.01},
}
SEARCHES: tuple[SearchName, ...] = ("paper", "sparse", "balanced", "plausible", "near", "fast")
COLUMNS = (10, 40, 160)


def main() -> None:
    """Run all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="tables of each kind")
    parser.add_argument("--rows", type=int, default=2000, help="rows of a table")
    parser.add_argument("--people", type=int, default=40, help="people to explain")
    options = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    tables = [
        found(options.seeds, options.rows),
        broken(options.rows, options.people),
        costs(options.rows),
    ]
    for table in tables:
        print(table.markdown())
    write(tables, "relations")


def found(n_seeds: int, n_rows: int) -> Table:
    """Planted relations that are found, and false ones between permuted columns."""
    rows = []
    for name, variant in VARIANTS.items():
        log(f"found: {name}")
        n_found = n_enforced = n_others = n_false = 0
        for seed in range(n_seeds):
            frame = planted(n_rows, seed, **variant)
            listed = find_relations(Schema.learn_rows(frame))
            kinds = {(f.relation.kind, frozenset(f.relation.features)): f for f in listed}
            n_found += len(kinds.keys() & PLANTED)
            n_others += len(kinds.keys() - PLANTED)
            n_enforced += sum(f.enforced for key, f in kinds.items() if key in PLANTED)
            n_false += len(find_relations(Schema.learn_rows(permuted(frame, seed))))
        n_planted = n_seeds * len(PLANTED)
        rows.append([name, *map(str, (n_planted, n_found, n_enforced, n_others, n_false))])
    headings = ["variant", "planted", "found", "enforced", "others listed", "false, permuted"]
    return Table(f"Relations found, {n_seeds} tables of {n_rows} rows", headings, rows)


def score(frame: pd.DataFrame) -> np.ndarray:
    """An acceptance that depends on three computed columns."""
    value = frame["total"] / 1500 + frame["bill"] / 20 - frame["sum"] / 800
    return np.asarray(1 / (1 + np.exp(2.5 - value)))


def broken(n_rows: int, n_people: int) -> Table:
    """Answers that break a planted relation, by search."""
    rows = []
    for name, variant in VARIANTS.items():
        train = planted(n_rows, 0, **variant)
        people = train[score(train) < 0.5].head(n_people)
        judged = [f.relation for f in find_relations(Schema.learn_rows(train))]
        for search in SEARCHES:
            log(f"broken: {name}, {search}")
            explainer = MCCE(score, (0.5, 1.0), immutable=["age"], search=search, random_state=0)
            result = explainer.fit(train).explain(people)
            # Who breaks a relation already may go on doing so.
            own = people.loc[result.frame.index.get_level_values("factual")]
            kept = np.array([r.holds(result.frame) | ~r.holds(own) for r in judged])
            measures = result.measures
            rows.append(
                [
                    f"{name}, {search}",
                    f"{len(result.frame)}/{len(people)}",
                    f"{measures['sparsity'].mean():.2f}",
                    f"{100 * (1 - kept.all(axis=0).mean()):.1f}",
                    *(f"{100 * (1 - one.mean()):.1f}" for one in kept[:6]),
                ]
            )
    kinds = ["product", "price list", "sum", "ordering", "equivalence", "dependency"]
    headings = ["variant, search", "answered", "changes", "any, %", *kinds]
    note = "Of answers to people whose own rows keep the relation, in the order of the list."
    return Table("Answers that break a relation, %", headings, rows, note)


def costs(n_rows: int) -> Table:
    """CPU seconds of the search for relations and of the whole fit, by number of columns."""
    rows, finding, fitting = [], [], []
    for n_columns in COLUMNS:
        log(f"costs: {n_columns} columns")
        frame = widened(n_rows, n_columns)
        encoded = Schema.learn_rows(frame)
        seconds, listed = cpu(lambda given=encoded: find_relations(given))  # type: ignore[misc]
        explainer = MCCE(lambda x: x["months0"] / 72, (0.5, 1.0), search="sparse", random_state=0)
        whole, _ = cpu(lambda fit=explainer.fit, given=frame: fit(given))  # type: ignore[misc]
        finding.append(seconds)
        fitting.append(whole)
        rows.append([str(n_columns), f"{seconds:.2f}", f"{whole:.2f}", str(len(listed))])
    exponents = [f"{exponent(COLUMNS, values):.2f}" for values in (finding, fitting)]
    headings = ["columns", "relations, CPU s", "fit, CPU s", "relations listed"]
    return Table(f"Cost, {n_rows} rows", headings, [*rows, ["exponent", *exponents, ""]])


def widened(n_rows: int, n_columns: int) -> pd.DataFrame:
    """Several planted tables side by side, cut to some columns."""
    parts = [planted(n_rows, seed).add_suffix(str(seed)) for seed in range(n_columns // 17 + 1)]
    return pd.concat(parts, axis=1).iloc[:, :n_columns]


if __name__ == "__main__":
    main()
