"""Measures of two versions on the same people: differences with intervals, and verdicts.

Takes one row per person and draw, with the columns ``lof before``, ``lof after`` and so on, and the
names of case and search. Differences are after minus before on the people whom both versions
explain, averaged per person, with 95 % intervals over people. A measure is better if the whole
interval is, and worse if the whole interval is worse by more than is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from measure import Table

SCORES = ("lof", "forest", "pca")
# An answer with a smaller plausibility is implausible.
IMPLAUSIBLE = 0.01
# Fewer people say nothing.
MIN_PEOPLE = 10


@dataclass(frozen=True)
class Measure:
    """A measure to compare, and how much worse it may be.

    Parameters
    ----------
    name
        Its column.
    allowed
        The largest difference that is not worse, in the unit of the table.
    relative
        Whether that unit is a percent of the mean before.
    larger_is_better
        Which direction is worse.
    """

    name: str
    allowed: float = 1.0
    relative: bool = True
    larger_is_better: bool = False


@dataclass(frozen=True)
class Difference:
    """Mean difference of a measure, half the width of its 95 % interval, and the verdict."""

    mean: float
    margin: float
    verdict: str

    @property
    def cell(self) -> str:
        """Both numbers, and the verdict unless nothing changed."""
        mark = "" if self.verdict == "same" else f" **{self.verdict}**"
        return f"{self.mean:+.2f} ± {self.margin:.2f}{mark}"


MEASURES = (
    Measure("sparsity", allowed=0.02, relative=False),
    Measure("gower"),
    Measure("plausibility", larger_is_better=True),
    *map(Measure, SCORES),
)
VERDICTS = ("better", "same", "worse")
COUNTED = ("valid", "violations", "pairs", "broken")


def tables(found: pd.DataFrame) -> Iterator[Table]:
    """Means of both versions, paired differences with verdicts, and how many of each."""
    names = found["case"] + " " + found["search"]
    groups = [(str(name), rows) for name, rows in found.groupby(names, sort=False)]
    headings = ["", "answered", "rows per person", "sparsity", f"p < {IMPLAUSIBLE:g}", *COUNTED]
    note = "Before → after; all but the share answered are means over the people whom both explain."
    lines = [[name, *_overview(rows)] for name, rows in groups]
    yield Table("Answers", headings, lines, note)
    compared = {name: differences(rows) for name, rows in groups}
    yield _paired(compared)
    yield _counts({name: by for name, (_, by) in compared.items()})
    note = "Difference in % of the mean before; negative is more plausible. 95 % intervals."
    for title, n_changes in ((", as many changes", 0), (", fewer changes", -1)):
        lines = []
        for name, rows in groups:
            n_people, by = differences(rows, n_changes)
            lines.append([name, str(n_people), *(by[one].cell if by else "" for one in SCORES)])
        yield Table(f"Scores{title}", ["", "people", *SCORES], lines, note)


def differences(
    rows: pd.DataFrame, n_changes: int | None = None
) -> tuple[int, dict[str, Difference]]:
    """How many answers both versions have, and their differences; empty if these are too few.

    ``n_changes`` selects those with as many changes after as before (0) or with fewer (-1).
    """
    both = rows.dropna(subset=["lof before", "lof after"])
    units = {one.name: both[f"{one.name} before"].mean() / 100 for one in MEASURES if one.relative}
    if n_changes is not None:
        both = both[np.sign(both["sparsity after"] - both["sparsity before"]) == n_changes]
    if len(both) < MIN_PEOPLE:
        return len(both), {}
    found = {}
    for one in MEASURES:
        unit = units.get(one.name, 1.0)
        mean, margin = (value / unit for value in interval(both, one.name))
        worse = -mean if one.larger_is_better else mean
        found[one.name] = Difference(mean, margin, verdict(worse, margin, one.allowed))
    return len(both), found


def interval(both: pd.DataFrame, name: str) -> tuple[float, float]:
    """Mean difference, after less before, and half the width of its 95 % interval."""
    gaps = (both[f"{name} after"] - both[f"{name} before"]).groupby(level=0).mean()
    margin = 1.96 * float(gaps.std()) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.inf
    return float(gaps.mean()), margin


def verdict(worse: float, margin: float, allowed: float) -> str:
    """Whether an interval is wholly worse by more than is allowed, or wholly better.

    ``worse`` is the mean difference in the direction that is worse.
    """
    if worse - margin > allowed:
        return "worse"
    return "better" if worse + margin < 0 else "same"


def _overview(rows: pd.DataFrame) -> list[str]:
    both = rows.dropna(subset=["lof before", "lof after"])

    def pair(name: str, digits: int) -> str:
        means = [both[f"{name} {when}"].mean() for when in ("before", "after")]
        return " → ".join(f"{mean:.{digits}f}" for mean in means)

    shares = [f"{rows[f'lof {when}'].notna().mean():.3f}" for when in ("before", "after")]
    odd = [(both[f"plausibility {when}"] < IMPLAUSIBLE).mean() for when in ("before", "after")]
    cells = [" → ".join(shares), pair("rows_per_person", 1), pair("sparsity", 3)]
    cells.append(" → ".join(f"{share:.3f}" for share in odd))
    return [*cells, *(pair(name, 3) for name in COUNTED)]


def _paired(compared: Mapping[str, tuple[int, dict[str, Difference]]]) -> Table:
    """Differences of all measures, and which of them are better or worse."""
    lines = []
    for name, (n_people, by) in compared.items():
        cells = [by[one.name].cell if by else "" for one in MEASURES]
        verdicts = [
            ", ".join(measure for measure, one in by.items() if one.verdict == which) or "none"
            for which in ("better", "worse")
        ]
        lines.append([name, str(n_people), *cells, *verdicts])
    headings = ["", "people", *(f"{one.name} %" if one.relative else one.name for one in MEASURES)]
    note = "Mean difference ± half of its 95 % interval; in % of the mean before, sparsity in "
    note += "changes. Better: the whole interval is. Worse: it is wholly worse by more than "
    note += "0.02 changes or 1 %. Plausibility is better if larger, all others if smaller."
    return Table("Paired differences", [*headings, "better", "worse"], lines, note)


def _counts(compared: Mapping[str, dict[str, Difference]]) -> Table:
    """In how many cases and searches each measure is better, the same or worse."""
    lines = []
    for one in MEASURES:
        given = [by[one.name].verdict for by in compared.values() if by]
        lines.append([one.name, *(str(given.count(which)) for which in VERDICTS)])
    total = [str(sum(int(line[at]) for line in lines)) for at in (1, 2, 3)]
    return Table("Verdicts", ["", *VERDICTS], [*lines, ["all", *total]])
