"""Receipts: one plan of one person, which anybody with the same explainer and predictor can check.

Beyond the paper. A receipt is an object of JSON: the person, the answer, the rules that the
explainer's file does not hold, what it was made with, and a checksum of all of it. With a key it is
signed.

Always true: a receipt is made only of an answer that the predictor accepts and that keeps every
rule and all immutable features; a check says of each promise whether it holds.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
import pandas as pd

from ..constraints.collection import GivenRows
from ..constraints.files import make_constraints
from ..counterfactuals.parts import ALREADY
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE, requirements_of
from ..tables.columns import differ
from ..version import __version__

FORMAT = 1
SEALS = ("checksum", "signature")
# Measures of an answer, and the columns of a result that they stand in.
NO_ANSWER: dict[str, Any] = {"row": {}, "changes": [], "measures": {"valid": False}}
MEASURES = {"score_after": "score", "sparsity": "sparsity", "gower": "gower"}


@dataclass(frozen=True)
class ReceiptContent:
    """What a receipt holds, beside its checksum and signature."""

    receipt: int
    mcce: str
    made: str
    seed: int
    explainer: str
    predictor: str
    desired: str
    rules: list[dict[str, Any]]
    person: dict[str, Any]
    answer: dict[str, Any]
    changes: list[dict[str, Any]]
    score_before: float
    score_after: float
    sparsity: int
    gower: float


@dataclass(frozen=True)
class Origin:
    """What a receipt is made with."""

    explainer: str
    predictor: str


@dataclass(frozen=True)
class Check:
    """One promise of a receipt: its name, whether it holds, and what was found if it does not."""

    name: str
    holds: bool
    found: str


@dataclass(frozen=True, eq=False)
class Plan:
    """A person and an answer, as a fresh call of the predictor and the rules see them."""

    person: dict[str, Any]
    row: dict[str, Any]
    changes: list[dict[str, Any]]
    measures: dict[str, Any]
    promises: list[Check]

    @classmethod
    def assess(
        cls,
        explainer: MCCE,
        person: pd.DataFrame,
        answer: pd.DataFrame,
        rules: Sequence[Mapping[str, Any]],
    ) -> Self:
        """Find out what holds."""
        schema = explainer.schema_
        constraints = [constraint for entry in rules for constraint in make_constraints(entry)]
        rows = schema.encode(person.reset_index(drop=True))
        # Constraints compare columns by position.
        person, answer = rows.returned, schema.encode(answer.reset_index(drop=True)).returned
        result = Counterfactuals.from_frame(
            person, answer, schema=schema, decision=explainer.decision_
        )
        (record,) = result.to_dict()
        # Of somebody with the desired decision, no answer is kept.
        found: list[dict[str, Any]] = record["counterfactuals"]
        about = found[0] if found else NO_ANSWER
        measures = {"score_before": record["score"]}
        measures |= {name: about["measures"].get(of) for name, of in MEASURES.items()}
        required = requirements_of(explainer, constraints).constraints
        given = GivenRows(rows, np.zeros(1, dtype=np.int64), answer)
        broken = [
            str(name) for name, is_broken in required.broken(given).items() if is_broken.any()
        ]
        fixed = [feature.name for feature in schema.features if feature.immutable]
        moved = [str(name) for name in fixed if differ(person[name], answer[name]).any()]
        refused = "the predictor refuses it"
        if record["status"] == ALREADY:
            refused = "this person has the desired decision already"
        changed = f"immutable features change: {shorten(moved, 200)}"
        promises = [
            Check("the predictor accepts the answer", about["measures"]["valid"], refused),
            Check("immutable features stay", not moved, changed),
            Check("every rule holds", not broken, f"rules are broken: {shorten(broken, 200)}"),
        ]
        return cls(record["person"], about["row"], about["changes"], measures, promises)


def make_receipt(
    explainer: MCCE,
    person: pd.DataFrame,
    answer: pd.DataFrame,
    *,
    rules: Sequence[Mapping[str, Any]] = (),
    added: Sequence[Mapping[str, Any]] = (),
    origin: Origin,
    made: datetime,
    key: bytes | None = None,
) -> dict[str, Any]:
    """A receipt of an answer."""
    plan = Plan.assess(explainer, person, answer, rules)
    wrong = [check.found for check in plan.promises if not check.holds]
    if wrong:
        raise ParameterError(f"There is no receipt for this answer: {'; '.join(wrong)}.")
    content = {
        "receipt": FORMAT,
        "mcce": __version__,
        "made": made.astimezone(UTC).isoformat(timespec="seconds"),
        "seed": explainer.seed_,
        **asdict(origin),
        "desired": str(explainer.decision_.desired),
        "rules": [dict(rule) for rule in (*added, *rules)],
        "person": plan.person,
        "answer": plan.row,
        "changes": plan.changes,
        **plan.measures,
    }
    sealed = {**content, "checksum": _checksum(content)}
    return sealed if key is None else {**sealed, "signature": _signature(content, key)}


def check_receipt(receipt: Any, key: bytes | None = None) -> list[Check]:
    """Whether a receipt is whole and unaltered; what it promises is for :func:`check_plan`."""
    if not isinstance(receipt, Mapping) or not {
        field.name for field in fields(ReceiptContent)
    } <= set(receipt):
        raise ReadError("This is no receipt: expected a JSON object with the keys of one.")
    if receipt["receipt"] != FORMAT:
        raise ReadError(
            f"This receipt has format {shorten(receipt['receipt'])}; this mcce reads format "
            f"{FORMAT}. Use a newer one."
        )
    content = {name: value for name, value in receipt.items() if name not in SEALS}
    try:
        _canonical(content)
    except ValueError:
        raise ReadError("This is no receipt: its numbers must be finite.") from None
    sealed = _matches(receipt.get("checksum"), _checksum(content))
    checks = [Check("the receipt is unaltered", sealed, "its checksum differs")]
    if key is not None:
        signed = _matches(receipt.get("signature"), _signature(content, key))
        missing = "its signature is missing or made with another key"
        checks.append(Check("it was signed with this key", signed, missing))
    return checks


def check_plan(
    receipt: Mapping[str, Any],
    explainer: MCCE,
    person: pd.DataFrame,
    answer: pd.DataFrame,
    origin: Origin,
) -> list[Check]:
    """Whether an explainer and its predictor keep what a receipt promises."""
    if not isinstance(receipt["rules"], list):
        raise ReadError("This is no receipt: its rules must be a list.")
    plan = Plan.assess(explainer, person, answer, receipt["rules"])
    now = {
        "the explainer": (origin.explainer, "explainer"),
        "the predictor": (origin.predictor, "predictor"),
        "the seed": (explainer.seed_, "seed"),
        "what is desired": (str(explainer.decision_.desired), "desired"),
        **{name: (value, name) for name, value in plan.measures.items()},
    }
    checks = [
        Check(f"{what} is the same", value == receipt[key], f"{value} now, {receipt[key]} then")
        for what, (value, key) in now.items()
    ]
    same = plan.changes == receipt["changes"]
    checks.append(Check("the changes are those of the answer", same, "they are others"))
    return checks + plan.promises


def _canonical(content: Mapping[str, Any]) -> bytes:
    """The same bytes for the same JSON: programs that pass a file on may write 1.0 as 1."""
    same = json.loads(json.dumps(content, allow_nan=False), parse_float=_number)
    return json.dumps(same, sort_keys=True, separators=(",", ":")).encode()


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


def _matches(given: Any, seal: str) -> bool:
    """Whether a seal is the one given, compared whole; what is given may be anything."""
    return hmac.compare_digest(str(given).encode("utf-8", "surrogatepass"), seal.encode())


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(content)).hexdigest()


def _signature(content: Mapping[str, Any], key: bytes) -> str:
    return hmac.new(key, _canonical(content), "sha256").hexdigest()
