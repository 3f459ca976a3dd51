"""A real browser, and a service whose page it opens. What is not installed is skipped."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mcce import MCCE
from mcce.datasets import load_german_credit
from mcce.report import Labels

N_PEOPLE = 10_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; $CHROMIUM names one that is not on the path."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium is installed; set CHROMIUM to the path of one")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def bank():
    """An explainer of the bundled data, with a predictor that looks at every feature."""
    german = load_german_credit()
    levels = [name for name, column in german.features.items() if column.dtype == "category"]
    numbers = [name for name in german.features if name not in levels]
    encoder = make_column_transformer((OneHotEncoder(), levels), (StandardScaler(), numbers))
    predictor = make_pipeline(encoder, LogisticRegression(max_iter=2_000))
    predictor.fit(german.features, (german.target == german.desired).astype(int))
    explainer = MCCE(predictor, (0.7, 1), immutable=german.immutable, search="balanced")
    given = {"n_counterfactuals": 3, "diversity": 0.5, "random_state": 0}
    return explainer.set_params(**given).fit(german.features)


@pytest.fixture(scope="session")
def applicants():
    """Ten thousand people."""
    features = load_german_credit().features
    return features.iloc[np.arange(N_PEOPLE) * 7 % len(features)].reset_index(drop=True)


@pytest.fixture(scope="session")
def serving():
    """Runs services, and gives their addresses."""
    for name in ("fastapi", "uvicorn"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    from mcce.serve import ServiceSettings, create_app
    from mcce.serve.settings import Directory
    from served_bank import running

    @contextmanager
    def serve(explainer, people=None, **settings):
        if people is not None:
            names = [f"Applicant {row:05d}" for row in range(len(people))]
            names[3] = "<img src=x onerror=alert(1)>"
            directory = Directory(explainer)
            directory.add([(np.arange(len(people)), people)], names)
            labels = {code: Labels.bundled("german", code) for code in ("en", "nb", "de")}
            given = {"title": "A <b>bank</b>", "labels": labels, "people": directory}
            settings = given | settings
        with running(create_app(explainer, ServiceSettings(**settings))) as client:
            yield f"{client.base_url}/"

    return serve


@pytest.fixture(scope="session")
def address(serving, bank, applicants):
    """Where the page is."""
    with serving(bank, applicants) as found:
        yield found


@pytest.fixture
def opened(browser):
    """Opens pages; everything that went wrong while they were used is a failure."""
    contexts, wrong = [], []

    def open_page(address, **options):
        own = (address.partition("#")[0], "blob:", "data:")
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(own) or wrong.append(sent.url))
        page.goto(address)
        return page

    open_page.wrong = wrong
    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def expected_failure(opened):
    """Forgets what the browser says of a request that a test makes fail."""

    def forget(text):
        opened.wrong[:] = [one for one in opened.wrong if text not in one]

    return forget


@pytest.fixture
def case(opened, address):
    """The page with a declined person and plans, and every search that it asked for."""
    from page_steps import choose, settled

    page = opened(address)
    searches = []

    def listen(request):
        if request.url.endswith("/explain"):
            searches.append(json.loads(request.post_data))

    page.on("request", listen)
    choose(page)
    settled(page)
    return page, searches
