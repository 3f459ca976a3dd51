"""Data cards: what each data set is, where it comes from and what is wrong with it.

The cards are JSON files beside this module, and all that the loaders know: files, columns, levels,
forms and selections of rows. Nothing about a single data set stands in the code.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib.resources import files
from typing import Any

from ..errors import ParameterError

NAMES = ("german", "adult", "gmc", "fico")


def card(name: str) -> dict[str, Any]:
    """The data card of a data set.

    Parameters
    ----------
    name
        ``"german"``, ``"adult"``, ``"gmc"`` or ``"fico"``.

    Examples
    --------
    >>> card("fico")["rows"], card("fico")["target"]
    (10459, 'RiskPerformance')
    """
    one_of("name", name, NAMES)
    text = files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text)


def describe(name: str) -> str:
    """The data card of a data set as Markdown, for people.

    Examples
    --------
    >>> print(describe("german").splitlines()[0])
    ## German Credit (`"german"`)
    """
    of = card(name)
    counts = " and ".join(f"{n:,} `{label}`" for label, n in of["target_counts"].items())
    got = (
        "comes with the package"
        if "bundled" in of
        else f"`{of['file']}` in a folder, or OpenML {of['openml']['id']}"
    )
    return "\n".join(
        [
            f'## {of["name"]} (`"{name}"`)\n',
            f"{of['summary']}\n",
            f"- Rows: {of['rows']:,}; target `{of['target']}`: {counts}; desired `{of['desired']}`",
            f"- Where: {got}",
            f"- Source: {of['attribution']}",
            f"- Licence: {of['licence']}",
            f"- Changes: {of['changes']}\n",
            f"**Caution.** {of['caution']}\n",
            *_forms(of),
            "",
            *_selections(of),
            "",
            *_columns(of),
        ]
    )


def one_of(argument: str, value: object, names: Collection[str]) -> None:
    """Raise unless the value of an argument is one of these names."""
    if not isinstance(value, str) or value not in names:
        told = ", ".join(map(repr, names))
        raise ParameterError(f"{argument} must be one of {told}, got {value!r}.")


def _forms(of: dict[str, Any]) -> list[str]:
    lines = ["| form | features | immutable | rows | |", "|---|---|---|---|---|"]
    for name, form in of["forms"].items():
        fixed = ", ".join(form["immutable"])
        told = f"{form['features']} | {fixed} | `{form['rows']}` | {form['meaning']}"
        lines.append(f'| `"{name}"` | {told} |')
    return lines


def _selections(of: dict[str, Any]) -> list[str]:
    lines = ["| rows | how many | |", "|---|---|---|"]
    for name, selection in of["selections"].items():
        lines.append(f'| `"{name}"` | {selection["rows"]:,} | {selection["meaning"]} |')
    return lines


def _columns(of: dict[str, Any]) -> list[str]:
    lines = ["| column | kind | levels or missing cells |", "|---|---|---|"]
    for column in of["columns"]:
        told = ", ".join(f"`{level}`" for level in column.get("levels", []))
        if "n_missing" in column:
            told = f"{column['n_missing']:,} missing"
        lines.append(f"| `{column['name']}` | {column['kind']} | {told} |")
    return lines
