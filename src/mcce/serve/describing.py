"""The schema of a service: features, their words, their values, and how common these are.

Always true: a bar of a histogram that stands for fewer than five people is shown as 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..counterfactuals.records import plain_value
from ..explainer import requirements_of
from ..fitted import Fitted
from ..predictors.decision import Interval
from ..report.cells import CellWords
from ..report.labels import Labels
from ..tables.columns import plain
from ..tables.features import Feature
from ..tables.resolution import resolution
from ..tables.schema import EncodedRows
from ..version import __version__
from .answering import Answerer
from .cells import MAX_LEVELS, CellKind
from .settings import ServiceSettings

N_BINS, FEWEST = 24, 5
# Limits that clients should know.
LIMITS = ("people", "answers", "rules", "seconds", "bytes")


def describe(
    answerer: Answerer,
    kinds: Mapping[str, CellKind],
    settings: ServiceSettings,
    language: str | None,
) -> dict[str, Any]:
    """What the service explains, in the words of a language."""
    explainer, labels = answerer.explainer, settings.words(language)
    requirements, mutable = requirements_of(explainer), explainer.schema_.mutable
    frozen = requirements.constraints.frozen_for_everybody
    following = {int(mutable[target.row]) for target in requirements.targets}
    accepted = _accepted(explainer.fitted_)
    return {
        "name": settings.name,
        "version": __version__,
        "fingerprint": answerer.fingerprint,
        # A text, since browsers round whole numbers beyond 2**53.
        "seed": str(explainer.seed_),
        "desired": _desired(explainer.decision_.desired),
        "title": settings.title,
        "language": labels.language.code,
        "languages": settings.languages,
        "labelled": list(settings.labels),
        "features": [
            _feature(
                feature,
                kinds[str(feature.name)],
                labels,
                accepted=None if accepted is None else accepted.iloc[:, at],
                frozen=feature.name in frozen,
                follows=at in following,
            )
            for at, feature in enumerate(explainer.schema_.features)
        ],
        "search": explainer.search if isinstance(explainer.search, str) else None,
        "searches": list(answerer.searches),
        "n_counterfactuals": explainer.n_counterfactuals,
        "limits": {name: getattr(settings.limits, name) for name in LIMITS},
        "people": None if settings.people is None else len(settings.people),
    }


def _desired(desired: Interval | tuple[Hashable, ...]) -> dict[str, Any]:
    """The desired scores, where None is an end that does not matter, or the desired labels."""
    if not isinstance(desired, Interval):
        labels = [plain_value(label) for label in desired]
        return {"low": None, "high": None, "closed": None, "labels": labels}
    low, high = (end if math.isfinite(end) else None for end in (desired.low, desired.high))
    return {"low": low, "high": high, "closed": desired.closed, "labels": None}


def _feature(
    feature: Feature,
    kind: CellKind,
    labels: Labels,
    *,
    accepted: pd.Series[Any] | None,
    frozen: bool,
    follows: bool,
) -> dict[str, Any]:
    words, label = CellWords(labels), labels.of(feature.name)
    low, high = _ends(feature)
    return {
        "name": str(feature.name),
        "label": words.name(feature.name),
        "unit": _unit(label.unit[1]),
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
        "step": _step(feature, kind),
        "histogram": None if accepted is None else _histogram(feature, kind, accepted),
        "frozen": frozen,
        "follows": follows,
    }


def _unit(template: str) -> str | None:
    """How a number is written with its unit; None if it has none."""
    return None if template == "{number}" else template


def _levels(feature: Feature, kind: CellKind, words: CellWords) -> list[dict[str, Any]] | None:
    """The levels of a category, and the values of a number that have words of their own."""
    if kind.levels is None and not words.labels.of(feature.name).levels:
        return None
    levels = plain(feature.known)[:MAX_LEVELS]
    shown = words.values(feature.name, list(levels))
    pairs = zip(levels, shown, strict=True)
    return [{"value": plain_value(level), "label": label} for level, label in pairs]


def _ends(feature: Feature) -> tuple[Any, Any]:
    """The smallest and largest training value; None without an order or without values."""
    if feature.kind != "numeric" or not len(feature.known):
        return None, None
    values = plain(feature.known)
    return plain_value(values[0]), plain_value(values[-1])


def _step(feature: Feature, kind: CellKind) -> float | None:
    """The unit of the last decimal place; None if there is none."""
    if kind.type not in ("integer", "number") or feature.kind != "numeric":
        return None
    return resolution(feature) or None


def _accepted(fitted: Fitted) -> pd.DataFrame | None:
    """Accepted people of training; None if fit kept none."""
    model = fitted.plausibility
    return None if model is None else EncodedRows.from_codes(fitted.schema, model.codes_).frame


def _histogram(feature: Feature, kind: CellKind, accepted: pd.Series[Any]) -> dict[str, Any] | None:
    """How many accepted people have which values; few people are nobody."""
    if feature.kind == "categorical":
        if kind.levels is None:
            return None
        counts = accepted.value_counts()
        levels = plain(feature.known)[:MAX_LEVELS]
        shown = [_at_least(int(counts.get(level, 0))) for level in levels]
        return {"edges": [plain_value(level) for level in levels], "accepted": shown}
    if kind.type not in ("integer", "number"):
        return None
    numbers = feature.numbers
    if numbers is None or np.isnan(numbers).all():
        return None
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    values = accepted.to_numpy(dtype=np.float64, na_value=np.nan)
    n_bins = min(N_BINS, max(1, int(high - low) + 1)) if kind.type == "integer" else N_BINS
    edges = np.linspace(low, high, n_bins + 1)
    heights, _ = np.histogram(values[~np.isnan(values)], edges)
    return {"edges": edges.tolist(), "accepted": [_at_least(int(n)) for n in heights]}


def _at_least(count: int) -> int:
    return count if count >= FEWEST else 0
