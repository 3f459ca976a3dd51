"""Relations between columns: what is found, what it costs, and whether answers keep it.

``python benchmarks/relations.py`` prints Markdown tables and writes them to
``out/bench/relations.md``. Tables are made up, with planted relations: exact, with 1 % of rows
broken, and with 1 % relative error. Whether answers keep these is judged by the planted formulas,
not by what was found. On the four data sets it is judged by the relations found there.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE, McceWarning
from mcce.relations import Relation
from mcce.relations.discovery import find_relations
from mcce.search.config import SearchName
from mcce.tables.schema import Schema
from mcce_lab import datasets
from mcce_lab.datasets import DatasetError, DatasetName
from measure import Table, cpu, exponent, log, machine, write
from planted_relations import PLANTED, SERVICES, deviations, permuted, planted, services

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA_SETS: tuple[DatasetName, ...] = ("german", "adult", "gmc", "fico")
KINDS = ("product", "price list", "sum", "ordering", "equivalence", "dependency")
TABLES = {"made up": (planted, PLANTED), "services": (services, SERVICES)}

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
        on_data(options.rows, options.people),
        costs(options.rows),
    ]
    for table in tables:
        print(table.markdown())
    write(tables, "relations")


def found(n_seeds: int, n_rows: int) -> Table:
    """Planted relations that are found, and false ones between permuted columns."""
    rows = []
    for (title, (make, expected)), (name, variant) in product(TABLES.items(), VARIANTS.items()):
        log(f"found: {title}, {name}")
        n_found = n_enforced = n_others = n_false = 0
        for seed in range(n_seeds):
            frame = make(n_rows, seed, **variant)
            listed = find_relations(Schema.learn_rows(frame))
            kinds = {(f.relation.kind, frozenset(f.relation.features)): f for f in listed}
            n_found += len(kinds.keys() & expected)
            n_others += len(kinds.keys() - expected)
            n_enforced += sum(f.enforced for key, f in kinds.items() if key in expected)
            n_false += len(find_relations(Schema.learn_rows(permuted(frame, seed))))
        counts = n_seeds * len(expected), n_found, n_enforced, n_others, n_false
        rows.append([f"{title}, {name}", *map(str, counts)])
    headings = ["table", "planted", "found", "enforced", "others listed", "false, permuted"]
    return Table(f"Relations found, {n_seeds} tables of {n_rows} rows", headings, rows)


def score(frame: pd.DataFrame) -> np.ndarray:
    """An acceptance that depends on three computed columns, and on others."""
    if "tenure" in frame:
        value = frame["total"] / 1500 + frame["monthly"] / 30 - frame["open"] / 60
        value += 0.5 * (frame["contract"] != "month") - frame["used"] / 100
    else:
        value = frame["total"] / 1500 + frame["bill"] / 20 - frame["sum"] / 800
    return np.asarray(1 / (1 + np.exp(2.5 - value)))


def broken(n_rows: int, n_people: int) -> Table:
    """Answers that break a planted relation, by search; judged by the planted formula."""
    rows = []
    for (title, (make, _)), (name, variant) in product(TABLES.items(), VARIANTS.items()):
        train = make(n_rows, 0, **variant)
        # Beyond five times the error nothing is noise; without any, only rounding is.
        most = max(5 * variant.get("error", 0.0), 1e-3)
        people = train[score(train) < 0.5].head(n_people)
        for search in SEARCHES:
            log(f"broken: {title}, {name}, {search}")
            explainer = MCCE(score, (0.5, 1.0), immutable=["age"], search=search, random_state=0)
            result = explainer.fit(train).explain(people)
            own = people.loc[result.frame.index.get_level_values("factual")]
            # Who breaks a relation already may go on doing so.
            before, after = deviations(own), deviations(result.frame)
            breaks = np.array([(after[kind] > most) & (before[kind] <= most) for kind in KINDS])
            rows.append(
                [
                    f"{title}, {name}, {search}",
                    f"{len(result.frame)}/{len(people)}",
                    f"{result.measures['sparsity'].mean():.2f}",
                    str(int(breaks.any(axis=0).sum())),
                    *(str(int(one.sum())) for one in breaks),
                ]
            )
    headings = ["table, search", "answered", "changes", "any", *KINDS]
    note = "Of answers to people whose own rows keep the relation."
    return Table("Answers that break a planted relation", headings, rows, note)


def on_data(n_rows: int, n_people: int) -> Table:
    """Answers that break a relation found on the four data sets, untransformed."""
    rows = []
    for name in DATA_SETS:
        try:
            data = datasets.load(name, folder=DATA)
        except DatasetError as error:
            log(f"{name} is left out: {error}")
            continue
        texts = data.features.select_dtypes(exclude="number").columns
        some = data.features.sample(min(n_rows, len(data.features)), random_state=0)
        frame = some.astype(dict.fromkeys(texts, "category"))
        model = HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype")
        model.fit(frame, data.target[some.index] == data.desired)
        people = frame[model.predict_proba(frame)[:, 1] < 0.5].head(n_people)
        for search in SEARCHES[1:]:
            log(f"data: {name}, {search}")
            explainer = MCCE(model, (0.5, 1.0), search=search, random_state=0)
            result = explainer.fit(frame).explain(people)
            listed = explainer.fitted_.relations or ()
            n_broken = [_n_broken(f.relation, people, result.frame) for f in listed]
            sure = [n for n, f in zip(n_broken, listed, strict=True) if f.enforced]
            counts = len(listed), len(sure), sum(sure), sum(n_broken) - sum(sure)
            answered = f"{len(result.frame)}/{len(people)}"
            rows.append([f"{name}, {search}", answered, *map(str, counts)])
    headings = ["data, search", "answered", "relations", "enforced", "broken, enforced", "others"]
    return Table(f"Answers that break a relation found, {n_rows} rows", headings, rows)


def _n_broken(relation: Relation, people: pd.DataFrame, answers: pd.DataFrame) -> int:
    """Answers in which a relation is broken that holds in the person's own row."""
    own = people.loc[answers.index.get_level_values("factual")]
    return int((relation.holds(own) & ~relation.holds(answers)).sum())


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
