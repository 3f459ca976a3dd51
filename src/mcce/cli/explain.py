"""``mcce explain``: answers to people in files, block by block, into a file or a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import (
    AsJson,
    Classes,
    Debug,
    Delimiter,
    Dtypes,
    InFlight,
    InputFormat,
    Jobs,
    KeyFile,
    Predictor,
    PredictorKind,
    PredictorOutput,
    Quiet,
    RowsPerSecond,
    Trust,
)
from .terminal import reported

HELP = """Find what would have given people the desired decision.

EXPLAINER is a file of mcce fit, PEOPLE a CSV, Parquet, Arrow/Feather or JSON-lines file, or - for
standard input. The output has one row per answer, and one with a reason for everybody without.
People are read in blocks by the columns of the explainer, and every block is written as a complete
part: a run that was interrupted or killed goes on with --resume and loses nothing.

Several files, a folder of them or --engine share the work among processes: of this machine, or of
a cluster of Dask, Ray or Spark. --key names the columns that identify a person."""
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
  mcce explain bank.mcce people.csv --predictor model.joblib --trust \\
      --anonymity 5 --quasi-identifiers Job,Duration --training train.csv \\
      -o release.csv
  mcce explain bank.mcce lake/*.parquet --key customer --workers 2 \\
      --predictor scoring:score -o answers/
"""


Explainer = Annotated[str, typer.Argument(metavar="EXPLAINER", help="File of mcce fit.")]
People = Annotated[
    list[str],
    typer.Argument(metavar="PEOPLE", help="Whom to explain: files, or folders of files."),
]
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
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="NAMES",
        help="Columns that identify a person, in place of the row in the file; needed for "
        "several files.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who shares the work: local (processes of this machine), dask, ray or spark. Files "
        "must have the same names for all workers.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", help="Worker processes, by default one for each core."),
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
        help="People per block, by default 5000, and 20000 per partition if work is shared. "
        "Answers do not depend on it; a killed run repeats at most one block per worker.",
    ),
]
Prefix = Annotated[
    str, typer.Option("--prefix", help="What stands before the names of added columns.")
]
Anonymity = Annotated[
    int | None,
    typer.Option(
        "--anonymity",
        metavar="K",
        help="Write ranges and sets of values that at least K training people fit, in place of "
        "exact values of --quasi-identifiers.",
    ),
]
QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="NAMES",
        help="With --anonymity: columns by which people could be recognised.",
    ),
]
Training = Annotated[
    str | None,
    typer.Option(
        "--training",
        metavar="FILE",
        help="With --anonymity: the rows that the explainer was fitted on.",
    ),
]
MinPureness = Annotated[
    float | None,
    typer.Option(
        "--min-pureness",
        help="With --anonymity: the share of these values that the predictor must accept, where "
        "possible; by default 0.9.",
    ),
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
    key: Key = None,
    engine: Engine = None,
    workers: Workers = None,
    rules: Rules = None,
    n_counterfactuals: NCounterfactuals = None,
    anonymity: Anonymity = None,
    quasi_identifiers: QuasiIdentifiers = None,
    training: Training = None,
    min_pureness: MinPureness = None,
    block_rows: BlockRows = None,
    prefix: Prefix = "",
    tolerance: Tolerance = 1e-9,
    format_: InputFormat = None,
    output_format: OutputFormat = None,
    delimiter: Delimiter = ",",
    dtype: Dtypes = None,
    kind: PredictorKind = None,
    trust: Trust = False,
    classes: Classes = None,
    output_is: PredictorOutput = None,
    rate: RowsPerSecond = None,
    in_flight: InFlight = None,
    jobs: Jobs = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find what would have given people the desired decision."""
    with reported(debug=debug, as_json=as_json):
        from .anonymity import AnonymityChoice
        from .predictors import PredictorChoice
        from .running import AnswersFile, ExplainerFile, PeopleFile, Request, Sharing, run

        choice = PredictorChoice(predictor, kind, trust, classes, output_is, rate, in_flight)
        file = ExplainerFile(explainer, choice, rules, n_counterfactuals, tolerance, jobs, key_file)
        source = PeopleFile(people[0], format_, delimiter, dtype, keep, key)
        target = AnswersFile(output, output_format, prefix, resume, overwrite)
        crowd = AnonymityChoice(anonymity, quasi_identifiers, training, min_pureness)
        shared = Sharing(people, engine, workers)
        run(Request(file, source, target, shared, block_rows, as_json, quiet, debug, crowd))
