"""How a predictor is known again: what it said of a few made-up rows.

A file holds no predictor. It holds how the predictor was asked, and its scores of up to eight probe
rows. Their immutable features are spread evenly over the tables of training values; so are the
mutable ones of every other row, and the rest are draws of the chain. No training row is among them
but by accident.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import PredictorError
from ..kernels import Codes, person_keys
from ..predictors.decision import Decision
from ..predictors.desired import make_decision
from ..predictors.interval import Interval
from ..tables.schema import Schema
from .values import pack

if TYPE_CHECKING:
    from ..explainer import MCCE

N_PROBES = 8
# Zero has no relative tolerance.
NOTHING = 1e-12


def pack_predictor(explainer: MCCE) -> dict[str, Any]:
    """How the predictor is asked, and what it says of the probes it can judge."""
    codes, scores = _probe_codes(explainer), []
    judged, failure = [], None
    for place in range(N_PROBES):
        try:
            rows = probe_rows(explainer.schema_, codes[:, [place]])
            scores.append(explainer.decision_.score(rows).score)
            judged.append(place)
        except PredictorError as error:
            # A made-up row may be one that a predictor has no answer to.
            failure = error
    if failure is not None and not judged:
        raise failure
    return {
        "decision": _pack_decision(explainer.decision_),
        "probes": codes[:, judged],
        "scores": np.concatenate(scores),
    }


def attach_predictor(
    explainer: MCCE, plain: dict[str, Any], path: str, tolerance: float
) -> Decision:
    """The decision of the predictor given, if it is the one that the file tells of."""
    decision = make_decision(
        explainer.predictor,
        explainer.desired,
        score_class=explainer.score_class,
        adapter=explainer.schema_.adapter,
    )
    asked = _pack_decision(decision)
    if asked != plain["decision"]:
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: it would be asked as "
            f"{asked!r}, expected {plain['decision']!r}. Pass the predictor that was explained."
        )
    rows, expected = probe_rows(explainer.schema_, plain["probes"]), plain["scores"]
    got = np.concatenate([decision.score(rows.iloc[[row]]).score for row in range(len(rows))])
    if not np.isclose(got, expected, rtol=tolerance, atol=NOTHING).all():
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: it scores the probe rows "
            f"{got.tolist()!r}, expected {expected.tolist()!r} within a relative tolerance of "
            f"{tolerance!r}. Pass the predictor that was explained, or fit again with this one."
        )
    return decision


def check_known(plain: dict[str, Any], schema: Schema) -> None:
    """Raise unless this is what :func:`pack_predictor` gives for columns like these."""
    codes, scores = plain["probes"], plain["scores"]
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    # The text must not be made of arrays, which cannot be compared as a whole.
    json.dumps(plain["decision"])
    if codes.dtype != np.int32 or scores.dtype != np.float64 or scores.ndim != 1:
        raise ValueError("the probe rows or their scores have other dtypes")
    if codes.shape != (n_codes.size, scores.size) or not 1 <= scores.size <= N_PROBES:
        raise ValueError("there is not one score for each probe row of all columns")
    if (codes < 0).any() or (codes >= n_codes).any():
        raise ValueError("the probe rows hold values that training never held")


def probe_rows(schema: Schema, codes: Codes) -> pd.DataFrame:
    """Rows made of training values, shape of codes (n_features, n_rows)."""
    cells = [
        feature.table.iloc[row].reset_index(drop=True)
        for feature, row in zip(schema.features, codes, strict=True)
    ]
    frame = pd.DataFrame(dict(enumerate(cells)))
    frame.columns = pd.Index(schema.names, tupleize_cols=False)
    return frame


def _probe_codes(explainer: MCCE) -> Codes:
    schema = explainer.schema_
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    codes = (np.arange(N_PROBES) * n_codes // N_PROBES).astype(np.int32)
    keys = person_keys(explainer.seed_, codes[schema.immutable].T)
    drawn = explainer.generator_.sample(codes, keys, np.zeros(1, dtype=np.int64))
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
