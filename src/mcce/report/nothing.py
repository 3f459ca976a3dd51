"""Why nothing would have altered a decision, in the words of customers.

The reasons in ``result.people`` are for data scientists: they name parameters and count rows. Each
belongs to one of a few kinds, and each kind has a sentence in every language.

Always true: "nothing you can change" is said only where that is proven, or where no case was ever
decided as desired; otherwise letters say that nothing was found.
"""

from __future__ import annotations

import re

from ..search.plan import NO_DESIRED
from ..search.sampling import STOPPED, TOO_FAR

# What a technical reason holds, and the key of the sentence; the first that matches counts. What
# was tried and gives an answer says best what stood in the way.
_KINDS: tuple[tuple[str, str], ...] = (
    (re.escape(STOPPED), "unfinished"),
    (re.escape(NO_DESIRED), "nobody"),
    (r"^proven: ", "proven"),
    (r"(allow_implausible=True|min_plausibility=[^ ]+) gives one", "unrealistic"),
    (r"lifting (max_sparsity=|the constraint 'max_changes)", "too_many"),
    (r"lifting max_distance=", "too_far"),
    (r"lifting the constraint", "ruled_out"),
    (r"lifting |that max_evaluations=", "unknown"),
    (re.escape(TOO_FAR), "too_far"),
    (r"excluded by [^;]*min_plausibility=", "unrealistic"),
    (r"excluded by [^;]*max_(sparsity=|changes )", "too_many"),
    (r"excluded by [^;]*max_distance=", "too_far"),
    (r"excluded by ", "ruled_out"),
    (r"no valid candidate|refused (it|all of them)|no score has", "declined"),
)


def kind_of(reason: str) -> str:
    """The kind of a reason why somebody has no answer.

    Examples
    --------
    >>> kind_of("no valid candidate among 100 draws (87 distinct, 87 allowed)")
    'declined'
    >>> kind_of("the method returned no answer")
    'unknown'
    """
    for pattern, kind in _KINDS:
        if re.search(pattern, reason):
            return kind
    return "unknown"
