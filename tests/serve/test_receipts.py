"""Receipts of the service: made of answers that hold, and checked by the library."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from mcce.constraints import frozen, max_changes, relation
from mcce.report.receipts import Origin, check_plan, check_receipt
from mcce.serve import ServiceSettings, create_app
from served_bank import fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

KEY, ORIGIN = b"a secret of at least 16 bytes", Origin("sha256:bank", "scoring:score")


@pytest.fixture(scope="module")
def explainer() -> Any:
    return fitted()


@pytest.fixture(scope="module")
def client(explainer: Any) -> Any:
    settings = ServiceSettings(name="bank", origin=ORIGIN, key=KEY)
    with running(create_app(explainer, settings)) as client:
        yield client


def test_a_receipt_of_an_answer_holds(client: Any, explainer: Any) -> None:
    (found,) = client.post("/explain", json={"people": [person()]}).json()["people"]
    answer = found["counterfactuals"][0]["row"]
    rules = [{"max_changes": 5}]

    asked = {"person": person(), "answer": answer, "rules": rules}
    receipt = client.post("/receipts", json=asked).json()

    assert all(check.holds for check in check_receipt(receipt, KEY))
    result = explainer.explain(pd.DataFrame([person()]).astype({"savings": "float64"}))
    checks = check_plan(receipt, explainer, result.factuals, result.frame.iloc[:1], ORIGIN)
    assert [check.name for check in checks if not check.holds] == []


def test_a_receipt_has_the_rules_of_the_service_too(explainer: Any) -> None:
    settings = ServiceSettings(origin=ORIGIN, rules=[frozen("savings"), max_changes(3)])
    with running(create_app(explainer, settings)) as client:
        (found,) = client.post("/explain", json={"people": [person()]}).json()["people"]
        answer = found["counterfactuals"][0]["row"]
        asked = {"person": person(), "answer": answer, "rules": [{"only_up": "salary"}]}
        receipt = client.post("/receipts", json=asked).json()
        broken = client.post("/receipts", json=asked | {"answer": answer | {"savings": 0.5}})

    assert [list(rule) for rule in receipt["rules"]] == [["frozen"], ["max_changes"], ["only_up"]]
    assert broken.status_code == 422
    rows = [pd.DataFrame([cells]).astype({"savings": float}) for cells in (person(), answer)]
    checks = check_plan(receipt, explainer, *rows, ORIGIN)
    assert [check.name for check in checks if not check.holds] == []
    other = rows[1].assign(savings=0.5)
    checks = check_plan(receipt, explainer, rows[0], other, ORIGIN)
    assert "every rule holds" in [check.name for check in checks if not check.holds]


def test_there_is_no_receipt_under_a_rule_that_it_could_not_hold(explainer: Any) -> None:
    rules = [relation("adult", lambda rows: rows["age"] > 17)]
    asked = {"person": person(), "answer": person(salary=60_000)}
    with running(create_app(explainer, ServiceSettings(rules=rules))) as client:
        refused = client.post("/receipts", json=asked)

    assert refused.status_code == 422
    assert "cannot be written as JSON" in refused.json()["detail"][0]["msg"]


def test_no_receipt_of_an_answer_that_does_not_hold(client: Any) -> None:
    asked = {"person": person(), "answer": person()}

    refused = client.post("/receipts", json=asked)

    assert refused.status_code == 422
    assert "There is no receipt for this answer" in refused.json()["detail"][0]["msg"]
