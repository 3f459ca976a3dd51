"""Who gets one change among those for whom one change is enough.

For each person of :mod:`trials` every mutable feature alone is set to each of its training values,
of many numbers to 200 at even ranks. One change is enough if one of these rows is valid, keeps the
relations that hold in all training rows, is plausible enough for the search or no stranger than
the person already is, and is no copy of a training row, which searches return last. Plausibility
and relations are those of the explainer that is measured.

Prints a Markdown table and writes it to ``out/bench/single_changes.md`` and ``single_changes.json``
after every case. Usage: ``PYTHONPATH=benchmarks python lab/benchmarks/single_changes.py [--cases
fico] [--searches sparse near] [--people 150]``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from coverage import may_return
from evaluations import ALL_CASES, SEARCHES, fitted
from mcce import MCCE, McceWarning, Search
from measure import Table, log, machine, write
from requirements import CASES
from rivals import SearchName
from trials import N_FACTUALS, Trial, load_trial

MAX_VALUES = 200
# Rows whose plausibility is computed at a time; one is enough.
N_AT_ONCE = 64


@dataclass(frozen=True)
class SingleChanges:
    """Who gets one change from a search on a case.

    Parameters
    ----------
    case, search
        The names of both.
    n_factuals, n_enough
        How many people there are, and for how many one change is enough.
    n_single
        How many have an answer with one change, enumerated or not.
    missed
        Labels of the people for whom one change is enough and who have no such answer.
    """

    case: str
    search: str
    n_factuals: int
    n_enough: int
    n_single: int
    missed: list[str]

    @property
    def share(self) -> float:
        """Share of the people with one change among those for whom it is enough."""
        return 1 - len(self.missed) / self.n_enough if self.n_enough else np.nan


def main() -> None:
    """Measure the selected cases and searches."""
    options = _options()
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    found: list[SingleChanges] = []
    with threadpool_limits(1):
        for name in options.cases:
            trial = load_trial(name, 0, options.people)
            if trial is not None:
                found += measure(trial, options.searches)
                write([table(found)], "single_changes", found=[*map(asdict, found)])
    print(table(found).markdown())


def measure(trial: Trial, searches: Sequence[SearchName]) -> Iterator[SingleChanges]:
    """Enumerate the rows with one change, and compare with the answers of each search."""
    explainer = fitted(trial)
    people = trial.factuals
    enough: dict[float, NDArray[np.bool_]] = {}
    for name in searches:
        explainer.search = name
        search = Search(name)
        least = search.min_plausibility or 0.0
        if least not in enough:
            tried = (
                is_enough(explainer, search, trial, people.iloc[[at]]) for at in range(len(people))
            )
            enough[least] = np.fromiter(tried, dtype=bool)
        result = explainer.explain(people)
        first = (result.measures.index.get_level_values("rank") == 1) & (
            result.measures["sparsity"].to_numpy() == 1
        )
        single = np.zeros(len(people), dtype=bool)
        single[result.owner[first]] = True
        missed = [str(label) for label in people.index[enough[least] & ~single]]
        n_enough = int(enough[least].sum())
        log(f"{trial.case.name}, {name}: {len(missed)} of {n_enough} missed")
        yield SingleChanges(trial.case.name, name, len(people), n_enough, int(single.sum()), missed)


def is_enough(explainer: MCCE, search: Search, trial: Trial, person: pd.DataFrame) -> bool:
    """Whether a person has a row with one change that the search may return."""
    rows = single_changes(trial.train, person, trial.case.mutable)
    rows = rows[explainer.decision_.score(rows).valid]
    rows = rows[~are_copies(rows, trial.train)]
    pieces = (rows.iloc[at : at + N_AT_ONCE] for at in range(0, len(rows), N_AT_ONCE))
    return any(
        may_return(explainer, search, person, piece.reset_index(drop=True)).any()
        for piece in pieces
    )


def single_changes(
    train: pd.DataFrame, person: pd.DataFrame, mutable: Sequence[str]
) -> pd.DataFrame:
    """A person's rows with one mutable feature changed to a training value."""
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
    return pd.concat(parts, ignore_index=True)


def are_copies(rows: pd.DataFrame, train: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows are also training rows."""
    joined = pd.concat([train, rows], ignore_index=True)
    return joined.duplicated().to_numpy()[len(train) :]


def table(found: Sequence[SingleChanges]) -> Table:
    """One line per case and search."""
    lines = [
        [
            *(one.case, one.search, str(one.n_factuals), str(one.n_enough), f"{one.share:.3f}"),
            *(str(len(one.missed)), f"{one.n_single / one.n_factuals:.3f}", ", ".join(one.missed)),
        ]
        for one in found
    ]
    headings = ["case", "search", "people", "one change is enough", "share found", "missed"]
    headings += ["one change, of all", "rows of the people missed"]
    note = "One change is enough: enumeration finds a plausible row with one change."
    return Table("One change where one is enough", headings, lines, note)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=ALL_CASES, default=CASES)
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=("sparse", "near"))
    parser.add_argument("--people", type=int, default=N_FACTUALS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
