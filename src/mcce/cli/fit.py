"""``mcce fit``: learn from training rows in a file, and save the explainer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..runtime.progress import without_prints
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
    check_output,
    read_desired,
    read_dtypes,
    read_key,
    split_names,
)
from .terminal import can_draw, printable, reported, say, show_json, wrap

if TYPE_CHECKING:
    import pandas as pd

    from ..explainer import MCCE
    from ..files.sampling import TrainingSample

HELP = """Learn from training rows, and save an explainer.

TRAIN is a CSV, Parquet, Arrow/Feather or JSON-lines file, several of them, a pattern in quotes, a
folder, or - for standard input: the rows that the predictor was trained on, in the same columns and
types. The predictor itself is not saved. Of files that do not fit in memory, --sample-rows keeps
some rows: all accepted ones of rare immutable values, and a random sample of the others."""
EPILOG = """\
\b
Examples:
  mcce fit train.csv --predictor model.joblib --trust --desired 0.5: \\
      --immutable Age,Sex --rules rules.toml -o bank.mcce
  mcce fit train.csv --predictor model.joblib --trust --desired good \\
      --search balanced -o bank.mcce
  mcce fit train.jsonl --predictor scoring:score --desired 0.6:1 -o bank.mcce
  mcce fit "lake/*.parquet" --sample-rows 1000000 --drop customer \\
      --predictor scoring:score --desired 0.6:1 -o bank.mcce
"""
Train = Annotated[list[str], typer.Argument(metavar="TRAIN...", help="Training rows.")]
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
    typer.Option(
        "--mutable", metavar="NAMES", help="Columns that may change; all others stay fixed."
    ),
]
Rules = Annotated[
    str | None,
    typer.Option("--rules", metavar="FILE", help="What people can do, as TOML."),
]
Search = Annotated[
    str,
    typer.Option("--search", help="paper, balanced, sparse, plausible, near, fast or exact."),
]
Distance = Annotated[
    str,
    typer.Option(
        "--distance", help="gower, l1 or hvdm, or one of another package: ranks after sparsity."
    ),
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
SampleRows = Annotated[
    int | None,
    typer.Option(
        "--sample-rows", metavar="N", min=1, help="Learn from so many of the rows, at most."
    ),
]
SampleKey = Annotated[
    str | None,
    typer.Option(
        "--sample-key",
        metavar="NAME",
        help="A column that tells all rows apart, is never missing and is no feature: it decides "
        "which are kept.",
    ),
]
Generator = Annotated[
    str,
    typer.Option(
        "--generator",
        metavar="NAME",
        help="The model of step 1: trees, forest, ctree or private, or one of another package.",
    ),
]
Domains = Annotated[
    str | None,
    typer.Option(
        "--domains",
        metavar="FILE",
        help="Public domains of all columns as JSON, for --generator private.",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", metavar="E", help="Privacy budget of --generator private, e.g. 1."),
]


@dataclass(frozen=True)
class Written:
    """Names and labels as the user wrote them."""

    immutable: list[str] | None
    mutable: list[str] | None
    categorical: list[str] | None
    desired: list[str] | None
    score_class: str | None

    def parameters(self, predictor: Any, names: list[str]) -> dict[str, Any]:
        """The same as parameters of MCCE, given the columns."""
        labels = _labels(predictor)
        codes, named = split_names(self.categorical, names), {str(label): label for label in labels}
        return {
            "desired": read_desired(self.desired, labels),
            "immutable": split_names(self.immutable, names),
            "mutable": split_names(self.mutable, names),
            "kinds": dict.fromkeys(codes, "categorical") if codes else None,
            "score_class": named.get(str(self.score_class), self.score_class),
        }


@dataclass(frozen=True)
class Files:
    """The training files, and what to read of them."""

    paths: list[str]
    format_: str | None
    delimiter: str
    dtypes: list[str] | None
    drop: list[str] | None

    def read(self) -> pd.DataFrame:
        """All rows."""
        from ..files.sampling import even_blocks
        from ..files.sources import find_format
        from ..files.training import read_training

        given: dict[str, Any] = {"delimiter": self.delimiter, "dtypes": read_dtypes(self.dtypes)}
        kinds = [find_format(path, self.format_) for path in self.paths]
        pairs = zip(self.paths, kinds, strict=True)
        frames = [self._without(read_training(path, kind, **given)) for path, kind in pairs]
        if len(frames) == 1:
            return frames[0]
        joined = even_blocks(frames, max(sum(map(len, frames)), 1))
        return next((frame for frame, *_ in joined), frames[0])

    def blocks(self) -> Iterator[pd.DataFrame]:
        """The rows, block by block."""
        from ..files.training import iterate_training

        given: dict[str, Any] = {"delimiter": self.delimiter, "dtypes": read_dtypes(self.dtypes)}
        for frame in iterate_training(self.paths, self.format_, **given):
            yield self._without(frame)

    def _without(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows without the columns to drop."""
        from ..errors import SchemaError, shorten

        names = split_names(self.drop, list(rows.columns)) or []
        unknown = [name for name in names if name not in rows.columns]
        if unknown:
            raise SchemaError(
                f"--drop names columns that are not in the data: {shorten(unknown, 200)}. The "
                f"columns are {shorten(list(rows.columns), 500)}."
            )
        return rows.drop(columns=names)


def fit(
    train: Train,
    predictor: Predictor,
    output: Output,
    desired: Desired = None,
    immutable: Immutable = None,
    mutable: Mutable = None,
    rules: Rules = None,
    search: Search = "paper",
    distance: Distance = "gower",
    generator: Generator = "trees",
    domains: Domains = None,
    epsilon: Epsilon = None,
    n_samples: NSamples = None,
    n_counterfactuals: NCounterfactuals = 1,
    diversity: Diversity = None,
    score_class: ScoreClass = None,
    drop: Drop = None,
    categorical: Categorical = None,
    seed: Seed = 0,
    sample_rows: SampleRows = None,
    sample_key: SampleKey = None,
    dtype: Dtypes = None,
    format_: InputFormat = None,
    delimiter: Delimiter = ",",
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
    """Learn from training rows, and save an explainer."""
    with reported(debug=debug, as_json=as_json):
        began, key = time.monotonic(), read_key(key_file)
        files = Files(_meant(train), format_, delimiter, dtype, drop)
        check_output(output, [*files.paths, predictor, rules, domains, key_file])
        model = _load(predictor, kind, trust, classes, output_is, rate, in_flight)
        written = Written(immutable, mutable, categorical, desired, score_class)
        rows, sample = _read(files, model, written, sample_rows, sample_key, seed)
        settings: dict[str, Any] = {"constraints": rules, "search": search, "diversity": diversity}
        settings |= {"n_samples": n_samples, "n_counterfactuals": n_counterfactuals, "n_jobs": jobs}
        settings |= {"random_state": seed, "generator": _model(generator, domains, epsilon, sample)}
        settings |= {"distance": distance, "ignore_relations": generator == "private"}
        explainer = _save(_fit(model, rows, written, settings, quiet=quiet), output, key)
        _summarize(explainer, Told(output, len(rows), sample, began), as_json=as_json, quiet=quiet)


def _meant(names: list[str]) -> list[str]:
    """The files that are named, also by patterns and folders; one file keeps its name."""
    from ..files.units import find_files, is_single

    return names if len(names) == 1 and is_single(names[0]) else find_files(names)


def _read(
    files: Files,
    predictor: Any,
    written: Written,
    n_rows: int | None,
    key: str | None,
    seed: int,
) -> tuple[pd.DataFrame, TrainingSample | None]:
    """The training rows, or a sample of them if the user wants one."""
    from ..errors import ParameterError
    from ..files.sampling import sample_training

    if n_rows is None:
        if key is not None:
            raise ParameterError("--sample-key needs --sample-rows: how many rows to keep.")
        return files.read(), None
    blocks = files.blocks()
    first = list(islice(blocks, 1))
    names = [str(name) for frame in first for name in frame.columns if name != key]
    given = written.parameters(predictor, names)
    with without_prints():
        sample = sample_training(
            chain(first, blocks), n_rows, predictor=predictor, key=key, random_state=seed, **given
        )
    return sample.rows, sample


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

    given = written.parameters(predictor, [str(name) for name in rows.columns])
    verbose = can_draw() and not quiet
    explainer = MCCE(predictor, **given, verbose=verbose, **settings)
    with without_prints():
        return explainer.fit(rows).set_params(verbose=False)


def _load(*choice: Any) -> Any:
    """The predictor that the options choose."""
    from .predictors import PredictorChoice

    return PredictorChoice(*choice).load()


def _save(explainer: MCCE, path: str, key: bytes | None) -> MCCE:
    # The predictor scores the probes that are saved.
    with without_prints():
        explainer.save(path, key=key)
    return explainer


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


@dataclass(frozen=True)
class Told:
    """What the summary is of."""

    output: str
    n_train: int
    sample: TrainingSample | None
    began: float


def _summarize(explainer: MCCE, told: Told, *, as_json: bool, quiet: bool) -> None:
    fitted, sample, seconds = explainer.fitted_, told.sample, time.monotonic() - told.began
    if as_json:
        show_json(
            {
                "output": told.output,
                "n_train": told.n_train,
                "n_desired": fitted.n_desired,
                "score_of": _score_of(explainer),
                "features": [str(name) for name in fitted.schema.names],
                "immutable": [str(fitted.schema.names[at]) for at in fitted.schema.immutable],
                "seed": fitted.seed,
                "seconds": round(seconds, 3),
            }
            | ({} if sample is None else {"n_seen": sample.n_seen, "rare": sample.rare})
        )
    elif not quiet:
        of = " or ".join(map(repr, _score_of(explainer)))
        meant = f" (the score is the probability of {of})" if of else ""
        from_ = "" if sample is None else f"a sample of {sample.n_seen:,} rows: "
        kept = "" if sample is None else f" {_describe(sample)}"
        say(
            wrap(
                f"mcce: learned from {from_}{told.n_train:,} rows, {_n_desired_of(fitted)} of them "
                f"with the desired decision{printable(meant)}, in {seconds:.1f} s; saved as "
                f"{printable(told.output)}.{kept} {_kept_of_rows(fitted.generator)}"
            )
        )


def _describe(sample: TrainingSample) -> str:
    """What of a sample is complete, and what is over-represented."""
    accepted = sample.strata[sample.strata["accepted"]]
    return (
        f"All accepted rows are kept of {int(accepted['whole'].sum()):,} of {len(accepted):,} "
        f"combinations of immutable values, those with up to {sample.rare:,} of them; the other "
        "rows are a random sample, so accepted rows are over-represented."
    )


def _model(name: str, domains: str | None, epsilon: float | None, sample: Any) -> Any:
    """The generator of a name; a private one with its domains and budget."""
    from ..errors import ParameterError

    if name != "private":
        if domains is not None or epsilon is not None:
            raise ParameterError("--domains and --epsilon need --generator private.")
        return name
    from ..privacy.domains import read_domains
    from ..privacy.trees import PrivateTrees

    if domains is None or epsilon is None:
        raise ParameterError(
            "--generator private needs --domains, a JSON file with the public domain of every "
            "column, and --epsilon, its budget."
        )
    if sample is not None:
        raise ParameterError(
            "--sample-rows keeps rows by how rare they are, which the budget of --generator "
            "private does not cover. Leave it out."
        )
    return PrivateTrees(domains=read_domains(domains), epsilon=epsilon)


def _n_desired_of(fitted: Any) -> str:
    """How many training rows have the desired decision; about, if the count has noise."""
    from ..model import is_private

    return f"{'about ' if is_private(fitted.generator) else ''}{fitted.n_desired:,}"


def _kept_of_rows(generator: Any) -> str:
    """What of the training rows a saved explainer holds, as a sentence."""
    from ..model import is_private

    if not is_private(generator):
        return (
            "It holds training values: protect it like the training data (mcce inspect shows "
            "which)."
        )
    return (
        f"Its model spent epsilon {generator.ledger_.epsilon:.3g}, counts have noise, and it holds "
        "no training values. The predictor is not covered."
    )
