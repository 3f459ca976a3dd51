"""The command ``mcce``: run and report the paper's experiments.

``mcce experiments --list`` lists them; ``mcce experiments costs --data FOLDER`` runs one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from .experiments import Experiment

ALL, PAGE = "all", "page"
QUICK_SEEDS = 2
USAGE_ERROR, INTERRUPTED = 2, 130
EXAMPLES = """\
examples:
  mcce experiments --list
  mcce experiments costs --dataset german --quick
  mcce experiments all --data FOLDER --reference FOLDER --page docs/reproduction.md
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 on success, 2 on an error, 130 if interrupted.

    Examples
    --------
    >>> main(["experiments", "--list"])  # doctest: +ELLIPSIS
    costs ...
    0
    """
    parsed = _parser().parse_args(arguments)
    # Imported late, as everything that loads scikit-learn: --help and --version stay fast.
    from .errors import DatasetError, McceError

    try:
        return int(parsed.command(parsed))
    except McceError as error:
        sys.stderr.write(f"mcce: error: {error}\n")
        if isinstance(error, DatasetError):
            sys.stderr.write("mcce: use --data to name the folder that holds the data files.\n")
        return USAGE_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("\nmcce: interrupted.\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcce",
        description="Counterfactual explanations for tabular data.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mcce {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    experiments = commands.add_parser(
        "experiments",
        help="reproduce the paper's experiments",
        description="Reproduce the paper's experiments and compare with the published figures.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(experiments)
    experiments.set_defaults(command=_experiments)
    return parser


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``mcce experiments``."""
    add = parser.add_argument
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="experiments to run; 'all' for all of them; 'page' to join existing reports",
    )
    add("--list", action="store_true", help="list the experiments and exit")
    add("--data", type=Path, metavar="DIR", help="folder that holds the data files")
    add(
        "--reference",
        type=Path,
        metavar="DIR",
        help="folder that holds the answers of the authors' code, for the experiment 'authors'",
    )
    add("--dataset", nargs="+", metavar="NAME", help="data sets (default: the experiment's own)")
    add("--seeds", type=_seeds, default=5, metavar="N", help="repetitions (default: 5)")
    add(
        "--factuals",
        choices=("paper", "heldout"),
        default="paper",
        help="explain the first people of the file, as in the paper, or held-out people",
    )
    add(
        "--out",
        type=Path,
        default=Path("out/experiments"),
        metavar="DIR",
        help="folder for reports (default: out/experiments)",
    )
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="page of all reports, written by 'all' and 'page' (default: OUT/reproduction.md)",
    )
    add("--quick", action="store_true", help="small run on German Credit, to try things out")


def _seeds(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return number


def _experiments(parsed: argparse.Namespace) -> int:
    from .datasets import NAMES
    from .experiments import EXPERIMENTS, ensure_folder, require_matplotlib

    if parsed.list or not parsed.names:
        width = max(map(len, EXPERIMENTS))
        for experiment in EXPERIMENTS.values():
            sys.stdout.write(f"{experiment.name:<{width}}  {experiment.title}\n")
        return 0
    for name in parsed.names:
        _check_known("experiment", name, [*EXPERIMENTS, ALL, PAGE])
    for name in parsed.dataset or []:
        _check_known("data set", name, NAMES)
    require_matplotlib()
    ensure_folder(parsed.out)
    of_paper = [name for name, experiment in EXPERIMENTS.items() if experiment.in_paper]
    for name in of_paper if ALL in parsed.names else dict.fromkeys(parsed.names):
        if name == PAGE:
            continue
        if EXPERIMENTS[name].needs_reference and parsed.reference is None and ALL in parsed.names:
            sys.stderr.write(f"mcce: {name} is skipped, it needs --reference.\n")
            continue
        sys.stdout.write(f"{_run(EXPERIMENTS[name], parsed)}\n")
    if {ALL, PAGE} & set(parsed.names):
        for page in _write_pages(parsed.out, parsed.page or parsed.out / "reproduction.md"):
            sys.stdout.write(f"{page}\n")
    return 0


def _write_pages(reports: Path, page: Path) -> Iterator[Path]:
    """The page of the paper's experiments and, beside it, that of the comparison if it was run."""
    from .experiments import EXPERIMENTS, write_comparison, write_page

    of_paper = [one for one in EXPERIMENTS.values() if one.in_paper]
    others = [one for one in EXPERIMENTS.values() if not one.in_paper]
    compared = any((reports / f"{one.name}.json").is_file() for one in others)
    # Without any report this raises an error that says what to do.
    if not compared or any((reports / f"{one.name}.json").is_file() for one in of_paper):
        yield write_page(reports, page, of_paper)
    if compared:
        yield write_comparison(reports, page.with_name("comparison.md"))


def _run(experiment: Experiment, parsed: argparse.Namespace) -> Path:
    """Run an experiment and return the page of its report."""
    from .errors import McceWarning
    from .experiments import Options, ProgressLine, write_report

    default = ("german",) if parsed.quick and experiment.datasets else experiment.datasets
    options = Options(
        datasets=tuple(dict.fromkeys(parsed.dataset or default)),
        folder=parsed.data,
        seeds=min(parsed.seeds, QUICK_SEEDS) if parsed.quick else parsed.seeds,
        out=parsed.out,
        quick=parsed.quick,
        factuals=parsed.factuals,
        reference=parsed.reference,
    )
    progress = ProgressLine(experiment.name)
    try:
        with warnings.catch_warnings():
            # The tables count people without a counterfactual.
            warnings.simplefilter("ignore", McceWarning)
            report = experiment.run(options, progress)
        report.seeds = report.seeds or options.seeds
        return write_report(report, parsed.out)
    finally:
        progress.close()


def _check_known(what: str, name: str, names: Sequence[str]) -> None:
    """Raise for an unknown name and suggest the most similar one."""
    from .errors import ParameterError

    if name not in names:
        similar = get_close_matches(name, names, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise ParameterError(f"There is no {what} {name!r}.{hint} Choose from {', '.join(names)}.")
