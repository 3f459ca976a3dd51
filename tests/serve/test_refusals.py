"""What is refused: cells, rules, bodies and clients, each with a clear message."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcce.errors import ParameterError
from mcce.serve import ServiceLimits, ServiceSettings, create_app
from served_bank import TOKEN, half_sent, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

JSON = {"Content-Type": "application/json"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def client(explainer):
    limits = ServiceLimits(people=3, answers=2, bytes=20_000)
    with running(create_app(explainer, ServiceSettings(limits=limits))) as client:
        yield client


@pytest.fixture(scope="module")
def guarded(explainer):
    settings = ServiceSettings(token=TOKEN, hosts=["127.0.0.1", "localhost"])
    with running(create_app(explainer, settings)) as client:
        yield client


def problems(answer, status=422):
    assert answer.status_code == status, answer.text
    return {tuple(one["loc"]): one["msg"] for one in answer.json()["detail"]}


CELLS = {
    "a word": ({"age": "x"}, "expected a whole number, got 'x'"),
    "digits": ({"age": "30"}, "expected a whole number, got '30'"),
    "a half": ({"age": 30.5}, "expected a whole number, got 30.5"),
    "true": ({"age": True}, "expected a whole number, got True"),
    "null": ({"age": None}, "got null, but the training data have no missing values"),
    "a list": ({"age": [30]}, "expected a whole number, got [30]"),
    "too large": ({"age": 10**400}, "far outside the training data"),
    "below zero": ({"age": -4}, "expected a whole number from 0 to "),
    "too far": ({"savings": 1e300}, "far outside the training data"),
    "another level": ({"sex": "Female"}, "expected one of the levels ['female', 'male']"),
    "an object": ({"sex": {"a": 1}}, "expected one of the levels"),
    "one for true": ({"owns <b>home</b>": 1}, "got 1"),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_cell_that_does_not_fit_is_named(client, case):
    changes, message = CELLS[case]

    answer = client.post("/score", json={"people": [person(), person(**changes)]})

    (name,) = changes
    assert message in problems(answer)["body", "people", 1, name]


def test_all_cells_that_do_not_fit_are_listed_within_bounds(client):
    wrong = person(age="x", sex="y", more=1)
    del wrong["salary"]
    many = person(**{f"column {at}": 1 for at in range(200)})
    long = person(age="<i>" * 5000, **{"k" * 3000: 1})

    found = problems(client.post("/explain", json={"people": [wrong]}))
    many, long = (client.post("/score", json={"people": [one]}) for one in (many, long))

    assert {loc[-1] for loc in found} == {"age", "sex", "more", "salary"}
    assert len(problems(many)) == 50
    assert problems(long)
    assert len(long.content) < 2_000


BODIES = {
    "empty": b"",
    "half": b"{",
    "list": b"[]",
    "null": b"null",
    "nan": b'{"people": [{"age": NaN}]}',
    "a key twice": b'{"people": [], "people": []}',
    "surrogate": b'{"people": "\\ud800"}',
    "no utf-8": b"\xff\xfe",
    "deep": b"[" * 15_000,
    "nobody": b'{"people": []}',
    "object": b'{"people": {}}',
    "number": b'{"people": [1]}',
    "digits": b'{"people": [' + b"9" * 10_000 + b"]}",
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_is_none_is_refused(client, case):
    assert problems(client.post("/score", content=BODIES[case], headers=JSON))


def test_an_option_that_does_not_fit_is_named(client):
    wrong = [
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
        ("rules", [{"max_changes": 1}] * 201),
        ("other", 1),
    ]
    for field, value in wrong:
        answer = client.post("/explain", json={"people": [person()], field: value})

        assert any(loc[:2] == ("body", field) for loc in problems(answer)), (field, value)


def test_a_rule_that_does_not_fit_is_named(client):
    wrong = [
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
    ]
    for rule in wrong:
        content = json.dumps({"people": [person()], "rules": [{"max_changes": 2}, rule]})
        answer = client.post("/explain", content=content, headers=JSON)

        assert all(loc[0] == "body" for loc in problems(answer)), rule


def test_conditions_of_a_request_are_bounded_together(explainer):
    rules = [{"relation": {"name": f"r{n}", "holds": "age < " * 200 + "age"}} for n in range(25)]
    with running(create_app(explainer)) as client:
        answer = client.post("/explain", json={"people": [person()], "rules": rules})
        fewer = client.post("/explain", json={"people": [person()], "rules": rules[:3]})

    assert "together, got 10025" in problems(answer)["body", "rules"]
    assert fewer.status_code == 200


def test_lists_of_rules_and_fields_are_bounded(explainer):
    many = {"people": [person()], "rules": [{"only_up": ["salary"] * 20_000}]}
    with running(create_app(explainer)) as client:
        answer = client.post("/explain", json=many)
        nobody = client.post("/score", json={"people": [0] * 100_000})
        fields = client.post("/score", json={f"field {at}": 1 for at in range(50_000)})

    assert "expected at most 1000" in problems(answer)["body", "rules"]
    assert len(problems(nobody)) == 1
    assert any("at most 40 fields" in message for message in problems(fields).values())


def test_only_as_many_people_as_allowed_are_answered(client):
    answer = client.post("/score", json={"people": [person()] * 4})

    assert problems(answer) == {("body", "people"): "expected at most 3, got 4"}
    assert client.post("/score", json={"people": [person()] * 3}).status_code == 200


def test_a_body_of_another_type_or_too_large_is_refused(client):
    def parts():
        for _ in range(100):
            yield b" " * 1_000

    typed = client.post("/score", content=json.dumps({"people": [person()]}))
    declared = client.post("/score", json={"people": [person(sex="x" * 30_000)]})
    streamed = client.post("/score", content=parts(), headers=JSON)

    assert typed.status_code == 415
    assert declared.status_code == streamed.status_code == 413


def test_a_body_that_does_not_arrive_is_given_up_and_harms_nobody(explainer, monkeypatch):
    monkeypatch.setattr("mcce.serve.middleware.BODY_SECONDS", 0.5)
    with running(create_app(explainer)) as client:
        for sent in (b"", b'{"people": ['):
            with half_sent(client, "/score", sent, n_bytes=500) as slow:
                assert b" 408 " in slow.recv(4096).split(b"\r\n")[0]
        for _ in range(5):
            with half_sent(client, "/explain", b'{"people"', n_bytes=500):
                pass
        assert client.get("/ready").status_code == 200


def test_the_wrong_path_method_and_parameters_are_answered_in_one_form(client):
    assert problems(client.get("/nothing"), 404)
    assert problems(client.get("/explain"), 405)
    assert problems(client.get("/people", params={"limit": 0}))
    assert problems(client.get("/people/0"), 404)
    assert problems(client.get("/people/x"))
    assert problems(client.get("/schema", params={"language": "xx"}))
    assert problems(client.get("/messages/xx"), 404)
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404


HEADERS = {
    "none": None,
    "empty": "",
    "kind alone": "Bearer",
    "other kind": f"Basic {TOKEN}",
    "longer": f"Bearer {TOKEN}x",
    "shorter": f"Bearer {TOKEN[:-1]}",
}


@pytest.mark.parametrize("case", HEADERS)
def test_without_the_token_nothing_is_revealed(guarded, case):
    headers = {} if HEADERS[case] is None else {"Authorization": HEADERS[case]}
    paths = ["/schema", "/people", "/openapi.json", "/metrics", "/ready", "/nothing", "/explain"]

    answers = [guarded.get(path, headers=headers) for path in [*paths, "/jobs/x"]]
    answers.append(guarded.post("/score", json={"people": [1]}, headers=headers))

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1


def test_with_the_token_everything_is_answered_and_without_it_the_page_alone(guarded):
    scored = guarded.post("/score", json={"people": [person()]}, headers=BEARER)

    assert guarded.get("/schema", headers=BEARER).status_code == scored.status_code == 200
    for path in ("/", "/health", "/messages/en", "/static/index.html"):
        answer = guarded.get(path)
        assert answer.status_code == 200, path
        assert "salary" not in answer.text


def test_other_names_and_other_origins_are_refused(guarded):
    def status(**headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        asked = {"people": [person()]}
        return guarded.post("/score", json=asked, headers=BEARER | named).status_code

    rebound = guarded.get("/schema", headers=BEARER | {"Host": "evil.example"})
    assert rebound.status_code == 421
    assert guarded.get("/health", headers={"Host": "10.0.0.7"}).status_code == 200
    assert status(Sec_Fetch_Site="cross-site") == 403
    # Browsers that name their page alone.
    assert status(Host="localhost:8000", Origin="http://LOCALHOST:8000") == 200
    others = ["http://evil.example", "http://localhost.evil.example", "http://[", "null", ""]
    others += ["http://localhost:9000", "http://localhost", "https://localhost:8000"]
    for origin in others:
        assert status(Host="localhost:8000", Origin=origin) == 403, origin


def test_every_answer_has_the_headers_of_a_careful_service(client):
    for answer in (client.get("/"), client.get("/schema"), client.get("/nothing")):
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
    assert client.get("/schema").headers["cache-control"] == "no-store"


def test_settings_that_cannot_work_are_refused():
    for token in ("short", "a token with ünicode in it"):
        with pytest.raises(ParameterError, match="token must have at least 16"):
            ServiceSettings(token=token)
    with pytest.raises(ParameterError, match="patience must be more than seconds"):
        ServiceLimits(seconds=10, patience=5)
    with pytest.raises(ParameterError, match="threads must be a whole number"):
        ServiceLimits(threads=0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(cells=st.dictionaries(st.sampled_from(list(person())), VALUES, max_size=5))
def test_any_person_is_scored_or_refused(client, cells):
    content = json.dumps({"people": [person(**cells)]}, allow_nan=True)

    answer = client.post("/score", content=content, headers=JSON)

    assert answer.status_code in (200, 413, 422), answer.text
