"""Pictures of results, with matplotlib: every function takes axes or makes them, and returns them.

They are made for light and dark backgrounds, chosen by the axes they are drawn in.
"""

from .audits import plot_closest_records, plot_membership
from .person import plot_answer, plot_answers
from .summaries import plot_changed_features, plot_front, plot_group_costs

__all__ = [
    "plot_answer",
    "plot_answers",
    "plot_changed_features",
    "plot_closest_records",
    "plot_front",
    "plot_group_costs",
    "plot_membership",
]
