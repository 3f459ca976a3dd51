"""The command ``mcce``: experiments of the paper, run and reported.

``mcce experiments --list`` names them; ``mcce experiments compare --data FOLDER`` runs one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from .experiments import Experiment

ALL, PAGE = "all", "page"
QUICK_SEEDS = 2
WRONG = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well, 2 if something must be put right first."""
    asked = _parser().parse_args(arguments)
    # Late, as everything that loads scikit-learn: --help and --version should be quick.
    from .errors import DatasetError, McceError

    try:
        return int(asked.work(asked))
    except McceError as error:
        sys.stderr.write(f"mcce: {error}\n")
        if isinstance(error, DatasetError):
            sys.stderr.write("mcce: name the folder that holds the data files with --data.\n")
        return WRONG
    except KeyboardInterrupt:
        sys.stderr.write("\nmcce: stopped.\n")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcce", description="Counterfactual explanations for tabular data."
    )
    parser.add_argument("--version", action="version", version=f"mcce {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    experiments = commands.add_parser(
        "experiments",
        help="repeat the paper's experiments",
        description="Repeat the paper's experiments, with its figures beside ours.",
    )
    experiments.add_argument("names", nargs="*", metavar="NAME", help="experiments; 'all'; 'page'")
    experiments.add_argument("--list", action="store_true", help="name the experiments and stop")
    experiments.add_argument(
        "--data", type=Path, metavar="DIR", help="folder that holds the data files"
    )
    experiments.add_argument(
        "--dataset", nargs="+", metavar="NAME", help="data sets instead of the experiment's own"
    )
    experiments.add_argument("--seeds", type=_seeds, default=5, metavar="N", help="repetitions (5)")
    experiments.add_argument(
        "--factuals",
        choices=("paper", "heldout"),
        default="paper",
        help="explain the first people of the file, as the paper does, or held-out ones",
    )
    experiments.add_argument(
        "--out",
        type=Path,
        default=Path("out/experiments"),
        metavar="DIR",
        help="folder for reports (out/experiments)",
    )
    experiments.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="one page of all reports, written by 'all' and 'page' (OUT/reproduction.md)",
    )
    experiments.add_argument(
        "--quick", action="store_true", help="German Credit alone, small sizes"
    )
    experiments.set_defaults(work=_experiments)
    return parser


def _seeds(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return number


def _experiments(asked: argparse.Namespace) -> int:
    from .datasets import NAMES
    from .experiments import EXPERIMENTS, find_matplotlib, made_folder, write_page

    if asked.list or not asked.names:
        width = max(map(len, EXPERIMENTS))
        for experiment in EXPERIMENTS.values():
            sys.stdout.write(f"{experiment.name:<{width}}  {experiment.title}\n")
        return 0
    for name in asked.names:
        _known("experiment", name, [*EXPERIMENTS, ALL, PAGE])
    for name in asked.dataset or []:
        _known("data set", name, NAMES)
    find_matplotlib()
    made_folder(asked.out)
    for name in EXPERIMENTS if ALL in asked.names else dict.fromkeys(asked.names):
        if name != PAGE:
            sys.stdout.write(f"{_run(EXPERIMENTS[name], asked)}\n")
    if {ALL, PAGE} & set(asked.names):
        page = asked.page or asked.out / "reproduction.md"
        sys.stdout.write(f"{write_page(asked.out, page, list(EXPERIMENTS))}\n")
    return 0


def _run(experiment: Experiment, asked: argparse.Namespace) -> Path:
    """The page of an experiment that was run as asked."""
    from .errors import McceWarning
    from .experiments import Options, Progress, write

    own = ("german",) if asked.quick and experiment.datasets else experiment.datasets
    options = Options(
        datasets=tuple(dict.fromkeys(asked.dataset or own)),
        folder=asked.data,
        seeds=min(asked.seeds, QUICK_SEEDS) if asked.quick else asked.seeds,
        out=asked.out,
        quick=asked.quick,
        factuals=asked.factuals,
    )
    progress = Progress(experiment.name)
    try:
        with warnings.catch_warnings():
            # People without an answer are counted in the tables.
            warnings.simplefilter("ignore", McceWarning)
            return write(experiment.run(options, progress), asked.out)
    finally:
        progress.close()


def _known(what: str, name: str, names: Sequence[str]) -> None:
    """Raise for a name that is unknown, with the nearest that is not."""
    from .errors import ParameterError

    if name not in names:
        near = get_close_matches(name, names, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ParameterError(f"There is no {what} {name!r}.{meant} Known are {', '.join(names)}.")
