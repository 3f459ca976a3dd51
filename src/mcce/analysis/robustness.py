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

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..counterfactuals import Counterfactuals, FrameT, native_table
from ..errors import McceWarning, ParameterError, SchemaError
from ..execution.progress import ProgressBar
from ..kernels import BoolArray, Codes, FloatArray, IntArray, draw_keys, person_keys, pick
from ..postprocess.validation import ROWS_PER_CALL
from ..predictors.decision import Decision
from ..search.consequences import Consequences
from ..search.followers import Target
from ..search.values import GrowingTables
from ..tables.columns import differ
from ..tables.dtypes import cast_like
from ..tables.schema import OWN, EncodedRows, Schema

ALL_SUBSETS_OF = 8


@dataclass(frozen=True, eq=False)
class RobustnessSettings:
    """How robustness is measured.

    Parameters
    ----------
    decision
        The predictor with what is desired.
    n_perturbations
        Largest number of perturbations of each counterfactual.
    scale
        How far a number may move, as a share of its training range.
    seed
        Seed of the random perturbations.
    targets, constraints
        Columns that follow from others, and what limits them.
    """

    decision: Decision
    n_perturbations: int
    scale: float
    seed: int
    targets: Sequence[Target]
    constraints: Constraints


def measure_robustness(
    settings: RobustnessSettings, schema: Schema, result: Counterfactuals[FrameT], *, verbose: bool
) -> FrameT:
    """Robustness of each counterfactual of a result.

    Parameters
    ----------
    settings
        How it is measured.
    schema
        The columns of the explainer.
    result
        What ``explain`` returned.
    verbose
        Whether to show a progress bar.

    Returns
    -------
    frame
        One row per counterfactual, in the kind of frame of the result: valid, margin, stability,
        partial, minimal, n_evaluated; see :meth:`mcce.MCCE.robustness`.

    Raises
    ------
    ParameterError, SchemaError
        If it is no result, or one of another explainer.
    """
    answers = _Answers.read(schema, result, [target.row for target in settings.targets])
    n_rows = 1 + settings.n_perturbations + _count_parts(answers.acted)
    bar = ProgressBar(len(answers), "robustness", verbose)
    try:
        # Starting with no rows: the columns are needed even if there is no counterfactual.
        parts = [_measure(settings, answers.of(slice(0, 0)))]
        for some in _chunks(n_rows):
            parts.append(_measure(settings, answers.of(some)))
            bar.show(some.stop)
    finally:
        bar.close()
    labels = result.to_pandas().frame.index
    measured = pd.concat(parts, ignore_index=True).set_axis(labels)
    n_refused = int((~measured["valid"]).sum())
    if n_refused:
        warnings.warn(
            f"{n_refused} of {len(measured)} counterfactuals are not valid by this explainer's "
            "predictor, and their margin is not positive. Either the result is that of another "
            "explainer or the predictor is unstable.",
            McceWarning,
            stacklevel=3,
        )
    return native_table(result, measured)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Counterfactuals and the person of each.

    ``changed`` says which cells differ, and ``acted`` which of them follow from no others, both of
    shape (n_mutable, n_counterfactuals).
    """

    factuals: EncodedRows
    rows: EncodedRows
    changed: BoolArray
    acted: BoolArray

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def read(cls, schema: Schema, result: Counterfactuals[Any], recomputed: list[int]) -> _Answers:
        """The counterfactuals of a result, if they can be those of this schema."""
        if not isinstance(result, Counterfactuals):
            raise ParameterError(
                "result must be what explain returned, a Counterfactuals, got "
                f"{type(result).__name__}."
            )
        result = result.to_pandas()
        if set(result.frame.columns) != set(schema.names):
            raise SchemaError(
                f"The result has the columns {list(result.frame.columns)!r}, but this explainer "
                f"was fitted on {schema.names!r}. Pass a result of this explainer."
            )
        factuals = schema.encode(result.factuals).take(result.owner)
        rows = schema.encode(result.frame)
        changed = _changed(factuals, rows)
        moved = [str(schema.names[at]) for at in schema.immutable if changed[at].any()]
        if moved:
            raise SchemaError(
                f"The result changes {moved!r}, immutable for this explainer. "
                "Pass a result of this explainer."
            )
        acted = changed[schema.mutable]
        acted[recomputed] = False
        return cls(factuals, rows, changed[schema.mutable], acted)

    def of(self, some: slice) -> _Answers:
        """The same for some of them."""
        places = np.arange(len(self.rows))[some]
        factuals, rows = self.factuals.take(places), self.rows.take(places)
        return _Answers(factuals, rows, self.changed[:, places], self.acted[:, places])

    @property
    def codes(self) -> Codes:
        """The counterfactuals as :meth:`compose` takes them."""
        return np.where(self.changed, np.arange(len(self)), OWN).astype(np.int32)

    def compose(
        self, answer: IntArray, codes: Codes, consequences: Consequences | None
    ) -> pd.DataFrame:
        """Rows made of the person's own cells, those of the counterfactuals, training values.

        ``codes`` are ``OWN``, the number of a counterfactual, or their number plus a code. All rows
        but the counterfactuals themselves, which come first, have what follows from their changes.
        """
        cells = [self.rows.frame.iloc[:, position] for position in self.rows.schema.mutable]
        tables = [
            pd.concat([cast_like(own, table), table], ignore_index=True)
            for own, table in zip(cells, self.factuals.tables, strict=True)
        ]
        if consequences is not None:
            growing, codes = GrowingTables(self.factuals, tables), codes.copy()
            further = slice(len(self), None)
            codes[:, further] = consequences.complete(growing, answer[further], codes[:, further])
            tables = list(growing.tables)
        return self.factuals.compose(answer, codes, tables)


def _measure(settings: RobustnessSettings, answers: _Answers) -> pd.DataFrame:
    """Robustness of some counterfactuals, by one call of the predictor."""
    n_answers = len(answers)
    moved, moved_codes = _moves(settings, answers)
    partly, partly_codes = _parts(answers)
    consequences = None
    if settings.targets:
        consequences = Consequences(settings.targets, answers.factuals, settings.constraints)
    frame = answers.compose(
        np.concatenate([np.arange(n_answers), moved, partly]),
        np.concatenate([answers.codes, moved_codes, partly_codes], axis=1),
        consequences,
    )
    scored, margins = settings.decision.score_margins(frame)
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


def _moves(settings: RobustnessSettings, answers: _Answers) -> tuple[IntArray, Codes]:
    """Perturbations: the number of the counterfactual of each, and their codes."""
    first, count = _neighbours(answers, settings.scale)
    mutable = answers.rows.schema.mutable
    own = answers.rows.exact[mutable]
    n_all, strides = np.ones(len(answers), dtype=np.int64), np.ones_like(count)
    for row, options in enumerate(np.maximum(count, 1)):
        strides[row] = n_all
        n_all = np.minimum(n_all * options, settings.n_perturbations + 1)
    n_tried = np.where(count.any(axis=0), np.minimum(n_all, settings.n_perturbations), 0)
    answer, number = _numbered(n_tried)
    too_many = n_all > settings.n_perturbations
    at_random = too_many[answer]
    keys = person_keys(settings.seed, answers.rows.descent[:, too_many].T)
    keys = draw_keys(keys, np.arange(settings.n_perturbations)).ravel()

    codes = answers.codes[:, answer]
    for row in np.flatnonzero(count.any(axis=1)).tolist():
        options = count[row, answer]
        choice = number // strides[row, answer] % np.maximum(options, 1)
        choice[at_random] = pick(keys, int(mutable[row]), options[at_random])
        code, stay = first[row, answer] + choice, own[row, answer]
        code += (stay >= 0) & (code >= stay)  # any value but its own
        codes[row] = np.where(options > 0, len(answers) + code, codes[row])
    return answer, codes


def _neighbours(answers: _Answers, scale: float) -> tuple[IntArray, IntArray]:
    """The lowest training code that each changed number may move to, and how many there are.

    Both of shape (n_mutable, n_counterfactuals). The codes follow one another but for the
    number's own, which is skipped and not counted.
    """
    schema = answers.rows.schema
    first, count = np.zeros((2, *answers.changed.shape), dtype=np.int64)
    for row, position in enumerate(schema.mutable):
        feature, own = schema.features[position], answers.rows.exact[position]
        values = answers.rows.numbers(position)
        if feature.numbers is None or values is None or feature.spread == 0:
            continue
        # In the unit of training, if training held the value.
        values = np.where(own >= 0, feature.numbers[own], values)
        known = feature.numbers[: len(feature.known)]
        with np.errstate(over="ignore"):
            low, high = values - scale * feature.spread, values + scale * feature.spread
        first[row] = np.searchsorted(known, low, side="left")
        n_near = np.searchsorted(known, high, side="right") - first[row] - (own >= 0)
        count[row] = np.where(answers.acted[row] & ~np.isnan(values), n_near, 0)
    return first, count


def _parts(answers: _Answers) -> tuple[IntArray, Codes]:
    """Partial versions: the number of the counterfactual of each, and their codes."""
    changed = answers.acted
    answer, number = _numbered(_count_parts(changed))
    n_changed = changed.sum(axis=0)[answer]
    # The number of each change among those of its counterfactual; arbitrary where nothing changes.
    change = np.maximum(np.cumsum(changed, axis=0) - 1, 0)[:, answer]
    in_subset = ((number + 1) >> change) % 2 == 1
    alone_or_left_out = np.where(number < n_changed, change == number, change != number - n_changed)
    made = np.where(n_changed <= ALL_SUBSETS_OF, in_subset, alone_or_left_out)
    return answer, np.where(made, answers.codes[:, answer], np.int32(OWN))


def _count_parts(changed: BoolArray) -> IntArray:
    """How many partial versions of each counterfactual are scored."""
    n_changed = changed.sum(axis=0)
    n_subsets = 2 ** np.clip(n_changed, 1, ALL_SUBSETS_OF) - 2
    return np.where(n_changed <= ALL_SUBSETS_OF, n_subsets, 2 * n_changed)


def _changed(factuals: EncodedRows, rows: EncodedRows) -> BoolArray:
    """Cells that are not the person's own, shape (n_features, n_rows)."""
    changed = factuals.exact != rows.exact
    unseen = (factuals.exact < 0) & (rows.exact < 0)
    for position in np.flatnonzero(unseen.any(axis=1)).tolist():
        at = np.flatnonzero(unseen[position])
        before, after = (side.frame.iloc[:, position].iloc[at] for side in (factuals, rows))
        changed[position, at] = differ(before, after)
    return changed


def _chunks(n_rows: IntArray) -> Iterator[slice]:
    """Consecutive counterfactuals whose rows fit into one call of the predictor."""
    chunk = (np.cumsum(n_rows) - n_rows) // ROWS_PER_CALL
    starts = np.flatnonzero(np.diff(chunk, prepend=-1)).tolist()
    for start, end in pairwise([*starts, n_rows.size]):
        yield slice(start, end)


def _numbered(counts: IntArray) -> tuple[IntArray, IntArray]:
    """``counts`` entries for each owner: the owner, and the number among its entries from 0."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)


def _shares(owner: IntArray, valid: BoolArray, n_owners: int) -> FloatArray:
    """Share of valid entries of each owner, NaN without any."""
    total = np.bincount(owner, minlength=n_owners)
    shares = np.full(n_owners, np.nan)
    hits = np.bincount(owner[valid], minlength=n_owners)
    return np.divide(hits, total, out=shares, where=total > 0)
