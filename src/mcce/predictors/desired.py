"""What is desired of a predictor, and how it is called: settled once, before any row is scored.

Paper, footnote to the introduction: a decision is derived from the prediction f(x) by the
interval c. Takes a predictor and what the user desires; gives a :class:`Decision`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from ..errors import ParameterError, PredictorError
from ..tables.frames import PANDAS_ADAPTER, FrameAdapter
from .adapters import adapt
from .decision import Decision, Method
from .interval import Interval


def make_decision(
    predictor: Any,
    desired: Any = None,
    *,
    score_class: Hashable | None = None,
    adapter: FrameAdapter = PANDAS_ADAPTER,
) -> Decision:
    """Settle how a predictor is called and what is desired of it.

    Parameters
    ----------
    predictor
        A fitted scikit-learn estimator or pipeline, a boosting model, an ONNX session, one of
        ``mcce.predictors``, or a callable from a frame to scores.
    desired
        A tuple of two numbers (a closed interval of the score), an :class:`Interval`, or a label
        or list of labels. None: [0.5, 1] for a binary classifier.
    score_class
        The class whose probability is the score; the second one unless given.
    door
        The kind of frame that the predictor is handed.

    Examples
    --------
    >>> make_decision(lambda frame: frame["salary"] / 1000, (70, 100))
    Decision(function.call in Interval [70, 100])
    """
    wanted = _read_desired(desired)
    if isinstance(predictor, type):
        raise PredictorError(
            f"predictor is the class {predictor.__name__}. Pass a fitted instance of it."
        )
    predictor = adapt(predictor)
    has = [name for name in _METHODS if callable(getattr(predictor, name, None))]
    if not has and not callable(predictor):
        raise PredictorError(
            f"predictor must be a fitted estimator with one of {list(_METHODS)!r}, or a callable "
            f"from a frame to scores, got {type(predictor).__name__}."
        )
    if _type_of(predictor) == "classifier" or "predict_proba" in has:
        wanted, method, columns = _for_classifier(predictor, wanted, score_class, has)
        return Decision(predictor, wanted, method, columns, adapter)
    if wanted is None:
        raise ParameterError(
            "desired is needed: a regressor or a plain callable has no natural decision. "
            "Pass e.g. desired=(0.5, 1.0)."
        )
    if score_class is not None:
        raise ParameterError("score_class is only for classifiers with classes_.")
    if not isinstance(wanted, Interval):
        _check_labels(wanted, _type_of(predictor))
    return Decision(predictor, wanted, "predict" if "predict" in has else "call", (), adapter)


_METHODS: tuple[Method, ...] = ("predict_proba", "decision_function", "predict")


def _type_of(predictor: Any) -> str | None:
    """What the predictor claims to be: "classifier", "regressor", something else or nothing."""
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
                "A tuple as desired means an interval and needs two numbers, got "
                f"{desired!r}. For labels pass a list."
            )
        return Interval(*desired)
    if isinstance(desired, (list, set, frozenset)):
        if not desired:
            raise ParameterError(
                f"desired is empty, got {desired!r}: nothing could ever be desired. "
                "Name at least one label."
            )
        return tuple(desired)
    if np.isscalar(desired) and not isinstance(desired, complex):
        return (desired,)
    raise ParameterError(
        "desired must be a tuple of two numbers, an mcce.Interval, a label or a list of labels, "
        f"got {desired!r}."
    )


def _for_classifier(
    predictor: Any,
    wanted: Interval | tuple[Hashable, ...] | None,
    score_class: Hashable | None,
    has: Sequence[Method],
) -> tuple[Interval | tuple[Hashable, ...], Method, tuple[int, ...]]:
    """What is desired of a classifier, the method to call and the columns to sum."""
    classes = _classes(predictor)
    if wanted is None and score_class is None and len(classes) == 2 and _has_threshold(predictor):
        wanted = (classes[1],)
    if isinstance(wanted, tuple):
        places = _label_places(wanted, classes, score_class)
        labels = tuple(classes[place] for place in places)
        if "predict_proba" in has:
            return labels, "predict_proba", places
        return labels, "predict", ()
    if score_class is None and len(classes) != 2:
        raise ParameterError(
            f"The predictor has {len(classes)} classes {classes!r}. Name the desired ones "
            "(desired=[...]), or the one whose probability is the score (score_class=...)."
        )
    place = 1 if score_class is None else _place(score_class, classes, "score_class")
    if "predict_proba" in has:
        return wanted or Interval(0.5, 1.0), "predict_proba", (place,)
    if place != 1 or len(classes) != 2:
        raise ParameterError(
            f"The predictor gives no probabilities, so score_class={score_class!r} has no score. "
            "Pass it as desired instead."
        )
    if "decision_function" in has:
        return wanted or Interval(0.0, math.inf, "neither"), "decision_function", ()
    if wanted is not None:
        raise ParameterError(
            f"The predictor gives labels only, so no score can be in {wanted!r}. "
            f"Pass one or more of its classes {classes!r} as desired."
        )
    return (classes[1],), "predict", ()


def _has_threshold(predictor: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, decides by a threshold of its own."""
    last = predictor.steps[-1][1] if hasattr(predictor, "steps") else predictor
    fixed = hasattr(last, "threshold") and hasattr(last, "pos_label")
    moved = getattr(last, "get_probability_threshold", lambda: 0.5)() != 0.5
    return fixed or hasattr(last, "best_threshold_") or moved


def _label_places(
    labels: tuple[Hashable, ...], classes: list[Hashable], score_class: Hashable | None
) -> tuple[int, ...]:
    """Places of the desired labels among the classes."""
    if score_class is not None:
        raise ParameterError(
            f"score_class={score_class!r} goes with an interval of scores, but desired names "
            f"labels {list(labels)!r}. Leave score_class out."
        )
    # In the order of the classes, since the order of a sum shows in its last bit.
    places = tuple(sorted({_place(label, classes, "desired") for label in labels}))
    if len(places) == len(classes):
        raise ParameterError(
            f"desired names all classes of the predictor, {classes!r}, so that everything is "
            "desired. Leave one out, or pass a tuple of two numbers for an interval of scores."
        )
    return places


def _classes(predictor: Any) -> list[Hashable]:
    classes = getattr(predictor, "classes_", None)
    if classes is None:
        raise PredictorError(
            f"The predictor {type(predictor).__name__} is a classifier without classes_: it is "
            "not fitted, or it needs to be wrapped in a callable that gives one score per row."
        )
    if len({np.ndim(label) for label in classes} - {0}):
        raise PredictorError(
            f"The predictor {type(predictor).__name__} has several outputs, got classes_ "
            f"{classes!r}. Wrap the one you want in a callable that gives one score per row."
        )
    return list(np.asarray(classes).tolist())


def _check_labels(labels: tuple[Hashable, ...], type_of: str | None) -> None:
    """Labels for a predictor that does not tell its classes."""
    fractional = [x for x in labels if isinstance(x, float) and not x.is_integer()]
    if type_of == "regressor" or fractional:
        why = "the predictor is a regressor" if type_of == "regressor" else "a label is whole"
        raise ParameterError(
            f"desired names labels {list(labels)!r}, but {why}. For an interval of scores pass a "
            "tuple of two numbers, e.g. desired=(0.5, 1.0)."
        )
    unhashable = [label for label in labels if not isinstance(label, Hashable)]
    if unhashable:
        raise ParameterError(f"desired must list plain labels, got {unhashable[0]!r} among them.")


def _place(label: Hashable, classes: list[Hashable], argument: str) -> int:
    if label not in classes:
        raise ParameterError(
            f"{argument} names {label!r}, which is not among the predictor's classes {classes!r}. "
            "For an interval of scores pass a tuple of two numbers."
        )
    return classes.index(label)
