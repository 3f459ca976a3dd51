"""Tables of the pages of evidence, from the CSV files beside each page.

Pages are written by hand. A line ``<!-- table: name -->`` stands above each of their tables, which
``mcce-lab page`` writes anew: ``docs/steps.md`` has its files in the folder ``docs/steps``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mcce.errors import ParameterError

from .experiments.report import to_markdown
from .metrics import JUDGES

MARKED = re.compile(r"^(<!-- table: (?P<name>[\w-]+) -->\n)(?:\|.*\n)*", re.MULTILINE)


def render(page: Path) -> str:
    """The text of a page with its tables written anew.

    Parameters
    ----------
    page : Path
        A Markdown file. The folder beside it that has its name holds CSV files.

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If a page or a file is missing, or a table has an unknown name.
    """

    def table(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in TABLES:
            raise ParameterError(
                f"{str(page)!r} has a table {name!r}; known are {', '.join(TABLES)}."
            )
        return f"{found[1]}{to_markdown(TABLES[name](page.with_suffix('')))}\n"

    try:
        return MARKED.sub(table, page.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(
            f"{str(page)!r} needs a file that cannot be read: {error.filename!r} "
            f"({error.strerror}). Run the experiment with --out {str(page.with_suffix(''))!r}."
        ) from error


def reproduction(folder: Path) -> pd.DataFrame:
    """Which published figures are reproduced, by experiment."""
    lines = []
    for name, title in REPRODUCED.items():
        table = pd.read_csv(folder / f"{name}-published.csv")
        judged = table[table["reproduced"].notna()]
        missed = judged[judged["reproduced"].astype(str) == "False"]
        lines.append(
            {
                "experiment": title,
                "compared": len(judged),
                "reproduced": len(judged) - len(missed),
                "not reproduced: published v ours (standard errors)": "; ".join(
                    _told(row) for _, row in missed.iterrows()
                ),
            }
        )
    return pd.DataFrame(lines)


REPRODUCED = {
    "splits": "test AUC of the networks",
    "costs": "costs of MCCE",
    "authors": "the authors' code, same network and people",
    "samples": "K from 10 to 25,000",
    "unconditioned": "the same without the decision",
    "draws": "valid and unique draws",
    "manifold": "forest tells generated rows",
    "privacy": "copies of training rows",
    "levels": "categories not binarized",
    "forest": "random forest as predictor",
}


def _told(row: Any) -> str:
    """A published figure beside ours."""
    labels = [str(row[name]) for name in ("dataset", "setting", "measure") if name in row]
    both = [f"{row[name]:,.4g}" for name in ("published", "ours")]
    return f"{', '.join(labels)} {both[0]} v {both[1]} ({row['standard_errors']:.1f})"


def comparison(folder: Path) -> pd.DataFrame:
    """Rivals, each with its first setting, beside ``balanced``; who dominates whom by any."""
    paired, dominance = (pd.read_csv(folder / f"{n}.csv") for n in ("paired", "dominance"))
    measures = pd.read_csv(folder / "measures.csv")
    lines = []
    for method, first in _methods(dominance["rival"]).items():
        mine, coverage = (t[t["method"] == first] for t in (paired, measures))
        better, worse = _beyond_chance(mine)
        verdicts = dominance[dominance["rival"].map(_method_of) == method]
        by_case = verdicts.groupby(["dataset", "box"])
        lines.append(
            {
                "method": method,
                "cases": len(mine),
                "answers %": 100 * coverage["coverage"].mean(),
                "changes": mine["sparsity"].mean(),
                "ours": mine["sparsity_base"].mean(),
                "l1": mine["l1"].mean(),
                "ours ": mine["l1_base"].mean(),
                "judges: ours better, worse": f"{better}, {worse}",
                "ours dominates it": int(by_case.apply(_is_dominated).sum()),
                "it dominates, by l1": int(by_case.apply(_dominates, judges=("l1",)).sum()),
                "by a judge": int(by_case.apply(_dominates, judges=JUDGES).sum()),
            }
        )
    return pd.DataFrame(lines)


def _method_of(setting: str) -> str:
    """The method of a setting: ``NICE`` of ``NICE, 12 starts``."""
    return setting.partition(",")[0]


def _methods(settings: pd.Series[str]) -> dict[str, str]:
    """Each method with its first setting."""
    first: dict[str, str] = {}
    for setting in settings:
        first.setdefault(_method_of(setting), setting)
    return first


def _beyond_chance(rows: pd.DataFrame) -> tuple[int, int]:
    """By how many judges, over cases, the base is better, and by how many worse."""
    low, high = (rows[[f"{judge}_difference_{end}" for judge in JUDGES]] for end in ("low", "high"))
    return int((low > 0).to_numpy().sum()), int((high < 0).to_numpy().sum())


def _is_dominated(verdicts: pd.DataFrame) -> bool:
    """Whether each setting of a rival is dominated by one of ours by all judges at once."""
    judged = verdicts[verdicts["judge"].isin(JUDGES)].fillna("")
    return all(
        set.intersection(*(set(names.split("; ")) - {""} for names in rows["dominated_by"]))
        for _, rows in judged.groupby("rival")
    )


def _dominates(verdicts: pd.DataFrame, judges: tuple[str, ...]) -> bool:
    """Whether a setting of a rival dominates one of our named searches, by one of some judges."""
    names = verdicts.loc[verdicts["judge"].isin(judges), "dominates"].dropna()
    beaten = {name for some in names for name in some.split("; ")}
    return any(name and " at " not in name and name != "MCCE paper" for name in beaten)


def steps(folder: Path) -> pd.DataFrame:
    """On how many data sets an alternative is better and worse than the usual step."""
    lines = []
    for file, what, base in STEPS:
        table = pd.read_csv(folder / f"{file}-verdicts.csv", keep_default_na=False)
        table = table[table["search"] == "paper"].set_index("measure").drop(columns="search")
        for name in table.columns:
            cells = {title: table[name].get(measure, "") for measure, title in SHOWN.items()}
            lines.append({"instead of": base, what: name} | cells)
    return pd.DataFrame(lines)


STEPS = (
    ("generators", "alternative", "trees"),
    ("private", "alternative", "trees"),
    ("distances", "alternative", "Gower"),
    ("visit-order", "alternative", "order of the data"),
)
SHOWN = {
    "accuracy_%": "rows look real",
    "log_likelihood": "likelihood",
    "l0": "changes",
    "l1": "l1",
    "knn_distance": "near accepted rows",
    "calibrated_auc": "members are hidden",
}
TABLES: dict[str, Callable[[Path], pd.DataFrame]] = {
    "reproduction": reproduction,
    "comparison": comparison,
    "steps": steps,
}
