"""What searches miss that trying all values finds: an answer, or one with a single change.

``python benchmarks/coverage.py grid``: for each data set three features that people can act on are
mutable, two of them in one direction only. A person is solvable if a grid over these features
(their own value, and 15 quantiles of the training values or all levels) holds a row that is valid,
allowed and plausible enough, and keeps the relations that hold in all training rows. Every solvable
person should have an answer.

``python benchmarks/coverage.py single``: each mutable feature alone is set to each of its training
values, of many numbers to 200 at even ranks. One change is enough if one of these rows could be
returned and is no copy of a training row, which searches return last. Everybody for whom it is
enough should get one change from "sparse" and from "near".
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from cases import DATA, SEARCHED, load
from mcce import MCCE, McceWarning, Search
from mcce.candidates import pair_rows
from mcce.constraints import only_down, only_up
from mcce.constraints.collection import GivenRows
from mcce.explainer import requirements_of
from mcce.postprocess.filters import IsPlausible
from mcce.tables.schema import OWN
from mcce_lab import datasets
from mcce_lab.experiments.case import Case
from mcce_lab.experiments.cells import Draw

N_QUANTILES = 15
MAX_VALUES, N_AT_ONCE = 200, 64
CASES: dict[str, tuple[list[str], list[Any]]] = {
    "german": (
        ["Duration", "CreditAmount", "Savings"],
        [only_down("Duration"), only_down("CreditAmount")],
    ),
    "adult": (["education-num", "hours-per-week", "occupation"], [only_up("education-num")]),
    "gmc": (
        ["RevolvingUtilizationOfUnsecuredLines", "DebtRatio", "NumberOfOpenCreditLinesAndLoans"],
        [only_down("RevolvingUtilizationOfUnsecuredLines"), only_down("DebtRatio")],
    ),
    "fico": (
        ["NetFractionRevolvingBurden", "NumInqLast6M", "PercentTradesWBalance"],
        [only_down("NetFractionRevolvingBurden"), only_down("NumInqLast6M")],
    ),
}


def grid_of(train: pd.DataFrame, person: pd.DataFrame, mutable: list[str]) -> pd.DataFrame:
    """All rows of the grid for one person; the own values come first."""
    values = []
    for name in mutable:
        column = train[name].dropna()
        own = person[name].iloc[0]
        if pd.api.types.is_numeric_dtype(column.dtype):
            shares = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
            tried = np.unique(np.quantile(column, shares, method="nearest"))
        else:
            tried = np.array(sorted(column.unique()), dtype=object)
        values.append([own, *(value for value in tried if value != own)])
    rows = pd.DataFrame(list(product(*values)), columns=mutable)
    grid = pd.concat([person] * len(rows), ignore_index=True)
    return grid.assign(**{name: rows[name].to_numpy() for name in mutable}).astype(train.dtypes)


def is_solvable(explainer: MCCE, search: Search, person: pd.DataFrame, tried: pd.DataFrame) -> bool:
    """Whether one of some rows is valid, allowed and plausible."""
    rows = tried[explainer.decision_.score(tried).valid].reset_index(drop=True)
    # One is enough: plausibility is not computed for all of many.
    pieces = (rows.iloc[at : at + N_AT_ONCE] for at in range(0, len(rows), N_AT_ONCE))
    return any(
        may_return(explainer, search, person, piece.reset_index(drop=True)).any()
        for piece in pieces
    )


def may_return(
    explainer: MCCE, search: Search, person: pd.DataFrame, rows: pd.DataFrame
) -> NDArray[np.bool_]:
    """Which valid rows the search may return to a person: allowed, plausible and changed."""
    own = explainer.schema_.encode(person)
    owner = np.zeros(len(rows), dtype=np.int64)
    given, keep = GivenRows(own, owner, rows), np.ones(len(rows), dtype=bool)
    for broken in requirements_of(explainer).constraints.broken(given).values():
        keep &= ~broken
    for found in explainer.fitted_.relations or ():
        if found.enforced and found.relation.holds(person).all():
            keep &= found.relation.holds(rows)
    if not keep.any() or explainer.plausibility_ is None:
        return np.zeros(len(rows), dtype=bool)
    paired = pair_rows(own, np.array([0]), rows[keep].reset_index(drop=True), int(keep.sum()))
    draws = np.arange(keep.sum())
    selected = paired.select(np.zeros_like(draws), draws)
    check = IsPlausible(explainer.plausibility_, search.min_plausibility or 0.0)
    keep[keep] = check.keeps(selected) & (selected.codes != OWN).any(axis=0)
    return keep


def measure(name: str, n_rows: int, n_people: int, search: Search) -> dict[str, Any]:
    """One line of the table."""
    data = datasets.load(cast("Any", name), folder=DATA)
    texts = data.features.select_dtypes(exclude="number").columns
    features = data.features.astype(dict.fromkeys(texts, "category"))
    chosen = np.random.default_rng(0).permutation(len(features))[:n_rows]
    train = features.iloc[np.sort(chosen)].reset_index(drop=True)
    target = (data.target == data.desired).iloc[np.sort(chosen)].to_numpy()
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=60, random_state=0
    ).fit(train, target)
    mutable, rules = CASES[name]
    immutable = [column for column in train if column not in mutable]
    people = train[model.predict_proba(train)[:, 1] < 0.5].head(n_people)
    started = time.process_time()
    explainer = MCCE(
        model, (0.5, 1.0), immutable=immutable, constraints=rules, search=search, random_state=0
    ).fit(train)
    fitted = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(people)
    explained = time.process_time()
    answered = (result.people["status"] == "answered").to_numpy()
    solvable = np.array(
        [
            is_solvable(explainer, search, person, grid_of(train, person, mutable))
            for person in (people.iloc[[at]] for at in range(len(people)))
        ]
    )
    return {
        "data": name,
        "people": len(people),
        "solvable": int(solvable.sum()),
        "answered": int(answered.sum()),
        "missed": int((solvable & ~answered).sum()),
        "changes": round(float(result.measures["sparsity"].mean()), 2),
        "rows a person": round(result.n_evaluated / max(len(people), 1)),
        "fit s": round(fitted - started, 1),
        "explain s": round(explained - fitted, 1),
    }


def single_changes(
    train: pd.DataFrame, person: pd.DataFrame, mutable: Sequence[str]
) -> pd.DataFrame:
    """A person's rows with one mutable feature changed to a training value, without copies."""
    parts = [person.iloc[:0]]
    for name in mutable:
        values = train[name].drop_duplicates()
        if pd.api.types.is_numeric_dtype(values.dtype):
            values = values.sort_values()
            at = np.linspace(0, len(values) - 1, min(len(values), MAX_VALUES)).round()
            values = values.iloc[at.astype(np.int64)]
        own = person[name].iloc[0]
        values = values[(values != own) & ~(values.isna() & pd.isna(own))]
        changed = person.iloc[np.zeros(len(values), dtype=np.int64)]
        parts.append(changed.assign(**{name: values.to_numpy()}).astype(train.dtypes.to_dict()))
    rows = pd.concat(parts, ignore_index=True)
    copied = pd.concat([train, rows], ignore_index=True).duplicated().to_numpy()[len(train) :]
    return rows[~copied]


def measure_single(case: Case, n_people: int) -> Iterator[dict[str, Any]]:
    """Who gets one change of those for whom it is enough, by search."""
    draw = Draw.of(case, n_people, seed=0)
    explainer = case.explainer(search="balanced").fit(draw.train)
    for name in ("sparse", "near"):
        # The default margin comes before fewer changes; here every accepted row counts.
        search = Search(name, margin=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", McceWarning)
            result = explainer.set_params(search=search).explain(draw.people)
        single = np.zeros(len(draw.people), dtype=bool)
        single[result.owner[result.measures["sparsity"].to_numpy() == 1]] = True
        enough = np.array(
            [
                is_solvable(
                    explainer, search, person, single_changes(draw.train, person, case.mutable)
                )
                for person in (draw.people.iloc[[at]] for at in range(len(draw.people)))
            ]
        )
        found, n_enough = int((enough & single).sum()), int(enough.sum())
        line = {"case": case.name, "search": name, "people": len(enough), "enough": n_enough}
        yield line | {"share found": round(found / max(n_enough, 1), 3)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question", choices=("grid", "single"))
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--search", default="sparse")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.question == "grid":
        search = Search(given.search)
        names = given.names or CASES
        lines = [measure(name, given.rows, given.people, search) for name in names]
    else:
        cases = [case for name in given.names or SEARCHED if (case := load(name)) is not None]
        lines = [line for case in cases for line in measure_single(case, given.people)]
    print(pd.DataFrame(lines).to_string(index=False))


if __name__ == "__main__":
    main()
