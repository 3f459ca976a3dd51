"""A report in Chromium: what it loads, search and pages, phones, paper, and screen readers."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from mcce import MCCE, McceWarning
from mcce.constraints import frozen, max_changes
from mcce.datasets import load_german_credit
from mcce.report import Labels, write_report
from page_steps import DESKTOP, PHONE, serious_faults

N_PEOPLE = 45


@pytest.fixture(scope="module")
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
    return path.as_uri(), result


def shown(page):
    """Numbers of the people who can be seen."""
    found = page.locator("article.person:visible").evaluate_all("all => all.map(one => one.id)")
    return [int(name.removeprefix("person-")) for name in found]


def test_people_are_searched_filtered_and_turned(opened, report):
    address, result = report
    page = opened(address)
    assert page.inner_text("h1") == page.title() == "A <b>bank</b>"
    assert page.inner_text("#found") == f"{N_PEOPLE} of {N_PEOPLE} people"
    assert shown(page) == list(range(10))
    assert page.is_disabled("#previous")
    page.click("#next")
    assert shown(page) == list(range(10, 20))
    assert page.inner_text("#page") == "Page 2 of 5"
    page.select_option("#size", "25")
    page.click("#next")
    assert shown(page) == list(range(25, N_PEOPLE))
    assert page.is_disabled("#next")

    page.fill("#search", "  PERSON   17 ")
    assert shown(page) == [17]
    page.fill("#search", "nothing like this")
    assert shown(page) == []
    assert page.is_visible("#nobody")
    page.fill("#search", "")
    page.select_option("#size", "100")
    page.select_option("#status", "already_desired")
    assert shown(page) == np.flatnonzero(result.people["status"] == "already desired").tolist()

    # A link to somebody opens their page, whatever was chosen.
    page.select_option("#size", "10")
    page.select_option("#status", "no_answer")
    page.evaluate("location.hash = 'person-33'")
    page.wait_for_selector("#person-33:visible")
    assert shown(page) == list(range(30, 40))


def test_everybody_is_there_without_scripts(opened, report):
    page = opened(report[0], java_script_enabled=False)

    assert page.locator("article.person:visible").count() == N_PEOPLE
    assert not page.is_visible("#tools")


def test_paper_has_everybody_who_matches_and_nothing_folded(opened, report):
    page = opened(report[0])
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
    n_sheets = [len(re.findall(rb"/Type /Page\b", pdf)) for pdf in (one, everybody)]
    assert 0 < n_sheets[0] < n_sheets[1]


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_the_report_fits_the_window_and_can_be_read_aloud(opened, report, look):
    size, scheme = {"desktop": (DESKTOP, "light"), "phone": (PHONE, "dark")}[look]
    # The checker is a script of its own, which the policy of the page forbids.
    page = opened(report[0], viewport=size, color_scheme=scheme, bypass_csp=True)

    for folded in page.locator("#person-0 details").all():
        folded.evaluate("one => one.open = true")

    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert serious_faults(page) == []
