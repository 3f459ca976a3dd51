"""What a generator can do beyond drawing: the one place that checks it.

A generator declares its :class:`~mcce.protocols.Capabilities`; each comes with a method. The parts
that need one call :func:`require`, which says what is missing and why it is needed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, overload

from ..errors import ParameterError
from ..kernels import IntArray
from ..protocols import (
    BackingOffGenerator,
    Capabilities,
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

# The members that come with each capability; visit order and tables are no methods.
MEMBERS: dict[str, tuple[str, ...]] = {
    "limits": ("sample_within",),
    "guidance": ("sample_guided",),
    "back_off": ("sample_backed_off",),
    "enumeration": ("enumerate_rows",),
    "density": ("log_likelihood",),
    "visit_order": ("visit_order_",),
    "saving": ("to_arrays", "from_arrays"),
    "own_values": ("tables_",),
}


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

    Parameters
    ----------
    generator
        Any generator.
    capability
        A field of :class:`~mcce.protocols.Capabilities`.
    reason
        What needs the capability, as the beginning of a sentence.

    Returns
    -------
    Generator
        The same object, typed as one with the capability.

    Raises
    ------
    ParameterError
        If the generator does not declare it.

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
            f"{' or '.join(_named_with(capability))}, or declare and implement it."
        )
    return generator


def _named_with(capability: str) -> list[str]:
    """How to ask for the generators of mcce that have a capability."""
    from .registry import GENERATORS

    declared = {name: kind.capabilities for name, kind in GENERATORS.items()}
    able = [n for n, c in declared.items() if getattr(c, capability, False) is True]
    return [f'generator="{name}"' for name in able]


def visit_order_of(generator: Generator, schema: Schema) -> IntArray:
    """Positions of the mutable features as a fitted generator visits them, or in column order."""
    if not generator.capabilities.visit_order:
        return schema.mutable
    return require(generator, "visit_order", "Plausibility follows the visit order").visit_order_


def check_capabilities(generator: Any) -> None:
    """Raise unless a generator declares capabilities and has the members of each."""
    name, declared = type(generator).__name__, getattr(generator, "capabilities", None)
    if not isinstance(declared, Capabilities):
        raise ParameterError(
            f"The generator {name} must declare what it can do, got capabilities={declared!r}. "
            "Add the attribute capabilities = mcce.protocols.Capabilities()."
        )
    for field in fields(declared):
        # Members are looked up on the class: a visit order is there only after fit.
        missing = [m for m in MEMBERS[field.name] if not hasattr(type(generator), m)]
        if getattr(declared, field.name) and missing:
            raise ParameterError(
                f"The generator {name} declares the capability {field.name!r} but lacks "
                f"{missing!r}. Implement it, or leave the capability out."
            )
