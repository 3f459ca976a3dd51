"""What a generator declares that it can do, and the members that come with it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..errors import ParameterError
from ..protocols import Capabilities

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
