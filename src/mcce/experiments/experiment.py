"""What an experiment is, and what it reports.

Takes options from the command line; gives a :class:`Report`, which ``write`` puts into a folder as
CSV, PNG, SVG and one Markdown page.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ..execution.progress import ProgressBar

Factuals = Literal["paper", "heldout"]
# Printed figures have two decimals.
ROUNDING = 0.005
# Mean costs of Adult on networks that differ in their seed alone lie about so far apart.
SCATTER = 0.05


@dataclass(frozen=True)
class Options:
    """What a user asked for.

    Parameters
    ----------
    datasets
        Names of data sets, as :func:`mcce.datasets.load` knows them.
    folder
        Where their files lie; None: as :func:`mcce.datasets.load` looks for them.
    seeds
        How often what hangs on chance is repeated, with seeds from 0 on.
    out
        Folder for the report.
    quick
        Whether a small run will do, to see that everything works.
    factuals
        Who is explained: ``"paper"``, the first people of the file whom the black box declines;
        ``"heldout"``, the first of those whom it was not trained on.
    """

    datasets: tuple[str, ...]
    folder: Path | None
    seeds: int
    out: Path
    quick: bool
    factuals: Factuals = "paper"


@dataclass(frozen=True, eq=False)
class Published:
    """Figures as they are printed in the paper, and where."""

    table: pd.DataFrame
    where: str

    def rows(self, **cells: Any) -> list[dict[str, Any]]:
        """The rows that have these cells, ready to stand beside ours."""
        chosen = _having(self.table, cells).assign(source="published")
        return [{str(k): cell for k, cell in row.items()} for row in chosen.to_dict("records")]


def row_of(table: pd.DataFrame, **cells: Any) -> pd.Series[Any]:
    """The first row of a table that has these cells."""
    return _having(table, cells).iloc[0]


def at_most(ours: float, published: float) -> str:
    """Whether our figure is at or below a printed one, in words."""
    if ours < published + ROUNDING:
        return "at or below the published"
    if ours < published + SCATTER:
        return f"above by less than {SCATTER}, as Adult's networks of other seeds differ"
    return "above the published: see the remarks"


def _having(table: pd.DataFrame, cells: dict[str, Any]) -> pd.DataFrame:
    for name, cell in cells.items():
        table = table[table[name] == cell]
    return table


@dataclass(eq=False)
class Report:
    """What came out of an experiment.

    Parameters
    ----------
    name, title, about
        Those of the experiment; ``name`` is also that of its files.
    tables
        Frames by name. Numbers stay numbers; on the page a column ``x_sd`` is told in brackets
        after ``x``.
    figures
        Matplotlib figures by name.
    remarks
        Sentences about what came out.
    published
        What is printed in the paper, by the name under which it is told.
    """

    name: str
    title: str
    about: str = ""
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    published: dict[str, Published] = field(default_factory=dict)
    _held: list[dict[str, Any]] = field(default_factory=list, repr=False)

    def hold(self, what: str, published: float, ours: float, remark: str = "") -> None:
        """Note a published figure beside ours, with a sentence where they differ."""
        self._held.append({"what": what, "published": published, "ours": ours, "remark": remark})

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per published figure: ``what``, ``published``, ``ours``, ``remark``."""
        return pd.DataFrame(self._held, columns=["what", "published", "ours", "remark"])


class Progress:
    """How far an experiment has come: a bar on a terminal, else a line per step.

    Examples
    --------
    >>> progress = Progress("compare", silent=True)
    >>> progress.plan(2)
    >>> progress.step("adult, seed 0")
    >>> progress.step("adult, seed 1")
    >>> progress.close()
    """

    def __init__(self, name: str, *, silent: bool = False) -> None:
        self._name = name
        self._drawn = not silent and sys.stderr.isatty() and find_spec("tqdm") is not None
        self._told = not silent and not self._drawn
        self._bar = ProgressBar(0, name, False)
        self._n_done = -1
        self._started = time.perf_counter()

    def plan(self, n_steps: int) -> None:
        """Say how many steps there will be."""
        self.close()
        self._bar = ProgressBar(n_steps, self._name, self._drawn)
        self._n_done = -1

    def step(self, what: str) -> None:
        """Say that the next step begins."""
        self._n_done += 1
        self._bar.show(self._n_done)
        if self._told:
            seconds = time.perf_counter() - self._started
            sys.stderr.write(f"[{seconds:6.1f} s] {self._name}: {what}\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment of the paper, ready to run.

    Parameters
    ----------
    name
        How it is called on the command line.
    title
        One line for a list.
    about
        One paragraph: which table or figure of the paper, and what is done.
    run
        From options and a progress to a report.
    datasets
        Data sets that are taken if the user names none; empty where rows are simulated.
    """

    name: str
    title: str
    about: str
    run: Callable[[Options, Progress], Report]
    datasets: tuple[str, ...]

    def report(self) -> Report:
        """An empty report under the name of the experiment."""
        return Report(self.name, self.title, self.about)
