"""A report in Chromium: what it loads, search and pages, phones, paper, and screen readers."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from mcce import MCCE
from mcce.constraints import frozen, max_changes
from mcce.datasets import load_german_credit
from mcce.errors import McceWarning
from mcce.report import Labels, write_report

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

N_PEOPLE = 45
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = [(size, scheme) for size in (DESKTOP, PHONE) for scheme in ("light", "dark")]
LOOK_NAMES = [f"{'phone' if size is PHONE else 'desktop'}-{scheme}" for size, scheme in LOOKS]


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """A report on people of the bundled data, some of them without an answer."""
    german = load_german_credit()

    def score(frame):
        months, amount = (frame[name].to_numpy(float) for name in ("Duration", "CreditAmount"))
        return 1 / (1 + np.exp(0.06 * months + 0.0002 * amount - 1.8))

    explainer = MCCE(score, (0.6, 1), immutable=german.immutable, search="balanced")
    explainer.set_params(constraints=[max_changes(1), frozen("Duration", where="Age > 40")])
    explainer.set_params(n_counterfactuals=3, random_state=0).fit(german.features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(german.features.head(N_PEOPLE))
    assert set(result.people["status"]) == {"answered", "already desired", "no answer"}
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(explainer, result, path, Labels.bundled("german"), title="A <b>bank</b>")
    return path, result


@contextmanager
def opened(browser, report, **options):
    """The page of a report, and everything that went wrong while it was used."""
    options = {"viewport": DESKTOP, "reduced_motion": "reduce", **options}
    context = browser.new_context(**options)
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda sent: wrong.append(sent.url) if is_foreign(sent.url) else None)
    page.goto(report[0].as_uri())
    yield page
    context.close()
    assert wrong == []


def is_foreign(url):
    return not url.startswith(("file:", "data:"))


def shown(page):
    """Ids of the people who can be seen."""
    people = page.locator("article.person:visible")
    return [people.nth(at).get_attribute("id") for at in range(people.count())]


def test_people_are_searched_and_filtered(browser, report):
    status = report[1].people["status"]
    with opened(browser, report) as page:
        assert page.inner_text("#found") == f"{N_PEOPLE} of {N_PEOPLE} people"
        assert shown(page) == [f"person-{at}" for at in range(10)]

        page.fill("#search", "  PERSON   17 ")
        assert shown(page) == ["person-17"]

        page.fill("#search", "nothing like this")
        assert shown(page) == []
        assert page.is_visible("#nobody")

        page.fill("#search", "")
        page.select_option("#size", "100")
        page.select_option("#status", "already_desired")
        expected = np.flatnonzero(status == "already desired")
        assert shown(page) == [f"person-{at}" for at in expected]


def test_pages_are_turned(browser, report):
    with opened(browser, report) as page:
        assert page.is_disabled("#previous")
        page.click("#next")
        assert shown(page) == [f"person-{at}" for at in range(10, 20)]
        assert page.inner_text("#page") == "Page 2 of 5"

        page.select_option("#size", "25")
        page.click("#next")
        assert shown(page) == [f"person-{at}" for at in range(25, N_PEOPLE)]
        assert page.is_disabled("#next")


def test_a_link_to_a_person_opens_their_page(browser, report):
    with opened(browser, report) as page:
        page.select_option("#status", "no_answer")
        page.evaluate("location.hash = 'person-33'")
        page.wait_for_selector("#person-33:visible")
        assert shown(page) == [f"person-{at}" for at in range(30, 40)]


def test_everybody_is_there_without_scripts(browser, report):
    with opened(browser, report, java_script_enabled=False) as page:
        assert len(shown(page)) == N_PEOPLE
        assert not page.is_visible("#tools")


def test_paper_has_everybody_who_matches_and_nothing_folded(browser, report):
    with opened(browser, report) as page:
        page.evaluate(
            """addEventListener("beforeprint", () => {
                window.folded = document.querySelectorAll("details:not([open])").length;
                window.printed = document.querySelectorAll("article.person:not([hidden])").length;
            })"""
        )
        everybody = page.pdf(format="A4")
        assert page.evaluate("[window.folded, window.printed]") == [0, N_PEOPLE]
        assert len(shown(page)) == 10

        page.fill("#search", "person 17")
        one = page.pdf(format="A4")
        assert page.evaluate("window.printed") == 1
        assert 0 < n_sheets(one) < n_sheets(everybody)


def n_sheets(pdf):
    return len(re.findall(rb"/Type /Page\b", pdf))


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=LOOK_NAMES)
def test_screen_readers_find_no_serious_fault(browser, report, size, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    # The checker is a script of its own, which the policy of the page forbids.
    with opened(browser, report, viewport=size, color_scheme=scheme, bypass_csp=True) as page:
        for folded in page.locator("#person-0 details").all():
            folded.evaluate("one => one.open = true")
        found = axe.Axe().run(page).response["violations"]

    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in serious] == []


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=LOOK_NAMES)
def test_nothing_is_wider_than_the_window(browser, report, size, scheme):
    with opened(browser, report, viewport=size, color_scheme=scheme) as page:
        width = page.evaluate("document.documentElement.scrollWidth")

    assert width <= size["width"]


def test_names_are_text(browser, report):
    with opened(browser, report) as page:
        assert page.inner_text("h1") == "A <b>bank</b>"
        assert page.title() == "A <b>bank</b>"
