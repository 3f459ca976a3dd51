"""What routes answer: the same as the library, in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Interval
from mcce.constraints import frozen, max_changes
from mcce.serve import ServiceSettings, create_app
from mcce.serve.answering import Answerer
from mcce.serve.bodies import ExplainBody
from mcce.serve.tasks import TaskMaker
from served_bank import approval, customers, fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@pytest.fixture(scope="module")
def explainer() -> Any:
    return fitted()


@pytest.fixture(scope="module")
def client(explainer: Any) -> Any:
    with running(create_app(explainer, ServiceSettings(name="bank"))) as client:
        yield client


def rows(*people: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(people)).astype({"savings": "float64"})


def test_scores_are_those_of_the_predictor(client: Any) -> None:
    people = [person(), person(salary=90_000)]

    answer = client.post("/score", json={"people": people}).json()

    assert answer == {"scores": approval(rows(*people)).tolist(), "desired": [False, True]}


def test_what_follows_from_a_change_is_computed_before_it_is_scored() -> None:
    train = pd.DataFrame({"pay": range(10, 410), "extra": [0, 5, 9, 20] * 100})
    train["total"] = train["pay"] + train["extra"]

    def by_total(rows: Any) -> Any:
        return np.clip(rows["total"].to_numpy() / 400, 0, 1)

    train["age"] = [30, 40] * 200
    explainer = MCCE(by_total, (0.5, 1.0), immutable=["age"], search="balanced", random_state=0)
    explainer.fit(train)
    own = {"pay": 100, "extra": 5, "total": 105, "age": 30}
    rows = [own, own | {"pay": 300}, own | {"extra": 9, "total": 400}]
    with running(create_app(explainer, ServiceSettings())) as client:
        found = client.post("/score", json={"people": rows, "person": own}).json()
        schema = client.get("/schema").json()
        older = client.post("/score", json={"people": [own | {"age": 40}], "person": own})

    assert older.status_code == 422
    assert "'age'" in older.json()["detail"][0]["msg"]
    assert [row["total"] for row in found["people"]] == [105, 305, 109]
    assert found["scores"] == [105 / 400, 305 / 400, 109 / 400]
    assert [one["name"] for one in schema["features"] if one["follows"]] == ["total"]


def test_answers_are_those_of_the_library(client: Any, explainer: Any) -> None:
    people = [person(), person(age=55, sex="male", savings=1.25), person(salary=90_000)]

    answer = client.post("/explain", json={"people": people}).json()

    result = explainer.explain(rows(*people))
    assert answer["people"] == result.to_dict()
    assert answer["stopped"] is False
    assert answer["seed"] == 0


def test_details_add_letters_ranges_and_robustness(client: Any, explainer: Any) -> None:
    asked = {"people": [person(), person(salary=90_000)], "details": True, "language": "de"}

    first, second = client.post("/explain", json=asked).json()["people"]

    answer = first["counterfactuals"][0]
    result = explainer.explain(rows(person()))
    expected = explainer.ranges(result)
    assert [r["feature"] for r in answer["ranges"]] == list(expected[expected["rank"] == 1].feature)
    assert answer["robustness"]["valid"] is True
    assert answer["text"].startswith("Die Entscheidung")
    assert first["letter"]
    assert second["letter"]
    assert second["counterfactuals"] == []


def test_requests_in_other_languages_share_a_search_if_no_words_are_asked_for(
    explainer: Any,
) -> None:
    tasks = TaskMaker(Answerer.make(explainer), ServiceSettings())

    def key(**options: Any) -> Any:
        return tasks.explain(ExplainBody(people=[person()], **options)).key

    assert key(language="de") == key(language="nb") == key()
    assert key(language="de", details=True) != key(language="nb", details=True)
    assert key(seconds=1.0) is None


def test_rules_of_a_request_are_kept(client: Any, explainer: Any) -> None:
    rules = [{"frozen": ["owns <b>home</b>"]}, {"max_changes": 1}]

    answer = client.post("/explain", json={"people": [person()], "rules": rules}).json()

    constraints = [frozen("owns <b>home</b>"), max_changes(1)]
    result = explainer.explain(rows(person()), constraints=constraints)
    assert answer["people"] == result.to_dict()


def test_ranges_of_a_row_that_is_no_answer_are_empty(client: Any) -> None:
    answers = [person(salary=64_000), person(salary=41_000)]

    found = client.post("/ranges", json={"person": person(), "answers": answers}).json()["answers"]

    assert [one["valid"] for one in found] == [True, False]
    assert [one["feature"] for one in found[0]["ranges"]] == ["salary"]
    assert all(one["low"] is None for one in found[1]["ranges"])


def test_what_to_lift_names_the_rule_of_the_request(client: Any) -> None:
    rules = [{"max_changes": 1}, {"frozen": ["salary", "savings"]}]

    lifts = client.post("/relax", json={"person": person(), "rules": rules}).json()["lifts"]

    assert lifts[0]["answered"] is True
    assert lifts[0]["rule"] == 1
    assert {lift["rule"] for lift in lifts} <= {0, 1, None}


def test_the_schema_describes_every_feature(client: Any) -> None:
    schema = client.get("/schema").json()

    features = {feature["name"]: feature for feature in schema["features"]}
    assert features["age"]["immutable"] is True
    assert features["salary"]["type"] == "integer"
    assert features["salary"]["step"] == 1
    assert features["savings"]["missing"] is True
    assert [level["value"] for level in features["sex"]["levels"]] == ["female", "male"]
    assert features["owns <b>home</b>"]["type"] == "boolean"
    assert all(n == 0 or n >= 5 for n in features["salary"]["histogram"]["accepted"])
    assert len(features["salary"]["histogram"]["accepted"]) <= 24
    assert "balanced" in schema["searches"]
    assert schema["fingerprint"]


@pytest.mark.parametrize(
    ("desired", "expected"),
    [
        ((0.5, 1.0), {"low": 0.5, "high": 1.0, "closed": "both", "labels": None}),
        (
            Interval(0.5, math.inf, closed="left"),
            {"low": 0.5, "high": None, "closed": "left", "labels": None},
        ),
        (["yes"], {"low": None, "high": None, "closed": None, "labels": ["yes"]}),
    ],
)
def test_the_schema_says_what_is_desired(desired: Any, expected: Any) -> None:
    def decide(frame: Any) -> Any:
        return np.where(approval(frame) > 0.5, "yes", "no")

    predictor = decide if isinstance(desired, list) else approval
    explainer = MCCE(predictor, desired, search="sparse", random_state=0).fit(customers())

    with running(create_app(explainer)) as client:
        assert client.get("/schema").json()["desired"] == expected


def test_every_search_of_the_schema_runs(client: Any) -> None:
    for search in client.get("/schema").json()["searches"]:
        asked = {"people": [person()], "search": search, "n_counterfactuals": 1}
        assert client.post("/explain", json=asked).status_code == 200, search


def test_a_model_server_is_asked_in_the_same_way(client: Any) -> None:
    instances = [person(), list(person().values())]

    explained = client.post("/v1/models/bank:explain", json={"instances": instances}).json()
    predicted = client.post("/v1/models/bank:predict", json={"instances": instances}).json()

    assert explained["predictions"] == predicted["predictions"]
    first, second = explained["explanations"]
    assert first["counterfactuals"] == second["counterfactuals"]
    assert client.get("/v1/models/bank").json() == {"name": "bank", "ready": True}
    assert client.get("/v1/models/other").status_code == 404


def test_the_description_has_people_of_this_explainer_and_examples_that_work(client: Any) -> None:
    description = client.get("/openapi.json").json()

    assert description["components"]["schemas"]["Person"]["required"] == list(person())
    for path, methods in description["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" in content:
            example = content["application/json"]["example"]
            # Nobody is declined and accepted with the same row, so no receipt is made of it.
            expected = 422 if path == "/receipts" else 200
            assert client.post(path, json=example).status_code == expected, path


def test_numbers_for_prometheus_count_requests_and_people(client: Any) -> None:
    client.post("/score", json={"people": [person(), person()]})

    text = client.get("/metrics").text

    assert 'mcce_requests_total{method="POST",route="/score",status="200"}' in text
    assert 'mcce_people_total{route="/score"}' in text


def test_answers_are_json_without_nan(client: Any) -> None:
    text = client.post("/explain", json={"people": [person()], "details": True}).text
    constants: list[str] = []

    answer = json.loads(text, parse_constant=constants.append)

    assert constants == []
    assert answer["people"][0]["person"]["savings"] is None


def test_an_identifier_may_be_new_and_those_of_training_are_not_told() -> None:
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
