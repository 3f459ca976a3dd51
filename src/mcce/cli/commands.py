"""The commands, with their help, in the order of ``mcce --help``.

A command is a function ``run`` in the module of its name, which is imported when it is called, and
a class of arguments.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import Signature
from typing import Annotated, Any

import typer

from ..version import __version__
from .arguments import (
    AuditArguments,
    DemoArguments,
    ExplainArguments,
    FitArguments,
    InspectArguments,
    ReportArguments,
    ServeArguments,
    VerifyArguments,
    from_parameters,
    parameters,
)
from .terminal import reported

EPILOG = """\
\b
Examples:
  mcce demo
  mcce fit train.csv --predictor model.joblib --trust --desired 0.5: \\
      -o bank.mcce
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.csv
  mcce report bank.mcce people.csv --predictor model.joblib --trust \\
      -o report.html
  mcce serve bank.mcce --predictor model.joblib --trust
  mcce verify receipt.json
  mcce privacy-audit bank.mcce --predictor model.joblib --trust \\
      --training train.csv --holdout holdout.csv
  mcce inspect bank.mcce

\b
Exit codes: 0 done, 1 a bug of mcce, 2 a wrong option or setting, 3 a file
that cannot be read or a cell that does not fit, 4 the predictor failed,
5 the output cannot be written, 6 a receipt does not hold, 130 interrupted.
"""

# Plain help: markup in names and texts stays what it is.
app = typer.Typer(
    name="mcce",
    help="Counterfactual explanations for tabular data: what would have made a no a yes.",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"mcce {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


def _add(name: str, arguments: type[Any], text: str, examples: str) -> None:
    """Add a command."""

    def run(**values: Any) -> None:
        given = from_parameters(arguments, values)
        with reported(debug=given.run.debug, as_json=given.run.as_json):
            import_module(f".{name.replace('-', '_')}", __package__).run(given)

    run.__signature__ = Signature(parameters(arguments))  # type: ignore[attr-defined]
    app.command(name, help=text, epilog=f"\b\nExamples:\n{examples}")(run)


_add(
    "fit",
    FitArguments,
    """Learn from training rows, and save an explainer.

TRAIN is a CSV, Parquet, Arrow/Feather or JSON-lines file, several of them, a pattern in quotes, a
folder, or - for standard input: the rows that the predictor was trained on, in the same columns and
types. The predictor itself is not saved. Of files that do not fit in memory, --sample-rows keeps
some rows: all accepted ones of rare immutable values, and a random sample of the others.""",
    """\
  mcce fit train.csv --predictor model.joblib --trust --desired 0.5: \\
      --immutable Age,Sex --rules rules.toml -o bank.mcce
  mcce fit train.csv --predictor model.joblib --trust --desired good \\
      --search balanced -o bank.mcce
  mcce fit train.jsonl --predictor scoring:score --desired 0.6:1 -o bank.mcce
  mcce fit "lake/*.parquet" --sample-rows 1000000 --drop customer \\
      --predictor scoring:score --desired 0.6:1 -o bank.mcce
""",
)
_add(
    "explain",
    ExplainArguments,
    """Find what would have given people the desired decision.

EXPLAINER is a file of mcce fit, PEOPLE a CSV, Parquet, Arrow/Feather or JSON-lines file, or - for
standard input. The output has one row per answer, and one with a reason for everybody without.
People are read in blocks by the columns of the explainer, and every block is written as a complete
part: a run that was interrupted or killed goes on with --resume and loses nothing.

Several files, a folder of them or --engine share the work among processes: of this machine, or of
a cluster of Dask, Ray or Spark. --key names the columns that identify a person.""",
    """\
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.csv
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.parquet --resume
  mcce explain bank.mcce - --format jsonl --predictor scoring:score \\
      -o - --output-format jsonl < people.jsonl
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      --output-format csv -o answers/
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      --anonymity 5 --quasi-identifiers Job,Duration --training train.csv \\
      -o release.csv
  mcce explain bank.mcce lake/*.parquet --key customer --workers 2 \\
      --predictor scoring:score -o answers/
""",
)
_add(
    "report",
    ReportArguments,
    """Write a report on people and their answers: one HTML file.

It shows the run (who has an answer, what changes, what it costs by group, rules and settings) and
everybody with their answers, ranges, pictures and letter, and how to get the same answers again.
The file loads nothing from elsewhere, and prints well. EXPLAINER and PEOPLE are files as for mcce
explain, one each. The report holds personal data: protect it like the file of people.""",
    """\
  mcce report bank.mcce people.csv --predictor model.joblib --trust \\
      -o report.html
  mcce report bank.mcce people.csv --predictor model.joblib --trust \\
      --row 17 -o person-17.html
  mcce report bank.mcce people.csv --predictor scoring:score \\
      --labels labels.toml --groups Sex --n-counterfactuals 3 \\
      -o report.html --overwrite
""",
)
_add(
    "verify",
    VerifyArguments,
    """Check a receipt: is it unaltered, and does what it promises still hold?

With --explainer and --predictor the person and the answer are put to the predictor and the rules
again. Without them only the receipt itself is checked. The exit code is 0 if everything holds, and
6 if something does not.""",
    """\
  mcce verify receipt.json
  mcce verify receipt.json --explainer bank.mcce --predictor scoring:score
""",
)
_add(
    "privacy-audit",
    AuditArguments,
    """Attack what an explainer gives out: who was in its training data?

Needs the rows that EXPLAINER was fitted on, and rows of other people, best as many. Copies, closest
records, membership and, with --quasi-identifiers, linkage are measured; beside each figure stands
what no leak would give. An audit finds leaks; that it finds none is no proof.""",
    """\
  mcce privacy-audit bank.mcce --predictor model.joblib --trust \\
      --training train.csv --holdout holdout.csv
  mcce privacy-audit bank.mcce --predictor scoring:score \\
      --training train.csv --holdout holdout.csv \\
      --quasi-identifiers Duration,Job -o privacy.html --overwrite
""",
)
_add(
    "serve",
    ServeArguments,
    """Serve an explainer over HTTP, with a page where anybody can ask what it would take.

EXPLAINER is a file of mcce fit. The service listens on this machine alone unless --host says
otherwise; then use --token-file, and a reverse proxy that speaks HTTPS. --demo needs no files: it
serves the bundled German Credit data.""",
    """\
  mcce serve --demo
  mcce serve bank.mcce --predictor model.joblib --trust
  mcce serve bank.mcce --predictor model.joblib --trust \\
      --people people.csv --labels labels.toml --workers 4
""",
)
_add(
    "inspect",
    InspectArguments,
    """Show what a saved explainer holds: columns, rules, settings, and personal data.

Training values are counted, never shown. No predictor is needed, and no code in the file is
run.""",
    """\
  mcce inspect bank.mcce
  mcce inspect bank.mcce --json
""",
)
_add(
    "demo",
    DemoArguments,
    """Explain declined applicants of the bundled German Credit data.

With --out, also write the files that the other commands take: train.csv, people.csv, rules.toml,
labels.toml and model.joblib.""",
    """\
  mcce demo
  mcce demo --out demo
""",
)
