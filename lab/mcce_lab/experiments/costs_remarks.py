"""What the tables of Experiment 1 say, in sentences."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .experiment import NOT_REPRODUCED, Tables, first_row

EDUCATION = "education-num"


def remarks(tables: Tables) -> list[str]:
    """Sentences about the tables of the experiment ``costs``."""
    lines = [
        "Reproduced means: our mean differs from the published one, up or down, by at most two "
        "standard errors of the difference, computed from the standard deviations over people. "
        "Other training seeds of the predictor are a further source of difference: see the table "
        "of networks.",
    ]
    for name in dict.fromkeys(tables["networks"]["dataset"]):
        lines.append(_network_remark(tables, str(name)))
        if name in _REMARKS:
            lines += _REMARKS[str(name)](tables)
    lines.append(_heldout_remark(tables))
    lines += _unexplained_remark(tables)
    lines.append(
        "For both codes on the same network and people, which leaves out every difference but that "
        "of the codes, see the experiment authors."
    )
    lines.append(
        "The rows of the other methods are copied from the paper. The experiment compare runs them."
    )
    return lines


def _network_remark(tables: Tables, name: str) -> str:
    """Whether other networks give the published costs."""
    table = tables["networks"]
    trained = table[table["dataset"] == name]
    rows = trained[trained["n_declined"] > 0]
    theirs = first_row(tables["results"], dataset=name, source="published", method="MCCE")
    if len(rows) == 1:
        return f"{name}: one network, so how costs vary with it is not known."
    parts = []
    for cost in ("l0", "l1"):
        low, high = rows[cost].min(), rows[cost].max()
        inside = "inside" if low <= theirs[cost] <= high else "outside"
        parts.append(
            f"{cost} is {low:.2f} to {high:.2f}, the published {theirs[cost]:.2f} is {inside}"
        )
    nobody = len(trained) - len(rows)
    besides = f" ({nobody} more declined nobody)" if nobody else ""
    which = rows["rows"].iloc[0]
    of_rows = "" if which == "paper" else f", rows {which}"
    return (
        f"{name}{of_rows}: over {len(rows)} networks trained from different "
        f"seeds{besides} the test AUC is {rows['auc'].min():.2f} to {rows['auc'].max():.2f}, they "
        f"decline {rows['n_declined'].min():,} to {rows['n_declined'].max():,} people, "
        f"{'; '.join(parts)}."
    )


def _adult(tables: Tables) -> list[str]:
    changes = tables["changes"]
    rows = changes[(changes["dataset"] == "adult") & (changes["feature"] == EDUCATION)]
    if rows.empty:
        return []
    row = rows.iloc[0]
    return [
        f"The text says that MCCE increases {EDUCATION} for all people of Adult. Here it changes "
        f"for {row['changed_%']:.1f} % of them, and {row['up_%']:.1f} % of these changes are "
        "increases."
    ]


def _gmc(tables: Tables) -> list[str]:
    return [
        "Give Me Some Credit: complete rows, as described in the paper's text, have a few extreme "
        "values. Ranges are then so wide that most changes are a small share of them (l1) or below "
        "the tolerance (l0), so their costs cannot be compared with the published ones. The rows "
        "called filtered, which the authors' script seems to read, are compared like for like."
    ]


def _fico(tables: Tables) -> list[str]:
    boxes = tables["black_boxes"]
    rows = boxes[(boxes["dataset"] == "fico") & (boxes["rows"] == "all")]
    if rows.empty:
        return []
    n_empty = int(rows.iloc[0]["n_train"] - _box(boxes)["n_train"])
    n_explained = int(rows.iloc[0]["n_explained"])
    everybody = first_row(tables["results"], dataset="fico", rows="all", method="MCCE")
    return [
        f"FICO: {n_empty} records without any value are left out. With them (rows all) the AUC is "
        f"{rows.iloc[0]['auc']:.2f}, and {n_explained - int(everybody['n_ce']):,} of the first "
        f"{n_explained:,} people have no counterfactual: ExternalRiskEstimate, which is immutable, "
        "is missing for them, as for no accepted row."
    ]


def _box(boxes: pd.DataFrame) -> pd.Series[Any]:
    return first_row(boxes, dataset="fico", rows="paper")


_REMARKS = {"adult": _adult, "gmc": _gmc, "fico": _fico}


def _heldout_remark(tables: Tables) -> str:
    """Held-out people next to the first people of the file."""
    parts = []
    for _, row in tables["heldout"].iterrows():
        first = first_row(tables["results"], dataset=row["dataset"], source="ours", method="MCCE")
        parts.append(
            f"{row['dataset']} {row['l0']:.2f} and {row['l1']:.2f} for {row['n_ce']:,.0f} held-out "
            f"people, {first['l0']:.2f} and {first['l1']:.2f} for the first of the file"
        )
    return (
        "Most people whom the paper's script explains, the first of the file, were training rows "
        "of the network; its text says test observations. The l0 and l1 of people on whom the "
        f"network was not trained: {'; '.join(parts)}."
    )


def _unexplained_remark(tables: Tables) -> list[str]:
    """The data sets whose published l0 no network gives, and what held-out people say."""
    compared = tables["published"].set_index("what")["remark"]
    names, lines = [], []
    for name, rows in tables["networks"].groupby("dataset", sort=False):
        theirs = first_row(tables["results"], dataset=name, source="published", method="MCCE")
        if rows["l0"].min() <= theirs["l0"] <= rows["l0"].max():
            continue
        unseen = str(compared.get(f"{name!s}, held-out people, l0", NOT_REPRODUCED))
        if unseen.startswith(NOT_REPRODUCED):
            names.append(str(name))
            continue
        n_unseen = first_row(tables["heldout"], dataset=name)["n_ce"]
        lines.append(
            f"For {name!s} no network gives the published l0. That of held-out people counts as "
            f"{unseen.rpartition(', ')[0]}, but they are only {n_unseen:,.0f}: too few to say that "
            "this is the cause."
        )
    if names:
        lines.append(
            f"For {' and '.join(names)} neither other networks nor, where compared, held-out "
            "people give the published l0. The cause of the difference is not known."
        )
    return lines
