"""Protecting training people: learning with noise, auditing releases, and anonymous answers.

Paper, section "Privacy", which counts copies and says that privacy needs more. An audit finds
leaks; that it finds none is no proof. docs/user_guide/privacy.md explains each figure.
Each name is imported when it is first used: private trees need no audit, and audits no trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..caching import attribute_loader

if TYPE_CHECKING:
    from .anonymity import anonymize as anonymize
    from .audit_attacks import class_sizes as class_sizes
    from .audit_result import DPBound as DPBound
    from .audit_result import Figure as Figure
    from .audit_result import PrivacyAudit as PrivacyAudit
    from .audit_result import dp_bound as dp_bound
    from .auditing import audit as audit
    from .auditing import audit_rows as audit_rows
    from .auditing import split_and_audit as split_and_audit

_MODULES = {
    "DPBound": "audit_result",
    "Figure": "audit_result",
    "PrivacyAudit": "audit_result",
    "anonymize": "anonymity",
    "audit": "auditing",
    "audit_rows": "auditing",
    "class_sizes": "audit_attacks",
    "dp_bound": "audit_result",
    "split_and_audit": "auditing",
}
__all__ = [*_MODULES]

__getattr__ = attribute_loader(__name__, _MODULES)


def __dir__() -> list[str]:
    """All public names, whether they are imported yet or not."""
    return sorted(__all__)
