"""Data cards: what each data set is, where it comes from and what to watch out for.

The cards are JSON files next to this module, and that of German Credit comes with mcce. They hold
all that the loaders know: files, columns, levels, forms and selections of rows.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from mcce.datasets import load_german_credit
from mcce.protocols import check_choice

DatasetName = Literal["german", "adult", "gmc", "fico"]
NAMES: tuple[DatasetName, ...] = ("german", "adult", "gmc", "fico")
# JSON: texts, numbers, lists and nested objects by field name.
Card: TypeAlias = dict[str, Any]


def card(name: DatasetName) -> Card:
    """Return the data card of a data set.

    Parameters
    ----------
    name : {"german", "adult", "gmc", "fico"}

    Returns
    -------
    dict
        Among others ``name``, ``rows``, ``target``, ``desired``, ``columns``, ``forms``,
        ``selections``, ``licence``, ``attribution`` and ``caution``.

    Raises
    ------
    ParameterError
        If there is no such data set.

    Examples
    --------
    >>> card("fico")["rows"], card("fico")["target"]
    (10459, 'RiskPerformance')
    """
    check_choice("name", name, NAMES)
    if name == "german":
        return dict(load_german_credit().card)
    text = files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    fields: Card = json.loads(text)
    return fields


def describe(name: DatasetName) -> str:
    """Return the data card of a data set as Markdown.

    Parameters
    ----------
    name : {"german", "adult", "gmc", "fico"}

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        If there is no such data set.

    Examples
    --------
    >>> print(describe("german").splitlines()[0])
    ## German Credit (`"german"`)
    """
    of = card(name)
    counts = " and ".join(f"{n:,} `{label}`" for label, n in of["target_counts"].items())
    source = (
        "bundled with the package"
        if "bundled" in of
        else f"`{of['file']}` in a folder, or OpenML {of['openml']['id']}"
    )
    return "\n".join(
        [
            f'## {of["name"]} (`"{name}"`)\n',
            f"{of['summary']}\n",
            f"- Rows: {of['rows']:,}; target `{of['target']}`: {counts}; desired `{of['desired']}`",
            f"- Where: {source}",
            f"- Source: {of['attribution']}",
            f"- Licence: {of['licence']}",
            f"- Changes: {of['changes']}\n",
            f"**Caution.** {of['caution']}\n",
            *_forms(of),
            "",
            *_selections(of),
        ]
    )


def _forms(of: Card) -> list[str]:
    lines = ["| form | features | immutable | rows | |", "|---|---|---|---|---|"]
    for name, form in of["forms"].items():
        fixed = ", ".join(form["immutable"])
        cells = f"{form['features']} | {fixed} | `{form['rows']}` | {form['meaning']}"
        lines.append(f'| `"{name}"` | {cells} |')
    return lines


def _selections(of: Card) -> list[str]:
    lines = ["| rows | how many | |", "|---|---|---|"]
    for name, selection in of["selections"].items():
        lines.append(f'| `"{name}"` | {selection["rows"]:,} | {selection["meaning"]} |')
    return lines
