"""The page of the comparison, from its tables alone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ...errors import ParameterError
from ...metrics.judges import JUDGES
from ..report.files import to_markdown
from ..report.page import shrink
from .methods import SEARCHES

NAME = "compare"
TABLES = ("measures", "common", "dominance")
INTRODUCTION = """# Comparison with other methods

Every method behind one protocol: the same people, predictors, training rows and judges. The command

    mcce experiments compare --data FOLDER

runs it, cell by cell, and goes on where it stopped; `mcce experiments page` writes this page from
its tables, which stand in the folder `comparison` beside it. [Baselines](user_guide/baselines.md)
says what each method guarantees.

Half of the accepted rows of a data set are seen by the methods, the other half by the judges alone.
People are drawn at random from the declined rows, not from those on which our searches were tuned,
if there are enough others. No constant was set on the data set `mortgage`; the searches were tuned
on other people of the other four. Every answer of every method is valid by a fresh call of the
predictor and keeps immutable features: rows that do not are not returned, and count as missing."""
HEADINGS = {
    "losses": """## Where we lose

Rivals that dominate one of our named searches: on the people whom both answer, neither changes nor
the judge are worse and one is better, by 95 % intervals. Intervals are not corrected for the number
of comparisons.""",
    "fronts": """## Fronts

Changes per answer against distance and realism. Lines join the settings of ours that no other one
of ours beats; bars are 95 % intervals. Points are means over the people whom a method answers, and
coverage differs: the verdicts below compare on common people.""",
    "verdicts": """## Who dominates whom

Rivals by judge: how many of our settings dominate it, and how many it dominates. A point that none
of ours dominates is a choice of its own.""",
    "costs": """## Costs

Means over the people whom a method answers, so a method that answers only easy people looks better;
the next table compares on common people. Brackets hold 95 % intervals over people, seeds and
networks; a method that ran in fewer cells has wider ones. CPU seconds of one thread, for all people
of a cell; those of the first seed.""",
    "common": """## The same people

Means over the people whom every method answers that answers at least half of them; the others are
left out.""",
    "judges": """## Judges

Larger is stranger; detectability 0.5 is best. Each judge on its own, on the people whom a method
answers. Of the density, minus its logarithm is shown as sign(x) log(1 + |x|), since few rows with
values far from all others would outweigh everybody else. Plausibility, where larger is better, is
that of our own model, which our searches ask for; it counts as no judge.""",
}
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
    people = reports / f"{NAME}-people.csv.gz"
    if people.is_file():
        (folder / "people.csv.gz").write_bytes(people.read_bytes())
    if (reports / f"{NAME}-fronts.png").is_file():
        shrink(reports / f"{NAME}-fronts.png", folder / "fronts.png")
    page.write_text(render(folder), encoding="utf-8")
    return page


def render(folder: Path) -> str:
    """The text of the page, given the folder of its tables."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("measures", "common")}
    verdicts = pd.read_csv(folder / "dominance.csv", keep_default_na=False)
    parts = [INTRODUCTION, _promises(tables["measures"]), HEADINGS["losses"]]
    parts += [to_markdown(losses(verdicts)), HEADINGS["fronts"]]
    parts += [f"![Fronts of all methods]({folder.name}/fronts.png)"]
    parts += [HEADINGS["verdicts"], to_markdown(points(verdicts))]
    for name, table in (
        ("", _verdicts(verdicts)),
        ("costs", _costs(tables["measures"])),
        ("common", _common(tables["common"])),
        ("judges", _judged(tables["measures"])),
    ):
        parts += [HEADINGS[name]] if name else []
        parts += _by_case(table)
    return "\n\n".join(parts) + "\n"


def _promises(table: pd.DataFrame) -> str:
    """How many returned rows break a promise, and how large the comparison is."""
    broken = int(((table["valid"] < 1) | (table["violation"] > 0)).sum())
    cells = table.groupby(["dataset", "box"])["cells"].max()
    return (
        f"{int(cells.sum())} cells of {len(cells)} data sets and kinds of predictor, "
        f"{table['method'].nunique()} methods and settings. {broken} of {len(table)} of their "
        "combinations returned a row that is not valid or changes an immutable feature."
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


def points(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How many rivals a setting of ours dominates, and which none does, by data set and judge."""
    lines = []
    for (dataset, box, judge), rows in verdicts.groupby(["dataset", "box", "judge"], sort=False):
        free = rows.loc[rows["dominated_by"] == "", "rival"]
        lines.append(
            {
                "case": f"{dataset}, {box}",
                "judge": JUDGED[str(judge)],
                "dominated": f"{len(rows) - len(free)} of {len(rows)}",
                "not dominated": "; ".join(free),
            }
        )
    return pd.DataFrame(lines)


def _verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    won, lost = (
        verdicts[name].map(lambda names: len(names.split(", ")) if names else 0)
        for name in ("dominated_by", "dominates")
    )
    shown = [
        ", ".join([f"dominated by {w}"] * bool(w) + [f"dominates {n}"] * bool(n)) or "neither"
        for w, n in zip(won, lost, strict=True)
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
        shown = to_markdown(rows.drop(columns="case"))
        parts.append(f"<details><summary>{case}</summary>\n\n{shown}\n\n</details>")
    return parts
