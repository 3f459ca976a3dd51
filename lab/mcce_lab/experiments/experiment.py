"""What an experiment is, how it is run, and what it reports: tables, figures, comparisons."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from io import StringIO
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from tqdm import tqdm

from mcce.errors import ParameterError

from ..datasets import DatasetName

Factuals = Literal["paper", "heldout"]
# Published figures have two decimals.
ROUNDING = 0.005
# Half the width of an interval of a difference.
N_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Options:
    """How an experiment is run.

    Parameters
    ----------
    datasets : tuple of str
        Names of data sets, as for :func:`mcce_lab.datasets.load`.
    folder : Path or None
        Folder of the data files; None: the default of :func:`mcce_lab.datasets.load`.
    seeds : int
        Number of repetitions of everything random, with seeds from 0.
    out : Path
        Folder for the report.
    quick : bool
        Whether to run with small sizes, to see that everything works.
    factuals : {"paper", "heldout"}
        ``"paper"``: the first rows of the file that the predictor declines. ``"heldout"``: the
        first of those that it was not trained on.
    reference : Path or None
        Folder with the answers of the authors' code.
    only : tuple of str
        Names of the methods or variants to try; all if none is named.
    """

    datasets: tuple[DatasetName, ...]
    folder: Path | None
    seeds: int
    out: Path
    quick: bool
    factuals: Factuals = "paper"
    reference: Path | None = None
    only: tuple[str, ...] = ()

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Those of some names that are to be tried."""
        known = list(names)
        for name in self.only:
            if name not in known:
                raise ParameterError(f"There is no {name!r} to try, only {'; '.join(known)}.")
        return [name for name in known if name in (self.only or known)]


def published(name: str, **cells: Any) -> pd.DataFrame:
    """A table of the paper, as printed; only the rows that have these cells.

    Costs come with their sample standard deviations over people (``_sd``); ``l0`` is counted with a
    tolerance of 1e-5 of the range.
    """
    text = files(__package__).joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    table = pd.read_csv(StringIO(text))
    for column, cell in cells.items():
        table = table[table[column] == cell]
    return table


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table by column."""
    return [{str(name): cell for name, cell in row.items()} for row in table.to_dict("records")]


@dataclass(eq=False)
class Report:
    """The results of an experiment.

    Parameters
    ----------
    tables : dict
        Frames by name, written as CSV; the first is also the Markdown table of the experiment,
        which shows a column ``x_sd`` in brackets after ``x``, and ``x_low`` and ``x_high`` as an
        interval.
    figures : dict
        Matplotlib figures by name.
    seeds : int, optional
        Number of repetitions of everything random.
    """

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    _comparisons: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def compare(
        self,
        labels: Mapping[str, str],
        theirs: float,
        ours: float,
        *,
        error: float = nan,
        rounding: float = ROUNDING,
    ) -> None:
        """Put a published figure beside ours; with a standard error there is a verdict.

        A figure is reproduced if the two differ by at most two standard errors beyond the rounding
        of the published one.
        """
        gap, reach = ours - theirs, N_STANDARD_ERRORS * error + rounding
        line: dict[str, Any] = {**labels, "published": theirs, "ours": ours, "difference": gap}
        line |= {"difference_low": gap - reach, "difference_high": gap + reach}
        line["standard_errors"] = abs(gap) / error if error else nan
        line["reproduced"] = None if isnan(reach) else bool(abs(gap) <= reach)
        self._comparisons.append(line)

    def compare_means(
        self, labels: Mapping[str, str], theirs: Any, ours: Any, *measures: str
    ) -> None:
        """Put means over people beside published ones, given their deviations over people."""
        for measure in measures:
            variances = [row[f"{measure}_sd"] ** 2 / (row["n_ce"] or nan) for row in (theirs, ours)]
            error = float(sum(variances) ** 0.5)
            both = theirs[measure], ours[measure]
            self.compare({**labels, "measure": measure}, *both, error=error)

    def compare_counts(
        self, labels: Mapping[str, str], theirs: Any, ours: Any, measure: str, of: str
    ) -> None:
        """Put a number of people beside a published one: both are draws with a chance."""
        total = float(theirs[of])
        shares = theirs[measure] / total, ours[measure] / ours[of]
        error = total * sum(p * (1 - p) / total for p in shares) ** 0.5
        both = theirs[measure], total * shares[1]
        self.compare({**labels, "measure": measure}, *both, error=error, rounding=0.0)

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per published figure."""
        return pd.DataFrame(self._comparisons)


class ProgressLine:
    """Progress of an experiment: a bar on a terminal, otherwise one line per step.

    Parameters
    ----------
    name : str
        Name of the experiment.
    silent : bool
        Whether to write nothing.

    Examples
    --------
    >>> progress = ProgressLine("costs", silent=True)
    >>> progress.plan(2)
    >>> progress.step("adult, seed 0")
    >>> progress.step("adult, seed 1")
    >>> progress.close()
    """

    def __init__(self, name: str, *, silent: bool = False) -> None:
        self._name = name
        self._draws_bar = not silent and sys.stderr.isatty()
        self._writes_lines = not silent and not self._draws_bar
        self._bar = tqdm(disable=True)
        self._started = time.perf_counter()

    def plan(self, n_steps: int) -> None:
        """Set the number of steps."""
        self.close()
        self._bar = tqdm(total=n_steps, desc=self._name, leave=False, disable=not self._draws_bar)

    def step(self, what: str) -> None:
        """Announce the next step."""
        self._bar.update()
        if self._writes_lines:
            seconds = time.perf_counter() - self._started
            sys.stderr.write(f"[{seconds:6.1f} s] {self._name}: {what}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment, ready to run.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        One line for a list.
    run : callable
        From options and a progress line to a report.
    datasets : tuple of str
        Default data sets; empty if rows are simulated.
    needs_reference : bool
        Whether it needs the answers of the authors' code.
    in_paper : bool
        Whether it is one of the paper's: these are what ``all`` runs.
    has_variants : bool
        Whether it may try only some of what it tries.
    """

    name: str
    title: str
    run: Callable[[Options, ProgressLine], Report]
    datasets: tuple[DatasetName, ...]
    needs_reference: bool = False
    in_paper: bool = True
    has_variants: bool = False
