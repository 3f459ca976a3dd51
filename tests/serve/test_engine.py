"""Batches, queues, and predictors that fail, hang or return nothing of use."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from mcce.kernels import CancelledError, check_cancellation
from mcce.serve import Limits, ServiceSettings, create_app
from mcce.serve.answering import Answerer
from mcce.serve.bodies import ExplainBody
from mcce.serve.engine import Engine, EngineLimits, Task
from mcce.serve.refusals import RefusalError
from mcce.serve.tasks import TaskMaker
from served_bank import approval, fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


class Switch:
    """A black box that does as it is told."""

    def __init__(self) -> None:
        self.mood = "well"
        self.go_on = threading.Event()
        self.n_calls = 0

    def __call__(self, rows: Any) -> Any:
        self.n_calls += 1
        if self.mood == "raise" and (rows["age"] == 33).any():
            raise RuntimeError("secret of a person")
        if self.mood == "exit":
            raise SystemExit(3)
        if self.mood == "nan":
            return np.full(len(rows), np.nan)
        if self.mood == "hang" and (rows["age"] == 33).any():
            self.go_on.wait(20)
        return approval(rows)


@pytest.fixture
def switch() -> Any:
    made = Switch()
    yield made
    made.go_on.set()


def service(switch: Any, **limits: Any) -> Any:
    return create_app(fitted(switch), ServiceSettings(limits=Limits(**limits)))


def together(batch_size: int) -> tuple[Engine, list[int]]:
    """An engine whose first batch waits until the queue is filled."""
    sizes: list[int] = []
    limits = EngineLimits(threads=1, queue=10, batch=batch_size, seconds=5)
    return Engine(limits, lambda n_tasks, n_people: sizes.append(n_tasks)), sizes


def test_answers_are_the_same_bit_for_bit_whoever_shares_the_search() -> None:
    chance = np.random.default_rng(3)
    people = [
        person(age=int(age), salary=int(salary), sex=str(sex), savings=savings)
        for age, salary, sex, savings in zip(
            chance.integers(20, 70, 12),
            chance.integers(20_000, 60_000, 12),
            chance.choice(["female", "male"], 12),
            [None, 0.5, 1.25] * 4,
            strict=True,
        )
    ]
    asked = [{"people": [one], "details": True} for one in people]
    app = create_app(fitted(), ServiceSettings(limits=Limits(threads=1)))
    with running(app) as client:
        alone = [client.post("/explain", json=one).text for one in asked]
        with ThreadPoolExecutor(12) as pool:
            shared = list(pool.map(lambda one: client.post("/explain", json=one).text, asked))
        metrics = client.get("/metrics").text

    assert shared == alone
    n_batches = float(metrics.split("mcce_batch_requests_count ")[1].split()[0])
    assert n_batches < 2 * len(people)


def test_tasks_of_one_key_share_a_batch_up_to_its_size() -> None:
    engine, sizes = together(batch_size=3)
    gate = threading.Event()
    first = Task(lambda given: [gate.wait(5)], None)
    engine.submit(first)
    tasks = [Task(lambda given: [2 * one for one in given], at, key="same") for at in range(5)]
    for task in tasks:
        engine.submit(task)

    gate.set()

    assert [task.future.result(5) for task in tasks] == [0, 2, 4, 6, 8]
    assert sizes == [1, 3, 2]
    engine.close()


def test_whoever_shares_a_batch_with_a_failure_is_answered() -> None:
    engine, _ = together(batch_size=10)
    gate = threading.Event()
    engine.submit(Task(lambda given: [gate.wait(5)], None))

    def work(given: Any) -> list[float]:
        return [1 / one for one in given]

    tasks = [Task(work, given, key="same") for given in (1, 0, 2)]
    for task in tasks:
        engine.submit(task)
    gate.set()

    assert tasks[0].future.result(5) == 1
    assert tasks[2].future.result(5) == 0.5
    with pytest.raises(ZeroDivisionError):
        tasks[1].future.result(5)
    engine.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_whoever_shares_a_batch_with_somebody_who_hangs_is_answered(threads: int) -> None:
    engine = Engine(EngineLimits(threads, queue=10, batch=10, seconds=2))
    gate, go_on = threading.Event(), threading.Event()
    for _ in range(threads):
        engine.submit(Task(lambda given: [gate.wait(5)], None))

    def work(given: Any) -> list[int]:
        if "hangs" in given:
            go_on.wait(20)
        return [len(one) for one in given]

    names = ("hangs", "is well", "too")
    tasks = {name: Task(work, name, key="same") for name in names}
    for task in tasks.values():
        engine.submit(task)
    gate.set()

    assert tasks["is well"].future.result(10) == 7
    assert tasks["too"].future.result(10) == 3
    assert not tasks["hangs"].future.done()
    go_on.set()
    assert tasks["hangs"].future.result(10) == 5
    engine.close()


def test_a_stuck_worker_is_replaced_though_nobody_sends_another_task() -> None:
    engine = Engine(EngineLimits(threads=1, seconds=0.5))
    go_on = threading.Event()
    engine.submit(Task(lambda given: [go_on.wait(20)], None))
    waiting = Task(lambda given: [1], None)
    engine.submit(waiting)

    assert waiting.future.result(5) == 1
    go_on.set()
    engine.close()


def test_whoever_leaves_while_tried_again_ends_a_search_of_their_own() -> None:
    engine, _ = together(batch_size=10)
    gate, begun = threading.Event(), threading.Event()
    engine.submit(Task(lambda given: [gate.wait(5)], None))

    def work(given: Any) -> list[None]:
        if len(given) > 1:
            raise RuntimeError
        begun.set()
        while given[0] == "searches":
            check_cancellation()
        return [None]

    searching, other = (Task(work, name, key="same") for name in ("searches", "other"))
    engine.submit(searching)
    engine.submit(other)
    gate.set()
    begun.wait(5)

    engine.leave(searching)

    assert other.future.result(2) is None
    with pytest.raises(RefusalError):
        searching.future.result(2)
    engine.close()


def test_a_full_queue_says_when_to_come_back() -> None:
    engine = Engine(EngineLimits(threads=1, queue=2, seconds=5))
    gate = threading.Event()
    running_one = Task(lambda given: [gate.wait(5)], None)
    engine.submit(running_one)
    while engine.n_waiting:
        time.sleep(0.01)
    for _ in range(2):
        engine.submit(Task(lambda given: [None], None))

    with pytest.raises(RefusalError) as refused:
        engine.submit(Task(lambda given: [None], None))

    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    gate.set()
    engine.close(1)


def test_a_task_that_waited_for_too_long_to_end_in_time_is_told_to_come_back() -> None:
    engine = Engine(EngineLimits(threads=1, seconds=3.0))
    gate = threading.Event()
    engine.submit(Task(lambda given: [gate.wait(5)], None))
    late, short = (Task(lambda given: [1], None, seconds=seconds) for seconds in (2.8, 0.1))
    engine.submit(late)
    engine.submit(short)
    time.sleep(0.4)

    gate.set()

    with pytest.raises(RefusalError) as refused:
        late.future.result(5)
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    assert short.future.result(5) == 1
    engine.close()


def test_a_closed_engine_answers_what_waits_and_takes_nothing() -> None:
    engine = Engine(EngineLimits(threads=1, seconds=5))
    gate = threading.Event()
    busy, waiting = (Task(lambda given: [gate.wait(5)], None) for _ in range(2))
    engine.submit(busy)
    engine.submit(waiting)

    engine.close(0.05)

    with pytest.raises(RefusalError) as ended:
        waiting.future.result(1)
    assert ended.value.status == 503
    with pytest.raises(RefusalError):
        engine.submit(Task(lambda given: [None], None))
    gate.set()


def test_a_task_that_nobody_waits_for_is_not_begun() -> None:
    engine = Engine(EngineLimits(threads=1, seconds=5))
    gate, begun = threading.Event(), []
    engine.submit(Task(lambda given: [gate.wait(5)], None))
    left = Task(lambda given: [begun.append(1)], None)
    engine.submit(left)

    engine.leave(left)
    gate.set()
    last = Task(lambda given: [None], None)
    engine.submit(last)
    last.future.result(5)

    assert begun == []
    engine.close()


def test_a_task_that_is_left_the_moment_it_begins_is_cancelled() -> None:
    ended: list[type[BaseException]] = []

    def leave_first(n_tasks: int, n_people: int) -> None:
        # The worker has the batch, and no cancellation yet.
        engine.leave(left)

    def work(given: Any) -> list[None]:
        try:
            check_cancellation()
        except CancelledError as error:
            ended.append(type(error))
            raise
        return [None]

    engine = Engine(EngineLimits(threads=1, seconds=5), leave_first)
    left = Task(work, None)
    engine.submit(left)

    with pytest.raises(RefusalError):
        left.future.result(5)

    assert ended == [CancelledError]
    engine.close()


def test_a_search_that_the_end_of_the_service_stops_is_503() -> None:
    engine = Engine(EngineLimits(threads=1, seconds=5))
    begun = threading.Event()

    def work(given: Any) -> list[None]:
        begun.set()
        while True:
            check_cancellation()

    task = Task(work, None)
    engine.submit(task)
    begun.wait(5)

    engine.close()

    with pytest.raises(RefusalError) as ended:
        task.future.result(5)
    assert ended.value.status == 503


def test_a_predictor_that_raises_is_502_for_its_people_alone(switch: Any) -> None:
    with running(service(switch)) as client:
        switch.mood = "raise"
        bad = client.post("/explain", json={"people": [person(age=33)]})
        good = client.post("/explain", json={"people": [person()]})

    assert bad.status_code == 502
    assert "RuntimeError" in bad.json()["detail"][0]["msg"]
    assert "secret" not in bad.text
    assert good.status_code == 200


@pytest.mark.parametrize("mood", ["nan", "exit"])
def test_a_predictor_that_returns_nan_or_exits_is_502(switch: Any, mood: str) -> None:
    with running(service(switch)) as client:
        switch.mood = mood
        answers = [
            client.post(path, json={"people": [person()]}) for path in ("/score", "/explain")
        ]
        switch.mood = "well"
        again = client.post("/explain", json={"people": [person()]})

    assert [answer.status_code for answer in answers] == [502, 502]
    assert again.status_code == 200


def test_a_predictor_that_hangs_is_504_and_others_are_served(switch: Any) -> None:
    with running(service(switch, threads=1, seconds=0.5, patience=1.0)) as client:
        switch.mood = "hang"
        hung = client.post("/explain", json={"people": [person(age=33)]})
        ready = client.get("/ready")
        other = client.post("/explain", json={"people": [person()]})
        switch.go_on.set()
        time.sleep(0.3)
        ready_again = client.get("/ready")

    assert hung.status_code == 504
    assert ready.status_code == 503
    assert other.status_code == 200
    assert ready_again.status_code == 200


def test_a_budget_ends_a_search_with_what_was_found() -> None:
    def slow(rows: Any) -> Any:
        time.sleep(0.15)
        return approval(rows)

    with running(create_app(fitted(slow))) as client:
        asked = {"people": [person()], "seconds": 0.01, "search": "plausible"}
        answer = client.post("/explain", json=asked)

    assert answer.status_code == 200
    assert answer.json()["stopped"] is True


def test_a_budget_counts_from_when_the_search_begins() -> None:
    explainer = fitted()
    tasks = TaskMaker(Answerer.make(explainer), ServiceSettings())
    task = tasks.explain(ExplainBody(people=[person()], seconds=1.0))
    # As if it waited.
    time.sleep(1.1)

    (found,) = task.work([task.given])

    assert found["people"][0]["counterfactuals"]


def test_a_search_ends_when_its_client_goes(switch: Any) -> None:
    def slow(rows: Any) -> Any:
        switch.n_calls += 1
        time.sleep(0.1)
        return approval(rows)

    with running(create_app(fitted(slow), ServiceSettings(limits=Limits(threads=1)))) as client:
        with pytest.raises(Exception, match="timed out"):
            client.post("/explain", json={"people": [person()] * 50}, timeout=0.3)
        time.sleep(0.5)
        n_calls = switch.n_calls
        time.sleep(0.5)
        answer = client.post("/score", json={"people": [person()]})

    assert switch.n_calls <= n_calls + 1
    assert answer.status_code == 200


def test_a_service_that_ends_lets_requests_end_and_refuses_the_rest(switch: Any) -> None:
    answers: dict[int, Any] = {}
    with ThreadPoolExecutor(2) as pool:
        with running(service(switch), grace=1) as client:
            # A client of its own, which the end of the block does not close.
            with_own = httpx.Client(base_url=client.base_url, timeout=30)
            switch.mood = "hang"
            # They ask for different things, or they could share a search that hangs.
            bodies = {
                age: {"people": [person(age=age)], "n_counterfactuals": n}
                for age, n in ((33, 1), (34, 2))
            }
            asked = {
                age: pool.submit(with_own.post, "/explain", json=body)
                for age, body in bodies.items()
            }
            answers[34] = asked[34].result(10)
            time.sleep(0.2)
        answers[33] = asked[33].result(10)
        with_own.close()

    assert answers[34].status_code == 200
    assert answers[33].status_code == 503
    assert answers[33].json()["detail"][0]["type"] == "closing"
