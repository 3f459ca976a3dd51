"""``mcce privacy-audit``: whether what an explainer gives out tells who was in training."""

from __future__ import annotations

from typing import Annotated

import typer

from .explain import Explainer, Overwrite, Tolerance
from .options import (
    AsJson,
    Classes,
    Debug,
    Delimiter,
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

HELP = """Attack what an explainer gives out: who was in its training data?

Needs the rows that EXPLAINER was fitted on, and rows of other people, best as many. Copies, closest
records, membership and, with --quasi-identifiers, linkage are measured; beside each figure stands
what no leak would give. An audit finds leaks; that it finds none is no proof."""
EPILOG = """\
\b
Examples:
  mcce privacy-audit bank.mcce --predictor model.joblib --trust \\
      --training train.csv --holdout holdout.csv
  mcce privacy-audit bank.mcce --predictor scoring:score \\
      --training train.csv --holdout holdout.csv \\
      --quasi-identifiers Duration,Job -o privacy.html --overwrite
"""

Training = Annotated[
    str, typer.Option("--training", metavar="FILE", help="The rows it was fitted on.")
]
Holdout = Annotated[
    str,
    typer.Option(
        "--holdout", metavar="FILE", help="Rows of other people, best as many as in training."
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="FILE",
        help="Rows of further people, for whom rows are released and whom an attacker knows. "
        "Without it, half of the holdout.",
    ),
]
QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="NAMES",
        help="Columns that an attacker knows of everybody, for linkage.",
    ),
]
Private = Annotated[
    list[str] | None,
    typer.Option(
        "--private",
        metavar="NAMES",
        help="Columns that the attacker would like to know; by default all others that can change.",
    ),
]
Release = Annotated[
    str,
    typer.Option(
        "--release",
        metavar="KIND",
        help="What is given out: answers, or rows that the generator draws.",
    ),
]
NPeople = Annotated[
    int, typer.Option("--n-people", metavar="N", help="People who get answers, at most.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of samples.")]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="An HTML page of the figures."),
]
LanguageCode = Annotated[
    str, typer.Option("--language", metavar="CODE", help="Language of the page: de, en or nb.")
]


def privacy_audit(
    explainer: Explainer,
    predictor: Predictor,
    training: Training,
    holdout: Holdout,
    reference: Reference = None,
    quasi_identifiers: QuasiIdentifiers = None,
    private: Private = None,
    release: Release = "answers",
    n_people: NPeople = 1_000,
    seed: Seed = 0,
    output: Output = None,
    overwrite: Overwrite = False,
    language: LanguageCode = "en",
    tolerance: Tolerance = 1e-9,
    format_: InputFormat = None,
    delimiter: Delimiter = ",",
    kind: PredictorKind = None,
    trust: Trust = False,
    classes: Classes = None,
    output_is: PredictorOutput = None,
    rate: RowsPerSecond = None,
    jobs: Jobs = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Attack what an explainer gives out."""
    with reported(debug=debug, as_json=as_json):
        from .auditing import Attack, AuditRequest, Page, RealRows, run
        from .predictors import PredictorChoice
        from .running import ExplainerFile

        choice = PredictorChoice(predictor, kind, trust, classes, output_is, rate)
        run(
            AuditRequest(
                explainer=ExplainerFile(explainer, choice, None, None, tolerance, jobs, key_file),
                rows=RealRows(training, holdout, reference, format_, delimiter),
                attack=Attack(release, n_people, quasi_identifiers, private, seed),
                page=Page(output, overwrite, language),
                as_json=as_json,
                quiet=quiet,
            )
        )
