"""The result of an explanation, and how any method makes one."""

from .making import make_counterfactuals
from .people import ALREADY, ANSWERED, UNANSWERED
from .result import Counterfactuals, FrameT, native_rows, native_table
from .rows import ResultRows
from .taking import number_people, take_people

__all__ = [
    "ALREADY",
    "ANSWERED",
    "UNANSWERED",
    "Counterfactuals",
    "FrameT",
    "ResultRows",
    "make_counterfactuals",
    "native_rows",
    "native_table",
    "number_people",
    "take_people",
]
