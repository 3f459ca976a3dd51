"""Results for people who read rather than program: letters, pictures and reports."""

from .audit_page import write_privacy_report
from .comparison_page import write_comparison
from .labels import FeatureLabel, Labels
from .language import languages
from .letters import Letters, write_letters
from .report_page import write_report

__all__ = [
    "FeatureLabel",
    "Labels",
    "Letters",
    "languages",
    "write_comparison",
    "write_letters",
    "write_privacy_report",
    "write_report",
]
