"""Whether released rows tell who was in the training data: an audit by known attacks.

Paper, section "Privacy", which counts copies and says that privacy needs more. An audit finds
leaks; that it finds none is no proof. docs/user_guide/privacy.md explains each figure.
"""

from .auditing import audit, audit_rows, split_and_audit
from .bound import DPBound, dp_bound
from .linkage import class_sizes
from .result import Figure, PrivacyAudit

__all__ = [
    "DPBound",
    "Figure",
    "PrivacyAudit",
    "audit",
    "audit_rows",
    "class_sizes",
    "dp_bound",
    "split_and_audit",
]
