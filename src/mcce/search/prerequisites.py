"""What a search needs of a fit: whether it can be run with what was learned, and what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..constraints.collection import Constraints
from ..constraints.of_rows import Frozen
from ..distances import Gower, is_gower
from ..errors import ConstraintError, NotFittedError, ParameterError, did_you_mean, shorten
from ..fitted import Fitted, Needs
from ..model.registry import require
from ..protocols import Distance, Generator, is_private
from .config import ENUMERATION_NEEDED, ExactSearch, ExplainSettings, Search

if TYPE_CHECKING:
    from ..plausibility.model import PlausibilityModel
    from ..relations.relation import FoundRelation


def check_search(fitted: Fitted, settings: ExplainSettings, constraints: Constraints) -> None:
    """Raise unless the search can be run with what was fitted, and with the other settings."""
    search, ignored = settings.search, settings.ignore_relations
    check_private(fitted.generator, search, fitted.distance, ignored)
    check_ignored_relations(fitted, ignored)
    if isinstance(search, ExactSearch):
        distance = weighted(fitted.distance, constraints)
        require(fitted.generator, "enumeration", ENUMERATION_NEEDED)
        if not is_gower(distance):
            raise _not_for_exact("distance", "gower", distance.name)
        if settings.diversity is not None:
            raise _not_for_exact("diversity", None, settings.diversity)
    check_inputs(fitted, search)


def needs_of(search: Search | ExactSearch, ignore_relations: Any) -> Needs:
    """What a search needs from the explainer, which may be told to ignore all relations."""
    needs = search.needs
    return replace(needs, relations=needs.relations and ignore_relations is not True)


def check_private(
    generator: Generator,
    search: Search | ExactSearch,
    distance: Distance,
    ignore_relations: Any,
) -> None:
    """Raise if the model is private, and a search or distance reads training rows without noise."""
    if not is_private(generator):
        return
    needs = needs_of(search, ignore_relations)
    reads = {
        "learns what accepted training rows look like": needs.requires_plausibility,
        "keeps the training rows, to tell copies of them": needs.training_rows,
        "keeps relations that are found in the training rows": needs.relations,
    }
    unprotected = [what for what, does in reads.items() if does]
    if unprotected:
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, but the search "
            f"{' and '.join(unprotected)}, which its budget does not cover. Use search='paper', or "
            "search='exact' with ignore_relations=True."
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
    """Raise if ``fit`` limited the inputs of trees by itself, and the search is the paper's."""
    most = getattr(fitted.generator, "max_inputs", None)
    is_named = isinstance(fitted.parameters.get("generator"), str)
    if most is not None and is_named and not search.needs.beyond_paper:
        raise NotFittedError(
            f"This search draws from trees that consider all columns, but fit had another search, "
            f"for which each tree of a table with {len(fitted.schema.features)} columns considers "
            f"{most} of them. Fit again with this search."
        )


def check_ignored_relations(fitted: Fitted, ignored: bool | Sequence[str]) -> None:
    """Raise if relations are to be ignored that ``fit`` did not find."""
    if fitted.relations is None or isinstance(ignored, bool):
        return
    names = {found.relation.name for found in fitted.relations}
    unknown = [name for name in ignored if name not in names]
    if unknown:
        raise ParameterError(
            f"ignore_relations names relations that fit did not find: {shorten(unknown, 200)}."
            f"{did_you_mean(unknown[0], names)} Take the names from the column 'relation' of "
            "relations_."
        )


def plausibility_model(fitted: Fitted) -> PlausibilityModel:
    """The plausibility model; raises if fit did not learn one."""
    if fitted.plausibility is None:
        raise NotFittedError(
            "fit learned no plausibility model: its search is the paper's, or no training row has "
            "the desired decision. Fit again with search='balanced' or any other but 'paper'."
        )
    return fitted.plausibility


def kept_relations(
    fitted: Fitted, settings: ExplainSettings, constraints: Constraints
) -> list[FoundRelation]:
    """All relations found at fit, except ignored ones.

    A formula that the user declared replaces the relations with its target.
    """
    ignored = settings.ignore_relations
    if not needs_of(settings.search, ignored).relations:
        return []
    if fitted.relations is None:
        raise NotFittedError(
            "ignore_relations or search was changed after fit, which did not look for relations "
            "between columns. Fit again, or pass ignore_relations=True."
        )
    without = {derived.target for derived in constraints.derived}
    names = () if isinstance(ignored, bool) else ignored
    return [
        found
        for found in fitted.relations
        if found.relation.name not in names and found.relation.target not in without
    ]


def with_held_columns(
    fitted: Fitted, settings: ExplainSettings, constraints: Constraints, mutable: Any
) -> Constraints:
    """The constraints, and one that keeps identifiers and constants which the user did not name.

    Ignored columns may have to follow others, so that an answer is plausible. The paper's search
    changes them all.
    """
    if settings.search.sampling_search.is_paper or not fitted.flags:
        return constraints
    named = {*(() if mutable is None else mutable)}
    named |= {name for one in constraints.listed for name in one.features}
    features = fitted.schema.features
    held = [
        features[one.position].name
        for one in fitted.flags
        if one.kind in ("identifier", "constant")
        and not features[one.position].immutable
        and features[one.position].name not in named
    ]
    if not held or len(held) == fitted.schema.mutable.size:
        return constraints
    return Constraints(constraints.schema, (*constraints.listed, Frozen(tuple(held))))


def kept_training_rows(fitted: Fitted, search: Search | ExactSearch) -> np.ndarray:
    """The codes of the training rows; raises if fit did not keep them."""
    if fitted.training_rows is None:
        raise NotFittedError(
            f"search was set to {search!r} after fit, which did not keep the training rows. "
            "Fit again."
        )
    return fitted.training_rows


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
