"""The commands and their order in ``mcce --help``. A further command is a line at the end."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..version import __version__
from . import demo, explain, fit, inspection, privacy_audit, report, serve, verify

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


app.command("fit", help=fit.HELP, epilog=fit.EPILOG)(fit.fit)
app.command("explain", help=explain.HELP, epilog=explain.EPILOG)(explain.explain)
app.command("report", help=report.HELP, epilog=report.EPILOG)(report.report)
app.command("verify", help=verify.HELP, epilog=verify.EPILOG)(verify.verify)
app.command("privacy-audit", help=privacy_audit.HELP, epilog=privacy_audit.EPILOG)(
    privacy_audit.privacy_audit
)
app.command("serve", help=serve.HELP, epilog=serve.EPILOG)(serve.serve)
app.command("inspect", help=inspection.HELP, epilog=inspection.EPILOG)(inspection.inspect)
app.command("demo", help=demo.HELP, epilog=demo.EPILOG)(demo.demo)
