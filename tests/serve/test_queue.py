"""Requests that wait, share a search, or are left, and predictors that fail or hang."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from mcce.kernels import check_cancellation
from mcce.serve import ServiceLimits, ServiceSettings, create_app
from served_bank import (
    FAILING,
    HELD,
    approval,
    body,
    fitted,
    half_sent,
    metric,
    person,
    running,
    until,
)

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

WAITING = 'mcce_waiting{engine="search"}'
LEFT = 'mcce_requests_total{method="POST",route="/explain",status="499"}'


@contextmanager
def one_thread(gate, **limits):
    """A service with one thread that searches, its client, and what asks it in the background."""
    limits = ServiceLimits(threads=1, **limits)
    with (
        running(create_app(fitted(gate), ServiceSettings(limits=limits))) as client,
        ThreadPoolExecutor(20) as pool,
    ):

        def ask(*people, **options):
            asked = {"people": list(people), **options}
            return pool.submit(client.post, "/explain", json=asked)

        try:
            yield client, ask
        finally:
            gate.opened.set()


@contextmanager
def busy(gate, **limits):
    """The same, once its thread is busy; it stays so until the gate is opened."""
    with one_thread(gate, **limits) as (client, ask):
        gate.close()
        held = ask(person(age=HELD), n_counterfactuals=1)
        assert gate.entered.wait(120)
        yield client, ask
        gate.opened.set()
        held.result(120)


def ask_in_order(client, ask, requests):
    """Put requests into the queue one after the other."""
    asked = []
    for one, options in requests:
        asked.append(ask(one, **options))
        until(lambda: metric(client, WAITING) == len(asked))
    return asked


def test_answers_are_the_same_bit_for_bit_whoever_shares_the_search(gate):
    chance = np.random.default_rng(3)
    people = [
        person(age=40 + at, salary=int(salary), sex=str(sex), savings=[None, 0.5, 1.25][at % 3])
        for at, (salary, sex) in enumerate(
            zip(
                chance.integers(20_000, 60_000, 6),
                chance.choice(["female", "male"], 6),
                strict=True,
            )
        )
    ]
    languages = ["en"] * 4 + ["de"] * 2
    options = [{"details": True, "language": language} for language in languages]
    with busy(gate, batch=3) as (client, ask):
        asked = [ask(one, **how) for one, how in zip(people, options, strict=True)]
        until(lambda: metric(client, WAITING) == len(asked))
        n_before = metric(client, "mcce_batch_requests_count")
        gate.opened.set()
        shared = [one.result(120).text for one in asked]
        n_batches = metric(client, "mcce_batch_requests_count") - n_before
        alone = [ask(one, **how).result(120).text for one, how in zip(people, options, strict=True)]

    assert shared == alone
    # Three people and one in English, two in German.
    assert n_batches == 3


def test_a_full_queue_says_when_to_come_back(gate):
    with busy(gate, queue=2) as (client, ask):
        waiting = ask_in_order(client, ask, [(person(), {}), (person(), {})])
        refused = client.post("/explain", json={"people": [person()]})
        # Scores do not wait for searches.
        scored = client.post("/score", json={"people": [person()]})
        gate.opened.set()
        answered = [one.result(120).status_code for one in waiting]

    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert scored.status_code == 200
    assert answered == [200, 200]


def test_only_who_waited_for_too_long_to_end_in_time_is_told_to_come_back(gate):
    with busy(gate, seconds=119.5, patience=120) as (client, ask):
        began = time.monotonic()
        # Each searches alone, with a budget of its own that counts from when the search begins.
        requests = [(person(), {"seconds": 119.5}), (person(), {"seconds": 60.0})]
        late, short = ask_in_order(client, ask, requests)
        until(lambda: time.monotonic() > began + 1.1)
        gate.opened.set()
        late, short = late.result(120), short.result(120)

    assert late.status_code == 429
    assert int(late.headers["Retry-After"]) >= 1
    assert short.status_code == 200
    assert short.json()["people"][0]["counterfactuals"]


def test_whoever_shares_a_search_with_a_failure_is_answered(gate):
    def broken(rows):
        raise RuntimeError("secret of a person")

    with busy(gate) as (client, ask):
        gate.broken = broken
        ages = [FAILING - 2, FAILING, FAILING + 2]
        asked = [ask(person(age=age)) for age in ages]
        until(lambda: metric(client, WAITING) == len(asked))
        gate.opened.set()
        answers = [one.result(120) for one in asked]

    assert [answer.status_code for answer in answers] == [200, 502, 200]
    assert "RuntimeError" in answers[1].json()["detail"][0]["msg"]
    assert "secret" not in answers[1].text


@pytest.mark.slow
def test_whoever_shares_a_search_with_somebody_who_hangs_is_answered(gate):
    go_on = threading.Event()

    def hang(rows):
        assert go_on.wait(120)
        return approval(rows)

    with busy(gate, seconds=5, patience=28) as (client, ask):
        gate.broken = hang
        people = [(person(age=age), {}) for age in (FAILING, 40, 41)]
        hanging, *others = ask_in_order(client, ask, people)
        gate.opened.set()
        # The thread that hangs is replaced, twice, though nobody sends another request.
        answers = [one.result(120).status_code for one in others]
        hung = not hanging.done()
        go_on.set()
        hanging.result(120)

    assert answers == [200, 200]
    assert hung


@pytest.mark.parametrize("kind", ["nan", "exit"])
def test_a_predictor_that_returns_nan_or_exits_is_502(gate, kind):
    def broken(rows):
        if kind == "exit":
            raise SystemExit(3)
        return np.full(len(rows), np.nan)

    asked = {"people": [person(age=FAILING)]}
    with one_thread(gate) as (client, _):
        gate.broken = broken
        answers = [client.post(path, json=asked).status_code for path in ("/score", "/explain")]
        gate.broken = None
        again = client.post("/explain", json=asked)

    assert answers == [502, 502]
    assert again.status_code == 200


def test_a_predictor_that_hangs_is_504_and_others_are_served(gate):
    with one_thread(gate, seconds=0.5, patience=4.0) as (client, ask):
        gate.close()
        hung = ask(person(age=HELD)).result(120)
        until(lambda: client.get("/ready").status_code == 503)
        until(lambda: ask(person()).result(120).status_code == 200)
        alive = client.get("/health")
        gate.opened.set()
        until(lambda: client.get("/ready").status_code == 200)

    assert hung.status_code == 504
    assert "the predictor hangs" in hung.json()["detail"][0]["msg"]
    assert alive.json() == {"status": "ok"}


def test_work_that_can_be_stopped_is_not_blamed_on_the_predictor(gate):
    answers = {"person": person(age=FAILING), "answers": [person(age=FAILING, salary=64_000)]}
    with one_thread(gate, seconds=0.5, patience=4.0) as (client, ask):
        # As loops of mcce do, it looks whether its time is over.
        gate.broken = lambda rows: until(check_cancellation)
        late = client.post("/ranges", json=answers)
        other = ask(person()).result(120)
        ready = client.get("/ready")

    assert late.status_code == 504
    assert late.json()["detail"][0]["msg"] == "it took longer than 4 s: it was stopped"
    assert other.status_code == ready.status_code == 200


def test_a_budget_ends_a_search_with_what_was_found():
    def slow(rows):
        time.sleep(0.02)
        return approval(rows)

    with running(create_app(fitted(slow))) as client:
        asked = {"people": [person()], "seconds": 0.01, "search": "plausible"}
        answer = client.post("/explain", json=asked)
        n_stopped = metric(client, "mcce_stopped_total")

    assert answer.status_code == 200
    assert answer.json()["stopped"] is True
    assert n_stopped == 1


def test_a_search_ends_when_its_client_goes(gate):
    with one_thread(gate) as (client, ask):
        gate.ages.clear()
        ask(person(age=HELD)).result(120)
        assert gate.n_calls(HELD) > 1
        gate.close()
        with half_sent(client, "/explain", body(age=HELD)):
            assert gate.entered.wait(120)
        until(lambda: metric(client, LEFT))
        gate.opened.set()
        answer = ask(person()).result(120)

    assert answer.status_code == 200
    assert gate.n_calls(HELD) == 1


def test_a_request_that_nobody_waits_for_is_not_begun(gate):
    with busy(gate) as (client, ask):
        with half_sent(client, "/explain", body(age=50)):
            until(lambda: metric(client, WAITING) == 1)
        until(lambda: metric(client, WAITING) == 0)
        gate.opened.set()
        answer = ask(person()).result(120)

    assert answer.status_code == 200
    assert gate.n_calls(50) == 0


def test_a_service_that_ends_lets_requests_end_and_refuses_the_rest(gate):
    with ThreadPoolExecutor(1) as pool, httpx.Client(timeout=120) as own:
        with running(create_app(fitted(gate)), grace=1) as client:
            gate.close()
            asked = {"people": [person(age=HELD)], "n_counterfactuals": 1}
            held = pool.submit(own.post, client.base_url.join("/explain"), json=asked)
            assert gate.entered.wait(120)
            answered = client.post("/explain", json={"people": [person()]})
        ended = held.result(120)
        gate.opened.set()

    assert answered.status_code == 200
    assert ended.status_code == 503
    assert ended.json()["detail"][0]["type"] == "closing"
