"""The page for everybody: screen readers, phones, large type, dark rooms, paper, and no token."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from sklearn.base import clone

from mcce.datasets import load_german_credit
from mcce.report.receipts import check_receipt

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")
DECLINED = "00039"
# A seed as explainers draw one if they are given none; numbers of browsers have 53 bits.
LONG = 2**63 + 1
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# A window of 1280 pixels in which everything is twice as large.
ZOOMED = {"width": 640, "height": 450}
LOOKS = [(size, scheme) for size in (DESKTOP, PHONE) for scheme in ("light", "dark")]
LOOK_NAMES = [f"{'phone' if size is PHONE else 'desktop'}-{scheme}" for size, scheme in LOOKS]


def states(page):
    """Brings the page into one state after the other, and names it."""
    page.wait_for_selector(".person")
    yield "list"
    page.click("#tab-form")
    page.click("text=Show the decision")
    yield "form"
    page.click("#tab-list")
    page.fill("#search", DECLINED)
    expect(page.locator(".person")).to_have_count(1)
    page.click(".person")
    page.wait_for_selector(".sentence:not(:empty)")
    page.locator("summary").first.click()
    page.locator(".glossary summary").click()
    yield "plans"
    if page.is_visible(".fold"):
        page.click(".fold")
    for label in ("The term of the loan", "Your housing"):
        page.locator(".wish", has_text=label).locator(".wish-name").click()
    page.locator(".wish .switch").first.click()
    yield "wishes"
    page.locator(".plan").first.get_by_text("Keep", exact=True).click()
    page.click("#tab-whatif")
    page.locator(".try .box").first.fill("12")
    page.locator(".follow").get_by_text("Keep", exact=True).click()
    yield "what if"
    page.click("#tab-kept")
    yield "kept"
    page.click("#tab-plans")
    for switch in page.locator(".wish .switch input").all():
        switch.uncheck(force=True)
    page.wait_for_selector(".nothing")
    yield "nothing"
    page.get_by_role("link", name="Many people").click()
    yield "many"


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=LOOK_NAMES)
def test_screen_readers_find_no_serious_fault(opened, address, size, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    # The checker is a script of its own, which the policy of the page forbids.
    page = opened(address, viewport=size, color_scheme=scheme, bypass_csp=True)

    faults = []
    for state in states(page):
        page.wait_for_timeout(100)
        for fault in axe.Axe().run(page).response["violations"]:
            if fault["impact"] in ("serious", "critical"):
                faults.append((state, fault["id"], fault["nodes"][0]["html"]))
    assert faults == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE, ZOOMED], ids=["desktop", "phone", "zoomed"])
@pytest.mark.parametrize("language", ["en", "de"])
def test_nothing_is_wider_than_the_window(opened, address, size, language):
    page = opened(address, viewport=size)

    for state in states(page):
        if language != "en" and state in ("plans", "what if"):
            page.select_option("#language", language)
            page.wait_for_selector(".sentence:not(:empty)", state="attached")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], state
        if language != "en" and state in ("plans", "what if"):
            page.select_option("#language", "en")
            page.wait_for_selector(".sentence:not(:empty)", state="attached")


def test_a_plan_is_printed_on_a_sheet_of_its_own(opened, address):
    page = opened(address)
    open_case(page)
    page.evaluate(
        "window.print = () => { window.printed = document.querySelector('#sheet').innerText; }"
    )

    page.locator(".plan").first.get_by_text("Print").click()

    sheet = page.evaluate("window.printed")
    for text in ("Applicant 00039", "Plan 1", "Fingerprint of the explainer", "Seed", "Time"):
        assert text in sheet
    page.emulate_media(media="print")
    assert page.is_visible("#sheet")
    assert not page.is_visible("#app")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.is_visible("#app")


def test_a_receipt_that_was_saved_is_unaltered(opened, serving, bank, applicants):
    seeded = clone(bank).set_params(random_state=LONG).fit(load_german_credit().features)
    with serving(seeded, applicants.head(50)) as address:
        page = opened(address)
        open_case(page)
        with page.expect_download() as saved:
            page.locator(".plan").first.get_by_role("button", name="Save receipt").click()

        assert saved.value.suggested_filename == "receipt.json"
        receipt = json.loads(saved.value.path().read_text())
    assert receipt["seed"] == LONG
    assert all(check.holds for check in check_receipt(receipt))


def test_a_file_of_people_is_answered(opened, address, applicants):
    page = opened(address)
    page.get_by_role("link", name="Many people").click()
    page.get_by_label("Prefer").select_option("few changes")
    page.get_by_label("Plans for each person").select_option("2")
    table = applicants.head(60).to_csv(index=False).encode()

    page.set_input_files("#file", {"name": "people.csv", "mimeType": "text/csv", "buffer": table})
    page.get_by_role("link", name="One person").click()
    page.wait_for_selector(".person")
    page.get_by_role("link", name="Many people").click()
    page.wait_for_selector("text=Done.", timeout=60_000)
    with page.expect_download() as answers:
        page.get_by_role("button", name="Save answers.csv").click()
    with page.expect_download() as report:
        page.get_by_role("button", name="Save report.html").click()

    table = pd.read_csv(answers.value.path())
    assert "Duration" in table.columns
    # Everybody who is answered has two plans, where the explainer would look for three.
    assert set(table["rank"].dropna()) == {1, 2}
    assert report.value.path().read_text().startswith("<!DOCTYPE html>")


def test_an_upload_that_is_done_can_be_removed(opened, address):
    page = opened(address)
    asked = []

    def jobs(route):
        asked.append((route.request.method, route.request.url.rpartition("/")[2]))
        if route.request.method == "DELETE":
            return route.fulfill(status=204)
        if route.request.method == "POST":
            return route.fulfill(status=202, json={"id": "7"})
        done = {"state": "done", "done": 1, "total": 1}
        return route.fulfill(json={**done, "error": None, "files": ["answers.csv"]})

    page.route(re.compile("/jobs"), jobs)
    page.get_by_role("link", name="Many people").click()
    page.set_input_files("#file", {"name": "p.csv", "mimeType": "text/csv", "buffer": b"Age"})
    page.wait_for_selector("text=Done.")

    page.get_by_role("button", name="Remove from the service: p.csv").click()

    expect(page.locator(".job")).to_have_count(0)
    expect(page.locator("#file")).to_be_focused()
    assert asked[-1] == ("DELETE", "7")


def test_progress_is_watched_and_can_be_stopped(opened, address):
    page = opened(address)
    asked = []

    def jobs(route):
        asked.append(route.request.method)
        if route.request.method != "GET":
            return route.fulfill(status=202, json={"id": "7"})
        done = {"state": "running", "done": 50, "total": 150}
        return route.fulfill(json={**done, "error": None, "files": []})

    page.route(re.compile("/jobs"), jobs)
    page.get_by_role("link", name="Many people").click()
    page.set_input_files("#file", {"name": "p.csv", "mimeType": "text/csv", "buffer": b"Age"})
    page.wait_for_selector("text=50 of 150 people (33")
    expect(page.locator("progress")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("text=Stopped.")
    assert "DELETE" in asked


def test_a_file_that_does_not_fit_is_refused_with_the_reason(opened, address):
    page = opened(address)
    page.get_by_role("link", name="Many people").click()

    page.set_input_files("#file", {"name": "p.csv", "mimeType": "text/csv", "buffer": b"Age\n1\n"})

    expect(page.locator(".failure")).to_contain_text("CheckingStatus")
    opened.wrong[:] = [text for text in opened.wrong if "422" not in text]


def test_nothing_is_shown_without_the_token(opened, serving, bank, applicants):
    with serving(bank, applicants.head(50), token="a secret of many letters") as address:
        page = opened(address)
        page.wait_for_selector("#token")
        assert "bank" not in page.content()
        assert page.title() == "mcce"

        page.fill("#token", "a wrong one")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=This token was refused.")
        assert "bank" not in page.content()

        page.fill("#token", "a secret of many letters")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Applicant 00000")
        page.reload()
        page.wait_for_selector("text=Applicant 00000")
    opened.wrong[:] = [text for text in opened.wrong if "401" not in text]


def test_a_service_that_is_gone_is_said_so(opened, address):
    page = opened(address)
    open_case(page)
    page.route("**/explain", lambda route: route.abort())

    page.locator(".wish .switch").first.click()

    expect(page.locator(".failed .failure")).to_have_text("The service cannot be reached.")
    page.unroute("**/explain")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".plan")).not_to_have_count(0)
    opened.wrong[:] = [text for text in opened.wrong if "ERR_FAILED" not in text]


def open_case(page):
    page.fill("#search", DECLINED)
    expect(page.locator(".person")).to_have_count(1)
    page.click(".person")
    page.wait_for_selector(".sentence:not(:empty)")
