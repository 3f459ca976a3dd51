"""``mcce explain``: answers to people in a file, block by block, into a file."""

from __future__ import annotations

from typing import Annotated

import typer

from .failures import reported
from .options import (
    AsJson,
    Classes,
    Debug,
    Delimiter,
    Dtypes,
    InputFormat,
    Jobs,
    KeyFile,
    Predictor,
    PredictorKind,
    PredictorOutput,
    Quiet,
    Trust,
)

HELP = """Find what would have given people the desired decision.

EXPLAINER is a file of mcce fit, PEOPLE a CSV, Parquet, Arrow/Feather or JSON-lines file, or - for
standard input. The output has one row per answer, and one with a reason for everybody without.
People are read in blocks by the columns of the explainer, and every block is written as a complete
part: a run that was interrupted or killed goes on with --resume and loses nothing."""
EPILOG = """\
\b
Examples:
  mcce explain bank.mcce people.csv --predictor model.joblib --trust -o answers.csv
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.parquet --resume
  mcce explain bank.mcce - --format jsonl --predictor scoring:score \\
      -o - --output-format jsonl < people.jsonl
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      --output-format csv -o answers/
"""


def explain(
    explainer: Annotated[str, typer.Argument(metavar="EXPLAINER", help="File of mcce fit.")],
    people: Annotated[str, typer.Argument(metavar="PEOPLE", help="Whom to explain.")],
    predictor: Predictor,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER/|-",
            help="One file; or a folder, named with a slash at the end, that keeps the parts; or - "
            "for standard output.",
        ),
    ],
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with an unfinished run; begin where there is none yet."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an output or an unfinished run.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="NAMES", help="Columns to copy, e.g. a customer number."),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option("--rules", metavar="FILE", help="Further rules for these people."),
    ] = None,
    n_counterfactuals: Annotated[
        int | None,
        typer.Option("--n-counterfactuals", metavar="N", help="Other than at fit."),
    ] = None,
    block_rows: Annotated[
        int | None,
        typer.Option(
            "--block-rows",
            metavar="N",
            help="People per block, by default 5000. Answers do not depend on it; a killed run "
            "repeats at most one block.",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option("--prefix", help="What stands before the names of added columns.")
    ] = "",
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="How far scores may be from those at fit, relatively."),
    ] = 1e-9,
    format_: InputFormat = None,
    output_format: Annotated[
        str | None,
        typer.Option("--output-format", help="Format of the output: csv, parquet, arrow or jsonl."),
    ] = None,
    delimiter: Delimiter = ",",
    dtype: Dtypes = None,
    predictor_kind: PredictorKind = None,
    trust: Trust = False,
    classes: Classes = None,
    output_is: PredictorOutput = None,
    jobs: Jobs = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find what would have given people the desired decision."""
    with reported(debug=debug, as_json=as_json):
        from .predictors import PredictorChoice
        from .running import Request, run

        run(
            Request(
                explainer=explainer,
                people=people,
                predictor=PredictorChoice(predictor, predictor_kind, trust, classes, output_is),
                output=output,
                resume=resume,
                overwrite=overwrite,
                keep=keep,
                rules=rules,
                n_counterfactuals=n_counterfactuals,
                block_rows=block_rows,
                prefix=prefix,
                tolerance=tolerance,
                format=format_,
                output_format=output_format,
                delimiter=delimiter,
                dtypes=dtype,
                jobs=jobs,
                key_file=key_file,
                as_json=as_json,
                quiet=quiet,
            )
        )
