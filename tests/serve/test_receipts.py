"""Receipts of the service: made of answers that hold, and checked by the library."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

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


def test_no_receipt_of_an_answer_that_does_not_hold(client: Any) -> None:
    asked = {"person": person(), "answer": person()}

    refused = client.post("/receipts", json=asked)

    assert refused.status_code == 422
    assert "for an answer that holds" in refused.json()["detail"][0]["msg"]
