"""The arguments and options of all commands, each declared once, with its help.

The class of a command has its own options as fields, and shares others as groups: fields that are
classes of options themselves. :mod:`mcce.cli.commands` makes command lines of them.
"""

# ruff: noqa: RUF009 -- option, argument and group return fields.
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

Arguments = TypeVar("Arguments")
OVERWRITE = "Replace an output or an unfinished run."


def option(
    text: str,
    *names: str,
    default: Any = None,
    metavar: str | None = None,
    low: int | None = None,
    high: int | None = None,
    required: bool = False,
    reads: bool = False,
) -> Any:
    """A field that is an option, by default with its own name; ``reads`` if it names a file."""
    make = partial(typer.Option, help=text, metavar=metavar, min=low, max=high)
    metadata = {"make": make, "names": names, "required": required, "reads": reads}
    return field(default="" if required else default, metadata=metadata)


# Options that are a file that is read, columns, and how many.
file = partial(option, metavar="FILE", reads=True)
columns = partial(option, metavar="NAMES")
number = partial(option, metavar="N")


def argument(text: str, metavar: str, default: Any = "") -> Any:
    """A field that is a positional argument: files that are read."""
    make = partial(typer.Argument, help=text, metavar=metavar)
    return field(default=default, metadata={"make": make, "required": True, "reads": True})


def group(shared: type, *, without: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> Any:
    """A field that holds shared options, ``without`` some; those in ``optional`` need no value."""
    metadata = {"group": shared, "without": without, "optional": optional}
    return field(default_factory=shared, metadata=metadata)


def parameters(command: type) -> list[Parameter]:
    """The parameters of a function that Typer makes a command of, required ones first."""
    ranked = sorted(_ranked_parameters(command), key=lambda pair: pair[0])
    return [parameter for _, parameter in ranked]


def _ranked_parameters(
    options: type, prefix: str = "", without: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> Iterator[tuple[int, Parameter]]:
    """Parameters, each with its rank in the help: 0 or 1 if it is required, in a group or not."""
    hints = get_type_hints(options)
    for one in fields(options):
        declared = one.metadata
        if one.name in without:
            continue
        if "group" in declared:
            shared = declared["group"], f"{one.name}__"
            yield from _ranked_parameters(*shared, declared["without"], declared["optional"])
            continue
        rank, default = 2, one.default
        if declared["required"]:
            rank = 0 if prefix else 1
            default = None if one.name in optional else ...
        yield (
            rank,
            Parameter(
                f"{prefix}{one.name}",
                Parameter.KEYWORD_ONLY,
                default=declared["make"](default, *option_names(one)),
                annotation=hints[one.name],
            ),
        )


def option_names(one: Field[Any]) -> tuple[str, ...]:
    """The names of an option; none for a positional argument."""
    if "names" not in one.metadata:
        return ()
    return one.metadata["names"] or (f"--{one.name.replace('_', '-')}",)


def inputs_of(arguments: Any) -> Iterator[str]:
    """The files that a command reads, by the names that its user gave."""
    for one in fields(arguments):
        value = getattr(arguments, one.name)
        if "group" in one.metadata:
            yield from inputs_of(value)
        elif one.metadata["reads"] and value:
            yield from [value] if isinstance(value, str) else value


def from_parameters(command: type[Arguments], values: Mapping[str, Any]) -> Arguments:
    """The arguments of a command, given the values of its parameters."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        shared, _, own = name.rpartition("__")
        if value is not None:
            (nested.setdefault(shared, {}) if shared else nested)[own] = value
    return from_dict(command, nested)


def from_dict(command: type[Arguments], content: Mapping[str, Any]) -> Arguments:
    """The arguments that ``dataclasses.asdict`` made a dictionary of."""
    declared = {one.name: one.metadata for one in fields(command)}  # type: ignore[arg-type]
    return command(
        **{
            name: from_dict(declared[name]["group"], value) if "group" in declared[name] else value
            for name, value in content.items()
        }
    )


@dataclass(frozen=True)
class RunArguments:
    """How a command runs, and what it shows."""

    jobs: int | None = number("Threads; -1 for all cores.")
    key_file: str | None = file("Secret that signs explainers and receipts.")
    as_json: bool = option("Print one JSON object, for machines.", "--json", default=False)
    quiet: bool = option("No progress and no summary.", "--quiet", "-q", default=False)
    debug: bool = option("Show tracebacks of errors; they may quote cells.", default=False)


@dataclass(frozen=True)
class PredictorArguments:
    """The predictor, and what its file does not say."""

    name: str = option(
        "The black box: a .joblib, .pkl, .skops, .onnx, .ubj or .json (XGBoost), .txt "
        "(LightGBM) or .cbm (CatBoost) file, a function as module:name, or the URL of a server.",
        "--predictor",
        metavar="FILE|MODULE:NAME|URL",
        required=True,
        reads=True,
    )
    kind: str | None = option(
        "What the predictor's file is, if its name does not say: joblib, skops, onnx, "
        "xgboost, lightgbm or catboost.",
        "--predictor-kind",
        metavar="KIND",
    )
    trust: bool = option(
        "Load a pickled predictor. That runs code of whoever wrote the file: do it only "
        "with files of your own.",
        default=False,
    )
    classes: list[str] | None = option(
        "A class of a predictor that does not name them (ONNX, boosters, URL); give this "
        "option once for each, in the order of its output.",
        "--class",
        metavar="LABEL",
    )
    output: str | None = option(
        "What an ONNX session or a server returns: probabilities, logits, labels or score.",
        "--output-is",
        metavar="KIND",
    )
    rows_per_second: float | None = number(
        "The most rows in any second that a server is sent, in all."
    )
    in_flight: int | None = number(
        "The most requests at a time to a server, of all workers together; by default one of "
        "each, or 4 of each with --rows-per-second.",
    )
    retrained: str | None = file(
        "The models that mcce fit --outcome trained anew, which it kept in this file; with --trust."
    )


@dataclass(frozen=True)
class TableArguments:
    """How the cells of input files are read."""

    format: str | None = option("Format of the input: csv, parquet, arrow or jsonl.")
    delimiter: str | None = option(
        "What separates the cells of a CSV file; by default found out from its beginning, as are "
        "the next two."
    )
    decimal: str | None = option("The decimal mark in a CSV file: . or ,", metavar="MARK")
    encoding: str | None = option("Encoding of a CSV file, e.g. utf-8 or cp1252.", metavar="NAME")
    dtypes: list[str] | None = option(
        "Dtype of a column, e.g. Job=category or Zip=str. May be given several times.",
        "--dtype",
        metavar="NAME=DTYPE",
    )


@dataclass(frozen=True)
class ExplainerArguments:
    """An explainer, and how it is used."""

    path: str = argument("File of mcce fit.", "EXPLAINER")
    rules: str | None = file("Further rules for these people.")
    n_counterfactuals: int | None = number("Other than at fit.")
    tolerance: float = option("How far scores may be from those at fit, relatively.", default=1e-9)


@dataclass(frozen=True)
class FitArguments:
    r"""Learn from training rows, and save an explainer.

    TRAIN is a CSV, Parquet, Arrow/Feather or JSON-lines file, several of them, a pattern in quotes,
    a folder, or - for standard input: the rows that the predictor was trained on, in the same
    columns and types. The predictor itself is not saved. Of files that do not fit in memory,
    --sample-rows keeps some rows: all accepted ones of rare immutable values, and a random sample
    of the others.

    Examples
    --------
      mcce fit train.csv --predictor model.joblib --trust --desired 0.5: \
          --immutable Age,Sex --rules rules.toml -o bank.mcce
      mcce fit train.csv --predictor model.joblib --trust --desired good \
          --search balanced -o bank.mcce
      mcce fit train.jsonl --predictor scoring:score --desired 0.6:1 -o bank.mcce
      mcce fit "lake/*.parquet" --sample-rows 1000000 --drop customer \
          --predictor scoring:score --desired 0.6:1 -o bank.mcce
      mcce fit train.csv --predictor scoring:score --desired 0.6:1 \
          --survival 0.9 -o bank.mcce
    """

    train: list[str] = argument("Training rows.", "TRAIN...", default=())
    output: str = option(
        "Where to save the explainer.", "--output", "-o", metavar="FILE", required=True
    )
    desired: list[str] | None = option(
        "What people want: an interval of the score (0.5: is 0.5 and above, :0.2 is 0.2 "
        "and below), or a label; several labels by giving the option several times. Default: "
        "the second class of a classifier, whose probability is the score unless "
        "--score-class says otherwise.",
        metavar="LOW:HIGH|LABEL",
    )
    immutable: list[str] | None = columns("Columns that must not change: Age,Sex.")
    mutable: list[str] | None = columns("Columns that may change; all others stay fixed.")
    rules: str | None = file("What people can do, as TOML.")
    search: str | None = option(
        "balanced, sparse, near, nearest, plausible, paper or exact; by default balanced, and "
        "paper with --generator private."
    )
    distance: str = option(
        "gower, l1 or hvdm, or one of another package: ranks after sparsity.", default="gower"
    )
    generator: str = option(
        "The model of step 1: trees, forest, ctree or private, or one of another package.",
        default="trees",
        metavar="NAME",
    )
    domains: str | None = file("Public domains of all columns as JSON, for --generator private.")
    epsilon: float | None = option("Privacy budget of --generator private, e.g. 1.", metavar="E")
    n_samples: int | None = number("Draws per person.")
    n_counterfactuals: int = number("Answers per person, at most.", default=3)
    diversity: float | None = option(
        "From 0 to 1: how much answers shall differ; by default 0.5. Not for the exact search."
    )
    score_class: str | None = option("The class whose probability counts.", metavar="LABEL")
    drop: list[str] | None = columns("Columns to leave out, e.g. the outcome.")
    allow_outcome: bool = option("Learn although a column looks like the outcome.", default=False)
    categorical: list[str] | None = columns("Numbers that are only codes.")
    seed: int = option("Seed of all draws.", default=0, low=0, high=2**64 - 1)
    sample_rows: int | None = number("Learn from at most this many rows.", low=1)
    sample_key: str | None = option(
        "A column that tells all rows apart, is never missing and is no feature: it decides "
        "which are kept.",
        metavar="NAME",
    )
    survival: float | None = option(
        "The share of models trained anew that should accept each answer, e.g. 0.9; 0 only "
        "measures how many do.",
        metavar="SHARE",
    )
    outcome: str | None = option(
        "With --survival: the column of labels, which is no feature. A scikit-learn predictor is "
        "trained anew on it; without it, or for other predictors, boosted trees stand in.",
        metavar="NAME",
    )
    retrained: str | None = option(
        "With --outcome: where to keep the models trained anew, as a .joblib file.",
        metavar="FILE",
    )
    survival_models: int | None = number("With --survival: how many models; by default 20.")
    survival_samples: str | None = option(
        "With --survival: bootstrap, each model sees another sample of the training rows, or all, "
        "they differ in their seeds alone.",
        metavar="KIND",
    )
    survival_time: str | None = option(
        "With --survival: the column by which the models are trained on the latest rows.",
        metavar="NAME",
    )
    table: TableArguments = group(TableArguments)
    predictor: PredictorArguments = group(PredictorArguments, without=("retrained",))
    run: RunArguments = group(RunArguments)


@dataclass(frozen=True)
class ExplainArguments:
    r"""Find what would have given people the desired decision.

    EXPLAINER is a file of mcce fit, PEOPLE a CSV, Parquet, Arrow/Feather or JSON-lines file, or -
    for standard input. The output has one row per answer, and one with a reason for everybody
    without. People are read in blocks by the columns of the explainer, and every block is written
    as a complete part: a run that was interrupted or killed goes on with --resume and loses
    nothing.

    Several files, a folder of them or --engine share the work among processes: of this machine, or
    of a cluster of Dask, Ray or Spark. --key names the columns that identify a person.

    Examples
    --------
      mcce explain bank.mcce people.csv --predictor model.joblib --trust \
          -o answers.csv
      mcce explain bank.mcce people.csv --predictor model.joblib --trust \
          -o answers.parquet --resume
      mcce explain bank.mcce - --format jsonl --predictor scoring:score \
          -o - --output-format jsonl < people.jsonl
      mcce explain bank.mcce people.csv --predictor model.joblib --trust \
          --output-format csv -o answers/
      mcce explain bank.mcce people.csv --predictor model.joblib --trust \
          --anonymity 5 --quasi-identifiers Job,Duration --training train.csv \
          -o release.csv
      mcce explain bank.mcce lake/*.parquet --key customer --workers 2 \
          --predictor scoring:score -o answers/
    """

    people: list[str] = argument(
        "Whom to explain: files, or folders of files.", "PEOPLE", default=()
    )
    output: str = option(
        "One file; or a folder, named with a slash at the end, that keeps the parts; or - "
        "for standard output.",
        "--output",
        "-o",
        metavar="FILE|FOLDER/|-",
        required=True,
    )
    resume: bool = option(
        "Go on with an unfinished run; begin where there is none yet.", default=False
    )
    overwrite: bool = option(OVERWRITE, default=False)
    keep: list[str] | None = columns("Columns to copy, e.g. a customer number.")
    key: list[str] | None = columns(
        "Columns that identify a person, in place of the row in the file; needed for several files."
    )
    labels: str | None = file("Words for the features, for what their numbers are rounded to.")
    engine: str | None = option(
        "Who shares the work: local (processes of this machine), dask, ray or spark. Files "
        "must have the same names for all workers.",
        metavar="NAME",
    )
    workers: int | None = number("Worker processes, by default one for each core.")
    anonymity: int | None = option(
        "Write ranges and sets of values that at least K training people fit, in place of "
        "exact values of --quasi-identifiers.",
        metavar="K",
    )
    quasi_identifiers: list[str] | None = columns(
        "With --anonymity: columns by which people could be recognised."
    )
    training: str | None = file("With --anonymity: the rows that the explainer was fitted on.")
    min_pureness: float | None = option(
        "With --anonymity: the share of these values that the predictor must accept, where "
        "possible; by default 0.9."
    )
    block_rows: int | None = number(
        "People per block, by default 5000, and 20000 per partition if work is shared. "
        "Answers do not depend on it; a killed run repeats at most one block per worker.",
    )
    prefix: str = option("What stands before the names of added columns.", default="")
    output_format: str | None = option("Format of the output: csv, parquet, arrow or jsonl.")
    explainer: ExplainerArguments = group(ExplainerArguments)
    table: TableArguments = group(TableArguments)
    predictor: PredictorArguments = group(PredictorArguments)
    run: RunArguments = group(RunArguments)


@dataclass(frozen=True)
class ReportArguments:
    r"""Write a report on people and their answers: one HTML file.

    It shows the run (who has an answer, what changes, what it costs by group, rules and settings)
    and everybody with their answers, ranges, pictures and letter, and how to get the same answers
    again. The file loads nothing from elsewhere, and prints well. EXPLAINER and PEOPLE are files as
    for mcce explain, one each. The report holds personal data: protect it like the file of people.

    Examples
    --------
      mcce report bank.mcce people.csv --predictor model.joblib --trust \
          -o report.html
      mcce report bank.mcce people.csv --predictor model.joblib --trust \
          --row 17 -o person-17.html
      mcce report bank.mcce people.csv --predictor scoring:score \
          --labels labels.toml --groups Sex --n-counterfactuals 3 \
          -o report.html --overwrite
    """

    people: str = argument("Whom to explain.", "PEOPLE")
    output: str = option("The HTML file.", "--output", "-o", metavar="FILE", required=True)
    overwrite: bool = option(OVERWRITE, default=False)
    labels: str | None = file("Words for the features, and their language.")
    language: str | None = option("de, en or nb; only without --labels.", metavar="CODE")
    groups: list[str] | None = columns("Columns whose groups are compared.")
    row_numbers: list[int] | None = number(
        "Only this row of the file, counted from 0. May be given several times.",
        "--row",
    )
    name: str | None = option("What people are called, e.g. their number.", metavar="COLUMN")
    title: str | None = option("What the report is called.")
    card: str | None = file("A text about the data, to be shown.")
    max_people: int = number("People who are shown one by one.", default=1_000)
    explainer: ExplainerArguments = group(ExplainerArguments)
    table: TableArguments = group(TableArguments)
    predictor: PredictorArguments = group(PredictorArguments, without=("in_flight",))
    run: RunArguments = group(RunArguments)


@dataclass(frozen=True)
class VerifyArguments:
    """Check whether a receipt is unaltered, and whether what it promises still holds.

    With --explainer and --predictor the person and the answer are put to the predictor and the
    rules again. Without them only the receipt itself is checked. The exit code is 0 if everything
    holds, and 6 if something does not.

    Examples
    --------
      mcce verify receipt.json
      mcce verify receipt.json --explainer bank.mcce --predictor scoring:score
    """

    receipt: str = argument("File that the page saved.", "RECEIPT")
    explainer: str | None = file("File of mcce fit.")
    predictor: PredictorArguments = group(
        PredictorArguments, without=("rows_per_second", "in_flight"), optional=("name",)
    )
    run: RunArguments = group(RunArguments, without=("jobs", "quiet"))


@dataclass(frozen=True)
class AuditArguments:
    r"""Attack what an explainer gives out: find out who was in its training data.

    Needs the rows that EXPLAINER was fitted on, and rows of other people, best as many. Copies,
    closest records, membership and, with --quasi-identifiers, linkage are measured; beside each
    figure stands what no leak would give. An audit finds leaks; that it finds none is no proof.

    Examples
    --------
      mcce privacy-audit bank.mcce --predictor model.joblib --trust \
          --training train.csv --holdout holdout.csv
      mcce privacy-audit bank.mcce --predictor scoring:score \
          --training train.csv --holdout holdout.csv \
          --quasi-identifiers Duration,Job -o privacy.html --overwrite
    """

    training: str = file("The rows it was fitted on.", required=True)
    holdout: str = file("Rows of other people, best as many as in training.", required=True)
    reference: str | None = file(
        "Rows of further people, for whom rows are released and whom an attacker knows. "
        "Without it, half of the holdout."
    )
    quasi_identifiers: list[str] | None = columns(
        "Columns that an attacker knows of everybody, for linkage."
    )
    private: list[str] | None = columns(
        "Columns that the attacker would like to know; by default all others that can change."
    )
    release: str = option(
        "What is given out: answers, or rows that the generator draws.",
        default="answers",
        metavar="KIND",
    )
    n_people: int = number("People who get answers, at most.", default=1_000)
    seed: int = number("Seed of samples.", default=0, low=0, high=2**64 - 1)
    output: str | None = option("An HTML page of the figures.", "--output", "-o", metavar="FILE")
    overwrite: bool = option(OVERWRITE, default=False)
    language: str = option("Language of the page: de, en or nb.", default="en", metavar="CODE")
    explainer: ExplainerArguments = group(
        ExplainerArguments, without=("rules", "n_counterfactuals")
    )
    table: TableArguments = group(TableArguments, without=("dtypes",))
    predictor: PredictorArguments = group(PredictorArguments, without=("in_flight",))
    run: RunArguments = group(RunArguments)


@dataclass(frozen=True)
class ServeArguments:
    r"""Serve an explainer over HTTP, with a page where anybody can ask what it would take.

    EXPLAINER is a file of mcce fit. The service listens on this machine alone unless --host says
    otherwise; then use --token-file, and a reverse proxy that speaks HTTPS. --demo needs no files:
    it serves the bundled German Credit data.

    Examples
    --------
      mcce serve --demo
      mcce serve bank.mcce --predictor model.joblib --trust
      mcce serve bank.mcce --predictor model.joblib --trust \
          --people people.csv --labels labels.toml --workers 4
    """

    demo: bool = option("Serve the bundled German Credit data.", default=False)
    people: str | None = option("People to choose from on the page.", metavar="FILE")
    name: str | None = option("Column with the names of these people.", metavar="COLUMN")
    labels: list[str] | None = option(
        "Words for the features; one file for each language, the first is that of the page.",
        metavar="FILE",
    )
    title: str | None = option("What the page is called.")
    host: str = option("Address to listen on.", default="127.0.0.1")
    port: int = option("Port to listen on.", default=8000, low=1, high=65535)
    token_file: str | None = option("File with the secret that requests must name.", metavar="FILE")
    allowed_hosts: list[str] | None = option(
        "Name under which the service may be called; may be given several times. On this "
        "machine alone the default is localhost, elsewhere any.",
        "--allowed-host",
        metavar="NAME",
    )
    workers: int = option("Processes; each loads the explainer.", default=1, low=1, high=256)
    threads: int = option("Threads that search, in each process.", default=2, low=1, high=256)
    queue: int = option("Requests that may wait, in each process.", default=64, low=1)
    batch: int = option(
        "People who share one search; 1 searches for each request alone.", default=64, low=1
    )
    max_people: int = option("Most people in one request.", default=100, low=1)
    seconds: float = option("The longest search; it ends with what was found.", default=10.0)
    patience: float = option(
        "Seconds after which a predictor that hangs is given up.", default=30.0
    )
    grace: int = option("Seconds that requests get when the service is to end.", default=20, low=0)
    explainer: ExplainerArguments = group(ExplainerArguments, optional=("path",))
    table: TableArguments = group(TableArguments)
    predictor: PredictorArguments = group(PredictorArguments, optional=("name",))
    run: RunArguments = group(RunArguments, without=("jobs", "as_json", "quiet"))


@dataclass(frozen=True)
class CompareArguments:
    r"""Compare a new model with the old one that it is to replace, by decisions and answers.

    OLD and NEW are files of mcce fit, one for each model. Shows whose decision changes, whose
    answers of the old model the new one refuses, and what plans ask for under each. --predictor and
    --retrained are those of NEW; all other options hold for both. The exit code is 7 if more
    answers than --fail-above are refused.

    Examples
    --------
      mcce compare-models old.mcce new.mcce people.csv \
          --old-predictor scoring:score --predictor scoring:score
      mcce compare-models old.mcce new.mcce people.csv \
          --old-predictor scoring:score --predictor scoring:score \
          --groups Sex --fail-above 0.05 -o models.html --overwrite
    """

    old: str = argument("Explainer of the old model.", "OLD")
    new: str = argument("Explainer of the new model.", "NEW")
    people: str = argument("Whom both models decide about.", "PEOPLE")
    old_predictor: str = option(
        "The black box of OLD, as for --predictor.",
        metavar="FILE|MODULE:NAME|URL",
        required=True,
        reads=True,
    )
    old_retrained: str | None = file("As --retrained, for OLD.")
    answers: str | None = file(
        "The answers to PEOPLE that were given: a file of mcce explain, in which factual is the "
        "row of the person. Without it, OLD explains them again."
    )
    groups: list[str] | None = columns("Columns by whose values the figures are broken down.")
    fail_above: float | None = option(
        "The largest share of refused answers that is no failure, e.g. 0.05.", metavar="SHARE"
    )
    output: str | None = option("An HTML page of the figures.", "--output", "-o", metavar="FILE")
    overwrite: bool = option(OVERWRITE, default=False)
    labels: str | None = file("Words for the features on the page, and its language.")
    language: str | None = option(
        "Language of the page: de, en or nb; only without --labels.", metavar="CODE"
    )
    tolerance: float = option("How far scores may be from those at fit, relatively.", default=1e-9)
    table: TableArguments = group(TableArguments)
    predictor: PredictorArguments = group(PredictorArguments, without=("in_flight",))
    run: RunArguments = group(RunArguments)


@dataclass(frozen=True)
class InspectArguments:
    """Show what a saved explainer holds: columns, rules, settings, and personal data.

    Training values are counted, never shown. No predictor is needed, and no code in the file is
    run.

    Examples
    --------
      mcce inspect bank.mcce
      mcce inspect bank.mcce --json
    """

    explainer: ExplainerArguments = group(
        ExplainerArguments, without=("rules", "n_counterfactuals", "tolerance")
    )
    run: RunArguments = group(RunArguments, without=("jobs", "quiet"))


@dataclass(frozen=True)
class DemoArguments:
    """Explain declined applicants of the bundled German Credit data.

    With --out, also write the files that the other commands take: train.csv, people.csv,
    rules.toml, labels.toml and model.joblib.

    Examples
    --------
      mcce demo
      mcce demo --out demo
    """

    out: Path | None = option("Folder for the files.", metavar="DIR")
    run: RunArguments = group(RunArguments, without=("jobs", "key_file", "quiet"))


COMMANDS: dict[str, type[Any]] = {
    "fit": FitArguments,
    "explain": ExplainArguments,
    "report": ReportArguments,
    "verify": VerifyArguments,
    "privacy-audit": AuditArguments,
    "compare-models": CompareArguments,
    "serve": ServeArguments,
    "inspect": InspectArguments,
    "demo": DemoArguments,
}
