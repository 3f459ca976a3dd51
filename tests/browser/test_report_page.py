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

N_PEOPLE = 90


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
    declined = np.flatnonzero(result.people["status"] != "already desired").tolist()
    n_declined = len(declined)
    assert page.inner_text("#found") == f"{n_declined} of {n_declined} people"
    assert shown(page) == declined[:10]
    assert page.is_disabled("#previous")
    page.click("#next")
    assert shown(page) == declined[10:20]
    assert page.inner_text("#page") == f"Page 2 of {-(-n_declined // 10)}"
    page.select_option("#size", "25")
    page.click("#next")
    assert shown(page) == declined[25:50]
    page.click("#next")
    assert shown(page) == declined[50:]
    assert page.is_disabled("#next")

    page.fill("#search", f"  PERSON   {declined[12]} ")
    assert shown(page) == [declined[12]]
    page.fill("#search", "nothing like this")
    assert shown(page) == []
    assert page.is_visible("#nobody")
    page.fill("#search", "")
    page.select_option("#size", "100")
    page.select_option("#status", "no_answer")
    assert shown(page) == np.flatnonzero(result.people["status"] == "no answer").tolist()

    # A link to somebody opens their page, whatever was chosen.
    page.select_option("#size", "10")
    page.select_option("#status", "no_answer")
    answered = np.flatnonzero(result.people["status"] == "answered")
    (other, *_) = [row for row in declined[20:30] if row in answered]
    page.evaluate(f"location.hash = 'person-{other}'")
    page.wait_for_selector(f"#person-{other}:visible")
    assert shown(page) == declined[20:30]


def test_everybody_is_there_without_scripts(opened, report):
    address, result = report
    page = opened(address, java_script_enabled=False)

    n_declined = (result.people["status"] != "already desired").sum()
    assert page.locator("article.person:visible").count() == n_declined
    assert not page.is_visible("#tools")


def test_paper_has_everybody_who_matches_two_to_a_sheet(opened, report):
    address, result = report
    n_declined = (result.people["status"] != "already desired").sum()
    page = opened(address)
    page.evaluate(
        """addEventListener("beforeprint", () => {
            window.printed = document.querySelectorAll("article.person:not([hidden])").length;
        })"""
    )
    everybody = page.pdf(format="A4")
    assert page.evaluate("window.printed") == n_declined
    assert len(shown(page)) == 10

    page.fill("#search", f"person {shown(page)[-1]}")
    one = page.pdf(format="A4")
    assert page.evaluate("window.printed") == 1
    n_sheets = [len(re.findall(rb"/Type /Page\b", pdf)) for pdf in (one, everybody)]
    assert n_sheets[1] - n_sheets[0] <= n_declined / 2


@pytest.mark.parametrize("look", ["desktop", "phone"])
def test_the_report_fits_the_window_and_can_be_read_aloud(opened, report, look):
    size, scheme = {"desktop": (DESKTOP, "light"), "phone": (PHONE, "dark")}[look]
    # The checker is a script of its own, which the policy of the page forbids.
    page = opened(report[0], viewport=size, color_scheme=scheme, bypass_csp=True)

    for folded in page.locator("article.person:visible details").all():
        folded.evaluate("one => one.open = true")

    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert serious_faults(page) == []
