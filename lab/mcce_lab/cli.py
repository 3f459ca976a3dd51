"""The command ``mcce-lab``: run the paper's experiments, compare methods, fill tables of pages."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .experiments import Experiment

ALL = "all"
QUICK_SEEDS = 2
ERROR = 2
EPILOG = """\
examples:
  mcce-lab experiments --list
  mcce-lab experiments costs --dataset german --quick
  mcce-lab experiments all --data FOLDER --reference FOLDER
  mcce-lab compare --data FOLDER
  mcce-lab page docs/comparison.md
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``mcce-lab`` and return its exit status: 2 for what a user can mend."""
    from mcce.errors import McceError

    try:
        given = _parser().parse_args(arguments)
        given.run(given)
    except McceError as error:
        sys.stderr.write(f"mcce-lab: {' '.join(str(error).split())}\n")
        return ERROR
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    from .datasets import NAMES

    parser = argparse.ArgumentParser(
        "mcce-lab",
        description="Experiments on mcce: the paper's, rival methods, other generators, distances.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    experiments = commands.add_parser("experiments", help="repeat the paper's experiments")
    experiments.set_defaults(run=_run_experiments)
    experiments.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments; 'all' of the paper"
    )
    experiments.add_argument("--list", action="store_true", help="list the experiments and exit")
    compare = commands.add_parser("compare", help="compare all methods on the same people")
    compare.set_defaults(run=_run_compare)
    for command in (experiments, compare):
        option = command.add_argument
        option("--data", type=Path, metavar="DIR", help="folder that holds the data files")
        option("--dataset", nargs="+", metavar="NAME", choices=NAMES, help="data sets")
        option("--seeds", type=_count, default=5, metavar="N", help="repetitions (default: 5)")
        option("--quick", action="store_true", help="small run on German Credit, to try things out")
        option("--only", nargs="+", metavar="NAME", help="the methods or variants to try")
    experiments.add_argument(
        "--reference",
        type=Path,
        metavar="DIR",
        help="folder with the answers of the authors' code, for the experiment 'authors'",
    )
    experiments.add_argument(
        "--factuals",
        choices=("paper", "heldout"),
        default="paper",
        help="explain the first people of the file, as in the paper, or held-out people",
    )
    for command in (experiments, compare):
        command.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            default=Path("out/experiments"),
            help="folder for tables and figures (default: out/experiments)",
        )
    page = commands.add_parser("page", help="write the tables of pages anew from their CSV files")
    page.set_defaults(run=_write_pages)
    page.add_argument("pages", nargs="+", type=Path, metavar="FILE", help="Markdown files")
    return parser


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return number


def _run_experiments(given: argparse.Namespace) -> None:
    from .experiments import EXPERIMENTS

    if given.list or not given.names:
        width = max(map(len, EXPERIMENTS))
        for one in EXPERIMENTS.values():
            sys.stdout.write(f"{one.name:<{width}}  {one.title}\n")
        return
    _check_known(given.names, [*EXPERIMENTS, ALL])
    names = dict.fromkeys(given.names)
    if ALL in names:
        names = {one.name: None for one in EXPERIMENTS.values() if one.in_paper}
        if given.reference is None:
            sys.stderr.write("mcce-lab: authors is skipped, it needs --reference.\n")
            names = {name: None for name in names if not EXPERIMENTS[name].needs_reference}
    for name in names:
        _run(EXPERIMENTS[name], given)


def _check_known(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise for an unknown experiment."""
    from mcce.errors import ParameterError

    for name in names:
        if name not in known:
            raise ParameterError(f"There is no experiment {name!r}, only {', '.join(known)}.")


def _run_compare(given: argparse.Namespace) -> None:
    from .experiments import COMPARE

    given.factuals, given.reference = "paper", None
    _run(COMPARE, given)


def _run(experiment: Experiment, given: argparse.Namespace) -> None:
    """Run an experiment, write its report and show where."""
    from mcce.errors import McceWarning, ParameterError

    from .experiments import Options, ProgressLine, ensure_folder, write_report

    if given.only and not experiment.has_variants:
        raise ParameterError(f"{experiment.name} tries one thing alone: leave --only out.")
    ensure_folder(given.out)
    default = ("german",) if given.quick and experiment.datasets else experiment.datasets
    options = Options(
        datasets=tuple(dict.fromkeys(given.dataset or default)),
        folder=given.data,
        seeds=min(given.seeds, QUICK_SEEDS) if given.quick else given.seeds,
        out=given.out,
        quick=given.quick,
        factuals=given.factuals,
        reference=given.reference,
        only=tuple(given.only or ()),
    )
    progress = ProgressLine(experiment.name)
    try:
        with warnings.catch_warnings():
            # The tables count people without a counterfactual.
            warnings.simplefilter("ignore", McceWarning)
            report = experiment.run(options, progress)
    finally:
        progress.close()
    report.seeds = report.seeds or options.seeds
    sys.stdout.write(f"{write_report(experiment, report, given.out)}\n")


def _write_pages(given: argparse.Namespace) -> None:
    from .pages import render

    for page in given.pages:
        page.write_text(render(page), encoding="utf-8")
        sys.stdout.write(f"{page}\n")
