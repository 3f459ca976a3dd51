"""``mcce fit``: learn from training rows in a file, and save the explainer."""

from __future__ import annotations

import time
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
    read_desired,
    read_dtypes,
    read_key,
    split_names,
)
from .terminal import printable, say, show_json, wrap

if TYPE_CHECKING:
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


def fit(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Training rows.")],
    predictor: Predictor,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to save the explainer.")
    ],
    desired: Annotated[
        list[str] | None,
        typer.Option(
            "--desired",
            metavar="LOW:HIGH|LABEL",
            help="What people want: an interval of the score (0.5: is 0.5 and above, :0.2 is 0.2 "
            "and below), or a label; several labels by giving the option several times. Default: "
            "the second class of a classifier.",
        ),
    ] = None,
    immutable: Annotated[
        list[str] | None,
        typer.Option("--immutable", metavar="NAMES", help="Columns that must not change: Age,Sex."),
    ] = None,
    mutable: Annotated[
        list[str] | None,
        typer.Option("--mutable", metavar="NAMES", help="Or those that may; no others then."),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option("--rules", metavar="FILE", help="What people can do, as TOML or YAML."),
    ] = None,
    search: Annotated[
        str,
        typer.Option(
            "--search", help="paper, balanced, sparse, plausible, near, fast or exact."
        ),
    ] = "paper",
    n_samples: Annotated[
        int | None, typer.Option("--n-samples", metavar="N", help="Draws per person.")
    ] = None,
    n_counterfactuals: Annotated[
        int, typer.Option("--n-counterfactuals", metavar="N", help="Answers per person, at most.")
    ] = 1,
    diversity: Annotated[
        float | None,
        typer.Option("--diversity", help="From 0 to 1: how much answers shall differ."),
    ] = None,
    score_class: Annotated[
        str | None,
        typer.Option("--score-class", metavar="LABEL", help="The class whose probability counts."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="NAMES", help="Columns to leave out, e.g. the outcome."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", metavar="NAMES", help="Numbers that are only codes."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all draws.")] = 0,
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
        from ..files.formats import find_format
        from ..files.training import read_training
        from .predictors import PredictorChoice

        began = time.monotonic()
        key = read_key(key_file)
        kind = find_format(train, format_)
        black_box = PredictorChoice(predictor, predictor_kind, trust, classes, output_is)
        loaded = black_box.load()
        rows = read_training(train, kind, delimiter=delimiter, dtypes=read_dtypes(dtype))
        rows = rows.drop(columns=_checked_drop(drop, rows))
        names = [str(name) for name in rows.columns]
        labels = _labels(loaded)
        parameters = {
            "immutable": split_names(immutable, names),
            "mutable": split_names(mutable, names),
            "kinds": {name: "categorical" for name in split_names(categorical, names) or ()},
            "score_class": {str(label): label for label in labels}.get(score_class, score_class),  # type: ignore[arg-type]
            "constraints": rules,
            "search": search,
            "n_samples": n_samples,
            "n_counterfactuals": n_counterfactuals,
            "diversity": diversity,
            "n_jobs": jobs,
            "random_state": seed,
        }
        explainer = _fit(loaded, read_desired(desired, labels), parameters, rows, quiet=quiet)
        explainer.save(output, key=key)
        _report(explainer, rows, output, time.monotonic() - began, as_json=as_json, quiet=quiet)


def _labels(predictor: Any) -> list[Any]:
    """The labels of a predictor, as far as it names them."""
    import numpy as np

    from ..predictors.adapters import adapt

    found: list[Any] = np.asarray(getattr(adapt(predictor), "classes_", ())).tolist()
    return found


def _fit(
    predictor: Any, desired: Any, parameters: dict[str, Any], rows: Any, *, quiet: bool
) -> MCCE:
    from ..explainer import MCCE

    # The bar of fit needs tqdm; without it, there is none.
    from .terminal import can_draw

    parameters["kinds"] = parameters["kinds"] or None
    drawn = MCCE(predictor, desired, verbose=can_draw() and not quiet, **parameters).fit(rows)
    return drawn.set_params(verbose=False)


def _checked_drop(drop: list[str] | None, rows: Any) -> list[str]:
    from ..errors import SchemaError, shorten

    names = split_names(drop, list(rows.columns)) or []
    unknown = [name for name in names if name not in rows.columns]
    if unknown:
        raise SchemaError(
            f"--drop names columns that are not in the data: {shorten(unknown, 200)}. The columns "
            f"are {shorten(list(rows.columns), 500)}."
        )
    return names


def _report(
    explainer: MCCE, rows: Any, output: str, seconds: float, *, as_json: bool, quiet: bool
) -> None:
    fitted = explainer.fitted_
    if as_json:
        show_json(
            {
                "output": output,
                "n_train": len(rows),
                "n_desired": fitted.n_desired,
                "features": [str(name) for name in fitted.schema.names],
                "immutable": [str(fitted.schema.names[at]) for at in fitted.schema.immutable],
                "seed": fitted.seed,
                "seconds": round(seconds, 3),
            }
        )
    elif not quiet:
        say(
            wrap(
                f"mcce: learned from {len(rows):,} rows, {fitted.n_desired:,} of them with the "
                f"desired decision, in {seconds:.1f} s; saved as {printable(output)}. It holds "
                "training values: protect it like the training data (mcce inspect shows which)."
            )
        )
