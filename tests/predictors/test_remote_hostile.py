"""Servers that drip, flood and hang up: an attempt is bounded in time and size."""

from __future__ import annotations

import gzip
import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from hostile_server import ANSWER, Hostile, remote, reply
from mcce import PredictorError
from mcce.predictors import Remote
from mcce.predictors.pacing import Pace

X = pd.DataFrame({"x": [0.25, 0.5]})


@pytest.fixture
def server():
    with Hostile() as server:
        yield server


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFF\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ",
    ],
    ids=["status line", "headers", "body", "body to the end", "chunk", "trailer"],
)
def test_a_slow_drip_ends_at_the_deadline(server, start):
    server.script = server.drip(start)

    with pytest.raises(PredictorError, match=r"no complete response within 0\.3 seconds"):
        remote(server, timeout=0.3).predict(X)


def test_a_server_that_never_answers_ends_at_the_deadline_of_each_attempt(server):
    server.script = server.hang

    with pytest.raises(PredictorError, match=r"attempts: 3, .* within 0\.1 seconds"):
        remote(server, timeout=0.1, retries=2).predict(X)


def test_a_server_that_takes_no_rows_ends_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        rows = pd.DataFrame({"x": ["a" * 40_000_000]})

        with pytest.raises(PredictorError, match=r"within 0\.3 seconds"):
            Remote(url, timeout=0.3, retries=0).predict(rows)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"9" * 2**16),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"9" * 2**16),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFF\r\n", b"9" * 2**16),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", b"9" * 2**16),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n9\r\n" * 2**13),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2**11),
    ],
    ids=["endless", "announced", "one chunk", "negative chunk", "many chunks", "continue"],
)
def test_a_flood_is_cut_off_and_never_kept(server, start, more):
    server.script = server.flood(start, more)
    tracemalloc.start()
    try:
        with pytest.raises(PredictorError, match=r"more than 100000 bytes for 2 rows|ValueError"):
            remote(server, max_bytes=100_000, timeout=60).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 20_000_000
    assert len(server.requests) == 1


def test_the_default_size_grows_with_rows_and_classes(server):
    padding = b" " * 1_001_900
    server.script = reply(ANSWER + padding)
    assert remote(server).predict(X).tolist() == [1, 2]

    server.script = reply(ANSWER + padding + b" " * 200)
    with pytest.raises(PredictorError, match="more than 1002000 bytes for 2 rows"):
        remote(server).predict(X)


def test_bodies_of_errors_are_not_read(server):
    server.script = server.flood(b"HTTP/1.1 404 Not Found\r\n\r\n", b"9" * 2**16)

    with pytest.raises(PredictorError, match="responded with 404 Not Found"):
        remote(server).predict(X)


def test_a_compressed_response_is_refused_without_unpacking_it(server):
    bomb = gzip.compress(b" " * 50_000_000)
    server.script = reply(bomb, headers=["Content-Encoding: gzip"])

    with pytest.raises(PredictorError, match="a compressed response"):
        remote(server).predict(X)

    assert "Accept-Encoding: identity" in server.requests[0]


@pytest.mark.parametrize(
    "script",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + ANSWER,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n17\r\n" + ANSWER,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x00\x01\x02 not HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 99999 OK\r\n\r\n",
    ],
    ids=["nothing", "short", "open chunk", "no chunk", "noise", "headers", "long line", "status"],
)
def test_a_broken_response_is_no_response(server, script):
    server.script = script

    with pytest.raises(PredictorError, match=r"did not respond \(attempts: 2, last failure: \w+"):
        remote(server, retries=1).predict(X)

    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "script",
    [
        reply(),
        b"HTTP/1.0 200 OK\r\n\r\n" + ANSWER,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n17\r\n" + ANSWER + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + reply(),
        reply(headers=["Content-Encoding: identity"]),
        reply() + b"what follows",
    ],
    ids=["length", "to the end", "chunked", "continue", "identity", "more"],
)
def test_complete_responses_of_every_form_are_read(server, script):
    server.script = script

    assert remote(server).predict(X).tolist() == [1, 2]


def test_many_threads_share_one_predictor(server):
    predictor = remote(server)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: predictor.predict(X).tolist(), range(40)))

    assert answers == [[1, 2]] * 40


def test_a_huge_number_of_retries_pauses_a_minute_at_most(monkeypatch):
    pauses = []
    monkeypatch.setattr(Pace, "pause", lambda _, seconds: pauses.append(seconds))

    with pytest.raises(PredictorError, match="attempts: 1101"):
        Remote("http://127.0.0.1:9/", retries=1100, timeout=1e300).predict(X)

    assert max(pauses) == 60


def test_a_handshake_that_never_ends_ends_at_the_deadline(server):
    server.script = server.hang
    url = server.url.replace("http", "https")

    with pytest.raises(PredictorError, match=r"within 0\.3 seconds"):
        remote(server, url=url, timeout=0.3).predict(X)
