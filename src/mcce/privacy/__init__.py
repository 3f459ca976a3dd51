"""Protecting training people: learning with noise, auditing releases, and anonymous answers.

Paper, section "Privacy", which counts copies and says that privacy needs more. An audit finds
leaks; that it finds none is no proof. docs/user_guide/privacy.md explains each figure.
Each name is imported when it is first used: private trees need no audit, and audits no trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caching import attribute_loader

if TYPE_CHECKING:
    from .anonymity import anonymize
    from .attacks import class_sizes
    from .auditing import audit, audit_rows, split_and_audit
    from .result import DPBound, Figure, PrivacyAudit, dp_bound

__all__ = [
    "DPBound",
    "Figure",
    "PrivacyAudit",
    "anonymize",
    "audit",
    "audit_rows",
    "class_sizes",
    "dp_bound",
    "split_and_audit",
]

_MODULES = {
    "DPBound": "result",
    "Figure": "result",
    "PrivacyAudit": "result",
    "anonymize": "anonymity",
    "audit": "auditing",
    "audit_rows": "auditing",
    "class_sizes": "attacks",
    "dp_bound": "result",
    "split_and_audit": "auditing",
}

__getattr__ = attribute_loader(__name__, _MODULES)


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted(__all__)
