"""Which decision is desired, and how the predictor is called: settled before any row is scored.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. Takes a predictor and the user's ``desired``; gives a :class:`Decision`.

Scikit-learn estimators, their pipelines and the boosting libraries keep the names of the columns
they were trained with. Columns beyond them cannot change a decision: mutable ones are a mistake,
immutable ones may condition the draws.

Always true: a predictor without names gets every column, as does one that knows them all.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from ..errors import ParameterError, PredictorError, SchemaError, did_you_mean, shorten
from ..tables.frames import PANDAS_ADAPTER, ArrayAdapter, FrameAdapter
from ..tables.schema import Schema
from .calls import adapt, known_columns, list_labels, written_name
from .decision import Decision, Interval, Method, has_threshold

_METHODS: tuple[Method, ...] = ("predict_proba", "decision_function", "predict")


def make_decision(
    predictor: Any,
    desired: Any = None,
    *,
    score_class: Hashable | None = None,
    adapter: FrameAdapter = PANDAS_ADAPTER,
) -> Decision:
    """The decision that is desired of a predictor.

    Parameters
    ----------
    predictor
        A fitted scikit-learn estimator or pipeline, a boosting model, an ONNX session, a wrapper
        of ``mcce.predictors``, or a callable from a frame to scores.
    desired
        A tuple of two numbers (a closed interval of scores), an :class:`Interval`, a label or a
        list of labels. None means the second class of a binary classifier: as its own threshold
        decides if it has one, otherwise a probability of at least 0.5, or a positive
        ``decision_function``.
    score_class
        The class whose probability is the score; None for the second of two.
    adapter
        Gives the predictor the type of frame that the training data have.

    Returns
    -------
    Decision
        The predictor with the method to call and the desired scores or labels.

    Raises
    ------
    PredictorError
        If ``predictor`` is not a fitted predictor with one output.
    ParameterError
        If ``desired`` or ``score_class`` does not fit the predictor.

    Examples
    --------
    >>> make_decision(lambda frame: frame["salary"] / 1000, (70, 100))
    Decision(function.call in Interval [70, 100])
    """
    wanted = _read_desired(desired)
    _check_hashable((score_class, *(wanted if isinstance(wanted, tuple) else ())))
    if isinstance(predictor, type):
        raise PredictorError(
            f"predictor is the class {predictor.__name__}. Pass a fitted instance of it."
        )
    predictor = adapt(predictor)
    has = [name for name in _METHODS if callable(getattr(predictor, name, None))]
    if not has and not callable(predictor):
        raise PredictorError(
            f"predictor must be a fitted estimator with one of the methods {list(_METHODS)!r}, or "
            f"a callable from a frame to scores, got {type(predictor).__name__}."
        )
    if _type_of(predictor) == "classifier" or "predict_proba" in has:
        wanted, method, columns = _for_classifier(predictor, wanted, score_class, has)
        return Decision(predictor, wanted, method, columns, adapter)
    if wanted is None:
        raise ParameterError(
            "desired is required for a regressor or a callable. Pass the interval of desired "
            "scores, e.g. desired=(0.5, 1.0)."
        )
    if score_class is not None:
        raise ParameterError(
            f"score_class is only for classifiers with classes_, got {shorten(score_class)}. "
            "Leave it out."
        )
    if not isinstance(wanted, Interval):
        _check_labels(wanted, _type_of(predictor))
    return Decision(predictor, wanted, "predict" if "predict" in has else "call", (), adapter)


def _type_of(predictor: Any) -> str | None:
    """The predictor's own statement of its type, such as "classifier"; None if there is none."""
    if hasattr(predictor, "__sklearn_tags__"):
        return str(get_tags(predictor).estimator_type)
    return getattr(predictor, "_estimator_type", None)


def _read_desired(desired: Any) -> Interval | tuple[Hashable, ...] | None:
    """An interval or a tuple of labels."""
    if desired is None or isinstance(desired, Interval):
        return desired
    if isinstance(desired, tuple):
        numbers = [end for end in desired if isinstance(end, Real) and not isinstance(end, bool)]
        if len(desired) != 2 or len(numbers) != 2:
            raise ParameterError(
                "A tuple passed as desired is an interval and needs two numbers, got "
                f"{shorten(desired)}. For labels, pass a list."
            )
        return Interval(*desired)
    if isinstance(desired, (list, set, frozenset)):
        if not desired:
            raise ParameterError(f"desired must name at least one label, got {shorten(desired)}.")
        return tuple(desired)
    if np.isscalar(desired) and not isinstance(desired, complex):
        return (desired,)
    raise ParameterError(
        "desired must be a tuple of two numbers, an mcce.Interval, a label or a list of labels, "
        f"got {shorten(desired)}."
    )


def _for_classifier(
    predictor: Any,
    wanted: Interval | tuple[Hashable, ...] | None,
    score_class: Hashable | None,
    has: Sequence[Method],
) -> tuple[Interval | tuple[Hashable, ...], Method, tuple[int, ...]]:
    """Desired labels or scores of a classifier, the method to call and the columns to sum."""
    classes = _classes(predictor)
    if wanted is None and score_class is None and len(classes) == 2 and has_threshold(predictor):
        wanted = (classes[1],)
    if isinstance(wanted, tuple):
        positions = _label_positions(wanted, classes, score_class)
        labels = tuple(classes[position] for position in positions)
        if "predict_proba" in has:
            return labels, "predict_proba", positions
        return labels, "predict", ()
    if score_class is None and len(classes) != 2:
        raise ParameterError(
            f"The predictor has {len(classes)} classes {shorten(classes, 200)}. Name the desired "
            "ones (desired=[...]), or the class whose probability is the score (score_class=...)."
        )
    position = 1 if score_class is None else _position(score_class, classes, "score_class")
    if "predict_proba" in has:
        return wanted or Interval(0.5, 1.0), "predict_proba", (position,)
    if position != 1 or len(classes) != 2:
        raise ParameterError(
            f"The predictor has no probabilities, so score_class={shorten(score_class)} has no "
            "score. Pass the class as desired instead."
        )
    if "decision_function" in has:
        return wanted or Interval(0.0, math.inf, "neither"), "decision_function", ()
    if wanted is not None:
        raise ParameterError(
            f"The predictor returns labels only, so no score can be in {wanted!r}. "
            f"Pass one or more of its classes {shorten(classes, 200)} as desired."
        )
    return (classes[1],), "predict", ()


def _label_positions(
    labels: tuple[Hashable, ...], classes: list[Hashable], score_class: Hashable | None
) -> tuple[int, ...]:
    """Positions of the desired labels among the classes."""
    if score_class is not None:
        raise ParameterError(
            f"score_class={shorten(score_class)} needs an interval of scores, but desired names "
            f"the labels {shorten(list(labels))}. Leave score_class out."
        )
    # In the order of the classes: the order of a sum changes its last bit.
    positions = tuple(sorted({_position(label, classes, "desired") for label in labels}))
    if len(positions) == len(classes):
        raise ParameterError(
            f"desired names all classes of the predictor, {shorten(classes, 200)}, so every row "
            "would be valid. Leave one out, or pass a tuple of two numbers for an interval of "
            "scores."
        )
    return positions


def _classes(predictor: Any) -> list[Hashable]:
    classes = getattr(predictor, "classes_", None)
    if classes is None:
        raise PredictorError(
            f"The predictor {type(predictor).__name__} is a classifier without classes_: it is "
            "not fitted. Fit it, or wrap it in a callable that returns one score per row."
        )
    if len({np.ndim(label) for label in classes} - {0}):
        raise PredictorError(
            f"The predictor {type(predictor).__name__} has several outputs, got classes_ "
            f"{shorten(classes, 200)}. Wrap one of them in a callable that returns one score per "
            "row."
        )
    return list_labels(np.asarray(classes))


def _check_labels(labels: tuple[Hashable, ...], type_of: str | None) -> None:
    """Raise for labels that cannot be those of a predictor without classes_."""
    fractional = [x for x in labels if isinstance(x, float) and not x.is_integer()]
    if type_of == "regressor" or fractional:
        regressor = type_of == "regressor"
        why = "the predictor is a regressor" if regressor else "a label cannot be a fraction"
        raise ParameterError(
            f"desired names the labels {shorten(list(labels))}, but {why}. For an interval of "
            "scores, pass a tuple of two numbers, e.g. desired=(0.5, 1.0)."
        )


def _check_hashable(labels: Iterable[Any]) -> None:
    for label in labels:
        # Tuples of lists and signaling NaN have a hash that raises.
        try:
            hash(label)
        except TypeError:
            raise ParameterError(
                "desired and score_class must be labels such as strings or numbers, got "
                f"{shorten(label)}."
            ) from None


def _position(label: Hashable, classes: list[Hashable], argument: str) -> int:
    if label not in classes:
        raise ParameterError(
            f"{argument} names {shorten(label)}, which is not among the predictor's classes "
            f"{shorten(classes, 200)}.{did_you_mean(label, classes)} For an interval of scores, "
            "pass a tuple of two numbers."
        )
    return classes.index(label)


def decision_on(
    schema: Schema, predictor: Any, desired: Any, score_class: Hashable | None
) -> Decision:
    """The desired decision of a predictor on rows of a schema."""
    decision = make_decision(predictor, desired, score_class=score_class, adapter=schema.adapter)
    known = None if isinstance(schema.adapter, ArrayAdapter) else known_columns(decision.predictor)
    if known is None:
        return decision
    by_name = {written_name(decision.predictor, name): name for name in schema.names}
    surplus = [name for written, name in by_name.items() if written not in set(known)]
    mutable = {schema.names[position] for position in schema.mutable}
    unknown = [name for name in surplus if name in mutable]
    lacking = [name for name in known if name not in by_name]
    if unknown:
        trained = f" It knows {shorten(lacking, 500)}, which the data lack." if lacking else ""
        raise SchemaError(
            f"The predictor was trained without the columns {shorten(unknown, 500)}, so changing "
            f"them cannot change its decision, but they are mutable.{trained} Leave them out of "
            "the data, or make them immutable: the draws may then depend on them."
        )
    if not surplus or lacking:
        return decision
    return replace(decision, names=tuple(by_name[name] for name in known))
