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
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.csv
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      -o answers.parquet --resume
  mcce explain bank.mcce - --format jsonl --predictor scoring:score \\
      -o - --output-format jsonl < people.jsonl
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      --output-format csv -o answers/
"""


Explainer = Annotated[str, typer.Argument(metavar="EXPLAINER", help="File of mcce fit.")]
People = Annotated[str, typer.Argument(metavar="PEOPLE", help="Whom to explain.")]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE|FOLDER/|-",
        help="One file; or a folder, named with a slash at the end, that keeps the parts; or - "
        "for standard output.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Go on with an unfinished run; begin where there is none yet."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an output or an unfinished run.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option("--keep", metavar="NAMES", help="Columns to copy, e.g. a customer number."),
]
Rules = Annotated[
    str | None,
    typer.Option("--rules", metavar="FILE", help="Further rules for these people."),
]
NCounterfactuals = Annotated[
    int | None,
    typer.Option("--n-counterfactuals", metavar="N", help="Other than at fit."),
]
BlockRows = Annotated[
    int | None,
    typer.Option(
        "--block-rows",
        metavar="N",
        help="People per block, by default 5000. Answers do not depend on it; a killed run "
        "repeats at most one block.",
    ),
]
Prefix = Annotated[
    str, typer.Option("--prefix", help="What stands before the names of added columns.")
]
Tolerance = Annotated[
    float,
    typer.Option("--tolerance", help="How far scores may be from those at fit, relatively."),
]
OutputFormat = Annotated[
    str | None,
    typer.Option("--output-format", help="Format of the output: csv, parquet, arrow or jsonl."),
]


def explain(
    explainer: Explainer,
    people: People,
    predictor: Predictor,
    output: Output,
    resume: Resume = False,
    overwrite: Overwrite = False,
    keep: Keep = None,
    rules: Rules = None,
    n_counterfactuals: NCounterfactuals = None,
    block_rows: BlockRows = None,
    prefix: Prefix = "",
    tolerance: Tolerance = 1e-9,
    format_: InputFormat = None,
    output_format: OutputFormat = None,
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
        from .running import AnswersFile, ExplainerFile, PeopleFile, Request, run

        choice = PredictorChoice(predictor, predictor_kind, trust, classes, output_is)
        how = rules, n_counterfactuals, tolerance, jobs, key_file
        run(
            Request(
                explainer=ExplainerFile(explainer, choice, *how),
                people=PeopleFile(people, format_, delimiter, dtype, keep),
                answers=AnswersFile(output, output_format, prefix, resume, overwrite),
                block_rows=block_rows,
                as_json=as_json,
                quiet=quiet,
            )
        )
