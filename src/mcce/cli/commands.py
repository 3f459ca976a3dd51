"""The command line that Typer makes of the classes of arguments.

A command is a function ``run`` in the module of its name, which is imported when it is called.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import Signature, getdoc
from typing import Annotated, Any

import typer

from ..version import __version__
from .arguments import COMMANDS, from_parameters, parameters
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
  mcce compare-models old.mcce new.mcce people.csv \\
      --old-predictor old:score --predictor new:score --fail-above 0.05
  mcce inspect bank.mcce

\b
Exit codes: 0 done, 1 a bug of mcce, 2 a wrong option or setting, 3 a file
that cannot be read or a cell that does not fit, 4 the predictor failed,
5 the output cannot be written, 6 a receipt does not hold, 7 too many answers
are refused by the new model, 130 interrupted.
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


def _add(name: str, arguments: type[Any]) -> None:
    """Add a command, whose help is what its arguments say."""

    def run(**values: Any) -> None:
        given = from_parameters(arguments, values)
        with reported(debug=given.run.debug, as_json=given.run.as_json):
            import_module(f".{name.replace('-', '_')}", __package__).run(given)

    run.__signature__ = Signature(parameters(arguments))  # type: ignore[attr-defined]
    text, _, examples = (getdoc(arguments) or "").partition("\n\nExamples\n--------\n")
    app.command(name, help=text, epilog=f"\b\nExamples:\n{examples}")(run)


for _name, _arguments in COMMANDS.items():
    _add(_name, _arguments)
