"""Data to try the method on; only German Credit comes with the package."""

from .german_credit import Dataset, load_german_credit

__all__ = ["Dataset", "load_german_credit"]
