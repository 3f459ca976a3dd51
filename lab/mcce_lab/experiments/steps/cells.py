"""The runs of an experiment, saved one by one: an interrupted one goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..experiment import Options

Run = dict[str, Any]


def saved_runs(
    experiment: str, options: Options, labels: dict[str, Any], make: Callable[[], list[Run]]
) -> list[Run]:
    """The runs of a cell: those of its file, or else new ones, which are saved.

    Parameters
    ----------
    experiment : str
        Its name.
    options : Options
        Folder of the results, and whether runs are quick ones.
    labels : dict
        What tells the cell from others; it is added to its runs.
    make : callable
        Gives the runs.

    Returns
    -------
    list of dict
    """
    parts = [experiment, *labels.values(), *(["quick"] if options.quick else [])]
    name = "-".join(str(part).replace(" ", "_") for part in parts)
    path = options.out / "cells" / f"{name}.json"
    if path.is_file():
        saved: list[Run] = json.loads(path.read_text(encoding="utf-8"))
        return saved
    runs = [labels | run for run in make()]
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(runs, indent=1), encoding="utf-8")
    unfinished.replace(path)
    return runs
