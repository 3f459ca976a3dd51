"""``mcce serve``: an explainer behind HTTP, and a page where anybody can ask."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .explain import NCounterfactuals, Rules, Tolerance
from .options import (
    Classes,
    Debug,
    Delimiter,
    Dtypes,
    InFlight,
    InputFormat,
    KeyFile,
    PredictorKind,
    PredictorOutput,
    RowsPerSecond,
    Trust,
)
from .terminal import reported

HELP = """Serve an explainer over HTTP, with a page where anybody can ask what it would take.

EXPLAINER is a file of mcce fit. The service listens on this machine alone unless --host says
otherwise; then use --token-file, and a reverse proxy that speaks HTTPS. --demo needs no files: it
serves the bundled German Credit data."""
EPILOG = """\
\b
Examples:
  mcce serve --demo
  mcce serve bank.mcce --predictor model.joblib --trust
  mcce serve bank.mcce --predictor model.joblib --trust \\
      --people people.csv --labels labels.toml --workers 4
"""

Explainer = Annotated[str | None, typer.Argument(metavar="EXPLAINER", help="File of mcce fit.")]
PredictorName = Annotated[
    str | None,
    typer.Option(
        "--predictor",
        metavar="FILE|MODULE:NAME|URL",
        help="The black box, as for mcce explain.",
    ),
]
Demo = Annotated[bool, typer.Option("--demo", help="Serve the bundled German Credit data.")]
People = Annotated[
    str | None,
    typer.Option("--people", metavar="FILE", help="People to choose from on the page."),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="COLUMN", help="Column with the names of these people."),
]
LabelsFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Words for the features; one file for each language, the first is that of the page.",
    ),
]
Model = Annotated[
    str, typer.Option("--model", metavar="NAME", help="Name in addresses: /v1/models/NAME.")
]
Title = Annotated[str | None, typer.Option("--title", help="What the page is called.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", min=1, max=65535, help="Port to listen on.")]
TokenFile = Annotated[
    str | None,
    typer.Option(
        "--token-file", metavar="FILE", help="File with the secret that requests must name."
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="Name under which the service may be called; may be given several times. On this "
        "machine alone the default is localhost, elsewhere any.",
    ),
]
Workers = Annotated[
    int, typer.Option("--workers", min=1, max=256, help="Processes; each loads the explainer.")
]
Threads = Annotated[
    int, typer.Option("--threads", min=1, max=256, help="Threads that search, in each process.")
]
Queue = Annotated[
    int, typer.Option("--queue", min=1, help="Requests that may wait, in each process.")
]
Batch = Annotated[
    int,
    typer.Option(
        "--batch",
        min=1,
        help="People who share one search; 1 searches for each request alone.",
    ),
]
MaxPeople = Annotated[int, typer.Option("--max-people", min=1, help="Most people in one request.")]
Seconds = Annotated[
    float, typer.Option("--seconds", help="The longest search; it ends with what was found.")
]
Patience = Annotated[
    float,
    typer.Option("--patience", help="Seconds after which a predictor that hangs is given up."),
]
Grace = Annotated[
    int,
    typer.Option("--grace", min=0, help="Seconds that requests get when the service is to end."),
]


def serve(
    explainer: Explainer = None,
    predictor: PredictorName = None,
    demo: Demo = False,
    people: People = None,
    name: Name = None,
    labels: LabelsFiles = None,
    model: Model = "mcce",
    title: Title = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    allowed_host: AllowedHosts = None,
    workers: Workers = 1,
    threads: Threads = 2,
    queue: Queue = 64,
    batch: Batch = 64,
    max_people: MaxPeople = 100,
    seconds: Seconds = 10.0,
    patience: Patience = 30.0,
    grace: Grace = 20,
    rules: Rules = None,
    n_counterfactuals: NCounterfactuals = None,
    tolerance: Tolerance = 1e-9,
    format_: InputFormat = None,
    delimiter: Delimiter = ",",
    dtype: Dtypes = None,
    kind: PredictorKind = None,
    trust: Trust = False,
    classes: Classes = None,
    output_is: PredictorOutput = None,
    rate: RowsPerSecond = None,
    in_flight: InFlight = None,
    key_file: KeyFile = None,
    debug: Debug = False,
) -> None:
    """Serve an explainer over HTTP."""
    with reported(debug=debug):
        from .predictors import PredictorChoice
        from .running import ExplainerFile, PeopleFile
        from .serving import Operation, ServeRequest, run

        choice = PredictorChoice(predictor or "", kind, trust, classes, output_is, rate, in_flight)
        how = rules, n_counterfactuals, tolerance, 1, key_file  # a search has one thread
        file = ExplainerFile(explainer, choice, *how) if explainer and predictor else None
        keep = [name] if name else None
        listed = PeopleFile(people, format_, delimiter, dtype, keep) if people else None
        limits: dict[str, Any] = {"threads": threads, "queue": queue, "batch": batch}
        limits |= {"people": max_people, "seconds": seconds, "patience": patience}
        operation = Operation(host, port, workers, grace, token_file, tuple(allowed_host or ()))
        run(ServeRequest(file, demo, listed, tuple(labels or ()), model, title, limits, operation))
