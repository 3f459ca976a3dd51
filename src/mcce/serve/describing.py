"""What a service explains, for its page: features with their words, values and bars, and limits.

Always true: a bar of a histogram that stands for fewer than five people is shown as 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.records import plain_value
from ..explainer import requirements_of
from ..fitted import Fitted
from ..predictors.decision import Interval
from ..protocols import is_private
from ..report.labels import level_key
from ..report.words import Words
from ..search.config import PRESETS, find_search
from ..tables.columns import plain
from ..tables.features import Feature
from ..tables.schema import EncodedRows
from ..version import __version__
from .answering import Answerer
from .bodies import MAX_RULES
from .people import MAX_LEVELS, CellKind

N_BINS, MIN_SHOWN_COUNT = 24, 5
# Limits that clients should know.
LIMITS = ("people", "answers", "seconds", "bytes")


def describe(answerer: Answerer, language: str) -> dict[str, Any]:
    """What is explained, in the words of a language."""
    explainer, settings = answerer.explainer, answerer.settings
    search = find_search(explainer.search, private=is_private(explainer.fitted_.generator))
    words = Words(settings.words(language))
    yes, no = words.verdicts(explainer.decision_)
    limits = {name: getattr(settings.limits, name) for name in LIMITS}
    return {
        "version": __version__,
        "fingerprint": answerer.fingerprint,
        # A text, since browsers round whole numbers beyond 2**53.
        "seed": str(explainer.seed_),
        "desired": _desired(explainer.decision_.desired),
        "title": settings.title,
        "language": language,
        # Elsewhere the page would show names of columns between its words.
        "languages": list(settings.labels),
        "decision": {"yes": yes, "no": no, "rule": words.rule(explainer.decision_)},
        "features": _features(answerer, words),
        # None if it has limits of its own.
        "search": next((name for name, preset in PRESETS.items() if preset == search), None),
        "searches": answerer.searches,
        "n_counterfactuals": explainer.n_counterfactuals,
        "limits": limits | {"rules": MAX_RULES},
        "people": None if settings.people is None else len(settings.people),
    }


def _desired(desired: Interval | tuple[Hashable, ...]) -> dict[str, Any]:
    """The desired scores, where None is an end that does not matter, or the desired labels."""
    if not isinstance(desired, Interval):
        labels = [plain_value(label) for label in desired]
        return {"low": None, "high": None, "closed": None, "labels": labels}
    low, high = (end if math.isfinite(end) else None for end in (desired.low, desired.high))
    return {"low": low, "high": high, "closed": desired.closed, "labels": None}


def _features(answerer: Answerer, words: Words) -> list[dict[str, Any]]:
    explainer = answerer.explainer
    requirements, mutable = requirements_of(explainer), explainer.schema_.mutable
    frozen = requirements.constraints.frozen_for_everybody
    following = {int(mutable[target.place]) for target in requirements.computed}
    accepted = _accepted(explainer.fitted_)
    described = []
    for at, feature in enumerate(explainer.schema_.features):
        kind = answerer.people.kinds[str(feature.name)]
        found = _describe(feature, kind, words)
        if accepted is not None:
            levels = [level["value"] for level in found["levels"] or ()]
            found["histogram"] = _bars(feature, kind, accepted.iloc[:, at], levels)
        found["frozen"], found["follows"] = feature.name in frozen, at in following
        described.append(found)
    return described


def _describe(feature: Feature, kind: CellKind, words: Words) -> dict[str, Any]:
    """A feature by itself."""
    label, low, high = words.labels.of(feature.name), None, None
    is_number = feature.kind == "numeric"
    if is_number and len(feature.known):
        low, high = (plain_value(plain(feature.known)[end]) for end in (0, -1))
    return {
        "name": str(feature.name),
        "label": words.title(feature.name),
        "help": label.help,
        "action": label.action if isinstance(label.action, str) else None,
        # How a number is written with its unit, if it has one.
        "unit": None if label.unit[1] == "{number}" else label.unit[1],
        "unit_one": None if label.unit[1] == "{number}" else label.unit[0],
        "scale": label.scale,
        "grouping": label.grouping,
        "kind": feature.kind,
        "type": kind.type,
        "immutable": feature.immutable,
        "ordered": feature.ordered,
        "missing": feature.has_missing,
        "levels": _levels(feature, kind, words),
        "low": low,
        "high": high,
        # The smallest and the largest number that is read at all.
        "ends": None if kind.ends is None else list(kind.ends),
        # The unit of the last decimal place.
        "step": (feature.resolution or None) if is_number and kind.ends is not None else None,
        "histogram": None,
        "frozen": False,
        "follows": False,
    }


def _levels(feature: Feature, kind: CellKind, words: Words) -> list[dict[str, Any]] | None:
    """The levels of a category, and the values of a number that have words of their own."""
    if kind.levels is None and not words.labels.of(feature.name).levels:
        return None
    order, action = words.labels.of(feature.name).order, words.labels.of(feature.name).action
    actions = {} if action is None or isinstance(action, str) else action
    levels = list(plain(feature.known)[:MAX_LEVELS])
    if {level_key(level) for level in levels} <= set(order):
        levels.sort(key=lambda level: order.index(level_key(level)))
    pairs = zip(levels, words.values(feature.name, levels), strict=True)
    return [
        {"value": plain_value(level), "label": label, "action": actions.get(level_key(level))}
        for level, label in pairs
    ]


def _accepted(fitted: Fitted) -> pd.DataFrame | None:
    """Accepted people of training; None if fit kept none."""
    if fitted.plausibility is None:
        return None
    return EncodedRows.from_codes(fitted.schema, fitted.plausibility.codes_).frame


def _bars(
    feature: Feature, kind: CellKind, accepted: pd.Series[Any], levels: list[Any]
) -> dict[str, Any] | None:
    """Counts of accepted people by value; small counts are shown as 0."""
    if kind.levels is not None:
        counts = accepted.value_counts()
        heights, edges = [int(counts.get(level, 0)) for level in levels], levels
    else:
        numbers = feature.numbers
        if kind.ends is None or numbers is None or np.isnan(numbers).all():
            return None
        low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        n_bins = min(N_BINS, max(1, int(high - low) + 1)) if kind.type == "integer" else N_BINS
        edges = np.linspace(low, high, n_bins + 1).tolist()
        values = accepted.to_numpy(dtype=np.float64, na_value=np.nan)
        heights = np.histogram(values[~np.isnan(values)], edges)[0].tolist()
    return {"edges": edges, "accepted": [n if n >= MIN_SHOWN_COUNT else 0 for n in heights]}
