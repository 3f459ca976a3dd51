"""A report as one HTML file: the run, and everybody in it. Jinja2 is imported on first use."""

from .provenance import Provenance
from .writing import write_report

__all__ = ["Provenance", "write_report"]
