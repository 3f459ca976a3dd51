"""What an explainer releases for people: its answers, or rows that its generator draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..candidates import CandidateRows
from ..errors import ParameterError, SchemaError, shorten
from ..fitted import Fitted
from ..generate import value_tables
from ..kernels import BoolArray, person_keys
from ..protocols import DrawRequest
from ..runtime.quiet import without_warnings
from ..tables.frames import read_frame

Release = Literal["answers", "rows"]


@dataclass(frozen=True, eq=False)
class Released:
    """Released rows, and the people they were made for, in the same order."""

    frame: pd.DataFrame
    factuals: pd.DataFrame


def release_answers(explainer: Any, people: Any) -> Released:
    """The answers of an explainer to people."""
    with without_warnings():
        result = explainer.explain(people).to_pandas()
    if not len(result.frame):
        raise SchemaError(
            "Nobody of the reference has an answer, so that nothing is released. Pass a reference "
            "with people whom the predictor declines."
        )
    frame = result.frame.reset_index(drop=True)
    return Released(frame, result.factuals.iloc[result.owner].reset_index(drop=True))


def release_rows(explainer: Any, people: Any, n_rows: int) -> Released:
    """Rows that the generator of an explainer draws, with people's immutable values."""
    fitted = getattr(explainer, "fitted_", None)
    if not isinstance(fitted, Fitted):
        raise ParameterError(
            'release="rows" needs a fitted MCCE, whose generator draws them, got '
            f'{shorten(explainer)}. Use release="answers".'
        )
    frame = read_frame(people)[0]
    rows = fitted.schema.encode(frame.iloc[np.arange(n_rows) % len(frame)].reset_index(drop=True))
    number = np.arange(n_rows, dtype=np.int32)
    # People with equal immutable values would share their draws; the row number separates them.
    given = np.vstack([rows.descent[fitted.schema.immutable], number]).T
    keys = person_keys(fitted.seed, np.ascontiguousarray(given))
    first = np.zeros(1, dtype=np.int64)
    decision = _decisions(fitted, rows.frame)
    sampled = fitted.generator.sample(DrawRequest(rows.descent, keys, first, decision=decision))
    codes = sampled.codes[:, :, 0]
    drawn = CandidateRows(rows, number.astype(np.int64), codes, value_tables(rows, sampled))
    return Released(drawn.as_given().reset_index(drop=True), rows.as_given())


def _decisions(fitted: Fitted, people: pd.DataFrame) -> BoolArray | None:
    """The people's own decisions, for a generator that was fitted to draw for both."""
    if False in getattr(fitted.generator, "decisions", ()):
        return fitted.decision.score(people).valid
    return None
