"""Anonymity: answers widened until at least k training people fit.

Beyond the paper; after Goethals, Sörensen and Martens, "The privacy issue of counterfactual
explanations: explanation linkage attacks". Each quasi-identifier that can change becomes a range or
a set of values. Greedy: of all wider cells the one that brings most people for its loss, as long as
the predictor still accepts a share of at least ``min_pureness`` of the values inside. Where nothing
does, the cell with the largest share is taken, and the answer is reported as not pure.

Always true: at least k training people are in the cells of every answer, which hold the answer
itself; an answer's cells do not depend on the others, their order or the size of a call.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..analysis.answers import EncodedAnswers
from ..counterfactuals.anonymous import AnonymousAnswers
from ..counterfactuals.result import Counterfactuals, with_anonymous
from ..errors import ParameterError, SchemaError, shorten
from ..explainer import MCCE, requirements_of
from ..fitted import Fitted
from ..kernels import IntArray
from ..parameters import check_count, check_real
from ..protocols import is_private
from ..relations.consequences import ComputedColumn
from ..tables.frames import FrameT
from ..tables.roles import check_names
from ..tables.schema import EncodedRows, Schema
from .anonymity_generalization import describe_cell
from .anonymity_widening import (
    AnonymityRequest,
    AnswersToWiden,
    PurenessMeter,
    WidenedAnswer,
    Widener,
)

# Rows that are scored to measure the pureness of an answer.
ROWS_TO_MEASURE = 1000
_DTYPES = {"missing": bool, "loss": float} | dict.fromkeys(
    ("feature", "kind", "low", "high", "levels", "text"), object
)


def anonymize(
    explainer: MCCE,
    result: Counterfactuals[FrameT],
    training: Any,
    *,
    anonymity: int,
    quasi_identifiers: Sequence[Hashable],
    min_pureness: float = 0.9,
    constraints: Any = None,
) -> Counterfactuals[FrameT]:
    """The result with ranges and sets of values that at least ``k`` training people fit.

    Parameters
    ----------
    explainer
        The fitted explainer that gave the result.
    result
        What :meth:`mcce.MCCE.explain` returned.
    training
        The rows that the explainer was fitted on, which it does not keep.
    anonymity
        How many training people every answer must fit, at least 2.
    quasi_identifiers
        The columns by which people could be recognised. Those that are immutable are the person's
        own in every answer, and are not widened.
    min_pureness
        The share of the combinations of widened values that the predictor must accept, where
        possible; ``measures`` of the answers says where it is not.
    constraints
        The further constraints of that call of ``explain``, if it had some.

    Returns
    -------
    Counterfactuals
        The same result, with an :class:`mcce.AnonymousAnswers` as ``anonymous``. Letters, reports
        and files of it tell the ranges and sets.

    Raises
    ------
    NotFittedError, ParameterError, SchemaError
        If the explainer is not fitted or is private, a parameter cannot have its value, or the
        result or the training rows are those of another explainer.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> exact = explainer.explain(bank.iloc[[3]])
    >>> result = anonymize(explainer, exact, bank, anonymity=3, quasi_identifiers=["salary"])
    >>> result.anonymous.frame
                  age    salary
    factual rank
    3       1      52  70 to 75
    """
    if not isinstance(explainer, MCCE):
        raise ParameterError(f"explainer must be a fitted MCCE, got {shorten(explainer)}.")
    requirements, fitted = requirements_of(explainer, constraints), explainer.fitted_
    request = _check(fitted, anonymity, quasi_identifiers, training, min_pureness)
    # A row counts as accepted by its decision alone, whatever margin the search keeps.
    requirements = replace(requirements, decision=fitted.decision)
    answers = EncodedAnswers.read(fitted.schema, result, requirements.computed)
    places = _places_to_widen(fitted.schema, request.names, requirements.computed)
    to_widen = AnswersToWiden(answers, places, requirements)
    widener = Widener(request, to_widen, PurenessMeter(to_widen, fitted.seed))
    return with_anonymous(result, _tabulate(request, widener, widener.run(), result.to_pandas()))


def _check(
    fitted: Fitted, anonymity: Any, quasi_identifiers: Any, training: Any, min_pureness: Any
) -> AnonymityRequest:
    if is_private(fitted.generator):
        raise ParameterError(
            f"The generator {type(fitted.generator).__name__} is private, but anonymity counts "
            "training people without noise. Use its answers as they are: what a private explainer "
            "answers is protected already."
        )
    schema = fitted.schema
    check_real("min_pureness", min_pureness, "a number from 0 to 1", most=1.0)
    names = _check_names(schema, quasi_identifiers)
    rows = schema.encode(training)
    check_count("anonymity", anonymity, least=2)
    if int(anonymity) > len(rows):
        raise ParameterError(
            f"anonymity={anonymity} asks for more people than training has: {len(rows)}."
        )
    _check_known(schema, rows, names)
    return AnonymityRequest(int(anonymity), names, rows, float(min_pureness))


def _check_names(schema: Schema, given: Any) -> tuple[Hashable, ...]:
    names = check_names(given, pd.DataFrame(columns=schema.names), "quasi_identifiers")
    mutable = {schema.names[position] for position in schema.mutable}
    if not mutable.intersection(names):
        raise ParameterError(
            f"quasi_identifiers must name a column that can change, got {shorten(names, 200)}. "
            "Immutable columns are the person's own in every answer and are not widened."
        )
    return tuple(names)


def _check_known(schema: Schema, rows: EncodedRows, names: Sequence[Hashable]) -> None:
    """Raise if people have values that the explainer does not know."""
    known = [name for position, name in enumerate(schema.names) if position in schema.mutable]
    for name in dict.fromkeys([*names, *known]):
        n_unknown = int((rows.codes[schema.names.index(name)] < 0).sum())
        if n_unknown:
            raise SchemaError(
                f"training has {n_unknown} of {len(rows)} rows with a value of {name!r} that the "
                "explainer has never seen. Pass the rows that it was fitted on, or some of them."
            )


def _places_to_widen(
    schema: Schema, names: Sequence[Hashable], targets: Sequence[ComputedColumn]
) -> list[int]:
    """Places, among the mutable features, of all that is widened, so that nothing gives it away.

    A column that follows from a quasi-identifier is widened too, and so is what a quasi-identifier
    follows from.
    """
    places = {place for place, at in enumerate(schema.mutable) if schema.names[at] in names}
    size = 0
    while size < len(places):
        size = len(places)
        for target in targets:
            tied = {target.place, *target.actions.tolist()}
            if target.place in places or places.intersection(target.actions.tolist()):
                places |= tied if target.place in places else {target.place}
    return sorted(places)


def _tabulate(
    request: AnonymityRequest,
    widener: Widener,
    widened: Sequence[WidenedAnswer],
    result: Counterfactuals[pd.DataFrame],
) -> AnonymousAnswers[pd.DataFrame]:
    """What was found, with the labels of the result."""
    index, names = result.frame.index, [feature.name for feature in widener.features]
    described = [
        {"feature": feature.name, **describe_cell(feature, own, cell)}
        for one in widened
        for feature, own, cell in zip(widener.features, one.own, one.cells, strict=True)
    ]
    columns = ["feature", "kind", "low", "high", "levels", "missing", "loss", "text"]
    cells = pd.DataFrame(
        {
            name: pd.Series([row[name] for row in described], dtype=_DTYPES.get(name))
            for name in columns
        }
    )
    labels = index.repeat(len(names)).to_frame(index=False)
    frame = result.frame.copy()
    for name in names:
        texts = [row["text"] for row in described if row["feature"] == name]
        frame[name] = pd.Series(texts, index=index, dtype=object)
    immutable = [
        widener.answers.rows.schema.names[at] for at in widener.answers.rows.schema.immutable
    ]
    excluded = tuple(name for name in request.names if name in immutable)
    return AnonymousAnswers(
        frame=frame,
        measures=_measure(request, widener, widened, excluded).set_axis(index),
        cells=labels.join(cells),
        k=request.k,
        quasi_identifiers=tuple(names),
        excluded=excluded,
        min_pureness=request.min_pureness,
    )


def _measure(
    request: AnonymityRequest,
    widener: Widener,
    widened: Sequence[WidenedAnswer],
    excluded: Sequence[Hashable],
) -> pd.DataFrame:
    """The measures of widened answers."""
    pureness = widener.meter.measure([(one.answer, one.cells) for one in widened], ROWS_TO_MEASURE)
    shown = [(one.answer, widener.shown_cells(one, one.cells)) for one in widened]
    of_changes = widener.meter.measure(shown, ROWS_TO_MEASURE)
    measures: dict[str, Any] = {"crowd": np.array([one.crowd for one in widened], dtype=np.int64)}
    if excluded:
        measures["crowd_alike"] = _count_alike(request, widener, widened, excluded)
    # A column with a single value loses nothing by being widened.
    varied = [feature.n_codes > 1 for feature in widener.features]
    losses = [[cell.loss for cell in one.cells] for one in widened]
    loss = np.array(losses, dtype=float).reshape(len(widened), len(varied))[:, varied]
    share = np.array([one.share for one in pureness], dtype=float)
    share_of_changes = np.array([one.share for one in of_changes], dtype=float)
    n_combinations = np.array([one.n_combinations for one in pureness], dtype=float)
    measures |= {
        "loss": loss.mean(axis=1) if any(varied) else np.zeros(len(widened)),
        "pureness": share,
        "enumerated": n_combinations <= ROWS_TO_MEASURE,
        "pureness_error": np.array([one.error for one in pureness], dtype=float),
        "n_scored": np.array([one.n_scored for one in pureness], dtype=np.int64),
        "n_combinations": n_combinations,
        "pureness_of_changes": share_of_changes,
        "pure": np.minimum(share, share_of_changes) >= request.min_pureness,
        "n_blurred": np.array(
            [
                sum(widener.blurs(one.answer, at, cell) for at, cell in enumerate(one.cells))
                for one in widened
            ],
            dtype=np.int64,
        ),
    }
    return pd.DataFrame(measures)


def _count_alike(
    request: AnonymityRequest,
    widener: Widener,
    widened: Sequence[WidenedAnswer],
    excluded: Sequence[Hashable],
) -> IntArray:
    """How many people of each crowd have the person's immutable values."""
    names, training, rows = request.training.schema.names, request.training, widener.answers.rows
    fixed = [names.index(name) for name in excluded]
    counts = []
    for one in widened:
        alike = (training.codes[fixed] == rows.codes[fixed][:, [one.answer]]).all(axis=0)
        for at, cell, feature in zip(widener.positions, one.cells, widener.features, strict=True):
            alike &= cell.inside(feature.n_codes)[training.codes[at]]
        counts.append(int(alike.sum()))
    return np.array(counts, dtype=np.int64)
