"""Answers of two versions to the same people, by measures that no search optimises.

``PYTHONPATH=benchmarks python lab/benchmarks/before_after.py against CHECKOUT`` compares this
checkout with another one that has its own ``.venv``. In steps: ``answers NAME`` writes the answers
of the installed version to ``out/bench/answers/NAME``, run with the Python of either version;
``compare BEFORE AFTER`` measures both. Name a search with its own required plausibility as
``balanced@0.1``.

People and training rows are those of :mod:`search`, and so are the measures: they are fitted on
accepted rows that neither version has seen, by this version alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cases import SEARCHED, load
from mcce import McceWarning, Search
from mcce_lab.experiments.cells import Draw
from mcce_lab.experiments.compare import Measures
from measure import OUT, Table, log, write

SEARCHES = ("sparse", "balanced", "plausible", "near")
FOLDER = OUT / "answers"
# Measures, and whether differences are in % of the mean before.
MEASURED = {
    "sparsity": False,
    "l1": True,
    "plausibility": True,
    "outlier_factor": True,
    "isolation": True,
    "pca_residual": True,
}
# Fewer people say nothing.
MIN_PEOPLE = 10


def main() -> None:
    """Write answers, or compare two versions."""
    options = _options()
    warnings.simplefilter("ignore", McceWarning)
    with threadpool_limits(1):
        if options.task == "answers":
            for draw in _draws(options):
                write_answers(draw, FOLDER / options.names[0], options.searches)
            return
        if options.task == "against":
            _answer_in_processes(Path(options.names[0]).resolve(), options)
            options.names = ["before", "after"]
        before, after = (FOLDER / name for name in options.names)
        found = pd.concat(compare(_draws(options), before, after, options.searches))
    shown = [answers_table(found), differences_table(found)]
    write(shown, "before_after")
    for table in shown:
        print(table.markdown())


def write_answers(draw: Draw, folder: Path, searches: list[str]) -> None:
    """Explain the people of a draw by each search, and write the best answers."""
    explainer = draw.case.explainer(search="balanced", random_state=draw.seed).fit(draw.train)
    for name in searches:
        explainer.search = _search(name)
        started = time.process_time()
        result = explainer.explain(draw.people)
        seconds = time.process_time() - started
        log(f"{draw.case.name} {draw.seed} {name}: {len(result.owner)} in {seconds:.1f} CPU s")
        path = _path(folder, draw, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        first = result.measures.index.get_level_values("rank") == 1
        frame = result.frame[first].reset_index(drop=True)
        each = result.n_evaluated / len(draw.people)
        frame.assign(owner=result.owner[first], rows_per_person=each).to_parquet(path)


def compare(
    draws: Iterator[Draw], before: Path, after: Path, searches: list[str]
) -> Iterator[pd.DataFrame]:
    """By draw and search one row per person: measures of both versions, side by side."""
    for draw in draws:
        measures = Measures.of(draw)
        for name in searches:
            old, _, _ = name.partition("@")
            paths = {"before": _path(before, draw, old), "after": _path(after, draw, name)}
            both = [_measured(measures, path).add_suffix(f" {at}") for at, path in paths.items()]
            table = pd.concat(both, axis=1).assign(case=draw.case.name, search=name)
            yield table.assign(person=draw.people.index)


def _measured(measures: Measures, path: Path) -> pd.DataFrame:
    """Measures of written answers, by person."""
    table = pd.read_parquet(path)
    owner, each = table.pop("owner").to_numpy(), table.pop("rows_per_person").to_numpy()
    frame = table.astype(measures.draw.people.dtypes.to_dict())
    return measures.by_row(owner, frame).assign(rows=each[0] if len(each) else np.nan)


def answers_table(found: pd.DataFrame) -> Table:
    """Means of both versions."""
    lines = []
    for names, rows in found.groupby(["case", "search"], sort=False):
        cells = [" ".join(map(str, names))]
        for measure in ("valid", "rows", "sparsity", "l1", "violation", "contradictions"):
            pair = [rows[f"{measure} {when}"] for when in ("before", "after")]
            means = [one.notna().mean() if measure == "valid" else one.mean() for one in pair]
            cells.append(" → ".join(f"{mean:.3f}" for mean in means))
        lines.append(cells)
    headings = ["", "answered", "rows per person", "changes", "l1", "violations", "odd pairs"]
    return Table("Answers", headings, lines, "Before → after, means over the people answered.")


def differences_table(found: pd.DataFrame) -> Table:
    """Differences, after minus before, on the people whom both answer, with 95 % intervals."""
    lines = []
    for names, rows in found.groupby(["case", "search"], sort=False):
        both = rows.dropna(subset=["sparsity before", "sparsity after"])
        cells = [" ".join(map(str, names)), str(len(both))]
        for measure, relative in MEASURED.items():
            unit = both[f"{measure} before"].mean() / 100 if relative else 1.0
            gaps = (both[f"{measure} after"] - both[f"{measure} before"]) / unit
            gaps = gaps.groupby(both["person"]).mean()
            margin = 1.96 * gaps.std() / np.sqrt(len(gaps))
            told = f"{gaps.mean():+.2f} ± {margin:.2f}"
            beyond = abs(gaps.mean()) > margin
            cells.append("" if len(gaps) < MIN_PEOPLE else f"**{told}**" if beyond else told)
        lines.append(cells)
    headings = [f"{name} %" if relative else name for name, relative in MEASURED.items()]
    note = "In % of the mean before, sparsity in changes; bold is beyond chance. Plausibility is "
    note += "better if larger, all others if smaller."
    return Table("Paired differences", ["", "people", *headings], lines, note)


def _search(name: str) -> Any:
    """A named search, or one with another required plausibility."""
    base, _, share = name.partition("@")
    # A name alone means the same in every version.
    return Search(base, min_plausibility=float(share)) if share else name  # type: ignore[arg-type]


def _path(folder: Path, draw: Draw, search: str) -> Path:
    return folder / f"{draw.case.name}-{draw.seed}-{search}.parquet"


def _answer_in_processes(checkout: Path, options: argparse.Namespace) -> None:
    """Answers of the named searches of another checkout and of those given, each by its Python."""
    given = ["--cases", *options.cases, "--seeds", *map(str, options.seeds)]
    given += ["--people", str(options.people), "--searches"]
    named = list(dict.fromkeys(name.partition("@")[0] for name in options.searches))
    theirs, ours = str(checkout / ".venv/bin/python"), sys.executable
    # People are drawn by the lab of this checkout in either version.
    here = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(str(here / folder) for folder in ("lab", "benchmarks"))
    for python, name, searches in (
        (theirs, "before", named),
        (ours, "after", options.searches),
    ):
        command = [python, __file__, "answers", name, *given, *searches]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": path})


def _draws(options: argparse.Namespace) -> Iterator[Draw]:
    for name in options.cases:
        case = load(name)
        for seed in options.seeds if case is not None else ():
            assert case is not None
            yield Draw.of(case, options.people, seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["answers", "compare", "against"])
    parser.add_argument("names", nargs="+", help="versions by names of your choice, or a checkout")
    parser.add_argument("--cases", nargs="+", default=[*SEARCHED])
    parser.add_argument("--searches", nargs="+", default=[*SEARCHES])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--people", type=int, default=100)
    return parser.parse_args()


if __name__ == "__main__":
    main()
