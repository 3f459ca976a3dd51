"""``mcce report``: one HTML file about people in a file and their answers."""

from __future__ import annotations

from typing import Annotated

import typer

from .explain import Explainer, NCounterfactuals, Overwrite, Rules, Tolerance
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
    RowsPerSecond,
    Trust,
)
from .terminal import reported

HELP = """Write a report on people and their answers: one HTML file.

It shows the run (who has an answer, what changes, what it costs by group, rules and settings) and
everybody with their answers, ranges, pictures and letter, and how to get the same answers again.
The file loads nothing from elsewhere, and prints well. EXPLAINER and PEOPLE are files as for mcce
explain, one each. The report holds personal data: protect it like the file of people."""
EPILOG = """\
\b
Examples:
  mcce report bank.mcce people.csv --predictor model.joblib --trust \\
      -o report.html
  mcce report bank.mcce people.csv --predictor model.joblib --trust \\
      --row 17 -o person-17.html
  mcce report bank.mcce people.csv --predictor scoring:score \\
      --labels labels.toml --groups Sex --n-counterfactuals 3 \\
      -o report.html --overwrite
"""

People = Annotated[str, typer.Argument(metavar="PEOPLE", help="Whom to explain.")]
Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The HTML file.")]
LabelsFile = Annotated[
    str | None,
    typer.Option("--labels", metavar="FILE", help="Words for the features, and their language."),
]
LanguageCode = Annotated[
    str | None,
    typer.Option("--language", metavar="CODE", help="de, en or nb; only without --labels."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--groups", metavar="NAMES", help="Columns whose groups are compared."),
]
Rows = Annotated[
    list[int] | None,
    typer.Option(
        "--row",
        metavar="N",
        help="Only this row of the file, counted from 0. May be given several times.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="COLUMN", help="What people are called, e.g. their number."),
]
Title = Annotated[str | None, typer.Option("--title", help="What the report is called.")]
Card = Annotated[
    str | None,
    typer.Option("--card", metavar="FILE", help="A text about the data, to be shown."),
]
MaxPeople = Annotated[
    int, typer.Option("--max-people", metavar="N", help="People who are shown one by one.")
]


def report(
    explainer: Explainer,
    people: People,
    predictor: Predictor,
    output: Output,
    overwrite: Overwrite = False,
    labels: LabelsFile = None,
    language: LanguageCode = None,
    groups: Groups = None,
    n_counterfactuals: NCounterfactuals = None,
    row: Rows = None,
    name: Name = None,
    title: Title = None,
    card: Card = None,
    max_people: MaxPeople = 1_000,
    rules: Rules = None,
    tolerance: Tolerance = 1e-9,
    format_: InputFormat = None,
    delimiter: Delimiter = ",",
    dtype: Dtypes = None,
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
    """Write a report on people and their answers."""
    with reported(debug=debug, as_json=as_json):
        from .predictors import PredictorChoice
        from .reporting import Look, ReportRequest, run
        from .running import ExplainerFile, PeopleFile

        choice = PredictorChoice(predictor, kind, trust, classes, output_is, rate)
        how = rules, n_counterfactuals, tolerance, jobs, key_file
        run(
            ReportRequest(
                explainer=ExplainerFile(explainer, choice, *how),
                people=PeopleFile(people, format_, delimiter, dtype, [name] if name else None),
                output=output,
                overwrite=overwrite,
                rows=tuple(row or ()),
                look=Look(labels, language, groups, title, card, max_people),
                as_json=as_json,
                quiet=quiet,
            )
        )
