"""Files of older versions, read as if this version had written them.

Up to version 7 the distance learned nothing from training rows.
Up to version 6 nothing is known of how many training rows have a value.
Up to version 5 nothing was known of labels, and nothing imitated the predictor: a search calls it,
and for labels ``predict``, on every row that it looks at. Trees considered all columns, however
many there are.
Up to version 4 a search named the share of real rows inside its support, and what accepted rows
look like was learned in another way: such a search has to be fitted again. The explainer had a
parameter that excluded copies of training rows; no search kept numbers that training never held,
and none backed off. Up to version 2 the bounds and the ranking of a search were parameters of the
explainer, and some parameters of a search had other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..model.associations import WIDE
from ..model.trees import TreeChain
from ..search.config import RANK_BY, ExactSearch, Search, find_search

# Parameters of the explainer that belong to its search now, and the values they had by default.
MOVED: dict[str, Any] = {
    "max_samples": None,
    "max_sparsity": None,
    "max_distance": None,
    "rank_by": RANK_BY,
    "tolerance": 0.0,
}
RENAMED = {"targets": "n_targets", "slack": "extra_changes", "keep": "keep_probability"}
PREFERENCES = {"nearness": "knn_distance", "both": "balanced"}


def upgrade_search(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a search by their names of today."""
    upgraded = {RENAMED.get(name, name): value for name, value in parameters.items()}
    if "support" in upgraded:
        share = upgraded.pop("support")
        upgraded["min_plausibility"] = 0.0 if share is None else round(1 - share, 10)
    if "prefer" in upgraded:
        upgraded["prefer"] = PREFERENCES.get(upgraded["prefer"], upgraded["prefer"])
    # Draws that were answers could be copies; walks took copies last.
    if upgraded.get("n_targets") == 0:
        upgraded.setdefault("copies", "allow")
    upgraded.setdefault("back_off", False)
    return upgraded


def upgrade_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an explainer, with those that moved in its search."""
    return _without_copies(_with_bounds(parameters))


def upgrade_generator(parameters: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    """The parameters of an explainer up to version 5, with trees that consider all columns.

    By its name alone, the generator of a wide table would seem to consider some of them.
    """
    limited = find_search(parameters["search"]).needs.measures_plausibility and n_features > WIDE
    named = isinstance(parameters["generator"], str)
    return {**parameters} | ({"generator": TreeChain()} if limited and named else {})


def _without_copies(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters with ``exclude_training_rows`` in the search."""
    if "exclude_training_rows" not in parameters:
        return parameters
    excluded = parameters.pop("exclude_training_rows")
    search = parameters.get("search", "paper")
    if excluded or search in ("fast", "exact") or isinstance(search, Search):
        search = replace(find_search(search), keep_unseen=False)
        search = replace(search, back_off=False) if isinstance(search, Search) else search
    return parameters | {"search": replace(search, copies="never") if excluded else search}


def _with_bounds(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with the bounds and the ranking in the search."""
    kept = {name: value for name, value in parameters.items() if name not in MOVED}
    moved = {name: value for name, value in parameters.items() if name in MOVED}
    if not moved:
        return kept
    kept.setdefault("search", "paper")
    changed = {
        name: value
        for name, value in moved.items()
        if (tuple(value) if name == "rank_by" else value) != MOVED[name]
    }
    if not changed:
        return kept
    search: Search | ExactSearch = find_search(kept["search"])
    if "max_samples" in changed and kept.get("n_samples") is not None:
        changed["n_samples"] = kept["n_samples"]
    known = {field.name for field in fields(search)}
    return kept | {
        "search": replace(search, **{name: v for name, v in changed.items() if name in known})
    }
