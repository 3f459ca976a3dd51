"""The page on replaced steps, from the tables of its experiments."""

from __future__ import annotations

from pathlib import Path

from ..report.page import join_reports
from . import distances, generators, private

EXPERIMENTS = tuple(module.EXPERIMENT for module in (generators, distances, private))
INTRODUCTION = """# Which generator, which distance, how private

The paper says that its trees may be replaced by other generators, and its distance by others, and
that privacy needs more than leaving out copies. Here each of them is measured on the four data sets
of the paper, alike, with 95 % intervals over seeds; that one loses is a result. The command

    mcce experiments generators distances private page --data FOLDER --out FOLDER

writes this page and, in a folder next to it, every table as a CSV file.
[Generators](user_guide/generators.md), [distances](user_guide/distances.md) and
[private trees](user_guide/private.md) say how to use them, and which to use when."""


def write_steps(reports: Path, page: Path) -> Path:
    """Join the reports in a folder into the page on replaced steps.

    Parameters
    ----------
    reports : Path
        Folder with the reports.
    page : Path
        File for the page.

    Returns
    -------
    Path
        The page.
    """
    return join_reports(reports, page, EXPERIMENTS, INTRODUCTION)
