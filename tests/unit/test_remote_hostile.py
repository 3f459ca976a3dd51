"""Servers that drip, flood, hang up or repeat secrets: an attempt is bounded and tells nothing."""

from __future__ import annotations

import base64
import copy
import gzip
import logging
import pickle
import socket
import traceback
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from hostile_server import ANSWER, Hostile, remote, reply
from mcce import MCCE, ParameterError, PredictorError
from mcce.predictors import Remote

X = pd.DataFrame({"x": [0.25, 0.5]})
SECRET = "s3cr3t-t0k3n"
PAIR = base64.b64encode(f"me:{SECRET}".encode()).decode()
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def server():
    with Hostile() as server:
        yield server


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 ",
        OK + b"X-Slow: ",
        OK + b"Content-Length: 1000000\r\n\r\n",
        OK + b"\r\n",
        CHUNKED + b"FFFFF\r\n",
        CHUNKED + b"0\r\nX-Trailer: ",
    ],
    ids=["status", "headers", "body", "open_body", "chunk", "trailer"],
)
def test_a_slow_drip_ends_at_the_deadline(server, start):
    server.script = server.drip(start)

    with pytest.raises(PredictorError, match=r"no complete response within 0\.2 seconds"):
        remote(server, timeout=0.2).predict(X)


def test_a_server_that_never_answers_ends_at_the_deadline_of_each_attempt(server):
    server.script = server.hang

    with pytest.raises(PredictorError, match=r"attempts: 3, .* within 0\.1 seconds"):
        remote(server, timeout=0.1, retries=2).predict(X)
    for settings in (
        {"url": server.url.replace("http", "https")},
        {"url": "https://models.invalid/", "proxy": f"http://127.0.0.1:{server.port}"},
    ):
        with pytest.raises(PredictorError, match=r"within 0\.2 seconds"):
            remote(server, timeout=0.2, **settings).predict(X)


def test_a_server_that_takes_no_rows_ends_at_the_deadline():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        rows = pd.DataFrame({"x": ["a" * 40_000_000]})

        with pytest.raises(PredictorError, match=r"within 0\.3 seconds"):
            Remote(url, timeout=0.3, retries=0).predict(rows)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (OK + b"\r\n", b"9" * 2**16),
        (OK + b"Content-Length: 99999999999\r\n\r\n", b"9" * 2**16),
        (CHUNKED + b"FFFFFFFFFFFF\r\n", b"9" * 2**16),
        (CHUNKED + b"-1\r\n", b"9" * 2**16),
        (CHUNKED, b"1\r\n9\r\n" * 2**13),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2**11),
    ],
    ids=["endless", "announced", "one_chunk", "negative_chunk", "many_chunks", "continue"],
)
def test_a_flood_is_cut_off(server, start, more, monkeypatch):
    monkeypatch.setattr("mcce.predictors.remote.MAX_BYTES", 8_000)
    server.script = server.flood(start, more)

    with pytest.raises(PredictorError, match=r"more than 10000 bytes for 2 rows|no complete HTTP"):
        remote(server).predict(X)

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


BROKEN = {
    "nothing": b"",
    "short": OK + b"Content-Length: 100\r\n\r\n" + ANSWER,
    "open_chunk": CHUNKED + b"17\r\n" + ANSWER,
    "no_chunk": CHUNKED + b"zz\r\n",
    "noise": b"\x00\x01\x02 not HTTP\r\n\r\n",
    "headers": OK + b"X: y\r\n" * 30_000 + b"\r\n",
    "long_line": OK + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    "status": b"HTTP/1.1 99999 OK\r\n\r\n",
}


@pytest.mark.parametrize("flaw", BROKEN)
def test_a_broken_response_is_no_response(server, flaw):
    server.script = BROKEN[flaw]

    with pytest.raises(PredictorError, match=r"did not respond \(attempts: 2, last failure: \w+"):
        remote(server, retries=1).predict(X)

    assert len(server.requests) == 2


def test_complete_responses_of_every_form_are_read(server):
    for script in (
        reply(),
        b"HTTP/1.0 200 OK\r\n\r\n" + ANSWER,
        CHUNKED + b"17\r\n" + ANSWER + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + reply(),
        reply(headers=["Content-Encoding: identity"]),
        reply() + b"what follows",
    ):
        server.script = script
        assert remote(server).predict(X).tolist() == [1, 2]


def test_many_threads_share_one_predictor(server):
    predictor = remote(server)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: predictor.predict(X).tolist(), range(40)))

    assert answers == [[1, 2]] * 40


def told(error):
    """Everything that a log of an error could show."""
    shown = ["".join(traceback.format_exception(error)), repr(error), str(error), str(vars(error))]
    while error is not None:
        shown += [repr(error), str(getattr(error, "__notes__", ""))]
        error = error.__cause__ or error.__context__
    return "\n".join(shown)


def assert_untold(text):
    hidden = [SECRET, PAIR, base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex()]
    assert not [secret for secret in hidden if secret in text], text


ECHOES = {
    "body": reply(f"Wrong token {SECRET}".encode(), "401 Unauthorized"),
    "page": reply(f"<p>{SECRET} {PAIR}".encode()),
    "json": reply(f'{{"predictions": ["{SECRET}", 1]}}'.encode()),
    "object": reply(f'{{"{SECRET}": 1}}'.encode()),
    "reason": reply(b"", f"400 {SECRET}"),
    "busy": reply(SECRET.encode(), f"503 {SECRET}"),
    "type": reply(b"<p>", headers=[f"Content-Type: text/{SECRET}"]),
    "redirect": reply(b"", "307 Moved", [f"Location: http://127.0.0.1/?token={SECRET}"]),
    "noise": f"{SECRET}\r\n\r\n".encode(),
    "chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{SECRET}\r\n".encode(),
    "encoding": reply(headers=[f"Content-Encoding: {SECRET}"]),
    "retry": reply(b"", "429 Wait", [f"Retry-After: {SECRET}"]),
    "nothing": b"",
}


@pytest.mark.parametrize("echo", ECHOES)
def test_secrets_are_never_told_whatever_the_server_repeats(server, caplog, echo):
    server.script = ECHOES[echo]
    url = f"http://me:{SECRET}@127.0.0.1:{server.port}/score?key={SECRET}"
    predictor = remote(server, url=url, headers={"X-Token": SECRET})

    with caplog.at_level(logging.DEBUG), pytest.raises(PredictorError) as caught:
        MCCE(predictor, (0, 1)).fit(X)

    assert f"Authorization: Basic {PAIR}" in server.requests[0]
    assert f"/score?key={SECRET}" in server.requests[0]
    assert_untold(told(caught.value) + caplog.text)


def test_secrets_are_never_told_by_errors_of_parameters():
    for settings in (
        {"headers": {"Authorization": f"Bearer {SECRET}\n"}},
        {"headers": {"Authorization": f"Bearer {SECRET}\u20ac"}},
        {"headers": {f"Bearer {SECRET}": "x"}},
        {"headers": f"Bearer {SECRET}"},
        {"url": f"http://me:{SECRET}@[::1/p"},
        {"url": f"http://me:{SECRET}@127.0.0.1:999999/"},
        {"url": f"http://me:{SECRET}@127.0.0.1:{SECRET}/"},
        {"url": f"http://me:{SECRET}@/"},
        {"url": f"http://me:{SECRET}@host\u2100/"},
        {"url": f"http://127.0.0.1/?key={SECRET}\n"},
        {"url": f"me:{SECRET}@127.0.0.1"},
        {"url": f"http://{SECRET * 10}/"},
        {"url": [SECRET]},
        {"proxy": f"http://me:{SECRET}@[::1"},
        {"proxy": f"https://me:{SECRET}@127.0.0.1"},
    ):
        with pytest.raises(ParameterError) as caught:
            Remote(**{"url": "http://127.0.0.1/"} | settings)
        assert_untold(told(caught.value))


def test_a_predictor_shows_host_and_path_alone():
    predictor = Remote(
        f"https://me:{SECRET}@host:8/x?key={SECRET}#{SECRET}",
        headers={"Authorization": SECRET},
        proxy=f"http://me:{SECRET}@127.0.0.1",
    )

    assert repr(predictor) == str(predictor) == "Remote('https://host:8/x')"
    assert_untold(repr(MCCE(predictor)) + repr(MCCE(predictor).get_params()))
    assert repr(Remote("http://[::1]:80/p")) == "Remote('http://[::1]/p')"


def test_headers_that_are_changed_later_are_checked_again(server):
    predictor = remote(server, headers={"Authorization": SECRET})
    predictor.headers["Authorization"] = f"{SECRET}\n"

    with pytest.raises(ParameterError, match="header 'Authorization'") as caught:
        predictor.predict(X)

    assert_untold(told(caught.value))


def test_a_redirect_to_another_host_gets_neither_rows_nor_headers(server):
    with Hostile() as other:
        server.script = reply(b"", "302 Found", [f"Location: {other.url}"])

        with pytest.raises(PredictorError, match="Redirects are not followed"):
            remote(server, headers={"Authorization": SECRET}).predict(X)

        assert other.requests == []


def test_a_header_for_authorization_wins_over_the_address(server):
    url = f"http://me:other@127.0.0.1:{server.port}/"

    remote(server, url=url, headers={"authorization": "Bearer x"}).predict(X)

    assert "Basic" not in server.requests[0]
    assert server.requests[0].count("uthorization") == 1


def test_copies_and_pickles_work_and_hold_the_headers(server):
    predictor = remote(server, headers={"Authorization": SECRET})

    for other in (copy.deepcopy(predictor), pickle.loads(pickle.dumps(predictor))):
        assert other.predict(X).tolist() == [1, 2]
        assert other.headers == {"Authorization": SECRET}


VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture
def environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def test_proxies_of_the_environment_are_ignored_unless_requested(server, environment):
    proxy = Hostile()
    environment.setenv("http_proxy", f"http://me:{SECRET}@127.0.0.1:{proxy.port}")

    assert remote(server).predict(X).tolist() == [1, 2]
    assert proxy.requests == []

    url = "http://models.invalid/score?key=1"
    assert remote(server, url=url, proxy="environment").predict(X).tolist() == [1, 2]
    assert proxy.requests[0].startswith("POST http://models.invalid/score?key=1 HTTP/1.1\r\n")
    assert "Host: models.invalid\r\n" in proxy.requests[0]
    assert f"Proxy-Authorization: Basic {PAIR}" in proxy.requests[0]

    environment.setenv("no_proxy", "127.0.0.1")
    assert remote(server, proxy="environment").predict(X).tolist() == [1, 2]
    assert len(proxy.requests) == 1
    proxy.listener.close()


def test_a_proxy_of_the_environment_that_cannot_work_is_named_without_its_value(
    server, environment
):
    environment.setenv("http_proxy", f"http://me:{SECRET}@[::1")

    with pytest.raises(ParameterError, match="environment variable http_proxy must be") as caught:
        remote(server, proxy="environment").predict(X)

    assert_untold(told(caught.value))


def test_an_https_address_is_tunnelled_through_the_proxy(server):
    def tunnel(connection):
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        connection.recv(2**16)
        connection.sendall(b"this is no TLS at all")

    server.script = tunnel
    proxy = f"http://me:{SECRET}@127.0.0.1:{server.port}"
    predictor = remote(server, url="https://models.invalid/score", proxy=proxy)

    with pytest.raises(PredictorError, match="last failure: SSLError") as caught:
        predictor.predict(X)

    assert server.requests[0].startswith("CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {PAIR}" in server.requests[0]
    assert_untold(told(caught.value))


def test_a_proxy_that_refuses_is_no_connection(server):
    proxy = f"http://127.0.0.1:{server.port}"
    for script in (reply(b"", f"407 {SECRET}"), b"", SECRET.encode() * 10):
        server.script = script
        with pytest.raises(PredictorError, match=r"the proxy refused|no complete HTTP") as caught:
            remote(server, url="https://models.invalid/", proxy=proxy).predict(X)
        assert_untold(told(caught.value))
