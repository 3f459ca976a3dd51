"""A report as one HTML file: the run, and everybody in it. Jinja2 is imported on first use."""

from .writing import write_report

__all__ = ["write_report"]
