"""A scorer behind HTTP: what is sent, what is read, and what is described without quoting it."""

from __future__ import annotations

import json
import socket
import sys

import numpy as np
import pandas as pd
import pytest

from hostile_server import Hostile, remote, reply
from mcce import MCCE, MissingExtraError, ParameterError, PredictorError
from mcce.predictors import Remote, make_decision

X = pd.DataFrame({"x": [0.25, 0.5, 0.75]})
SCORES = reply({"predictions": [0.1, 0.2, 0.3]})


@pytest.fixture
def server():
    with Hostile() as server:
        server.script = SCORES
        yield server


def test_rows_go_out_as_json_in_batches(server):
    server.script = [reply({"predictions": [0.5, 1.0]}), reply({"predictions": [0.25]})]
    rows = pd.DataFrame(
        {
            "whole": [2**53 + 1, -1, 0],
            "real": [0.1, np.nan, 1e-300],
            "word": pd.Categorical(["é", None, "b"]),
            "flag": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "when": pd.to_datetime(["2026-01-02T00:00:00", None, "2026-01-02T03:04:05"]),
            "span": pd.to_timedelta([90, None, 5], unit="min"),
        }
    )

    predicted = remote(server, batch_size=2, headers={"X-Token": "secret"}).predict(rows)

    first, second = (json.loads(body)["instances"] for body in server.bodies)
    assert predicted.tolist() == [0.5, 1.0, 0.25]
    assert list(first[0]) == rows.columns.tolist()
    assert list(first[0].values()) == [
        *(2**53 + 1, 0.1, "é", True, True, "2026-01-02T00:00:00", "P0DT1H30M0S")
    ]
    assert list(first[1].values()) == [-1, None, None, False, None, None, None]
    assert second[0]["real"] == 1e-300
    assert "X-Token: secret" in server.requests[0]
    assert "Content-Type: application/json" in server.requests[0]


def test_rows_of_an_array_go_out_as_lists(server):
    def answer(connection):
        rows = json.loads(server.bodies[-1])["instances"]
        connection.sendall(reply({"predictions": [row[0] for row in rows]}))

    server.script = answer
    array = np.arange(40.0).reshape(20, 2)

    result = MCCE(remote(server), (20, 99), random_state=0).fit(array).explain(array[:2])

    assert (result.frame["x0"] >= 20).all()


def test_the_keys_of_request_and_response_may_be_others_or_none(server):
    server.script = [reply({"scores": [1, 2, 3]}), reply([4, 5, 6])]

    named = remote(server, rows_key="rows", predictions_key="scores").predict(X)
    bare = remote(server, rows_key=None, predictions_key=None).predict(X)

    assert (named.tolist(), bare.tolist()) == ([1, 2, 3], [4, 5, 6])
    assert json.loads(server.bodies[0]) == {"rows": [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]}
    assert json.loads(server.bodies[1]) == [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}]


def test_probabilities_and_labels_are_read_as_such(server):
    many = remote(server, output="probabilities", classes=["a", "b", "c"])
    server.script = reply({"predictions": [[0.5, 0.25, 0.25], [0, 0, 1], [0, 1, 0]]})
    assert make_decision(many, ["b", "c"]).score(X).valid.tolist() == [False, True, True]
    two = remote(server, output="probabilities", classes=["no", "yes"])
    server.script = reply({"predictions": [0.25, 0.5, 0.75]})
    assert make_decision(two).score(X).score.tolist() == [0.25, 0.5, 0.75]
    labels = remote(server, output="labels")
    server.script = reply({"predictions": ["no", "yes", "no"]})
    assert make_decision(labels, "yes").score(X).valid.tolist() == [False, True, False]


def test_without_httpcore_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.endswith("predictors.exchange")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpcore", None)

    with pytest.raises(MissingExtraError, match=r'needs httpcore, .* pip install "\.\[remote\]"'):
        Remote("http://127.0.0.1/")


def test_a_server_that_fails_sometimes_is_asked_again(server):
    busy = reply("busy", "503 Busy", ["Retry-After: 0"])
    server.script = [busy, b"", reply("slowly", "429 Slowly"), reply(b"", "500 Error"), SCORES]

    assert remote(server, retries=4).predict(X).tolist() == [0.1, 0.2, 0.3]
    assert len(server.requests) == 5


def test_no_response_is_tried_again_and_then_an_error(server):
    server.script = b""

    with pytest.raises(
        PredictorError, match=r"did not respond \(attempts: 3, .*Check that it is running"
    ):
        make_decision(remote(server, retries=2), (0, 1)).score(X)

    assert len(server.requests) == 3


def test_nobody_there_is_an_error():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # the port is taken, but nobody listens
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"

        with pytest.raises(PredictorError, match="attempts: 1, last failure: ConnectionRefused"):
            Remote(url, retries=0).predict(X)


def test_an_attempt_that_takes_too_long_is_given_up_and_made_again(server):
    server.script = [server.hang, SCORES]

    predicted = remote(server, timeout=2.0, retries=30).predict(X)

    assert predicted.tolist() == [0.1, 0.2, 0.3]
    assert len(server.requests) >= 2


def test_pauses_grow_up_to_a_minute_and_a_server_may_request_longer_ones(server, monkeypatch):
    pauses = []
    monkeypatch.setattr(
        "mcce.predictors.transport.RateLimiter.pause", lambda _, seconds: pauses.append(seconds)
    )
    busy = reply("busy", "503 Busy")
    longer = [reply("", "429 Wait", [f"Retry-After: {seconds}"]) for seconds in (7, 900)]
    server.script = [busy, busy, *longer, *[busy] * 6, SCORES]

    remote(server, backoff=0.5, retries=10).predict(X)

    assert pauses == [0.5, 1.0, 7.0, 60.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_a_refusal_is_an_error_at_once(server):
    refusals = [
        ("400 Bad Request", [], r"responded with 400 Bad Request\. Its body is not shown"),
        ("401 Unauthorized", [], "responded with 401"),
        ("302 Found", ["Location: http://else.where/"], "302 Found.*Redirects are not followed"),
        ("307 Moved", ["Location: /x"], "pass the final address"),
    ]
    for status, headers, says in refusals:
        server.script = reply("no such column", status, headers)
        with pytest.raises(PredictorError, match=says):
            make_decision(remote(server, retries=3), (0, 1)).score(X)
    assert len(server.requests) == len(refusals)


def test_nonsense_is_described_without_quoting_it(server):
    nonsense = [
        (reply(b"<html>oops</html>"), "must return JSON, got 17 bytes that are not"),
        (reply(b"<p>", headers=["Content-Type: text/html"]), "got 3 bytes of text/html that"),
        (reply(b"<p>", headers=["Content-Type: text/secret"]), "got 3 bytes that are not"),
        (reply(b"\xff\xfe"), "must return JSON, got 2 bytes"),
        (reply(b"[" * 100_000), "must return JSON, got 100000 bytes"),
        (reply(b'{"predictions": [1, 2, ' + b"9" * 5000 + b"]}"), "must return JSON"),
        (reply(b'{"predictions": [1, 2, 1e999]}'), "a number too large for a float for row 2"),
        (
            reply(b'{"predictions": [1, 2, 3], "predictions": [4]}'),
            "an object that has a key twice",
        ),
        (reply(b'{"predictions": [NaN, 1, 2]}'), "NaN or Infinity, which JSON does not know"),
        (reply(b"", headers=["Content-Encoding: gzip"]), "plain JSON, got a compressed response"),
        (reply([1, 2, 3]), r"an object with the key 'predictions', got a list of length 3"),
        (reply({"error": "x"}), r"the key 'predictions', got an object of length 1"),
        (reply({"predictions": 0.5}), "a list of predictions, got a fraction"),
        (reply({"predictions": [0.5]}), r"a list of 3 predictions, one per row, got 1"),
        (reply({"predictions": [0.5] * 4}), "a list of 3 predictions, one per row, got 4"),
        (reply({"predictions": [0.5, "0.5", 0.5]}), "one number per row, got a string for row 1"),
        (reply({"predictions": [0.5, None, 0.5]}), "one number per row, got null for row 1"),
        (reply({"predictions": [0.5, True, 0.5]}), "one number per row, got a boolean for row 1"),
        (reply({"predictions": [[0.5]] * 3}), r"one number per row, got a list of length 1"),
    ]
    for script, says in nonsense:
        server.script = script
        with pytest.raises(PredictorError, match=says):
            make_decision(remote(server, retries=3), (0, 1)).score(X)
    assert len(server.requests) == len(nonsense)


def test_wrong_probabilities_and_labels_are_an_error(server):
    two = remote(server, output="probabilities", classes=["no", "yes"])
    three = remote(server, output="probabilities", classes=["a", "b", "c"])
    labels = remote(server, output="labels")
    for predictor, predictions, says in [
        (two, [[0.5, 0.5], [0.5], [1, 0]], "2 numbers per row, got a list of length 1 for row 1"),
        (two, [[0.5, "b"], [0, 1], [1, 0]], "2 numbers per row, got a list of length 2 for row 0"),
        (
            two,
            [[0.5, 0.9], [0, 1], [1, 0]],
            "must add up to 1, .* 1 of 3 rows, first at position 0",
        ),
        (two, [0.5, 1.5, 0.5], "outside of 0 and 1 as probabilities for 1 of 3 rows"),
        (two, [0.5, [0.5, 0.5], 0.5], "predictions of one shape"),
        (three, [0.1, 0.2, 0.3], "3 numbers per row, got a fraction for row 0"),
        (labels, ["no", 0.5, "yes"], "one label per row, a string or whole number"),
        (labels, ["no", None, "yes"], "one label per row, a string or whole number"),
    ]:
        server.script = reply({"predictions": predictions})
        with pytest.raises(PredictorError, match=says):
            predictor.predict(X)


def test_rows_that_json_cannot_hold_are_an_error(server):
    for rows, says in [
        (pd.DataFrame({1: [0.5]}), r"columns \[1\] have other names"),
        (pd.DataFrame({"x": [0, {1}]}), "A set in row 1 of column 'x' cannot be written as JSON"),
        (pd.DataFrame({"x": [np.inf]}), "A float in row 0 of column 'x' cannot be written as"),
    ]:
        with pytest.raises(PredictorError, match=says):
            remote(server).predict(rows)
    assert server.requests == []


def test_settings_that_cannot_work_are_an_error():
    for settings, says in [
        ({"url": None}, "http:// or https://, but it is of type NoneType"),
        ({"headers": ["Authorization"]}, "headers must map names to values, got list"),
        ({"headers": {"Content-Length": "3"}}, "'Content-Length' follows from the rows"),
        ({"headers": {"No name": "x"}}, "that of header 0 .* is not"),
        (
            {"headers": {"Token": "x\n"}},
            "value of the header 'Token' must be a string without line",
        ),
        ({"headers": {"Token": 3}}, "value of the header 'Token' must be"),
        ({"proxy": "socks5://127.0.0.1:1"}, "proxy must be a web address that begins with http://"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 to 2147483647, got 0"),
        ({"retries": -1}, "retries must be"),
        ({"retries": 1.5}, "retries must be a whole number"),
        ({"timeout": 0}, "timeout must be a finite number"),
        ({"backoff": float("inf")}, "backoff must be a finite number"),
        ({"output": "logits"}, "output must be one of"),
        ({"classes": ["no", "yes"]}, 'but output is "score"'),
        ({"output": "probabilities"}, "needs classes"),
        ({"in_flight": 0}, "in_flight must be a whole number from 1 to"),
        ({"rows_per_second": 0}, "rows_per_second must be None or a finite number > 0, got 0"),
        ({"rows_per_second": True}, "rows_per_second must be None or a finite number"),
    ]:
        with pytest.raises(ParameterError, match=says):
            Remote(**{"url": "http://127.0.0.1/"} | settings)


def test_an_address_that_cannot_work_is_an_error_of_the_parameter():
    for url in [
        *("http://[::1/p", "http://", "http:///path", "http://:80/", "file:///etc/hostname"),
        *("ftp://127.0.0.1/", "scores.example/credit", "http://a b/", "http://127.0.0.1/a b"),
        *("http://127.0.0.1/\r\nX: y", "http://127.0.0.1\x00/", "http://127.0.0.1:65536/"),
        *("http://127.0.0.1:0/", "http://127.0.0.1:http/", f"http://{'a' * 64}.example/"),
        *("http://\udc80/", "http://bücher.example/", "", " http://127.0.0.1/"),
    ]:
        with pytest.raises(ParameterError, match="url must be a web address"):
            Remote(url)
