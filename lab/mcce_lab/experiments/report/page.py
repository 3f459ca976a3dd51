"""One page of all reports: every table of the paper, with published and our figures.

Takes a folder of reports written by ``write_report``; gives a Markdown page and, in a folder next
to it, the tables as CSV and the figures in few colours. This module adds which figures are
reproduced, which experiment covers which part of the paper, and where its text and code disagree.

Always true: :func:`page_text` gives the page again from the folder next to it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.errors import ParameterError

from ..experiment import (
    NOT_COMPARABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Described,
)
from .files import (
    PUBLISHED,
    markdown,
    read_manifest,
    read_tables,
    to_markdown,
)

# Longer tables are collapsed.
LONG = 32
WIDTH, N_COLOURS = 1200, 64
_MACHINE, _PICTURE = "Machine: ", "[as SVG]("
# In the name of a figure: of people on whom the network was not trained. They are counted apart.
HELDOUT = "held-out people"

INTRODUCTION = """# Reproduction of the paper's experiments

Every table and figure of *MCCE: Monte Carlo sampling of valid and realistic counterfactual
explanations for tabular data* (Redelmeier, Jullum, Aas and Løland): the published figures next to
those of this package. The command

    mcce experiments all --data FOLDER --reference FOLDER --page docs/reproduction.md

writes this page and, in a folder next to it, every table as a CSV file; a test compares the two.
Timings are machine-specific and vary with what else the machine does; everything random is a mean
over seeds.

A published mean counts as reproduced if ours differs, up or down, by at most two standard errors of
the difference beyond the rounding of the published figure: if the interval in square brackets after
the difference holds 0. Few people make wide intervals, so a reproduced mean may still differ by as
much as its interval says. `authors` has means of the authors' code in place of published ones."""

PARTS = [
    ("table: predictive model settings", "costs", "black boxes"),
    ("table of Experiment 1, all methods", "costs", ""),
    ("the authors' code on the same rows and people", "authors", "not in the paper"),
    ("table: one random factual of Adult", "example", ""),
    ("table of Experiment 2, K varies", "samples", ""),
    ("Experiment 3: histograms, correlation matrices, discriminator", "manifold", ""),
    ("table and four figures of Experiment 4", "scaling", ""),
    ("table of copies, section on privacy", "privacy", ""),
    ("appendix: features that are not binarized", "levels", ""),
    ("appendix: a random forest as the predictor", "forest", ""),
    ("appendix: not conditioned on the decision", "unconditioned", ""),
    ("appendix: histograms of the other features", "manifold", ""),
    ("appendix: simulations mimicking the real data", "mimic", ""),
    ("future steps: the visit sequence", "visit-order", "no figures in the paper"),
    ("figure: the three steps", "", "an illustration"),
    ("figure: parameters of the competing methods", "", "an image without source data"),
]

DISAGREEMENTS = [
    (
        "L1",
        "Gower distance, a mean over the features between 0 and 1",
        "the tables print the sum over the features",
        "`l1` is the sum; `gower` is the mean",
    ),
    (
        "L0",
        "number of features changed",
        "differences up to 1e-5 of the range do not count",
        "`l0` counts as the tables do, `l0_exact` counts all",
    ),
    (
        "Adult",
        "4 + 8 features",
        "6 + 7: CLUE changes 13.00 features",
        "the 13",
    ),
    (
        "two levels",
        "the most frequent class and its counterpart",
        "in Adult, hand-made groups: Married, Managerial-Specialist, Husband, …",
        "these groups for Adult, most frequent or other for FICO and German Credit",
    ),
    (
        "not binarized",
        "all levels, 41 countries",
        "the published script keeps the three most frequent levels and the rest: four in all",
        "all levels, the unknown country as one more",
    ),
    (
        "scaling",
        "mean 0 and standard deviation 1",
        "the range from 0 to 1, the default of CARLA",
        "the range, for networks and distances",
    ),
    (
        "who is explained",
        "test observations",
        "the first declined rows of the whole file, of which most trained the network and all "
        "trained the trees",
        "the same, and next to them people on whom the network was not trained",
    ),
    (
        "Give Me Some Credit",
        "150,000 rows, those with missing cells dropped",
        "the script reads a file without outliers too",
        "the complete rows, and those without outliers next to them; a quarter of the latter where "
        "generated rows are tested",
    ),
    (
        "FICO",
        "10,459 rows; 1 is Bad",
        "some records are -9 in every cell, and what is explained is Bad, so Good is desired",
        "without those records, and with them next to it; Good is desired",
    ),
    (
        "visit sequence",
        "the order of the variables in the data",
        "numbers first, then categories by name",
        "that of the code; others next to it",
    ),
    ("trees", "q - 1", "one for each of the q conditionals", "q"),
    (
        "draws",
        "independent",
        "random numbers restart in every leaf: equal in leaves of equal size",
        "independent, and the same for a person whoever else is explained",
    ),
    (
        "time",
        "MCCE in total",
        "without the predictor's decisions on the training rows; the appendix' 25, 32, 6 and 34 "
        "seconds for the real data are 15.00, 19.58, 3.71 and 15.47 in the table",
        "CPU seconds of one thread; each report says what they include",
    ),
    (
        "the other methods",
        "CARLA with its default parameters",
        "FACE started from another person's row, CEM-VAE explained another network, CLUE's "
        "fractions count as changes, C-CHVAE and CRUDS tie indicators in pairs; CLUE's L0 of 20.09 "
        "for 20 features is impossible",
        "their published rows as published, without a claim about the methods",
    ),
]


def write_page(reports: Path, page: Path, experiments: Sequence[Described]) -> Path:
    """Join the reports in a folder into one page.

    Parameters
    ----------
    reports : Path
        Folder with the reports; it may be that of the page, to write the page again.
    page : Path
        File for the page; tables and figures go into a folder of the same name without the suffix.
    experiments : list of Experiment
        Experiments in the order of the page; those without a report are listed as not run.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ParameterError
        If the folder has no report.
    """
    _gather(reports, page.with_suffix(""), experiments)
    page.write_text(page_text(page.with_suffix(""), experiments), encoding="utf-8")
    return page


def join_reports(
    reports: Path, page: Path, experiments: Sequence[Described], introduction: str
) -> Path:
    """Join the reports in a folder into a page with an introduction of its own.

    Parameters
    ----------
    reports, page, experiments
        As for :func:`write_page`.
    introduction : str
        What the page begins with.

    Returns
    -------
    Path
        The page.
    """
    folder = page.with_suffix("")
    _gather(reports, folder, experiments)
    page.write_text(joined_text(folder, experiments, introduction), encoding="utf-8")
    return page


def joined_text(folder: Path, experiments: Sequence[Described], introduction: str) -> str:
    """The page of :func:`join_reports` from the folder next to it."""
    available = _available(folder, experiments)
    parts = [introduction, *_machines(folder, [one.name for one in available])]
    parts += [_section(markdown(one, folder), one.name, folder.name) for one in available]
    return "\n\n".join(parts) + "\n"


def _gather(reports: Path, folder: Path, experiments: Sequence[Described]) -> None:
    """Copy the files of the reports into the folder of a page."""
    available = _available(reports, experiments)
    if not available:
        names = ", ".join(experiment.name for experiment in experiments)
        raise ParameterError(
            f"The page needs reports, but {str(reports)!r} has none of {names}. "
            "Run experiments with the same --out first."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in available:
        manifest = read_manifest(experiment.name, reports)
        files = [f"{experiment.name}.json"]
        files += [f"{experiment.name}-{table}.csv" for table in manifest["tables"]]
        if folder.samefile(reports):
            continue
        for file in files:
            shutil.copyfile(reports / file, folder / file)
        for figure in manifest["figures"]:
            picture = f"{experiment.name}-{figure}.png"
            shrink(reports / picture, folder / picture)


def page_text(folder: Path, experiments: Sequence[Described]) -> str:
    """The page of the reports whose tables are in a folder."""
    available = _available(folder, experiments)
    names = [experiment.name for experiment in available]
    parts = [INTRODUCTION, to_markdown(_verdicts(folder, names)), *_machines(folder, names)]
    parts += ["## Contents", to_markdown(_contents(names))]
    parts += ["## Where text and code disagree", to_markdown(_disagreements())]
    parts += [_section(markdown(one, folder), one.name, folder.name) for one in available]
    return "\n\n".join(parts) + "\n"


def _available(folder: Path, experiments: Sequence[Described]) -> list[Described]:
    return [one for one in experiments if (folder / f"{one.name}.json").is_file()]


def _verdicts(folder: Path, names: Sequence[str]) -> pd.DataFrame:
    """How many published means are reproduced, by experiment, and which are not."""
    words = (REPRODUCED, NOT_REPRODUCED, NOT_COMPARABLE)
    rows = []
    for name in names:
        table = read_tables(name, folder).get(PUBLISHED)
        if table is None:
            continue
        unseen = table["what"].str.contains(HELDOUT)
        for label, part in ((name, table[~unseen]), (f"{name}, {HELDOUT}", table[unseen])):
            # Without any remark the column is read as numbers.
            found = part["remark"].map(lambda remark: str(remark).partition(":")[0])
            if found.isin(words).any():
                counts = {word: int((found == word).sum()) for word in words}
                those = "; ".join(part.loc[found == NOT_REPRODUCED, "what"])
                rows.append({"experiment": label} | counts | {"which are not": those})
    return pd.DataFrame(rows, columns=["experiment", *words, "which are not"])


def _machines(folder: Path, names: Sequence[str]) -> list[str]:
    """The line on the machine; if there are several, with their experiments."""
    ran: dict[str, list[str]] = {}
    for name in names:
        ran.setdefault(f"{_MACHINE}{read_manifest(name, folder)['machine']}.", []).append(name)
    if len(ran) == 1:
        return list(ran)
    return [f"{line} ({', '.join(names)})" for line, names in ran.items()]


def _contents(available: Sequence[str]) -> pd.DataFrame:
    rows = []
    for part, name, remark in PARTS:
        missing = name and name not in available
        link = f"[{name}](#{name})" if name and not missing else name or "-"
        rows.append({"in the paper": part, "here": link, "": "not run" if missing else remark})
    return pd.DataFrame(rows)


def _disagreements() -> pd.DataFrame:
    heads = ["what", "the text", "the code, the data or the tables", "here"]
    return pd.DataFrame(DISAGREEMENTS, columns=heads)


def _section(text: str, name: str, folder: str) -> str:
    """A report as a section: headings one level down, figures from the page's folder."""
    blocks = []
    for block in text.strip().split("\n\n"):
        if block.startswith((_MACHINE, _PICTURE)):
            continue
        if block.startswith("# "):
            blocks.append(f'<a id="{name}"></a>\n\n## {block[2:]}')
        elif block.startswith("## "):
            blocks.append(f"#{block}")
        elif block.startswith(("![", "[as CSV](")):
            blocks.append(block.replace("](", f"]({folder}/"))
        elif block.startswith("| "):
            blocks.append(_folded(block))
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


def _folded(table: str) -> str:
    """A table, collapsed if it is long."""
    n_rows = table.count("\n") - 1
    if n_rows <= LONG:
        return table
    return f"<details><summary>{n_rows} rows</summary>\n\n{table}\n\n</details>"


def shrink(source: Path, target: Path) -> None:
    """A picture, no wider than the page and in few colours."""
    from PIL import Image  # comes with matplotlib, which drew the figure

    with Image.open(source) as picture:
        drawn: Any = picture.convert("RGB")
        if drawn.width > WIDTH:
            height = round(drawn.height * WIDTH / drawn.width)
            drawn = drawn.resize((WIDTH, height), Image.Resampling.LANCZOS)
        # An octree keeps the colour of thin lines; a median cut turns them grey.
        drawn.quantize(N_COLOURS, method=Image.Quantize.FASTOCTREE).save(target, optimize=True)
