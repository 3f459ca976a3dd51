"""What privacy costs: ``python benchmarks/private_trees.py``.

Private trees of several budgets against the usual chain. Rows are drawn for the
immutable values of the accepted training rows, and compared with these rows by the total variation
distance: of each mutable column alone (mean and largest), and of pairs of them, in the bins of the
domains. Then people are explained by the paper's search. Means over several fits, each with noise
of its own. The noise floor is the distance of two random halves of the accepted rows.

Domains are read from the file here, which is fine for a measurement and would not be private. Data
are in a folder ``shared`` next to the checkout; cases without data are skipped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from cases import load
from mcce import MCCE, Domain, McceWarning, PrivateTrees
from mcce.kernels import Codes, person_keys
from mcce.privacy.private_domains import bin_rows, encode_public
from mcce.protocols import DrawRequest
from mcce.tables.schema import EncodedRows
from mcce_lab.experiments.case import Case
from measure import Table, cpu, log, write

CASES = ("german", "adult")
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
N_FITS, N_PEOPLE, FREQUENT = 5, 200, 0.2


@dataclass(frozen=True)
class Measured:
    """Distances of drawn rows, and what people get."""

    mean: float
    largest: float
    pairs: float
    answered: float
    changes: float
    seconds: float = 0.0

    def cells(self) -> list[str]:
        """The figures of a line."""
        distances = [f"{value:.3f}" for value in (self.mean, self.largest, self.pairs)]
        people = [f"{100 * self.answered:.0f}", f"{self.changes:.2f}", f"{self.seconds:.2f}"]
        return [*distances, *people]


def main() -> None:
    """Print a table for each case."""
    warnings.simplefilter("ignore", McceWarning)
    tables = [_table(case) for case in map(load, CASES) if case is not None]
    for table in tables:
        print(table.markdown())
    write(tables, "private_trees")


def public_domains(frame: pd.DataFrame) -> dict[Any, Domain]:
    """Domains that an analyst could have written down: levels, round ranges, frequent values."""
    domains: dict[Any, Domain] = {}
    for name, column in frame.items():
        if column.nunique() <= 2 or not pd.api.types.is_numeric_dtype(column):
            domains[name] = Domain(levels=sorted(column.unique().tolist()))
            continue
        shares = column.value_counts(normalize=True)
        whole = bool((column == column.round()).all())
        high = _round_up(float(column.max()))
        domains[name] = Domain(
            low=min(0, -_round_up(-float(column.min()))),
            high=high,
            step=1 if whole else None,
            atoms=[float(at) for at in shares.index[shares > FREQUENT]] if high > 20 else [],
        )
    return domains


def _round_up(value: float) -> float:
    """The next number with one digit and zeros, away from zero."""
    if value <= 0:
        return 0.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / power) * power)


def _table(case: Case) -> Table:
    domains = public_domains(case.train)
    rows = encode_public(domains, case.train, immutable=case.immutable)
    accepted = rows.take(np.flatnonzero(case.decide(case.train)))
    bins, sizes = bin_rows(accepted, domains), [domains[n].n_bins for n in rows.schema.names]
    lines = [["two halves of the rows", *_halves(bins, sizes, rows), "", "", ""]]
    usual = case.explainer().set_params(n_samples=case.n_samples)
    lines.append(["trees, not private", *_measure(case, usual, accepted, domains).cells()])
    for epsilon, found in _private(case, accepted, domains):
        log(f"{case.name} {epsilon}")
        lines.append([f"ε = {epsilon:g}", *found.cells()])
    headings = ["model", "TV mean", "TV largest", "TV pairs", "answered, %", "changes", "fit, s"]
    title = f"{case.name}: {len(accepted):,} accepted rows, {len(case.mutable)} mutable columns"
    return Table(title, headings, lines)


def _private(
    case: Case, accepted: EncodedRows, domains: dict[Any, Domain]
) -> Iterator[tuple[float, Measured]]:
    for epsilon in EPSILONS:
        runs = []
        for _ in range(N_FITS):
            generator = PrivateTrees(domains=domains, epsilon=epsilon)
            explainer = case.explainer().set_params(generator=generator)
            runs.append(_measure(case, explainer, accepted, domains))
        figures = np.mean([list(vars(run).values()) for run in runs], axis=0)
        yield epsilon, Measured(*figures)


def _measure(
    case: Case, explainer: MCCE, accepted: EncodedRows, domains: dict[Any, Domain]
) -> Measured:
    seconds, fitted = cpu(lambda: explainer.fit(case.train))
    own = fitted.schema_.encode(accepted.frame)
    keys = person_keys(1, np.arange(len(own), dtype=np.int32)[:, None])
    request = DrawRequest(own.tree_codes, keys, np.zeros(1, dtype=np.int64))
    drawn = fitted.generator_.sample(request).codes[:, :, 0]
    codes = own.tree_codes.copy()
    codes[fitted.schema_.mutable] = drawn
    made = EncodedRows.from_codes(fitted.schema_, codes)
    sizes = [domains[name].n_bins for name in fitted.schema_.names]
    found = _distances(bin_rows(accepted, domains), _binned(made, domains), sizes, accepted)
    result = fitted.explain(case.factuals.head(N_PEOPLE))
    answered = float(result.people["status"].eq("answered").mean())
    return Measured(*found, answered, float(result.measures["sparsity"].mean()), seconds)


def _binned(made: EncodedRows, domains: dict[Any, Domain]) -> Codes:
    return bin_rows(encode_public(domains, made.frame), domains)


def _distances(
    real: Codes, drawn: Codes, sizes: list[int], rows: EncodedRows
) -> tuple[float, float, float]:
    """Mean and largest distance of single columns, and the mean of pairs of them."""
    mutable = [int(at) for at in rows.schema.mutable]
    alone = [_variation(real[at], drawn[at], sizes[at]) for at in mutable]
    pairs = [
        _variation(
            real[a] * np.int64(sizes[b]) + real[b],
            drawn[a] * np.int64(sizes[b]) + drawn[b],
            sizes[a] * sizes[b],
        )
        for a, b in combinations(mutable, 2)
    ]
    return float(np.mean(alone)), float(np.max(alone)), float(np.mean(pairs))


def _variation(first: Codes, second: Codes, size: int) -> float:
    shares = [np.bincount(cells, minlength=size) / cells.size for cells in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _halves(bins: Codes, sizes: list[int], rows: EncodedRows) -> list[str]:
    order = np.random.default_rng(0).permutation(bins.shape[1])
    halves = np.array_split(order, 2)
    found = _distances(bins[:, halves[0]], bins[:, halves[1]], sizes, rows)
    return [f"{value:.3f}" for value in found]


if __name__ == "__main__":
    main()
