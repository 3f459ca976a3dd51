"""The page of the comparison, from its tables alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mcce.errors import ParameterError

from ...metrics.judges import JUDGES
from ..report.files import to_markdown
from ..report.page import shrink
from .figures import LEAST_COVERAGE
from .methods import METHODS, SEARCHES
from .summary import LEAST_IN_COMMON
from .texts import HEADINGS, INTRODUCTION

NAME = "compare"
TABLES = ("measures", "common", "dominance")
# Written by benchmarks/devices.py, which needs a GPU: shown if it is there.
DEVICES = "devices.csv"
TEXTS = [
    "dataset",
    "box",
    "method",
    "rival",
    "judge",
    "left_out",
    "dominated_by",
    "dominates",
    "device",
]
COUNTS = ("cells", "people", "common_people", "answered")
JUDGED = {
    "l1": "l1",
    "outlier_factor": "outlier factor",
    "isolation": "isolation",
    "pca_residual": "PCA residual",
    "density": "density",
}


def write_comparison(reports: Path, page: Path) -> Path:
    """Write the page, and the tables and figures that it shows into a folder beside it.

    Parameters
    ----------
    reports : Path
        Folder with the reports of ``mcce experiments compare``.
    page : Path
        The page.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ParameterError
        If the comparison was not run.
    """
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        source = reports / f"{NAME}-{name}.csv"
        if not source.is_file():
            raise ParameterError(
                f"The comparison has no table {source.name} in {str(reports)!r}. Run mcce "
                "experiments compare with the same --out first."
            )
        (folder / f"{name}.csv").write_bytes(source.read_bytes())
    people = reports / f"{NAME}-people.csv.xz"
    if people.is_file():
        (folder / "people.csv.xz").write_bytes(people.read_bytes())
    if (reports / f"{NAME}-fronts.png").is_file():
        shrink(reports / f"{NAME}-fronts.png", folder / "fronts.png")
    page.write_text(render(folder), encoding="utf-8")
    return page


def render(folder: Path) -> str:
    """The text of the page, given the folder of its tables."""
    tables = {name: _read(folder / f"{name}.csv") for name in TABLES}
    verdicts = tables["dominance"]
    parts = [INTRODUCTION, _promises(tables["measures"]), HEADINGS["losses"]]
    parts += [to_markdown(by_search(verdicts)), HEADINGS["lost"]]
    parts += _folded("by rival", _with_coverage(losses(verdicts), tables["measures"]))
    parts += [HEADINGS["detected"], to_markdown(least_detected(tables["measures"]))]
    parts += [HEADINGS["fronts"], f"![Fronts of all methods]({folder.name}/fronts.png)"]
    parts += [HEADINGS["verdicts"], to_markdown(by_one_setting(verdicts))]
    parts += [_chance(verdicts), HEADINGS["points"], to_markdown(points(verdicts))]
    for name, table in (
        ("", _verdicts(verdicts)),
        ("costs", _costs(tables["measures"])),
        ("common", _common(tables["common"])),
        ("judges", _judged(tables["measures"])),
    ):
        parts += [HEADINGS[name]] if name else []
        parts += _by_case(table)
    if (folder / DEVICES).is_file():
        parts += [HEADINGS["devices"], to_markdown(_by_device(_read(folder / DEVICES)))]
    return "\n\n".join(parts) + "\n"


def _read(path: Path) -> pd.DataFrame:
    """A table with numbers as Python reads them: those of pandas depend on its version."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in table.columns.difference(TEXTS):
        kind = int if name in COUNTS else float
        table[name] = np.array([kind(text or "nan") for text in table[name]])
    return table


def _promises(table: pd.DataFrame) -> str:
    """How many returned rows break a promise, and how large the comparison is."""
    broken = int(((table["valid"] < 1) | (table["violation"] > 0)).sum())
    by_case = table["cells"].groupby(table["dataset"] + " " + table["box"], sort=False)
    cells, part = by_case.max(), table["cells"] < by_case.transform("max")
    sizes = ", ".join(f"{case} {n}" for case, n in cells.items())
    few = table.loc[part].groupby("method", sort=False)["cells"]
    fewer = "; ".join(f"{name} ({n} in all)" for name, n in few.sum().items()) or "none"
    return (
        f"{int(cells.sum())} cells ({sizes}), {table['method'].nunique()} methods and settings. "
        f"Methods that ran in fewer cells of a case than others: {fewer}. {broken} of "
        f"{len(table)} combinations of case and method returned a row that is not valid or changes "
        "an immutable feature."
    )


def _costs(table: pd.DataFrame) -> pd.DataFrame:
    shown = _named(table)
    shown["cells"] = table["cells"]
    shown["coverage"] = table["coverage"].map("{:.3f}".format)
    for measure in ("sparsity", "l1", "redundancy"):
        shown[measure] = _with_interval(table, measure)
    shown["copies"] = table["copy"].map("{:.3f}".format)
    shown["fit s"] = table["fit_cpu"].map("{:.2f}".format)
    shown["search s"] = table["search_cpu"].map("{:.2f}".format)
    shown["rows per person"] = table["rows_per_person"].map("{:.1f}".format)
    return shown


def _common(table: pd.DataFrame) -> pd.DataFrame:
    shown = _named(table)
    shown["people"] = table["common_people"]
    for measure in ("sparsity", *JUDGED):
        shown[JUDGED.get(measure, measure)] = _with_interval(table, measure)
    return shown


def _judged(table: pd.DataFrame) -> pd.DataFrame:
    shown = _named(table)
    for measure in JUDGES:
        shown[JUDGED[measure]] = _with_interval(table, measure)
    shown["detectability"] = _with_interval(table, "detectability")
    shown["contradictory"] = table["contradictions"].map("{:.3f}".format)
    shown["plausibility"] = _with_interval(table, "plausibility")
    return shown


def losses(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Named searches of ours that a rival dominates, by data set and judge.

    Parameters
    ----------
    verdicts
        The table of who dominates whom.

    Returns
    -------
    DataFrame
        One row per data set, kind of predictor and rival that dominates one; a column per judge.
    """
    named = {f"MCCE {name}" for name in SEARCHES}
    lost = verdicts["dominates"].map(
        lambda names: ", ".join(n.removeprefix("MCCE ") for n in names.split(", ") if n in named)
    )
    return _crossed(verdicts.assign(shown=lost)[lost != ""])


def by_search(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How many rivals dominate each named search of ours, by judge."""
    lines = []
    names = verdicts["dominates"].str.split(", ")
    for search in SEARCHES:
        beaten = pd.Series([f"MCCE {search}" in some for some in names], index=verdicts.index)
        line: dict[str, str] = {"search": search}
        for judge, title in JUDGED.items():
            of_judge = beaten[verdicts["judge"] == judge]
            line[title] = f"{int(of_judge.sum())} of {len(of_judge)}"
        lines.append(line)
    return pd.DataFrame(lines)


def _with_coverage(lost: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """The same with the coverage of each rival."""
    shares = _named(measures).assign(coverage=measures["coverage"].map("{:.2f}".format))
    found = lost.merge(shares, how="left", on=["case", "method"])
    return found[["case", "method", "coverage", *JUDGED.values()]]


def least_detected(measures: pd.DataFrame) -> pd.DataFrame:
    """The method of ours and of the rivals that is detected least, by data set and predictor."""
    ours = {method.name for method in METHODS if method.is_ours}
    known = measures["detectability"].notna() & (measures["coverage"] >= LEAST_COVERAGE)
    lines = []
    for (dataset, box), rows in measures[known].groupby(["dataset", "box"], sort=False):
        line = {"case": f"{dataset}, {box}"}
        is_ours = rows["method"].isin(ours)
        for title, part in (("ours", rows[is_ours]), ("rivals", rows[~is_ours])):
            best = part.loc[[(part["detectability"] - 0.5).abs().idxmin()]] if len(part) else part
            shown = best["method"] + " " + _with_interval(best, "detectability")
            line[title] = "".join(shown)
        lines.append(line)
    return pd.DataFrame(lines)


def by_one_setting(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Rivals that one setting of ours dominates by all judges at once, and the other way round.

    Parameters
    ----------
    verdicts
        The table of who dominates whom.

    Returns
    -------
    DataFrame
        One row per data set and kind of predictor: how many rivals one setting of ours dominates by
        all four judges, how many by l1 too, and which dominate a named search of ours by all four.
    """
    named = {f"MCCE {name}" for name in SEARCHES}
    lines = []
    for (dataset, box), rows in verdicts.groupby(["dataset", "box"], sort=False):
        won, too, lost = 0, 0, []
        for rival, own in rows.groupby("rival", sort=False):
            by_judge = own.set_index("judge")
            ours, theirs = (_by_all(by_judge[name]) for name in ("dominated_by", "dominates"))
            won += bool(ours)
            too += bool(ours & set(str(by_judge["dominated_by"]["l1"]).split(", ")))
            beaten = ", ".join(n.removeprefix("MCCE ") for n in sorted(theirs & named))
            lost += [f"{rival} ({beaten})"] if beaten else []
        n_rivals = rows["rival"].nunique()
        lines.append(
            {
                "case": f"{dataset}, {box}",
                "dominated by all judges": f"{won} of {n_rivals}",
                "and by l1": f"{too} of {n_rivals}",
                "rivals that dominate": "; ".join(lost),
            }
        )
    return pd.DataFrame(lines)


def _by_all(names: pd.Series[str]) -> set[str]:
    """The settings that are named by every judge."""
    return set.intersection(*(set(str(names[judge]).split(", ")) for judge in JUDGES)) - {""}


def _chance(verdicts: pd.DataFrame) -> str:
    n_ours = sum(method.is_ours for method in METHODS)
    return (
        f"Intervals are not corrected for the number of comparisons, {len(verdicts) * n_ours:,} "
        "pairs of a rival and a setting of ours by a judge, which are not independent."
    )


def points(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How many rivals a setting of ours dominates, and which none does, by data set and judge."""
    lines = []
    for (dataset, box, judge), rows in verdicts.groupby(["dataset", "box", "judge"], sort=False):
        few = rows["common_people"] < LEAST_IN_COMMON
        free = rows.loc[(rows["dominated_by"] == "") & ~few, "rival"]
        judged = int((~few).sum())
        lines.append(
            {
                "case": f"{dataset}, {box}",
                "changes and": JUDGED[str(judge)],
                "dominated": f"{judged - len(free)} of {judged}",
                "not dominated": "; ".join(free),
                "no verdict": "; ".join(rows.loc[few, "rival"]),
            }
        )
    return pd.DataFrame(lines)


def _verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    won, lost = (
        verdicts[name].map(lambda names: len(names.split(", ")) if names else 0)
        for name in ("dominated_by", "dominates")
    )
    shown = [
        ", ".join([f"dominated by {w}"] * bool(w) + [f"dominates {n}"] * bool(n))
        or ("no verdict" if few else "neither")
        for w, n, few in zip(won, lost, verdicts["common_people"] < LEAST_IN_COMMON, strict=True)
    ]
    return _crossed(verdicts.assign(shown=shown))


def _crossed(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What is shown of each verdict, a row per rival and a column per judge."""
    table = _named(verdicts.rename(columns={"rival": "method"})).assign(
        judge=verdicts["judge"].map(JUDGED), shown=verdicts["shown"]
    )
    order = table[["case", "method"]].drop_duplicates()
    for judge in JUDGED.values():
        of_judge = table.loc[table["judge"] == judge, ["case", "method", "shown"]]
        order = order.merge(of_judge.rename(columns={"shown": judge}), how="left")
    return order.astype(object).where(order.notna(), "")


def _by_device(table: pd.DataFrame) -> pd.DataFrame:
    """Wall-clock seconds of fit and search and people answered, by data set, method and device."""
    shown = table[["dataset", "method"]].drop_duplicates().reset_index(drop=True)
    for device, rows in table.groupby("device", sort=False):
        for phase in ("fit", "search"):
            seconds = rows[f"{phase}_seconds"].map("{:.1f}".format).to_numpy()
            shown[f"{phase}, {device}"] = seconds
        shown[f"answered, {device}"] = rows["answered"].to_numpy()
    return shown


def _named(table: pd.DataFrame) -> pd.DataFrame:
    case = table["dataset"] + ", " + table["box"]
    return pd.DataFrame({"case": case, "method": table["method"]})


def _with_interval(table: pd.DataFrame, measure: str) -> pd.Series[str]:
    """A mean with its interval in brackets."""
    columns = (table[measure], table[f"{measure}_low"], table[f"{measure}_high"])
    lines = (
        f"{mean:.2f} [{low:.2f}, {high:.2f}]" for mean, low, high in zip(*columns, strict=True)
    )
    return pd.Series(list(lines), index=table.index)


def _by_case(table: pd.DataFrame) -> list[str]:
    """A collapsed table for each data set and kind of predictor."""
    parts = []
    for case, rows in table.groupby("case", sort=False):
        parts += _folded(str(case), rows.drop(columns="case"))
    return parts


def _folded(title: str, table: pd.DataFrame) -> list[str]:
    return [f"<details><summary>{title}</summary>\n\n{to_markdown(table)}\n\n</details>"]
