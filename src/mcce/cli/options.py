"""What users write on the command line: shared options, names, dtypes and what is desired."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from ..predictors.decision import Interval

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
INTERVAL = re.compile(rf"(?P<low>{NUMBER})?:(?P<high>{NUMBER})?")

Predictor = Annotated[
    str,
    typer.Option(
        "--predictor",
        metavar="FILE|MODULE:NAME|URL",
        help="The black box: a .joblib, .pkl, .skops, .onnx, .ubj or .json (XGBoost), .txt "
        "(LightGBM) or .cbm (CatBoost) file, a function as module:name, or the URL of a server.",
    ),
]
PredictorKind = Annotated[
    str | None,
    typer.Option(
        "--predictor-kind",
        metavar="KIND",
        help="What the predictor's file is, if its name does not say: joblib, skops, onnx, "
        "xgboost, lightgbm or catboost.",
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Load a pickled predictor. That runs code of whoever wrote the file: do it only "
        "with files of your own.",
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        metavar="LABEL",
        help="A class of a predictor that does not name them (ONNX, boosters, URL); give this "
        "option once for each, in the order of its output.",
    ),
]
PredictorOutput = Annotated[
    str | None,
    typer.Option(
        "--output-is",
        metavar="KIND",
        help="What an ONNX session or a server returns: probabilities, logits, labels or score.",
    ),
]
RowsPerSecond = Annotated[
    float | None,
    typer.Option(
        "--rows-per-second",
        metavar="N",
        help="The most rows in any second that a server is sent, in all.",
    ),
]
InFlight = Annotated[
    int | None,
    typer.Option(
        "--in-flight",
        metavar="N",
        help="The most requests at a time to a server, of all workers together; by default one of "
        "each, or 4 of each with --rows-per-second.",
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option("--format", help="Format of the input: csv, parquet, arrow or jsonl."),
]
Delimiter = Annotated[
    str, typer.Option("--delimiter", help="What separates the cells of a CSV file.")
]
Dtypes = Annotated[
    list[str] | None,
    typer.Option(
        "--dtype",
        metavar="NAME=DTYPE",
        help="Dtype of a column, e.g. Job=category or Zip=str. May be given several times.",
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", metavar="N", help="Threads; -1 for all cores.")]
KeyFile = Annotated[
    str | None,
    typer.Option("--key-file", metavar="FILE", help="Secret that signs explainers and receipts."),
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show tracebacks of errors; they may quote cells.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]


def split_names(texts: Sequence[str] | None, known: Collection[str]) -> list[str] | None:
    """Names of columns, separated by commas; a name that has commas itself stands alone.

    Examples
    --------
    >>> split_names(["Age,Sex", "Income, net"], ["Age", "Sex", "Income, net"])
    ['Age', 'Sex', 'Income, net']
    """
    if not texts:
        return None
    names: list[str] = []
    for text in texts:
        names += [text] if text in known else [name.strip() for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def read_dtypes(texts: Sequence[str] | None) -> dict[str, str]:
    """Dtypes by column name; a name may hold equal signs.

    Examples
    --------
    >>> read_dtypes(["Job=category", "a=b=str"])
    {'Job': 'category', 'a=b': 'str'}
    """
    from ..errors import ParameterError, shorten

    dtypes = {}
    for text in texts or ():
        name, sign, dtype = text.rpartition("=")
        if not (name and sign and dtype):
            raise ParameterError(
                f"--dtype must be NAME=DTYPE, e.g. Job=category, got {shorten(text)}."
            )
        dtypes[name] = dtype
    return dtypes


def read_desired(texts: Sequence[str] | None, classes: Collection[Any]) -> Any:
    """What is desired: an interval of scores such as ``0.5:``, or labels.

    Examples
    --------
    >>> read_desired(["0.5:"], []), read_desired([":0.2"], []), read_desired(["1"], [0, 1])
    (Interval [0.5, inf], Interval [-inf, 0.2], [1])
    >>> read_desired(["good", "fair"], ["bad", "fair", "good"])
    ['good', 'fair']
    """
    if not texts:
        return None
    named = {str(label): label for label in classes}
    if len(texts) == 1 and texts[0] not in named:
        interval = _interval(texts[0])
        if interval is not None:
            return interval
    return [named.get(text, text) for text in texts]


def _interval(text: str) -> Interval | None:
    from ..predictors.decision import Interval

    ends = INTERVAL.fullmatch(text.strip())
    if ends is None or text.strip() == ":":
        return None
    low, high = ends["low"], ends["high"]
    return Interval(
        float("-inf") if low is None else float(low), float("inf") if high is None else float(high)
    )


def check_output(output: str, inputs: Sequence[str | None]) -> None:
    """Raise if the output would take the place of a file that is read."""
    from pathlib import Path

    from ..errors import ParameterError, shorten

    target = Path(output).resolve()
    for name in inputs:
        if name and Path(name).is_file() and _is_same(target, Path(name).resolve()):
            raise ParameterError(
                f"The output {shorten(output, 200)} would take the place of {shorten(name, 200)}, "
                "which is read. Name another output."
            )


def _is_same(target: Path, file: Path) -> bool:
    if target.is_dir():
        return target == file.parent
    return target == file or (target.exists() and target.samefile(file))


def read_key(path: str | None) -> bytes | None:
    """The secret in a file; None without one."""
    if path is None:
        return None
    from pathlib import Path

    from ..files.sources import reading

    with reading(path):
        return Path(path).read_bytes().strip()
