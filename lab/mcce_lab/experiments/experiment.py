"""What an experiment is, and what it reports.

Takes options from the command line; gives a :class:`Report`, which ``write_report`` saves in a
folder as CSV, PNG, SVG and one Markdown page.

Always true: remarks are computed from the tables, so that every figure on a page is in a file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import pandas as pd

from mcce.runtime.progress import ProgressBar

from ..datasets import DatasetName

Factuals = Literal["paper", "heldout"]
# Frames by name, as written to files.
Tables: TypeAlias = Mapping[str, pd.DataFrame]
# Published figures have two decimals.
ROUNDING = 0.005
# Means at most this many standard errors apart count as reproduced.
MOST_STANDARD_ERRORS = 2.0
REPRODUCED, NOT_REPRODUCED, NOT_COMPARABLE = "reproduced", "not reproduced", "not comparable"


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
    """

    datasets: tuple[DatasetName, ...]
    folder: Path | None
    seeds: int
    out: Path
    quick: bool
    factuals: Factuals = "paper"
    reference: Path | None = None


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """Figures as printed in the paper, and where they are printed.

    Parameters
    ----------
    table : DataFrame
        The figures.
    where : str
        Section or table of the paper.
    """

    table: pd.DataFrame
    where: str

    def rows(self, **cells: Any) -> list[dict[str, Any]]:
        """The rows with these cells, each with ``source="published"``."""
        selected = _with_cells(self.table, cells).assign(source="published")
        return [{str(k): cell for k, cell in row.items()} for row in selected.to_dict("records")]


def first_row(table: pd.DataFrame, **cells: Any) -> pd.Series[Any]:
    """The first row of a table that has these cells."""
    return _with_cells(table, cells).iloc[0]


def _with_cells(table: pd.DataFrame, cells: dict[str, Any]) -> pd.DataFrame:
    for name, cell in cells.items():
        table = table[table[name] == cell]
    return table


@dataclass(frozen=True)
class Estimate:
    """A mean over people, their standard deviation and their number."""

    mean: float
    sd: float
    n: float

    @classmethod
    def of(cls, row: pd.Series[Any], measure: str) -> Estimate:
        """The estimate of a measure in a row of results."""
        return cls(float(row[measure]), float(row[f"{measure}_sd"]), float(row["n_ce"]))


def agreement(published: Estimate, ours: Estimate) -> str:
    """Say by how much two means differ, and whether that reproduces the published one.

    A mean counts as reproduced if it differs, up or down, by at most two standard errors of the
    difference beyond the rounding of the published figure: if the interval, which is printed,
    holds 0.

    Examples
    --------
    >>> agreement(Estimate(2.70, 0.73, 1000), Estimate(2.70, 0.75, 1000))
    'reproduced: +0.00 [-0.07, +0.07], 0.0 standard errors'
    >>> agreement(Estimate(12.67, 1.91, 1000), Estimate(12.11, 1.48, 1000))
    'not reproduced: -0.56 [-0.72, -0.40], 7.3 standard errors'
    """
    if not (published.n and ours.n):
        return verdict(nan, nan)
    error = (published.sd**2 / published.n + ours.sd**2 / ours.n) ** 0.5
    return verdict(ours.mean - published.mean, error, rounding=ROUNDING)


def verdict(difference: float, error: float, *, rounding: float = 0.0) -> str:
    """Say whether a difference with this standard error is none, with its interval.

    Examples
    --------
    >>> verdict(-0.01, 0.02)
    'reproduced: -0.01 [-0.05, +0.03], 0.5 standard errors'
    """
    if not (isfinite(difference) and isfinite(error)):
        return f"{NOT_COMPARABLE}: too few counterfactuals"
    margin = MOST_STANDARD_ERRORS * error + rounding
    word = REPRODUCED if abs(difference) <= margin else NOT_REPRODUCED
    n_errors = abs(difference) / error if error else inf if difference else 0.0
    # Adding 0.0 turns a rounded -0.0 into +0.00.
    shown = (round(x, 2) + 0.0 for x in (difference, difference - margin, difference + margin))
    return "{}: {:+.2f} [{:+.2f}, {:+.2f}], {:.1f} standard errors".format(word, *shown, n_errors)


def no_remarks(tables: Tables) -> list[str]:
    """No sentence, whatever the tables."""
    return []


class Described(Protocol):
    """What the page of a report needs besides its files."""

    @property
    def name(self) -> str:
        """The name of its files."""
        ...

    @property
    def title(self) -> str:
        """One line."""
        ...

    @property
    def about(self) -> str:
        """One paragraph."""
        ...

    @property
    def remarks(self) -> Callable[[Tables], Sequence[str]]:
        """From the tables to sentences about them."""
        ...


@dataclass(eq=False)
class Report:
    """The results of an experiment.

    Parameters
    ----------
    name, title, about : str
        Those of the experiment; ``name`` is also that of its files.
    remarks : callable
        From the tables to sentences about them. The tables are those read from the files, with
        the comparison as ``published``.
    tables : dict
        Frames by name. Numbers stay numbers; the page shows a column ``x_sd`` in brackets after
        ``x``, and columns ``x_low`` and ``x_high`` as an interval.
    figures, captions : dict
        Matplotlib figures by name, and what to know when looking at them.
    published : dict
        What is printed in the paper, by the name of its table.
    seeds : int, optional
        Number of repetitions of everything random.
    """

    name: str
    title: str
    about: str = ""
    remarks: Callable[[Tables], Sequence[str]] = no_remarks
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    captions: dict[str, str] = field(default_factory=dict)
    published: dict[str, PublishedTable] = field(default_factory=dict)
    seeds: int | None = None
    _comparisons: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def add_comparison(self, what: str, published: float, ours: float, remark: str = "") -> None:
        """Add a published figure next to ours."""
        line = {"what": what, "published": published, "ours": ours, "remark": remark}
        self._comparisons.append(line)

    def add_means(self, what: str, published: pd.Series[Any], ours: pd.Series[Any]) -> None:
        """Add the mean costs of two rows of results, and whether ours reproduce the published."""
        for measure in ("l0", "l1"):
            remark = agreement(Estimate.of(published, measure), Estimate.of(ours, measure))
            self.add_comparison(f"{what} {measure}", published[measure], ours[measure], remark)

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per published figure: ``what``, ``published``, ``ours``, ``remark``."""
        return pd.DataFrame(self._comparisons, columns=["what", "published", "ours", "remark"])


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
        self._draws_bar = not silent and sys.stderr.isatty() and find_spec("tqdm") is not None
        self._writes_lines = not silent and not self._draws_bar
        self._bar = ProgressBar(0, name, False)
        self._n_done = -1
        self._started = time.perf_counter()

    def plan(self, n_steps: int) -> None:
        """Set the number of steps."""
        self.close()
        self._bar = ProgressBar(n_steps, self._name, self._draws_bar)
        self._n_done = -1

    def step(self, what: str) -> None:
        """Announce the next step."""
        self._n_done += 1
        self._bar.show(self._n_done)
        if self._writes_lines:
            seconds = time.perf_counter() - self._started
            sys.stderr.write(f"[{seconds:6.1f} s] {self._name}: {what}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment of the paper, ready to run.

    Parameters
    ----------
    name : str
        Its name on the command line.
    title : str
        One line for a list.
    about : str
        One paragraph: which table or figure of the paper, and what is done.
    run : callable
        From options and a progress line to a report.
    datasets : tuple of str
        Default data sets; empty if rows are simulated.
    remarks : callable
        From the tables of a report to sentences about them.
    needs_reference : bool
        Whether it needs the answers of the authors' code.
    in_paper : bool
        Whether it is one of the paper's: these are what ``all`` runs.
    """

    name: str
    title: str
    about: str
    run: Callable[[Options, ProgressLine], Report]
    datasets: tuple[DatasetName, ...]
    remarks: Callable[[Tables], Sequence[str]] = no_remarks
    needs_reference: bool = False
    in_paper: bool = True

    def report(self) -> Report:
        """An empty report with the name of the experiment."""
        return Report(self.name, self.title, self.about, self.remarks)
