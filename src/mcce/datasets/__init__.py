"""German Credit, to try things out; the paper's other data sets are in ``mcce_lab.datasets``."""

from .german_credit import Dataset, load_german_credit

__all__ = ["Dataset", "load_german_credit"]
