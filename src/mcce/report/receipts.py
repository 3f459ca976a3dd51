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
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..constraints.collection import GivenRows
from ..constraints.constraint import Constraint
from ..constraints.files import make_constraints
from ..counterfactuals.parts import ALREADY
from ..counterfactuals.records import plain_value
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE, requirements_of
from ..tables.columns import differ
from ..version import __version__

FORMAT = 1
SEALS = ("checksum", "signature")
# Measures of an answer, and the columns of a result that they stand in.
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
class AssessedAnswer:
    """A person and an answer, and what a fresh call of the predictor and the rules say of them."""

    result: Counterfactuals[pd.DataFrame]
    broken: list[str]
    moved: list[str]

    @classmethod
    def assess(
        cls,
        explainer: MCCE,
        person: pd.DataFrame,
        answer: pd.DataFrame,
        constraints: Sequence[Constraint] = (),
    ) -> Self:
        """Find out what holds."""
        schema = explainer.schema_
        rows = schema.encode(person.reset_index(drop=True))
        # Constraints compare columns by position.
        person, answer = rows.returned, schema.encode(answer.reset_index(drop=True)).returned
        result = Counterfactuals.from_frame(
            person, answer, schema=schema, decision=explainer.decision_
        )
        rules = requirements_of(explainer, list(constraints)).constraints
        broken = rules.broken(GivenRows(rows, np.zeros(1, dtype=np.int64), answer))
        fixed = [feature.name for feature in schema.features if feature.immutable]
        return cls(
            result,
            [str(name) for name, breaks in broken.items() if breaks.any()],
            [str(name) for name in fixed if differ(person[name], answer[name]).any()],
        )

    @property
    def measures(self) -> dict[str, Any]:
        """Scores before and after, changed features and the Gower distance."""
        own, found = self.result.people.iloc[0], self.result.measures
        cost = {name: None if found.empty else found[name].iloc[0] for name in MEASURES.values()}
        measures = {name: plain_value(cost[column]) for name, column in MEASURES.items()}
        return {"score_before": plain_value(own["score"]), **measures}

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The person, and the answer if there is one, in types that JSON has."""
        return self.result.to_dict(orient="records")

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changed cells."""
        (record,) = self.records
        return [one for answer in record["counterfactuals"] for one in answer["changes"]]

    @property
    def is_accepted(self) -> bool:
        """Whether the person is declined and the answer is not."""
        found = self.result.measures
        return not found.empty and bool(found["valid"].iloc[0])


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
    plan = AssessedAnswer.assess(explainer, person, answer, _constraints(rules))
    wrong = [check.found for check in _promises(plan) if not check.holds]
    if wrong:
        raise ParameterError(f"There is no receipt for this answer: {'; '.join(wrong)}.")
    (record,) = plan.records
    (answered,) = record["counterfactuals"]
    content = {
        "receipt": FORMAT,
        "mcce": __version__,
        "made": made.astimezone(UTC).isoformat(timespec="seconds"),
        "seed": explainer.seed_,
        "explainer": origin.explainer,
        "predictor": origin.predictor,
        "desired": str(explainer.decision_.desired),
        "rules": [dict(rule) for rule in (*added, *rules)],
        "person": record["person"],
        "answer": answered["row"],
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
    plan = AssessedAnswer.assess(explainer, person, answer, _constraints(receipt["rules"]))
    same = [
        ("the explainer is the same", origin.explainer, receipt["explainer"]),
        ("the predictor is the same", origin.predictor, receipt["predictor"]),
        ("the seed is the same", explainer.seed_, receipt["seed"]),
        ("what is desired is the same", str(explainer.decision_.desired), receipt["desired"]),
        *((f"{name} is the same", now, receipt[name]) for name, now in plan.measures.items()),
    ]
    checks = [Check(name, now == then, f"{now} now, {then} then") for name, now, then in same]
    same_changes = plan.changes == receipt["changes"]
    checks.append(Check("the changes are those of the answer", same_changes, "they are others"))
    return checks + _promises(plan)


def _constraints(entries: Sequence[Any]) -> list[Constraint]:
    return [constraint for entry in entries for constraint in make_constraints(entry)]


def _promises(plan: AssessedAnswer) -> list[Check]:
    already = plan.result.people["status"].iloc[0] == ALREADY
    refused = (
        "this person has the desired decision already" if already else "the predictor refuses it"
    )
    return [
        Check("the predictor accepts the answer", plan.is_accepted, refused),
        Check(
            "immutable features stay",
            not plan.moved,
            f"immutable features change: {shorten(plan.moved, 200)}",
        ),
        Check(
            "every rule holds", not plan.broken, f"rules are broken: {shorten(plan.broken, 200)}"
        ),
    ]


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
