"""``mcce fit``: learn from training rows in a file, and save the explainer."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, SchemaError, did_you_mean, shorten
from ..explainer import MCCE
from ..files.partitions import find_files, is_single
from ..files.sources import find_format
from ..files.training import read_training
from ..files.training_sample import TrainingSample, even_blocks, sample_training
from ..flags import describe_outcome
from ..predictors.calls import adapt
from ..predictors.decision import Interval
from ..privacy.private_domains import read_domains
from ..privacy.private_trees import PrivateTrees
from ..protocols import is_private
from ..runtime.files import replacing, writing
from ..runtime.progress import without_prints
from ..survival.committee import Survival, are_retrained
from .arguments import FitArguments, inputs_of
from .inputs import (
    check_output_path,
    dialect_of,
    read_dtypes,
    read_key,
    show_dialect,
    split_names,
)
from .predictors import load_predictor, predictor_files
from .terminal import can_draw, conclude

NUMBER = r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)"
# How much a person's answers differ, unless told otherwise.
DIVERSITY = 0.5
INTERVAL = re.compile(rf"(?P<low>{NUMBER})?:(?P<high>{NUMBER})?")


def run(arguments: FitArguments) -> None:
    """Learn from training rows, and save an explainer."""
    began, key = time.monotonic(), read_key(arguments.run.key_file)
    names = arguments.train
    # One file keeps its name.
    paths = names if len(names) == 1 and is_single(names[0]) else find_files(names)
    check_output_path(arguments.output, [*paths, *inputs_of(arguments)])
    predictor = load_predictor(arguments.predictor)
    check_output_path(arguments.output, map(str, predictor_files(arguments.predictor)))
    survival = _survival(arguments, predictor, paths)
    labels = None
    if arguments.sample_rows is None:
        rows, sample = _read(arguments, paths), None
        if arguments.outcome is not None:
            labels = _take_labels(arguments.outcome, rows)
    else:
        sample = _sample(arguments, paths, predictor, arguments.sample_rows)
        rows = sample.rows
    # Answers of the exact search are simply the best.
    usual = arguments.diversity is None and arguments.search != "exact"
    explainer = MCCE(
        predictor,
        **_parameters(arguments, predictor, [str(name) for name in rows.columns]),
        constraints=arguments.rules,
        search=arguments.search,  # type: ignore[arg-type]
        distance=arguments.distance,
        generator=_make_generator(arguments, sample),
        ignore_relations=arguments.generator == "private",
        n_samples=arguments.n_samples,
        n_counterfactuals=arguments.n_counterfactuals,
        diversity=DIVERSITY if usual else arguments.diversity,
        survival=survival,
        random_state=arguments.seed,
        n_jobs=arguments.run.jobs,
        verbose=can_draw() and not arguments.run.quiet,
    )
    with without_prints():
        explainer.fit(rows, labels).set_params(verbose=False)
        outcome = describe_outcome(explainer.fitted_.flags or (), explainer.schema_)
        if outcome and not arguments.allow_outcome:
            raise SchemaError(f"{outcome} --drop leaves it out, --allow-outcome keeps it.")
        # The predictor scores the probes that are saved.
        explainer.save(arguments.output, key=key)
        _keep_retrained(arguments, explainer)
    _summarize(arguments, explainer, len(rows), sample, time.monotonic() - began)


def _survival(arguments: FitArguments, predictor: Any, paths: Sequence[str]) -> Survival | None:
    """How answers are to last; None if nothing is said of it."""
    named: dict[str, Any] = {
        "n_models": arguments.survival_models,
        "samples": arguments.survival_samples,
        "time": arguments.survival_time,
    }
    given = {name: value for name, value in named.items() if value is not None}
    outcome, retrained = arguments.outcome, arguments.retrained
    if arguments.survival is None:
        if given or outcome is not None or retrained is not None:
            raise ParameterError(
                "--outcome, --retrained and options that begin with --survival- need --survival: "
                "the share of models trained anew that should accept each answer, e.g. 0.9."
            )
        return None
    if outcome is not None and arguments.sample_rows is not None:
        raise ParameterError(
            "--outcome does not go with --sample-rows, which would train models on a sample that "
            "has more accepted rows than there are. Leave one of them out."
        )
    if are_retrained(predictor, outcome, None) != (retrained is not None):
        raise ParameterError(
            "--retrained, the file of the models trained anew, goes with --outcome and a predictor "
            "of scikit-learn. Give it with both, and only then."
        )
    if retrained is not None:
        if Path(retrained).resolve() == Path(arguments.output).resolve():
            raise ParameterError("--retrained and --output must be two files. Name another one.")
        read = [*paths, *inputs_of(arguments), *map(str, predictor_files(arguments.predictor))]
        check_output_path(retrained, [arguments.output, *read])
    return Survival(arguments.survival, **given)


def _take_labels(outcome: str, rows: pd.DataFrame) -> pd.Series[Any]:
    """The column of labels, which is no longer among the rows."""
    split_names("--outcome", [outcome], list(rows.columns))
    labels = rows.pop(outcome)
    if labels.isna().any():
        raise SchemaError(
            f"--outcome {shorten(outcome, 200)} has no label in {int(labels.isna().sum()):,} rows. "
            "Leave these rows out."
        )
    return labels


def _keep_retrained(arguments: FitArguments, explainer: MCCE) -> None:
    """Write the models that were trained anew, which the file of the explainer does not hold."""
    # Without a surrogate, of too few rows, nothing was trained.
    if arguments.retrained is not None and explainer.retrained_ is not None:
        from joblib import dump

        path = Path(arguments.retrained)
        with writing(path), replacing(path) as stream:
            dump(explainer.retrained_, stream)


def _read(arguments: FitArguments, paths: Sequence[str]) -> pd.DataFrame:
    """All training rows."""
    if arguments.sample_key is not None:
        raise ParameterError("--sample-key needs --sample-rows: how many rows to keep.")
    frames = list(_frames(arguments, paths))
    if len(frames) == 1:
        return frames[0]
    # One block of all rows: their dtypes agree.
    joined = even_blocks(frames, max(sum(map(len, frames)), 1))
    return next((frame for frame, *_ in joined), frames[0])


def _sample(
    arguments: FitArguments, paths: Sequence[str], predictor: Any, n_rows: int
) -> TrainingSample:
    """A sample of the training rows."""
    key, blocks = arguments.sample_key, _frames(arguments, paths)
    first = list(islice(blocks, 1))
    names = [str(name) for frame in first for name in frame.columns if name != key]
    with without_prints():
        return sample_training(
            chain(first, blocks),
            n_rows,
            predictor=predictor,
            key=key,
            random_state=arguments.seed,
            **_parameters(arguments, predictor, names),
        )


def _frames(arguments: FitArguments, paths: Sequence[str]) -> Iterator[pd.DataFrame]:
    """The training rows of each file, whole or in blocks, without the columns of --drop."""
    table, whole = arguments.table, arguments.sample_rows is None
    dtypes = read_dtypes(table.dtypes)
    domains = arguments.domains if whole and arguments.generator == "private" else None
    if domains is not None and all(find_format(p, table.format) == "csv" for p in paths):
        # Domains say what a text stands for; pandas would guess it from all cells of a column.
        dtypes = dict.fromkeys(read_domains(domains), "str") | dtypes
    options = paths, table.format, dialect_of(table), dtypes
    note = partial(show_dialect, table=table, quiet=arguments.run.quiet)
    for rows in read_training(*options, whole=whole, note=note):
        yield rows.drop(columns=split_names("--drop", arguments.drop, list(rows.columns)) or [])


def _parameters(arguments: FitArguments, predictor: Any, names: list[str]) -> dict[str, Any]:
    """Parameters of MCCE that hold names of columns and labels of the predictor."""
    labels, codes = _labels(predictor), split_names("--categorical", arguments.categorical, names)
    named, score_class = {str(label): label for label in labels}, arguments.score_class
    return {
        "desired": _read_desired(arguments.desired, labels),
        "immutable": split_names("--immutable", arguments.immutable, names),
        "mutable": split_names("--mutable", arguments.mutable, names),
        "kinds": dict.fromkeys(codes, "categorical") if codes else None,
        "score_class": named.get(str(score_class), score_class),
    }


def _read_desired(texts: Sequence[str] | None, classes: Collection[Any]) -> Any:
    """The desired scores, an interval such as ``0.5:``, or the desired labels.

    Examples
    --------
    >>> _read_desired(["0.5:"], []), _read_desired([":0.2"], []), _read_desired(["1"], [0, 1])
    (Interval [0.5, inf], Interval [-inf, 0.2], [1])
    >>> _read_desired(["good", "fair"], ["bad", "fair", "good"])
    ['good', 'fair']
    """
    if not texts:
        return None
    named = {str(label): label for label in classes}
    if len(texts) == 1 and texts[0] not in named:
        interval = _interval(texts[0])
        if interval is not None:
            return interval
    unknown = [text for text in texts if named and text not in named]
    if unknown:
        raise ParameterError(
            f"--desired must name labels of the predictor, which are {shorten([*named], 200)}, or "
            "one interval of scores such as 0.5: (at least), :0.2 (at most) or 0.2:0.8, got "
            f"{shorten(unknown[0])}.{did_you_mean(unknown[0], list(named))}"
        )
    return [named.get(text, text) for text in texts]


def _interval(text: str) -> Interval | None:
    ends = INTERVAL.fullmatch(text.strip())
    if ends is None or text.strip() == ":":
        return None
    return Interval(float(ends["low"] or "-inf"), float(ends["high"] or "inf"))


def _make_generator(arguments: FitArguments, sample: TrainingSample | None) -> Any:
    """The generator, by name; a private one with its domains and budget."""
    name, domains, epsilon = arguments.generator, arguments.domains, arguments.epsilon
    if name != "private":
        if domains is not None or epsilon is not None:
            raise ParameterError("--domains and --epsilon need --generator private.")
        return name
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


def _labels(predictor: Any) -> list[Any]:
    """The labels that a predictor names."""
    found: list[Any] = np.asarray(getattr(adapt(predictor), "classes_", ())).tolist()
    return found


def _summarize(
    arguments: FitArguments,
    explainer: MCCE,
    n_train: int,
    sample: TrainingSample | None,
    seconds: float,
) -> None:
    """Show what was learned, and what the file holds of it."""
    fitted, labels = explainer.fitted_, _labels(explainer.predictor)
    # The classes whose probability is the score, if the predictor names them.
    score_of = [str(labels[at]) for at in fitted.decision.columns if at < len(labels)]
    content = {
        "output": arguments.output,
        "n_train": n_train,
        "n_desired": fitted.n_desired,
        "score_of": score_of,
        "features": [str(name) for name in fitted.schema.names],
        "immutable": [str(fitted.schema.names[at]) for at in fitted.schema.immutable],
        "seed": fitted.seed,
        "seconds": round(seconds, 3),
    }
    if sample is not None:
        content |= {"n_seen": sample.n_seen, "rare": sample.rare}
    classes = " or ".join(map(repr, score_of))
    score = f" (the score is the probability of {classes})" if classes else ""
    origin = "" if sample is None else f"a sample of {sample.n_seen:,} rows: "
    # Counts of a private generator have noise.
    about = "about " if is_private(fitted.generator) else ""
    text = (
        f"learned from {origin}{n_train:,} rows, {about}{fitted.n_desired:,} of them with the "
        f"desired decision{score}, in {seconds:.1f} s; saved as {arguments.output}."
    )
    kept = "" if sample is None else _describe(sample)
    kept += _describe_models(arguments, explainer)
    conclude(arguments.run, content, f"{text}{kept}{_kept_of_rows(fitted.generator)}")


def _describe_models(arguments: FitArguments, explainer: MCCE) -> str:
    """By which models answers are to last."""
    lasting = explainer.fitted_.lasting
    if lasting is None:
        return ""
    if lasting.trees is not None:
        return (
            f" {len(lasting.trees.trees)} boosted trees stand for models trained anew: they "
            "learned from what the predictor said."
        )
    return (
        f" {len(explainer.retrained_ or ())} models were trained anew and are in "
        f"{arguments.retrained}, which other commands need as --retrained."
    )


def _describe(sample: TrainingSample) -> str:
    """Which rows a sample has all of, and which are over-represented."""
    accepted = sample.strata[sample.strata["accepted"]]
    return (
        f" All accepted rows are kept of {int(accepted['whole'].sum()):,} of {len(accepted):,} "
        f"combinations of immutable values, those with up to {sample.rare:,} of them; the other "
        "rows are a random sample, so accepted rows are over-represented."
    )


def _kept_of_rows(generator: Any) -> str:
    """A sentence on the training values that a saved explainer holds."""
    if not is_private(generator):
        return (
            " It holds training values: protect it like the training data (mcce inspect shows "
            "which)."
        )
    spent = generator.ledger_["epsilon"].sum()
    return (
        f" Its model spent epsilon {spent:.3g}, counts have noise, and it holds no training "
        "values. The predictor is not covered."
    )
