"""A report as one HTML file: the run, and everybody in it. Jinja2 is imported on first use."""

from .audit_page import write_privacy_report
from .report_page import write_report

__all__ = ["write_privacy_report", "write_report"]
