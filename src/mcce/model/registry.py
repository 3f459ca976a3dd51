"""The generators by name, those of other packages included, and what a generator can do.

A generator declares its :class:`~mcce.protocols.Capabilities`: fields of a request that it
understands, and members that it has beyond the required ones. Whatever needs a capability calls
:func:`require`, whose error says what is missing and why.
"""

from __future__ import annotations

import inspect
from copy import copy, deepcopy
from typing import Any, cast

from sklearn.base import clone

from ..errors import ParameterError, did_you_mean, shorten
from ..kernels import IntArray
from ..plugins import Registry
from ..protocols import Capabilities, CapableGenerator, Generator, is_private
from ..tables.schema import EncodedRows, Schema
from .associations import MAX_INPUTS

# Classes whose parameters are their arguments, as scikit-learn has it; `array_names` are the
# entries of their `to_arrays`.
GENERATORS = Registry(
    group="mcce.generators",
    built_in={
        "trees": "mcce.model.trees:TreeChain",
        "forest": "mcce.model.forest:ForestChain",
        "ctree": "mcce.model.ctree:InferenceTreeChain",
        "private": "mcce.privacy.private_trees:PrivateTrees",
    },
    elsewhere=dict.fromkeys(("copula", "made", "ctgan"), "mcce-lab"),
)
# What comes with each capability: a field of the request, or members of the generator.
FIELDS = {"limits": "limits", "back_off": "least"}
MEMBERS: dict[str, tuple[str, ...]] = {
    "enumeration": ("enumerate_rows",),
    "density": ("log_likelihood",),
    "visit_order": ("visit_order_",),
    "saving": ("to_arrays", "from_arrays"),
    "value_tables": ("tables_",),
    "privacy": ("encode_training",),
}


def find_generator(generator: Any) -> Generator:
    """A new, unfitted generator.

    Examples
    --------
    >>> find_generator("trees")
    TreeChain()
    """
    if generator in GENERATORS:
        named: Generator = GENERATORS.load(generator)()
        return named
    if not _can_generate(generator):
        raise ParameterError(
            f"generator must be one of {GENERATORS.names()!r} or an object with "
            "fit(rows, is_desired, *, seed, n_jobs, verbose) and sample(request), "
            f"got {shorten(generator)}.{did_you_mean(generator, GENERATORS.names())}"
        )
    _check_capabilities(generator)
    if hasattr(generator, "get_params"):
        return cast(Generator, clone(generator))
    return cast(Generator, deepcopy(generator))


def encode_training(generator: Generator, data: Any, **names: Any) -> EncodedRows:
    """Training rows for a generator: encoded with their own schema, or with a public one."""
    if is_private(generator):
        return generator.encode_training(data, **names)
    return Schema.learn_rows(data, **names)


def with_limited_inputs(generator: Generator, given: Any, schema: Schema) -> Generator:
    """The generator; if it was given by name, its trees consider few columns of wide tables."""
    if not (isinstance(given, str) and schema.is_wide and hasattr(generator, "max_inputs")):
        return generator
    limited: Any = copy(generator)
    limited.max_inputs = MAX_INPUTS
    return cast(Generator, limited)


def require(generator: Generator, capability: str, reason: str) -> CapableGenerator:
    """The generator, if it declares a capability.

    Examples
    --------
    >>> from mcce import TreeChain
    >>> require(TreeChain(), "density", "log_likelihood needs a density")
    TreeChain()
    """
    if not getattr(generator.capabilities, capability):
        part = MEMBERS.get(capability) or (f"request.{FIELDS[capability]}",)
        raise ParameterError(
            f"{reason}, but the generator {type(generator).__name__} does not declare the "
            f"capability {capability!r} ({', '.join(part)}). Use "
            f"{suggest_generators(capability)}, or declare and implement it."
        )
    return cast(CapableGenerator, generator)


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


def _can_generate(generator: Any) -> bool:
    """Whether an object has the methods of a generator, with their arguments."""
    try:
        inspect.signature(generator.fit).bind(None, None, seed=0, n_jobs=None, verbose=False)
        inspect.signature(generator.sample).bind(None)
    except (AttributeError, TypeError):
        return False
    return True


def _check_capabilities(generator: Any) -> None:
    """Raise unless a generator declares capabilities and has the members of each."""
    name, declared = type(generator).__name__, getattr(generator, "capabilities", None)
    if not isinstance(declared, Capabilities):
        raise ParameterError(
            f"The generator {name} must declare what it can do, got capabilities={declared!r}. "
            "Add the attribute capabilities = mcce.protocols.Capabilities()."
        )
    for capability, members in MEMBERS.items():
        # Members are looked up on the class: a visit order is there only after fit.
        missing = [member for member in members if not hasattr(type(generator), member)]
        if getattr(declared, capability) and missing:
            raise ParameterError(
                f"The generator {name} declares the capability {capability!r} but lacks "
                f"{missing!r}. Implement it, or leave the capability out."
            )
