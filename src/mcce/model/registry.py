"""Names of the generators that come with the package."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.base import clone

from ..errors import ParameterError
from ..protocols import Generator
from .trees import TreeChain

GENERATORS: dict[str, type[TreeChain]] = {"trees": TreeChain}


def find_generator(generator: Any) -> Generator:
    """A new generator of that name, or an unfitted copy of the object."""
    if isinstance(generator, str) and generator in GENERATORS:
        return GENERATORS[generator]()
    if not all(callable(getattr(generator, name, None)) for name in ("fit", "sample")):
        raise ParameterError(
            f"generator must be one of {sorted(GENERATORS)!r} or an object with fit and sample, "
            f"got {generator!r}."
        )
    copy: Generator = clone(generator) if hasattr(generator, "get_params") else deepcopy(generator)
    return copy
