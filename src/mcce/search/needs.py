"""What a search needs from the explainer, checked before anything is drawn."""

from __future__ import annotations

from ..distances import is_gower
from ..errors import ParameterError, shorten
from ..generate import GUIDANCE_NEEDED
from ..model import require
from ..protocols import Distance, Generator
from .config import ExactSearch, Search

ENUMERATION_NEEDED = "The exact search lists all rows that can be drawn"


def check_needs(
    generator: Generator, search: Search | ExactSearch, distance: Distance, diversity: float | None
) -> None:
    """Raise for what a search needs and does not get.

    Parameters
    ----------
    generator
        The fitted model.
    search
        Which search to run.
    distance, diversity
        How candidates are compared, and how much answers must differ.
    """
    needs = search.needs
    if needs.enumeration:
        require(generator, "enumeration", ENUMERATION_NEEDED)
    if needs.guidance:
        require(generator, "guidance", GUIDANCE_NEEDED)
    if needs.gower and not is_gower(distance):
        raise _not_for_exact("distance", "gower", distance.name)
    if not needs.diversity and diversity is not None:
        raise _not_for_exact("diversity", None, diversity)


def _not_for_exact(name: str, supported: str | None, given: str | float) -> ParameterError:
    return ParameterError(
        "The exact search proves which rows have the fewest changes and then the smallest Gower "
        f"distance, so {name} must be {supported!r}, got {shorten(given)}. Leave it out, or use "
        "another search."
    )
