"""The predictor in a file: how it is called, and its scores of up to eight synthetic rows.

The immutable features of these rows are spread evenly over the tables of training values, and so
are the mutable ones of every other row; those of the remaining rows are draws of the generator.
They equal a training row only by chance.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import PredictorError, shorten
from ..fitted import Fitted
from ..kernels import Codes, person_keys
from ..predictors.decision import Decision, Interval
from ..protocols import DrawRequest
from ..tables.schema import EncodedRows, Schema
from .archive import ensure
from .parts import read_array, read_codes
from .values import check_entries, pack

N_PROBES = 8
# Zero has no relative tolerance.
NOTHING = 1e-12


def pack_predictor(fitted: Fitted) -> dict[str, Any]:
    """How the predictor is called, and its scores of the probe rows that it can score."""
    codes = _probe_codes(fitted)
    rows = EncodedRows.from_codes(fitted.schema, codes).frame
    scores, failure = {}, None
    for place in range(N_PROBES):
        try:
            scores[place] = fitted.decision.score(rows.iloc[[place]]).score
        except PredictorError as error:
            # A predictor may reject a synthetic row.
            failure = error
    if failure is not None and not scores:
        raise failure
    return {
        "decision": _pack_decision(fitted.decision),
        "probes": codes[:, [*scores]],
        "scores": np.concatenate([*scores.values()]),
    }


def check_predictor(
    decision: Decision, schema: Schema, plain: dict[str, Any], path: str, tolerance: float
) -> None:
    """Raise unless the predictor is the one that the file was saved with."""
    called = _pack_decision(decision)
    if called != plain["decision"]:
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: it would be called as "
            f"{shorten(called, 300)}, expected {shorten(plain['decision'], 300)}. Pass the "
            "predictor that was explained; of a server or a function say also what it returns, "
            "probabilities of which classes."
        )
    rows = EncodedRows.from_codes(schema, plain["probes"]).frame
    expected = plain["scores"]
    try:
        got = np.concatenate([decision.score(rows.iloc[[row]]).score for row in range(len(rows))])
    except PredictorError as error:
        raise PredictorError(
            f"The predictor cannot score the probe rows of {path!r} "
            f"({shorten(error, 300).rstrip('.')}). It does not answer, is not the one that was "
            "explained, or the file was edited. Pass the predictor that was explained, which takes "
            f"the columns {shorten(schema.names, 300)}."
        ).keeping(error.original) from error
    differ = ~np.isclose(got, expected, rtol=tolerance, atol=NOTHING)
    if differ.any():
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: the scores of "
            f"{int(differ.sum())} of {differ.size} probe rows differ by more than a relative "
            f"tolerance of {tolerance!r}. Pass the predictor that was explained, or fit again "
            "with this one."
        )


def check_probes(plain: Any, schema: Schema) -> dict[str, Any]:
    """What :func:`pack_predictor` gave for columns like these; raises for anything else."""
    given = check_entries(plain, ("decision", "probes", "scores"), "what it says of the predictor")
    check_entries(given["decision"], ("method", "columns", "desired"), "the call of the predictor")
    # It must not hold arrays, which cannot be compared as a whole.
    json.dumps(given["decision"])
    codes, scores = read_codes(given["probes"], schema), read_array(given["scores"], np.float64)
    fits = 1 <= scores.size <= N_PROBES and scores.size == codes.shape[1]
    ensure(fits, "there is not one score for each probe row")
    # A score may be infinite, like the odds of what is certain; the decision lets no NaN pass.
    ensure(not np.isnan(scores).any(), "a probe row has no score")
    return given


def _probe_codes(fitted: Fitted) -> Codes:
    schema = fitted.schema
    n_codes = schema.n_codes[:, None]
    codes = (np.arange(N_PROBES) * n_codes // N_PROBES).astype(np.int32)
    keys = person_keys(fitted.seed, codes[schema.immutable].T)
    drawn = fitted.generator.sample(DrawRequest(codes, keys, np.zeros(1, dtype=np.int64)))
    # Probes are made of training values; a generator may invent others.
    if drawn.tables is None:
        codes[schema.mutable, ::2] = drawn.codes[:, ::2, 0]
    return codes


def _pack_decision(decision: Decision) -> dict[str, Any]:
    desired: Any = decision.desired
    if not isinstance(desired, Interval):
        # The order of labels means nothing, and that of a set differs from run to run.
        desired = frozenset(desired)
    return {
        "method": decision.method,
        "columns": list(decision.columns),
        "desired": pack(desired, "desired"),
    }
