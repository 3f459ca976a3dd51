"""Pictures of results, with matplotlib: every function takes axes or makes them, and returns them.

They are made for light and dark backgrounds, chosen by the axes they are drawn in.
"""

from .dumbbells import plot_answer, plot_answers
from .frequencies import plot_changed_features
from .front import plot_front
from .groups import plot_group_costs
from .privacy import plot_closest_records, plot_membership
from .table import plot_table

__all__ = [
    "plot_answer",
    "plot_answers",
    "plot_changed_features",
    "plot_closest_records",
    "plot_front",
    "plot_group_costs",
    "plot_membership",
    "plot_table",
]
