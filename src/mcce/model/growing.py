"""The parameters of a chain of trees, checked: when its trees stop."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from ..errors import ParameterError, shorten
from ..kernels import Growth

WHOLE = {"min_samples_leaf": 1, "min_samples_split": 2, "max_depth": 1, "max_inputs": 1}
NO_LIMIT = ("max_depth", "max_inputs")


def growth_of(chain: Any, n_features: int) -> Growth:
    """When the trees of a chain stop.

    Parameters
    ----------
    chain
        A ``TreeChain``.
    n_features
        Number of columns; the decision comes after them.

    Returns
    -------
    Growth
        The rules for growing.

    Raises
    ------
    ParameterError
        For the first parameter that cannot work.
    """
    for name, least in WHOLE.items():
        value = getattr(chain, name)
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not (whole and value >= least) and not (name in NO_LIMIT and value is None):
            got = shorten(value)
            raise ParameterError(f"{name} must be a whole number >= {least}, got {got}.")
    if chain.decisions not in ((True,), (False, True), (True, False)):
        raise ParameterError(
            f"decisions must be (True,) or (False, True), got {shorten(chain.decisions)}."
        )
    if not isinstance(chain.condition_on_decision, bool):
        got = shorten(chain.condition_on_decision)
        raise ParameterError(f"condition_on_decision must be True or False, got {got}.")
    return Growth(
        min_samples_leaf=chain.min_samples_leaf,
        min_samples_split=chain.min_samples_split,
        max_depth=chain.max_depth,
        decision_column=n_features,
        grow_undesired=False in chain.decisions,
    )
