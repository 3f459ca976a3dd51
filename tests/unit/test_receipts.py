"""Receipts: made of answers that hold, and known again."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pandas as pd
import pytest

from mcce import MCCE
from mcce.errors import ParameterError, ReadError
from mcce.report.receipts import Origin, check_plan, check_receipt, make_receipt

BANK = {
    "age": [25, 36, 47, 52] * 25,
    "salary": [*range(50, 150, 2)] * 2,
    "home": ["own", "rent"] * 50,
}
ORIGIN = Origin("sha256:bank", "scoring:score")
MADE = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
RULES = [{"only_up": "salary"}, {"frozen": ["home"]}]
KEY = b"a secret of at least 16 bytes"


def score(frame):
    return frame["salary"] / 100


@pytest.fixture(scope="module")
def explainer():
    return MCCE(score, (0.9, 2), immutable=["age"], random_state=0).fit(pd.DataFrame(BANK))


def rows(**cells):
    person = pd.DataFrame({"age": [36], "salary": [60], "home": ["rent"]})
    return person, person.assign(**{"salary": 95, **cells})


def make(explainer, *, key=None, rules=RULES, **cells):
    person, answer = rows(**cells)
    return make_receipt(explainer, person, answer, rules=rules, origin=ORIGIN, made=MADE, key=key)


def failing(checks):
    return [check.name for check in checks if not check.holds]


def test_a_receipt_holds(explainer):
    receipt = json.loads(json.dumps(make(explainer, key=KEY)))

    assert receipt["made"] == "2026-11-16T09:30:00+00:00"
    assert receipt["answer"] == {"age": 36, "salary": 95, "home": "rent"}
    assert (receipt["score_before"], receipt["score_after"], receipt["sparsity"]) == (0.6, 0.95, 1)
    checks = check_receipt(receipt, KEY) + check_plan(receipt, explainer, *rows(), ORIGIN)
    assert failing(checks) == []
    assert len({check.name for check in checks}) == len(checks)


def test_nothing_is_promised_of_an_answer_that_does_not_hold(explainer):
    wrong = [
        ({"salary": 61}, "the predictor refuses it"),
        ({"age": 47}, r"immutable features change: \['age'\]"),
        ({"home": "own"}, "rules are broken"),
    ]
    for cells, message in wrong:
        with pytest.raises(ParameterError, match=message):
            make(explainer, **cells)


@pytest.mark.parametrize("turn", [1, -1], ids=["first", "last"])
def test_of_two_rules_of_a_kind_on_a_column_both_must_hold(explainer, turn):
    rules = [
        {"between": {"feature": "salary", "high": 92}},
        {"between": {"feature": "salary", "low": 10}},
    ]

    with pytest.raises(ParameterError, match="between salary"):
        make(explainer, rules=rules[::turn])


def test_somebody_who_needs_no_answer_gets_no_receipt(explainer):
    person, answer = rows()

    with pytest.raises(ParameterError, match="has the desired decision already"):
        make_receipt(explainer, answer, person, origin=ORIGIN, made=MADE)


def test_a_receipt_holds_however_a_program_writes_its_numbers(explainer):
    receipt = make(explainer, salary=100)
    assert '"score_after": 1.0' in json.dumps(receipt)

    rewritten = json.loads(json.dumps(receipt).replace("1.0,", "1,"))

    assert failing(check_receipt(rewritten)) == []


def test_the_order_of_columns_does_not_matter(explainer):
    person, answer = rows(home="own")
    names, rules = list(person)[::-1], [{"frozen": ["salary"]}, {"max_changes": 2}]
    receipt = make(explainer, rules=rules[1:], home="own")

    turned = check_plan(receipt, explainer, person[names], answer[names], ORIGIN)
    mixed = check_plan(receipt, explainer, person, answer[names], ORIGIN)

    assert failing(turned) == failing(mixed) == []
    with pytest.raises(ParameterError, match=r"rules are broken: \['frozen salary'\]"):
        make_receipt(explainer, person, answer[names], rules=rules, origin=ORIGIN, made=MADE)


def test_an_altered_receipt_is_noticed(explainer):
    for name in ("made", "person", "answer", "rules", "score_after", "seed"):
        receipt = make(explainer, key=KEY)
        receipt[name] = {"another": "value"}

        assert failing(check_receipt(receipt)) == ["the receipt is unaltered"]
        assert len(failing(check_receipt(receipt, KEY))) == 2
    for seal in ("é", "\ud800", 7, None, ["a"]):
        receipt = {**make(explainer, key=KEY), "checksum": seal, "signature": seal}

        assert len(failing(check_receipt(receipt, KEY))) == 2


def test_another_key_and_no_signature_are_noticed(explainer):
    assert failing(check_receipt(make(explainer, key=KEY), b"another secret of 16 bytes"))
    assert failing(check_receipt(make(explainer), KEY)) == ["it was signed with this key"]


def test_what_follows_from_the_plan_is_not_believed(explainer):
    """Without a key anybody can seal a receipt anew."""
    wrong = [("desired", "scores from 0.1"), ("changes", []), ("changes", [{"feature": "age"}])]
    for name, value in wrong:
        receipt = make(explainer) | {name: value}

        assert len(failing(check_plan(receipt, explainer, *rows(), ORIGIN))) == 1


def test_another_predictor_is_noticed(explainer):
    receipt = make(explainer)
    stricter = MCCE(
        lambda frame: frame["salary"] / 120, (0.9, 2), immutable=["age"], random_state=0
    ).fit(pd.DataFrame(BANK))

    checks = check_plan(receipt, stricter, *rows(), Origin("sha256:bank", "scoring:other"))

    assert failing(checks) == [
        "the predictor is the same",
        "score_before is the same",
        "score_after is the same",
        "the predictor accepts the answer",
    ]


def test_what_is_no_receipt_is_an_error(explainer):
    for content in (None, [], {}, "text", {"receipt": 1}):
        with pytest.raises(ReadError, match="no receipt"):
            check_receipt(content)
    for number in (float("nan"), float("inf")):
        with pytest.raises(ReadError, match="finite"):
            check_receipt(make(explainer) | {"gower": number})
    with pytest.raises(ReadError, match="has format 2; this mcce reads format 1"):
        check_receipt(make(explainer) | {"receipt": 2})
    with pytest.raises(ReadError, match="must be a list"):
        check_plan(make(explainer) | {"rules": 5}, explainer, *rows(), ORIGIN)
