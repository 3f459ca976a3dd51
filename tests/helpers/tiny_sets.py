"""Hand-made files in the columns of the paper's data sets."""

from __future__ import annotations

import pandas as pd

from mcce.datasets import card


def tiny(name: str, n_rows: int, **cells: list) -> pd.DataFrame:
    """So many rows of ones and first levels, but for the columns that are given.

    A dash in a name is written as two underscores.
    """
    table = pd.DataFrame(
        {c["name"]: [c.get("levels", [1])[0]] * n_rows for c in card(name)["columns"]}
    )
    return table.assign(**{column.replace("__", "-"): given for column, given in cells.items()})


def write(folder, name: str, table: pd.DataFrame, *, gz: bool = True) -> None:
    """The table as the file that the loader looks for."""
    file = card(name)["file"]
    table.to_csv(folder / (file if gz else file.removesuffix(".gz")), index=False)
