"""``mcce fit``: learn from training rows in a file, and save the explainer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

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
    check_output,
    read_desired,
    read_dtypes,
    read_key,
    split_names,
)
from .terminal import can_draw, printable, say, show_json, without_prints, wrap

if TYPE_CHECKING:
    import pandas as pd

    from ..explainer import MCCE

HELP = """Learn from training rows, and save an explainer.

TRAIN is a CSV, Parquet, Arrow/Feather or JSON-lines file, or - for standard input: the rows that
the predictor was trained on, in the same columns and types. The predictor itself is not saved."""
EPILOG = """\
\b
Examples:
  mcce fit train.csv --predictor model.joblib --trust --desired 0.5: \\
      --immutable Age,Sex --rules rules.toml -o bank.mcce
  mcce fit train.csv --predictor model.joblib --trust --desired good \\
      --search balanced -o bank.mcce
  mcce fit train.jsonl --predictor scoring:score --desired 0.6:1 -o bank.mcce
"""


Train = Annotated[str, typer.Argument(metavar="TRAIN", help="Training rows.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where to save the explainer.")
]
Desired = Annotated[
    list[str] | None,
    typer.Option(
        "--desired",
        metavar="LOW:HIGH|LABEL",
        help="What people want: an interval of the score (0.5: is 0.5 and above, :0.2 is 0.2 "
        "and below), or a label; several labels by giving the option several times. Default: "
        "the second class of a classifier, whose probability is the score unless "
        "--score-class says otherwise.",
    ),
]
Immutable = Annotated[
    list[str] | None,
    typer.Option("--immutable", metavar="NAMES", help="Columns that must not change: Age,Sex."),
]
Mutable = Annotated[
    list[str] | None,
    typer.Option("--mutable", metavar="NAMES", help="Or those that may; no others then."),
]
Rules = Annotated[
    str | None,
    typer.Option("--rules", metavar="FILE", help="What people can do, as TOML or YAML."),
]
Search = Annotated[
    str,
    typer.Option("--search", help="paper, balanced, sparse, plausible, near, fast or exact."),
]
NSamples = Annotated[int | None, typer.Option("--n-samples", metavar="N", help="Draws per person.")]
NCounterfactuals = Annotated[
    int, typer.Option("--n-counterfactuals", metavar="N", help="Answers per person, at most.")
]
Diversity = Annotated[
    float | None,
    typer.Option("--diversity", help="From 0 to 1: how much answers shall differ."),
]
ScoreClass = Annotated[
    str | None,
    typer.Option("--score-class", metavar="LABEL", help="The class whose probability counts."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="NAMES", help="Columns to leave out, e.g. the outcome."),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option("--categorical", metavar="NAMES", help="Numbers that are only codes."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all draws.")]


@dataclass(frozen=True)
class Written:
    """Names and labels as the user wrote them."""

    immutable: list[str] | None
    mutable: list[str] | None
    categorical: list[str] | None
    desired: list[str] | None
    score_class: str | None


def fit(
    train: Train,
    predictor: Predictor,
    output: Output,
    desired: Desired = None,
    immutable: Immutable = None,
    mutable: Mutable = None,
    rules: Rules = None,
    search: Search = "paper",
    n_samples: NSamples = None,
    n_counterfactuals: NCounterfactuals = 1,
    diversity: Diversity = None,
    score_class: ScoreClass = None,
    drop: Drop = None,
    categorical: Categorical = None,
    seed: Seed = 0,
    dtype: Dtypes = None,
    format_: InputFormat = None,
    delimiter: Delimiter = ",",
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
    """Learn from training rows, and save an explainer."""
    with reported(debug=debug, as_json=as_json):
        from .predictors import PredictorChoice

        began = time.monotonic()
        key = read_key(key_file)
        check_output(output, [train, predictor, rules, key_file])
        black_box = PredictorChoice(predictor, predictor_kind, trust, classes, output_is).load()
        rows = _read(train, format_, delimiter, dtype, drop)
        written = Written(immutable, mutable, categorical, desired, score_class)
        settings = {
            "constraints": rules,
            "search": search,
            "n_samples": n_samples,
            "n_counterfactuals": n_counterfactuals,
            "diversity": diversity,
            "n_jobs": jobs,
            "random_state": seed,
        }
        explainer = _fit(black_box, rows, written, settings, quiet=quiet)
        _save(explainer, output, key)
        _summarize(explainer, rows, output, time.monotonic() - began, as_json=as_json, quiet=quiet)


def _read(
    train: str,
    format_: str | None,
    delimiter: str,
    dtypes: list[str] | None,
    drop: list[str] | None,
) -> pd.DataFrame:
    """The training rows without the columns to drop."""
    from ..errors import SchemaError, shorten
    from ..files.formats import find_format
    from ..files.training import read_training

    kind = find_format(train, format_)
    rows = read_training(train, kind, delimiter=delimiter, dtypes=read_dtypes(dtypes))
    names = split_names(drop, list(rows.columns)) or []
    unknown = [name for name in names if name not in rows.columns]
    if unknown:
        raise SchemaError(
            f"--drop names columns that are not in the data: {shorten(unknown, 200)}. The columns "
            f"are {shorten(list(rows.columns), 500)}."
        )
    return rows.drop(columns=names)


def _fit(
    predictor: Any,
    rows: pd.DataFrame,
    written: Written,
    settings: dict[str, Any],
    *,
    quiet: bool,
) -> MCCE:
    """The fitted explainer, with what users wrote as names and labels."""
    from ..explainer import MCCE

    names, labels = [str(name) for name in rows.columns], _labels(predictor)
    codes = split_names(written.categorical, names)
    named = {str(label): label for label in labels}
    explainer = MCCE(
        predictor,
        read_desired(written.desired, labels),
        immutable=split_names(written.immutable, names),
        mutable=split_names(written.mutable, names),
        kinds=dict.fromkeys(codes, "categorical") if codes else None,
        score_class=named.get(str(written.score_class), written.score_class),
        verbose=can_draw() and not quiet,
        **settings,
    )
    with without_prints():
        return explainer.fit(rows).set_params(verbose=False)


def _save(explainer: MCCE, path: str, key: bytes | None) -> None:
    # The predictor scores the probes that are saved.
    with without_prints():
        explainer.save(path, key=key)


def _labels(predictor: Any) -> list[Any]:
    """The labels of a predictor, as far as it names them."""
    import numpy as np

    from ..predictors.adapters import adapt

    found: list[Any] = np.asarray(getattr(adapt(predictor), "classes_", ())).tolist()
    return found


def _score_of(explainer: MCCE) -> list[str]:
    """The classes whose probability is the score, as far as the predictor names them."""
    labels, columns = _labels(explainer.predictor), explainer.fitted_.decision.columns
    return [str(labels[at]) for at in columns if at < len(labels)]


def _summarize(
    explainer: MCCE, rows: pd.DataFrame, output: str, seconds: float, *, as_json: bool, quiet: bool
) -> None:
    fitted = explainer.fitted_
    if as_json:
        show_json(
            {
                "output": output,
                "n_train": len(rows),
                "n_desired": fitted.n_desired,
                "score_of": _score_of(explainer),
                "features": [str(name) for name in fitted.schema.names],
                "immutable": [str(fitted.schema.names[at]) for at in fitted.schema.immutable],
                "seed": fitted.seed,
                "seconds": round(seconds, 3),
            }
        )
    elif not quiet:
        of = " or ".join(map(repr, _score_of(explainer)))
        meant = f" (the score is the probability of {of})" if of else ""
        say(
            wrap(
                f"mcce: learned from {len(rows):,} rows, {fitted.n_desired:,} of them with the "
                f"desired decision{printable(meant)}, in {seconds:.1f} s; saved as "
                f"{printable(output)}. It holds training values: protect it like the training "
                "data (mcce inspect shows which)."
            )
        )
