"""The result of an explanation, and how any method makes one."""

from .anonymous import AnonymousAnswers, with_anonymous
from .making import make_counterfactuals
from .native import FrameT, native_rows, native_table
from .people import ALREADY, ANSWERED, UNANSWERED
from .result import Counterfactuals
from .rows import ResultRows
from .taking import number_people, take_people

__all__ = [
    "ALREADY",
    "ANSWERED",
    "UNANSWERED",
    "AnonymousAnswers",
    "Counterfactuals",
    "FrameT",
    "ResultRows",
    "make_counterfactuals",
    "native_rows",
    "native_table",
    "number_people",
    "take_people",
    "with_anonymous",
]
