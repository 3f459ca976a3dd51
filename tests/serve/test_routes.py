"""What routes answer: the same as the library, in JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval
from mcce.constraints import frozen, max_changes, relation
from mcce.report import Labels, write_letters
from mcce.report.receipts import Origin, check_plan, check_receipt
from mcce.serve import ServiceSettings, create_app
from served_bank import approval, customers, frame_of, metric, person, running, until

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

KEY, ORIGIN = b"a secret of at least 16 bytes", Origin("sha256:bank", "scoring:score")


def test_scores_are_those_of_the_predictor(client):
    people = [person(), person(salary=90_000)]

    answer = client.post("/score", json={"people": people}).json()

    assert answer == {"scores": approval(frame_of(*people)).tolist(), "desired": [False, True]}


def test_levels_that_are_numbers_are_known_however_json_writes_them():
    train = pd.DataFrame({"rooms": [1.0, 2.5] * 20, "floor": [0, 1, 2, 3] * 10})
    kinds = {"rooms": "categorical", "floor": "categorical"}
    explainer = MCCE(lambda rows: rows["rooms"] / 5 + rows["floor"] / 10, (0.5, 1.0), kinds=kinds)
    people = [{"rooms": 1, "floor": 2.0}, {"rooms": 1.0, "floor": 2}, {"rooms": True, "floor": 2}]
    with running(create_app(explainer.set_params(random_state=0).fit(train))) as client:
        found = client.post("/score", json={"people": people[:2]})
        wrong = client.post("/score", json={"people": people[2:]})

    assert found.json().get("scores") == [0.4, 0.4]
    assert wrong.status_code == 422


def test_what_follows_from_a_change_is_computed_before_it_is_scored():
    train = pd.DataFrame({"pay": range(10, 410), "extra": [0, 5, 9, 20] * 100})
    train["total"] = train["pay"] + train["extra"]
    train["age"] = [30, 40] * 200

    def by_total(rows):
        return np.clip(rows["total"].to_numpy() / 400, 0, 1)

    explainer = MCCE(by_total, (0.5, 1.0), immutable=["age"], search="balanced", random_state=0)
    own = {"pay": 100, "extra": 5, "total": 105, "age": 30}
    rows = [own, own | {"pay": 300}, own | {"extra": 9, "total": 400}]
    with running(create_app(explainer.fit(train))) as client:
        found = client.post("/score", json={"people": rows, "person": own}).json()
        schema = client.get("/schema").json()
        older = client.post("/score", json={"people": [own | {"age": 40}], "person": own})

    assert older.status_code == 422
    assert "'age'" in older.json()["detail"][0]["msg"]
    assert [row["total"] for row in found["people"]] == [105, 305, 109]
    assert found["scores"] == [105 / 400, 305 / 400, 109 / 400]
    assert [one["name"] for one in schema["features"] if one["follows"]] == ["total"]


def test_answers_are_those_of_the_library(client, explainer):
    people = [person(), person(age=55, sex="male", savings=1.25), person(salary=90_000)]

    text = client.post("/explain", json={"people": people}).text

    constants = []
    answer = json.loads(text, parse_constant=constants.append)
    assert answer["people"] == explainer.finalize(explainer.explain(frame_of(*people))).to_dict()
    assert answer["people"][0]["person"]["savings"] is None
    assert constants == []
    assert answer["stopped"] is False
    assert answer["seed"] == 0


def test_rules_of_a_request_are_kept(client, explainer):
    rules = [{"frozen": ["owns <b>home</b>"]}, {"max_changes": 1}]

    answer = client.post("/explain", json={"people": [person()], "rules": rules}).json()

    constraints = [frozen("owns <b>home</b>"), max_changes(1)]
    result = explainer.explain(frame_of(person()), constraints=constraints)
    assert answer["people"] == explainer.finalize(result, constraints=constraints).to_dict()


def test_details_are_letters_ranges_and_robustness(client, explainer):
    asked = {"people": [person(), person(salary=90_000)], "details": True, "language": "de"}

    first, second = client.post("/explain", json=asked).json()["people"]

    result = explainer.finalize(explainer.explain(frame_of(person())))
    letters = write_letters(explainer, result, {"language": "de"}, ranges=True)
    assert first["letter"] == letters.people["text"].iloc[0]
    assert second["letter"].startswith("Die Entscheidung")
    assert second["counterfactuals"] == []
    assert len(first["counterfactuals"]) == len(result.frame)
    firm = explainer.robustness(result)
    for at, answer in enumerate(first["counterfactuals"]):
        assert answer["text"] == letters.answers["text"].iloc[at]
        ranges = result.ranges[result.ranges["rank"] == answer["rank"]]
        assert [one["feature"] for one in answer["ranges"]] == list(ranges["feature"])
        assert [one["low"] for one in answer["ranges"]] == ranges["low"].tolist()
        assert answer["robustness"]["valid"] == firm["valid"].iloc[at]
        shown = letters.frame.iloc[[at]]
        pd.testing.assert_frame_equal(
            frame_of(answer["row"]), shown.reset_index(drop=True), check_dtype=False
        )
        assert answer["measures"]["score"] == approval(shown)[0]


def test_a_receipt_of_the_row_that_is_shown_holds(explainer):
    settings = ServiceSettings(origin=ORIGIN, key=KEY, rules=[frozen("savings"), max_changes(3)])
    with running(create_app(explainer, settings)) as client:
        asked = {"people": [person()], "details": True}
        (found,) = client.post("/explain", json=asked).json()["people"]
        shown = found["counterfactuals"][0]
        asked = {"person": person(), "answer": shown["row"], "rules": [{"only_up": "salary"}]}
        receipt = client.post("/receipts", json=asked).json()
        broken = client.post("/receipts", json=asked | {"answer": shown["row"] | {"savings": 0.5}})
        same = client.post("/receipts", json=asked | {"answer": person()})

    assert receipt["answer"] == shown["row"]
    assert receipt["score_after"] == shown["measures"]["score"]
    # Those of the service come first.
    assert [list(rule) for rule in receipt["rules"]] == [["frozen"], ["max_changes"], ["only_up"]]
    rows = frame_of(person()), frame_of(shown["row"])
    checks = check_receipt(receipt, KEY) + check_plan(receipt, explainer, *rows, ORIGIN)
    assert [check.name for check in checks if not check.holds] == []
    other = check_plan(receipt, explainer, rows[0], rows[1].assign(savings=0.5), ORIGIN)
    assert "every rule holds" in [check.name for check in other if not check.holds]
    assert broken.status_code == same.status_code == 422
    assert "There is no receipt for this answer" in same.json()["detail"][0]["msg"]


def test_there_is_no_receipt_under_a_rule_that_it_could_not_hold(explainer):
    rules = [relation("adult", lambda rows: rows["age"] > 17)]
    asked = {"person": person(), "answer": person(salary=60_000)}
    with running(create_app(explainer, ServiceSettings(rules=rules))) as client:
        refused = client.post("/receipts", json=asked)

    assert refused.status_code == 422
    assert "cannot be written as JSON" in refused.json()["detail"][0]["msg"]


def test_ranges_of_a_row_that_is_no_answer_are_empty(client):
    answers = [person(salary=64_000), person(salary=41_000)]

    found = client.post("/ranges", json={"person": person(), "answers": answers}).json()["answers"]

    assert [one["valid"] for one in found] == [True, False]
    assert [one["feature"] for one in found[0]["ranges"]] == ["salary"]
    assert all(one["low"] is None for one in found[1]["ranges"])


def test_what_to_lift_names_the_rule_of_the_request(client):
    rules = [{"max_changes": 1}, {"frozen": ["salary", "savings"]}]

    lifts = client.post("/relax", json={"person": person(), "rules": rules}).json()["lifts"]

    assert lifts[0]["answered"] is True
    assert lifts[0]["rule"] == 1
    assert {lift["rule"] for lift in lifts} <= {0, 1, None}


def test_words_of_the_page_come_from_the_labels(explainer):
    sex = {"levels": {"male": "a man"}, "order": ["male", "female"]}
    salary = {"action": "Earn {after}", "help": "Before tax.", "reason": "It is low."}
    reasons = {name: {"reason": "Because."} for name in ("savings", "owns <b>home</b>")}
    decision = {"yes": "stays", "no": "leaves"}
    labels = Labels.make(
        {
            "language": "nb",
            "decision": decision,
            "features": {"sex": sex, "salary": salary, **reasons},
        }
    )
    with running(create_app(explainer, ServiceSettings(labels={"nb": labels}))) as client:
        schema, page = client.get("/schema").json(), client.get("/static/js/case.js")
        words = client.get("/messages/nb").json()

    features = {feature["name"]: feature for feature in schema["features"]}
    # A language without labels would show names of columns.
    assert schema["languages"] == ["nb"]
    assert {key: schema["decision"][key] for key in decision} == decision
    assert [level["value"] for level in features["sex"]["levels"]] == ["male", "female"]
    assert features["salary"]["action"] == "Earn {after}"
    assert features["salary"]["help"] == "Before tax."
    assert features["salary"]["ends"][0] == 0
    assert words["sure_wide"] == "klart"
    assert "why_ruled_out" in words
    assert page.headers["content-encoding"] == "gzip"


def test_the_schema_describes_every_feature(client):
    schema = client.get("/schema").json()

    features = {feature["name"]: feature for feature in schema["features"]}
    assert features["age"]["immutable"] is True
    assert features["salary"]["type"] == "integer"
    assert features["salary"]["step"] == 1
    assert features["savings"]["missing"] is True
    assert [level["value"] for level in features["sex"]["levels"]] == ["female", "male"]
    assert features["owns <b>home</b>"]["type"] == "boolean"
    # Bars of fewer than five people could tell who they are.
    assert all(n == 0 or n >= 5 for n in features["salary"]["histogram"]["accepted"])
    assert schema["fingerprint"]
    assert "balanced" in schema["searches"]
    for search in schema["searches"]:
        asked = {"people": [person()], "search": search, "n_counterfactuals": 1}
        assert client.post("/explain", json=asked).status_code == 200, search


def test_the_schema_says_what_is_desired():
    def decide(frame):
        return np.where(approval(frame) > 0.5, "yes", "no")

    cases = [
        (approval, (0.5, 1.0), [0.5, 1.0, "both", None]),
        (approval, Interval(0.5, math.inf, closed="left"), [0.5, None, "left", None]),
        (decide, ["yes"], [None, None, None, ["yes"]]),
    ]
    for predictor, desired, expected in cases:
        explainer = MCCE(predictor, desired, search="sparse", random_state=0).fit(customers(60))
        with running(create_app(explainer)) as client:
            found = client.get("/schema").json()["desired"]

        names = ["low", "high", "closed", "labels"]
        assert found == dict(zip(names, expected, strict=True))


def test_the_description_has_people_of_this_explainer_and_an_example_that_works(client):
    description = client.get("/openapi.json").json()

    schemas = description["components"]["schemas"]
    assert schemas["Person"]["required"] == list(person())
    somebody, tried = schemas["Person"]["example"], set()
    for path, methods in description["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" in content:
            body = schemas[content["application/json"]["schema"]["$ref"].rpartition("/")[2]]
            several = [name for name in body["required"] if "items" in body["properties"][name]]
            asked = {n: [somebody] if n in several else somebody for n in body["required"]}
            # Nobody is declined and accepted with the same row, so no receipt is made of it.
            expected = 422 if path == "/receipts" else 200
            assert client.post(path, json=asked).status_code == expected, path
            tried.add(path)
    assert tried == {"/score", "/explain", "/ranges", "/relax", "/receipts"}


def test_numbers_for_prometheus_count_requests_and_people(client):
    counted = 'mcce_requests_total{method="POST",route="/score",status="200"}'
    people = 'mcce_people_total{route="/score"}'
    before = metric(client, counted), metric(client, people)

    client.post("/score", json={"people": [person(), person()]})

    until(lambda: metric(client, people) == before[1] + 2)
    assert metric(client, counted) == before[0] + 1


def test_an_identifier_may_be_new_and_those_of_training_are_not_told():
    train = customers()
    train.insert(0, "number", [f"C{row:05d}" for row in range(len(train))])
    explainer = MCCE(approval, (0.5, 1.0), immutable=["number", "age", "sex"], random_state=0)
    somebody = {"number": "new", **person()}

    with running(create_app(explainer.fit(train))) as client:
        answer = client.post("/explain", json={"people": [somebody]}).json()
        told = [client.get(route).text for route in ("/schema", "/openapi.json")]
        refused = client.post("/score", json={"people": [somebody | {"number": 3}]})

    assert answer["people"][0]["counterfactuals"][0]["row"]["number"] == "new"
    assert not any(name in text for name in train["number"] for text in told)
    assert refused.json()["detail"][0]["msg"] == "expected a text, got 3"
