"""``mcce-lab experiments``: run and report the paper's experiments."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcce.cli.failures import reported
from mcce.cli.options import Debug
from mcce.cli.terminal import printable, say, show

if TYPE_CHECKING:
    from .experiments import Experiment

ALL, PAGE = "all", "page"
QUICK_SEEDS = 2
DATASET = "--dataset"
HELP = "Reproduce the paper's experiments and compare with the published figures."
EPILOG = """\
\b
Examples:
  mcce-lab experiments --list
  mcce-lab experiments costs --dataset german --quick
  mcce-lab experiments all --data FOLDER --reference FOLDER \\
      --page docs/reproduction.md
"""


class Whom(StrEnum):
    """Which people are explained."""

    PAPER = "paper"
    HELDOUT = "heldout"


@dataclass(frozen=True)
class Asked:
    """What the user asked for; see the options of ``mcce-lab experiments``."""

    names: Sequence[str]
    data: Path | None
    reference: Path | None
    datasets: Sequence[Any]
    seeds: int
    factuals: Whom
    out: Path
    page: Path | None
    quick: bool


def spread_datasets(arguments: Sequence[str]) -> list[str]:
    """Arguments with ``--dataset`` before each of several names that follow it.

    Examples
    --------
    >>> spread_datasets(["experiments", "costs", "--dataset", "adult", "german", "--quick"])
    ['experiments', 'costs', '--dataset', 'adult', '--dataset', 'german', '--quick']
    """
    if not arguments or arguments[0] != "experiments":
        return list(arguments)
    spread: list[str] = []
    inside = False
    for argument in arguments:
        if argument == DATASET or argument.startswith("-"):
            inside = argument == DATASET
            spread += [] if inside else [argument]
        else:
            spread += [DATASET, argument] if inside else [argument]
    return spread


def _check_seeds(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise typer.BadParameter(f"must be a whole number >= 1, got {text!r}")
    return number


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Experiments to run; 'all' for all of them; 'page' to join existing reports.",
    ),
]
Listed = Annotated[bool, typer.Option("--list", help="List the experiments and exit.")]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="Folder that holds the data files.")
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="DIR",
        help="Folder that holds the answers of the authors' code, for the experiment 'authors'.",
    ),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option(
        DATASET,
        metavar="NAME...",
        help="Data sets; several names may follow (default: the experiment's own).",
    ),
]
Seeds = Annotated[
    int,
    typer.Option("--seeds", metavar="N", parser=_check_seeds, help="Repetitions."),
]
Factuals = Annotated[
    Whom,
    typer.Option(
        "--factuals",
        help="Explain the first people of the file, as in the paper, or held-out people.",
    ),
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for reports.")]
Page = Annotated[
    Path | None,
    typer.Option(
        "--page",
        metavar="FILE",
        help="Page of all reports, written by 'all' and 'page' (default: OUT/reproduction.md).",
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Small run on German Credit, to try things out.")
]


def experiments(
    names: Names = None,
    listed: Listed = False,
    data: Data = None,
    reference: Reference = None,
    datasets: Datasets = None,
    seeds: Seeds = "5",  # type: ignore[assignment]
    factuals: Factuals = Whom.PAPER,
    out: Out = Path("out/experiments"),
    page: Page = None,
    quick: Quick = False,
    debug: Debug = False,
) -> None:
    """Reproduce the paper's experiments and compare with the published figures."""
    with reported(debug=debug):
        if listed or not names:
            _list()
            return
        _run_all(Asked(names, data, reference, datasets or (), seeds, factuals, out, page, quick))


def _list() -> None:
    from .experiments import EXPERIMENTS

    width = max(map(len, EXPERIMENTS))
    for experiment in EXPERIMENTS.values():
        show(f"{experiment.name:<{width}}  {experiment.title}")


def _run_all(asked: Asked) -> None:
    from .datasets import NAMES
    from .experiments import EXPERIMENTS, ensure_folder, require_matplotlib

    for name in asked.names:
        _check_known("experiment", name, [*EXPERIMENTS, ALL, PAGE])
    for name in asked.datasets or []:
        _check_known("data set", name, NAMES)
    require_matplotlib()
    ensure_folder(asked.out)
    of_paper = [name for name, experiment in EXPERIMENTS.items() if experiment.in_paper]
    for name in of_paper if ALL in asked.names else dict.fromkeys(asked.names):
        if name == PAGE:
            continue
        if EXPERIMENTS[name].needs_reference and asked.reference is None and ALL in asked.names:
            say(f"mcce: {name} is skipped, it needs --reference.")
            continue
        show(printable(_run(EXPERIMENTS[name], asked)))
    if {ALL, PAGE} & set(asked.names):
        for page in _write_pages(asked.out, asked.page or asked.out / "reproduction.md"):
            show(printable(page))


def _write_pages(reports: Path, page: Path) -> Iterator[Path]:
    """The page of the paper's experiments and, beside it, those of further ones that were run."""
    from .experiments import (
        EXPERIMENTS,
        STEPS,
        write_comparison,
        write_page,
        write_steps,
    )

    def was_run(names: Iterable[str]) -> bool:
        return any((reports / f"{name}.json").is_file() for name in names)

    of_paper = [one for one in EXPERIMENTS.values() if one.in_paper]
    compared, replaced = was_run(["compare"]), was_run(STEPS)
    # Without any report this raises an error that says what to do.
    if not (compared or replaced) or was_run(one.name for one in of_paper):
        yield write_page(reports, page, of_paper)
    if compared:
        yield write_comparison(reports, page.with_name("comparison.md"))
    if replaced:
        yield write_steps(reports, page.with_name("steps.md"))


def _run(experiment: Experiment, asked: Asked) -> Path:
    """Run an experiment and return the page of its report."""
    from mcce.errors import McceWarning

    from .experiments import Options, ProgressLine, write_report

    default = ("german",) if asked.quick and experiment.datasets else experiment.datasets
    options = Options(
        datasets=tuple(dict.fromkeys(asked.datasets or default)),
        folder=asked.data,
        seeds=min(asked.seeds, QUICK_SEEDS) if asked.quick else asked.seeds,
        out=asked.out,
        quick=asked.quick,
        factuals=asked.factuals.value,
        reference=asked.reference,
    )
    progress = ProgressLine(experiment.name)
    try:
        with warnings.catch_warnings():
            # The tables count people without a counterfactual.
            warnings.simplefilter("ignore", McceWarning)
            report = experiment.run(options, progress)
        report.seeds = report.seeds or options.seeds
        return write_report(report, asked.out)
    finally:
        progress.close()


def _check_known(what: str, name: str, names: Sequence[str]) -> None:
    """Raise for an unknown name and suggest the most similar one."""
    from mcce.errors import ParameterError

    if name not in names:
        similar = get_close_matches(name, names, n=1)
        hint = f" Did you mean {similar[0]!r}?" if similar else ""
        raise ParameterError(f"There is no {what} {name!r}.{hint} Choose from {', '.join(names)}.")


app = typer.Typer(
    name="mcce-lab",
    help="Experiments on mcce: the paper's, rival methods, other generators and distances.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("experiments", help=HELP, epilog=EPILOG)(experiments)


@app.callback()
def _options() -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``mcce-lab`` and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(args=spread_datasets(given), prog_name="mcce-lab")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
