"""What is refused: cells, rules, bodies and clients, each with a clear message."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.errors import (
    ConstraintError,
    LabelsError,
    McceError,
    NotFittedError,
    ParameterError,
)
from mcce.serve import Limits, ServiceSettings, create_app
from mcce.serve.refusals import refusal_of
from served_bank import fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TOKEN = "a token of thirty-two characters"


@pytest.fixture(scope="module")
def explainer() -> Any:
    return fitted()


@pytest.fixture(scope="module")
def client(explainer: Any) -> Any:
    limits = Limits(people=3, answers=2, rules=4, bytes=20_000, body_seconds=1.0)
    with running(create_app(explainer, ServiceSettings(limits=limits))) as client:
        yield client


def problems(answer: Any, status: int = 422) -> dict[tuple[Any, ...], str]:
    assert answer.status_code == status, answer.text
    return {tuple(one["loc"]): one["msg"] for one in answer.json()["detail"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"age": "x"}, "expected a whole number, got 'x'"),
        ({"age": "30"}, "expected a whole number, got '30'"),
        ({"age": 30.5}, "expected a whole number, got 30.5"),
        ({"age": True}, "expected a whole number, got True"),
        ({"age": None}, "got null, but the training data have no missing values"),
        ({"age": [30]}, "expected a whole number, got [30]"),
        ({"age": 10**30}, "far outside the training data"),
        ({"age": 10**400}, "far outside the training data"),
        ({"savings": 1e300}, "far outside the training data"),
        ({"savings": "NA"}, "expected a number, got 'NA'"),
        ({"sex": "Female"}, "expected one of the levels ['female', 'male'], got 'Female'"),
        ({"sex": ""}, "expected one of the levels"),
        ({"sex": {"a": 1}}, "expected one of the levels"),
        ({"owns <b>home</b>": 1}, "got 1"),
        ({"owns <b>home</b>": "true"}, "got 'true'"),
    ],
)
def test_a_cell_that_does_not_fit_is_named(client: Any, changes: Any, message: str) -> None:
    answer = client.post("/score", json={"people": [person(), person(**changes)]})

    (name,) = changes
    assert message in problems(answer)["body", "people", 1, name]


def test_all_cells_that_do_not_fit_are_listed(client: Any) -> None:
    wrong = person(age="x", sex="y", more=1)
    del wrong["salary"]

    found = problems(client.post("/explain", json={"people": [wrong]}))

    assert {loc[-1] for loc in found} == {"age", "sex", "more", "salary"}


def test_at_most_fifty_problems_are_listed(client: Any) -> None:
    wrong = {f"column {at}": 1 for at in range(200)}

    answer = client.post("/score", json={"people": [person(**wrong)]})

    assert len(answer.json()["detail"]) == 50


def test_names_and_values_that_came_are_shortened(client: Any) -> None:
    answer = client.post("/score", json={"people": [person(age="<i>" * 5000, **{"k" * 3000: 1})]})

    assert answer.status_code == 422
    assert len(answer.content) < 2_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"people"',
        b'{"people": [{"age": NaN}]}',
        b'{"people": [{"age": Infinity}]}',
        b'{"people": [], "people": []}',
        b'{"people": "\\ud800"}',
        b"\xff\xfe",
        b"[" * 15_000,
        b'{"people": [{}]}',
        b'{"people": []}',
        b'{"people": {}}',
        b'{"people": [1]}',
        b'{"people": [' + b"9" * 10_000 + b"]}",
    ],
)
def test_a_body_that_is_none_is_refused(client: Any, content: bytes) -> None:
    answer = client.post("/score", content=content, headers={"Content-Type": "application/json"})

    assert problems(answer)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("search", "quick"),
        ("search", 1),
        ("language", "xx"),
        ("n_counterfactuals", 0),
        ("n_counterfactuals", 3),
        ("n_counterfactuals", True),
        ("seconds", -1),
        ("seconds", "1"),
        ("details", 1),
        ("rules", {}),
        ("rules", [1]),
        ("rules", [{"max_changes": 1}] * 5),
        ("other", 1),
    ],
)
def test_an_option_that_does_not_fit_is_named(client: Any, field: str, value: Any) -> None:
    answer = client.post("/explain", json={"people": [person()], field: value})

    assert any(loc[:2] == ("body", field) for loc in problems(answer))


@pytest.mark.parametrize(
    "rule",
    [
        {"onlyup": "salary"},
        {"only_up": "age"},
        {"only_up": "other"},
        {"only_up": {"feature": "salary", "more": 1}},
        {"frozen": {"features": ["salary"], "where": [True]}},
        {"frozen": {"features": ["salary"], "where": "__import__('os')"}},
        {"between": {"feature": "salary", "low": "x"}},
        {"only_up": "salary", "max_changes": 1},
        {"derived": {"feature": "salary", "formula": "age ** 9999999999"}},
        {"weight": {"feature": "salary", "weight": 1e400}},
    ],
)
def test_a_rule_that_does_not_fit_is_named(client: Any, rule: Any) -> None:
    content = json.dumps({"people": [person()], "rules": [{"max_changes": 2}, rule]})
    answer = client.post("/explain", content=content, headers={"Content-Type": "application/json"})

    assert all(loc[0] == "body" for loc in problems(answer))


def test_too_many_people_are_refused(client: Any) -> None:
    answer = client.post("/score", json={"people": [person()] * 4})

    assert problems(answer) == {("body", "people"): "expected at most 3, got 4"}


def test_a_body_of_another_type_is_refused(client: Any) -> None:
    content = json.dumps({"people": [person()]})

    assert client.post("/score", content=content).status_code == 415


def test_a_body_that_is_too_large_is_refused_by_its_declared_size(client: Any) -> None:
    answer = client.post("/score", json={"people": [person(sex="x" * 30_000)]})

    assert answer.status_code == 413


def test_a_body_that_is_too_large_is_refused_while_it_is_read(client: Any) -> None:
    def parts() -> Any:
        for _ in range(100):
            yield b" " * 1_000

    answer = client.post("/score", content=parts(), headers={"Content-Type": "application/json"})

    assert answer.status_code == 413


@pytest.mark.parametrize("sent", [b"", b'{"people": ['])
def test_a_body_that_does_not_arrive_is_given_up(client: Any, sent: bytes) -> None:
    url = client.base_url
    with socket.create_connection((url.host, url.port), timeout=10) as slow:
        slow.sendall(
            b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 500\r\n\r\n" + sent
        )
        began = time.monotonic()
        assert client.post("/score", json={"people": [person()]}).status_code == 200
        answer = slow.recv(4096)

    assert b" 408 " in answer.split(b"\r\n")[0]
    assert time.monotonic() - began < 8


def test_a_client_that_goes_in_the_middle_of_its_body_harms_nobody(client: Any) -> None:
    url = client.base_url
    for _ in range(5):
        with socket.create_connection((url.host, url.port), timeout=10) as half:
            half.sendall(
                b"POST /explain HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b'Content-Length: 500\r\n\r\n{"people"'
            )

    assert client.post("/score", json={"people": [person()]}).status_code == 200


def test_the_wrong_path_method_and_parameters_are_answered_in_one_form(client: Any) -> None:
    assert problems(client.get("/nothing"), 404)
    assert problems(client.get("/explain"), 405)
    assert problems(client.get("/people", params={"limit": 0})) != {}
    assert problems(client.get("/people/0"), 404)
    assert problems(client.get("/people/x")) != {}
    assert problems(client.get("/schema", params={"language": "xx"})) != {}
    assert problems(client.get("/messages/xx"), 404)
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404


@pytest.fixture(scope="module")
def guarded(explainer: Any) -> Any:
    settings = ServiceSettings(token=TOKEN, hosts=["127.0.0.1", "localhost"])
    with running(create_app(explainer, settings)) as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)
def test_without_the_token_nothing_is_revealed(guarded: Any, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    paths = ["/schema", "/people", "/openapi.json", "/metrics", "/ready", "/nothing", "/explain"]

    answers = [guarded.get(path, headers=headers) for path in paths]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert guarded.post("/score", json={"people": [1]}, headers=headers).status_code == 401


def test_with_the_token_everything_is_answered(guarded: Any) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}

    assert guarded.get("/schema", headers=headers).status_code == 200
    answer = guarded.post("/score", json={"people": [person()]}, headers=headers)
    assert answer.status_code == 200


def test_the_page_and_its_words_need_no_token_and_hold_nothing(guarded: Any) -> None:
    for path in ("/", "/health", "/messages/en", "/static/index.html"):
        answer = guarded.get(path)
        assert answer.status_code == 200, path
        assert "salary" not in answer.text


def test_other_names_and_other_origins_are_refused(guarded: Any) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    rebound = guarded.get("/schema", headers=headers | {"Host": "evil.example"})
    crossed = guarded.post(
        "/score",
        json={"people": [person()]},
        headers=headers | {"Sec-Fetch-Site": "cross-site"},
    )

    assert rebound.status_code == 421
    assert guarded.get("/health", headers={"Host": "10.0.0.7"}).status_code == 200
    assert crossed.status_code == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8000", 200),
        ("https://LOCALHOST", 200),
        ("http://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://[", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_browsers_that_name_their_page_alone_are_believed(
    guarded: Any, origin: str, status: int
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "localhost:8000", "Origin": origin}

    answer = guarded.post("/score", json={"people": [person()]}, headers=headers)

    assert answer.status_code == status


def test_every_answer_has_the_headers_of_a_careful_service(client: Any) -> None:
    for answer in (client.get("/"), client.get("/schema"), client.get("/nothing")):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
    assert client.get("/schema").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("token", ["short", "a token with ünicode in it"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(ParameterError, match="token must have at least 16"):
        ServiceSettings(token=token)


def test_limits_that_cannot_work_are_refused() -> None:
    with pytest.raises(ParameterError, match="patience must be more than seconds"):
        Limits(seconds=10, patience=5)
    with pytest.raises(ParameterError, match="threads must be a whole number"):
        Limits(threads=0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(cells=st.dictionaries(st.sampled_from(list(person())), JSON, max_size=5))
def test_any_person_is_scored_or_refused(client: Any, cells: Any) -> None:
    content = json.dumps({"people": [person(**cells)]}, allow_nan=True)
    headers = {"Content-Type": "application/json"}

    answer: httpx.Response = client.post("/score", content=content, headers=headers)

    assert answer.status_code in (200, 413, 422), answer.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConstraintError("x"), 422),
        (ParameterError("x"), 422),
        (NotFittedError("x"), 500),
        (LabelsError("x"), 500),
    ],
)
def test_only_what_a_request_can_cause_is_its_fault(error: McceError, status: int) -> None:
    assert refusal_of(error).status == status
