"""The result of an explanation, and how any method makes one."""

from .anonymous import AnonymousAnswers, FrameT
from .people import ALREADY, ANSWERED, UNANSWERED, Reason, ReasonKind, ResultRows
from .result import (
    Counterfactuals,
    consequences_of,
    make_counterfactuals,
    native_rows,
    native_table,
    number_people,
    take_people,
    with_anonymous,
)

__all__ = [
    "ALREADY",
    "ANSWERED",
    "UNANSWERED",
    "AnonymousAnswers",
    "Counterfactuals",
    "FrameT",
    "Reason",
    "ReasonKind",
    "ResultRows",
    "consequences_of",
    "make_counterfactuals",
    "native_rows",
    "native_table",
    "number_people",
    "take_people",
    "with_anonymous",
]
