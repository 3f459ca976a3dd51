"""What a generator can do beyond drawing: the one place that checks it.

A generator declares its :class:`~mcce.protocols.Capabilities`; each comes with a method. The parts
that need one call :func:`require`, which says what is missing and why it is needed.
"""

from __future__ import annotations

from typing import Any, Literal, overload

from ..errors import ParameterError
from ..kernels import IntArray
from ..protocols import (
    BackingOffGenerator,
    DensityGenerator,
    EnumeratingGenerator,
    Generator,
    GuidedGenerator,
    InventingGenerator,
    LimitedGenerator,
    OrderedGenerator,
    SavableGenerator,
)
from ..tables.schema import Schema
from .declarations import MEMBERS
from .registry import GENERATORS


@overload
def require(
    generator: Generator, capability: Literal["limits"], reason: str
) -> LimitedGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["guidance"], reason: str
) -> GuidedGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["back_off"], reason: str
) -> BackingOffGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["enumeration"], reason: str
) -> EnumeratingGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["density"], reason: str
) -> DensityGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["visit_order"], reason: str
) -> OrderedGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["saving"], reason: str
) -> SavableGenerator: ...
@overload
def require(
    generator: Generator, capability: Literal["own_values"], reason: str
) -> InventingGenerator: ...
def require(generator: Generator, capability: str, reason: str) -> Any:
    """The generator, if it declares a capability.

    Examples
    --------
    >>> from mcce import TreeChain
    >>> require(TreeChain(), "density", "log_likelihood needs a density")
    TreeChain()
    """
    if not getattr(generator.capabilities, capability):
        raise ParameterError(
            f"{reason}, but the generator {type(generator).__name__} does not declare the "
            f"capability {capability!r} ({', '.join(MEMBERS[capability])}). Use "
            f"{suggest_generators(capability)}, or declare and implement it."
        )
    return generator


def suggest_generators(capability: str) -> str:
    """The generators of mcce with a capability, as parameters to choose from.

    Examples
    --------
    >>> suggest_generators("enumeration")
    'generator="trees", "ctree" or "private"'
    """
    able = [
        f'"{name}"'
        for name in GENERATORS.built_in
        if getattr(GENERATORS.load(name)().capabilities, capability)
    ]
    return "generator=" + " or ".join([", ".join(able[:-1]), able[-1]] if able[1:] else able)


def visit_order_of(generator: Generator, schema: Schema) -> IntArray:
    """Positions of the mutable features as a fitted generator visits them, or in column order."""
    if not generator.capabilities.visit_order:
        return schema.mutable
    return require(generator, "visit_order", "Plausibility follows the visit order").visit_order_
