"""Robustness of counterfactuals: the predictor scores perturbations and partial versions of each.

Beyond the paper. *Perturbations* move every changed number to another training value at most
``scale`` times the training range away; other cells stay. All combinations are scored if there are
at most ``n_perturbations``, otherwise that many random ones. *Partial versions* make only some of s
changes: all 2^s - 2 proper subsets for up to ``ALL_SUBSETS_OF`` changes, beyond that each change
alone and all changes but one. Columns that follow from others are no changes of their own: they are
recomputed for whatever is moved or undone.

Always true: randomness depends on the seed and the counterfactual's own values alone, not on the
batch or its order; the predictor is called once per chunk, and memory does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..counterfactuals.result import Counterfactuals
from ..kernels import BoolArray, Codes, FloatArray, IntArray, draw_keys, person_keys, pick
from ..predictors.decision import Decision
from ..tables.frames import FrameT
from ..tables.schema import OWN
from .answers import (
    AnswerVariants,
    EncodedAnswers,
    Requirements,
    in_chunks,
    numbered,
    warn_of_refused,
)

ALL_SUBSETS_OF = 8


@dataclass(frozen=True, eq=False)
class RobustnessSettings:
    """How robustness is measured."""

    decision: Decision
    requirements: Requirements
    n_perturbations: int
    scale: float
    seed: int


def measure_robustness(
    settings: RobustnessSettings, result: Counterfactuals[FrameT], *, verbose: bool
) -> FrameT:
    """Robustness of each counterfactual of a result."""
    required = settings.requirements
    answers = EncodedAnswers.read(required.constraints.schema, result, required.computed)
    n_rows = 1 + settings.n_perturbations + _count_parts(answers.acted)
    chunks = in_chunks(answers, n_rows, "robustness", verbose)
    parts = [_measure(settings, chunk) for _, chunk in chunks]
    labels = result.to_pandas().frame.index
    measured = pd.concat(parts, ignore_index=True).set_axis(labels)
    warn_of_refused(measured["valid"].to_numpy(), "their margin is not positive")
    return result.adapter.table_to_native(measured)


def _measure(settings: RobustnessSettings, answers: EncodedAnswers) -> pd.DataFrame:
    """Robustness of a chunk of counterfactuals, by one call of the predictor."""
    n_answers = len(answers)
    moved, moved_codes = _moves(settings, answers)
    partly, partly_codes = _parts(answers)
    required = settings.requirements
    variants = AnswerVariants(answers, required.computed, required.constraints)
    made = variants.make(
        np.concatenate([moved, partly]), np.concatenate([moved_codes, partly_codes], axis=1)
    )
    rows = replace(
        made,
        owner=np.concatenate([answers.owner, made.owner]),
        codes=np.concatenate([answers.codes, made.codes], axis=1),
    )
    scored, margins = settings.decision.score_margins(rows.frame)
    valid, of_moved, of_parts = np.split(scored.valid, [n_answers, n_answers + moved.size])
    return pd.DataFrame(
        {
            "valid": valid,
            "margin": margins[:n_answers],
            "stability": _shares(moved, of_moved, n_answers),
            "partial": _shares(partly, of_parts, n_answers),
            "minimal": np.bincount(partly[of_parts], minlength=n_answers) == 0,
            "n_evaluated": 1
            + np.bincount(moved, minlength=n_answers)
            + np.bincount(partly, minlength=n_answers),
        }
    )


def _moves(settings: RobustnessSettings, answers: EncodedAnswers) -> tuple[IntArray, Codes]:
    """Perturbations: the number of the counterfactual of each, and their codes."""
    first, count = _neighbours(answers, settings.scale)
    mutable = answers.rows.schema.mutable
    own = answers.rows.codes[mutable]
    n_all, strides = np.ones(len(answers), dtype=np.int64), np.ones_like(count)
    for place, options in enumerate(np.maximum(count, 1)):
        strides[place] = n_all
        n_all = np.minimum(n_all * options, settings.n_perturbations + 1)
    n_tried = np.where(count.any(axis=0), np.minimum(n_all, settings.n_perturbations), 0)
    answer, number = numbered(n_tried)
    too_many = n_all > settings.n_perturbations
    at_random = too_many[answer]
    keys = person_keys(settings.seed, answers.rows.tree_codes[:, too_many].T)
    keys = draw_keys(keys, np.arange(settings.n_perturbations)).ravel()

    codes = answers.codes[:, answer]
    for place in np.flatnonzero(count.any(axis=1)).tolist():
        options = count[place, answer]
        choice = number // strides[place, answer] % np.maximum(options, 1)
        choice[at_random] = pick(keys, int(mutable[place]), options[at_random])
        code, stay = first[place, answer] + choice, own[place, answer]
        code += (stay >= 0) & (code >= stay)  # any value but its own
        codes[place] = np.where(options > 0, len(answers) + code, codes[place])
    return answer, codes


def _neighbours(answers: EncodedAnswers, scale: float) -> tuple[IntArray, IntArray]:
    """The lowest training code that each changed number may move to, and how many there are.

    Both of shape (n_mutable, n_counterfactuals). The codes follow one another but for the
    number's own, which is skipped and not counted.
    """
    schema = answers.rows.schema
    first, count = np.zeros((2, *answers.changed.shape), dtype=np.int64)
    for place, column in enumerate(schema.mutable):
        feature, own = schema.features[column], answers.rows.codes[column]
        values = answers.rows.numbers(column)
        if feature.numbers is None or values is None or feature.spread == 0:
            continue
        # In the unit of training, if training held the value.
        values = np.where(own >= 0, feature.numbers[own], values)
        known = feature.numbers[: len(feature.known)]
        with np.errstate(over="ignore"):
            low, high = values - scale * feature.spread, values + scale * feature.spread
        first[place] = np.searchsorted(known, low, side="left")
        n_near = np.searchsorted(known, high, side="right") - first[place] - (own >= 0)
        count[place] = np.where(answers.acted[place] & ~np.isnan(values), n_near, 0)
    return first, count


def _parts(answers: EncodedAnswers) -> tuple[IntArray, Codes]:
    """Partial versions: the number of the counterfactual of each, and their codes."""
    acted = answers.acted
    answer, number = numbered(_count_parts(acted))
    n_changed = acted.sum(axis=0)[answer]
    # The number of each change among those of its counterfactual; arbitrary where nothing changes.
    change = np.maximum(np.cumsum(acted, axis=0) - 1, 0)[:, answer]
    in_subset = ((number + 1) >> change) % 2 == 1
    alone_or_left_out = np.where(number < n_changed, change == number, change != number - n_changed)
    is_made = np.where(n_changed <= ALL_SUBSETS_OF, in_subset, alone_or_left_out)
    return answer, np.where(is_made, answers.codes[:, answer], np.int32(OWN))


def _count_parts(acted: BoolArray) -> IntArray:
    """How many partial versions of each counterfactual are scored."""
    n_changed = acted.sum(axis=0)
    n_subsets = 2 ** np.clip(n_changed, 1, ALL_SUBSETS_OF) - 2
    return np.where(n_changed <= ALL_SUBSETS_OF, n_subsets, 2 * n_changed)


def _shares(owner: IntArray, valid: BoolArray, n_owners: int) -> FloatArray:
    """Share of valid entries of each owner, NaN without any."""
    total = np.bincount(owner, minlength=n_owners)
    shares = np.full(n_owners, np.nan)
    hits = np.bincount(owner[valid], minlength=n_owners)
    return np.divide(hits, total, out=shares, where=total > 0)
