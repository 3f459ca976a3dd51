"""Secrets of a remote predictor are in no error, whatever the server or a proxy repeats."""

from __future__ import annotations

import base64
import copy
import logging
import pickle
import traceback

import pandas as pd
import pytest

from hostile_server import Hostile, remote, reply
from mcce import MCCE, ParameterError, PredictorError
from mcce.predictors import Remote

X = pd.DataFrame({"x": [0.25, 0.5]})
SECRET = "s3cr3t-t0k3n"
PAIR = base64.b64encode(f"me:{SECRET}".encode()).decode()


@pytest.fixture
def server():
    with Hostile() as server:
        yield server


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


@pytest.mark.parametrize(
    "settings",
    [
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
        {"url": f"http:me:{SECRET}@127.0.0.1"},
        {"url": f"http://{SECRET * 10}/"},
        {"url": [SECRET]},
        {"proxy": f"http://me:{SECRET}@[::1"},
        {"proxy": f"https://me:{SECRET}@127.0.0.1"},
    ],
)
def test_secrets_are_never_told_by_errors_of_parameters(settings):
    with pytest.raises(ParameterError) as caught:
        Remote(**{"url": "http://127.0.0.1/"} | settings)

    assert_untold(told(caught.value))


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1/p",
        "http://",
        "http:///path",
        "http://:80/",
        "file:///etc/hostname",
        "ftp://127.0.0.1/",
        "scores.example/credit",
        "http://a b/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nX: y",
        "http://127.0.0.1\x00/",
        "http://127.0.0.1:65536/",
        "http://127.0.0.1:-1/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:http/",
        "http://a..b/",
        f"http://{'a' * 64}.example/",
        "http://\udc80/",
        "http://127.0.0.1/\ud800",
        "http://bücher.example/",
        "http://127.0.0.1/é",
        "",
        " http://127.0.0.1/",
    ],
)
def test_an_address_that_cannot_work_is_an_error_of_the_parameter(url):
    with pytest.raises(ParameterError, match="url must be a web address"):
        Remote(url)


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
    other = Hostile()
    server.script = reply(b"", "302 Found", [f"Location: {other.url}"])

    with pytest.raises(PredictorError, match="Redirects are not followed"):
        remote(server, headers={"Authorization": SECRET}).predict(X)

    assert other.requests == []
    other.listener.close()


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
    server.script = b"HTTP/1.1 200 Connection established\r\n\r\nthis is no TLS at all"
    proxy = f"http://me:{SECRET}@127.0.0.1:{server.port}"
    predictor = remote(server, url="https://models.invalid/score", proxy=proxy)

    with pytest.raises(PredictorError, match="last failure: SSLError") as caught:
        predictor.predict(X)

    assert server.requests[0].startswith("CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {PAIR}" in server.requests[0]
    assert_untold(told(caught.value))


@pytest.mark.parametrize("script", [reply(b"", f"407 {SECRET}"), b"", SECRET.encode() * 10])
def test_a_proxy_that_refuses_is_no_connection(server, script):
    server.script = script
    predictor = remote(
        server, url="https://models.invalid/", proxy=f"http://127.0.0.1:{server.port}"
    )

    with pytest.raises(PredictorError, match="last failure: HTTPException") as caught:
        predictor.predict(X)

    assert_untold(told(caught.value))


def test_a_proxy_that_drips_ends_at_the_deadline(server):
    server.script = server.drip(b"HTTP/1.1 200 ")
    predictor = remote(
        server, url="https://models.invalid/", proxy=f"http://127.0.0.1:{server.port}", timeout=0.3
    )

    with pytest.raises(PredictorError, match=r"within 0\.3 seconds"):
        predictor.predict(X)
