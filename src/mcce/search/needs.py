"""What a search needs from the explainer, checked before anything is drawn."""

from __future__ import annotations

from typing import Any

from ..constraints.collection import Constraints
from ..distances import Gower, is_gower
from ..errors import ConstraintError, NotFittedError, ParameterError, shorten
from ..fitted import Fitted
from ..generate import GUIDANCE_NEEDED
from ..model import is_private, require
from ..protocols import Distance, Generator
from .config import ExactSearch, Search

ENUMERATION_NEEDED = "The exact search lists all rows that can be drawn"


def check_needs(
    generator: Generator, search: Search | ExactSearch, distance: Distance, diversity: float | None
) -> None:
    """Raise for what a search needs and does not get."""
    needs = search.needs
    if needs.enumeration:
        require(generator, "enumeration", ENUMERATION_NEEDED)
    if needs.guidance:
        require(generator, "guidance", GUIDANCE_NEEDED)
    if needs.gower and not is_gower(distance):
        raise _not_for_exact("distance", "gower", distance.name)
    if not needs.diversity and diversity is not None:
        raise _not_for_exact("diversity", None, diversity)


def check_private(
    generator: Generator,
    search: Search | ExactSearch,
    distance: Distance,
    ignore_relations: Any,
) -> None:
    """Raise if the model is private, and a search or distance reads training rows without noise."""
    if not is_private(generator):
        return
    needs = search.needs
    reads = {
        "learns what accepted training rows look like": needs.plausibility or needs.surrogate,
        "keeps the training rows, to tell copies of them": needs.training_rows,
        "keeps relations that are found in the training rows": (
            needs.relations and ignore_relations is not True
        ),
    }
    found = [what for what, does in reads.items() if does]
    if found:
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, but the search "
            f"{' and '.join(found)}, which its budget does not cover. Use search='paper'; or "
            "search='fast' or search='exact' with ignore_relations=True."
        )
    if getattr(distance, "reads_rows", True):
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, but the distance "
            f"{distance.name!r} learns from training rows, which its budget does not cover. Use "
            "distance='gower', whose ranges are those of the declared domains."
        )


def check_refit(generator: Generator, training: Any) -> None:
    """Raise if a private model would be fitted again, which spends its budget each time."""
    if training is not None and is_private(generator):
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, and to fit it again with other "
            "immutable features would spend its budget once for each. Leave training out."
        )


def check_inputs(fitted: Fitted, search: Search | ExactSearch) -> None:
    """Raise if trees consider some inputs only, and the search is the paper's."""
    most = getattr(fitted.generator, "max_inputs", None)
    if (
        most is not None
        and fitted.plausibility is not None
        and not search.needs.measures_plausibility
    ):
        raise NotFittedError(
            f"This search draws from trees that consider all columns, but fit had another search, "
            f"for which each tree of a table with {len(fitted.schema.features)} columns considers "
            f"{most} of them. Fit again with this search."
        )


def weighted(distance: Distance, constraints: Constraints) -> Distance:
    """The distance with the weights of constraints."""
    if constraints.weights is None:
        return distance
    if not is_gower(distance) or getattr(distance, "weights", None) is not None:
        raise ConstraintError(
            "Constraints with weights apply to the plain Gower distance, but distance is "
            f"{distance!r}. Leave out the weights or the distance."
        )
    return Gower(constraints.weights)


def _not_for_exact(name: str, supported: str | None, given: str | float) -> ParameterError:
    return ParameterError(
        "The exact search proves which rows have the fewest changes and then the smallest Gower "
        f"distance, so {name} must be {supported!r}, got {shorten(given)}. Leave it out, or use "
        "another search."
    )
