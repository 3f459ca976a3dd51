"""The page for everybody: screen readers, phones, large type, dark rooms, paper, and files."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from sklearn.base import clone

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from mcce.datasets import load_german_credit
from mcce.report.receipts import check_receipt
from page_steps import (
    DESKTOP,
    PHONE,
    ZOOMED,
    choose,
    expect,
    moved,
    preference,
    searching,
    serious_faults,
    settled,
)

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

# A seed as explainers draw one if they are given none; numbers of browsers have 53 bits.
LONG = 2**63 + 1
LOOKS = {"desktop": (DESKTOP, "light"), "phone": (PHONE, "dark"), "zoomed": (ZOOMED, "light")}


def states(page):
    """Brings the page into one state after the other, and names it."""
    page.wait_for_selector(".person")
    yield "list"
    page.click("#tab-form")
    page.click("text=Show the decision")
    yield "form"
    page.click("#tab-list")
    choose(page)
    settled(page)
    page.locator(".values summary").click()
    page.locator(".glossary summary").click()
    yield "plans"
    if page.is_visible(".fold"):
        page.click(".fold")
    for label in ("Term", "Housing"):
        preference(page, label)
    with searching(page):
        page.locator(".preference .switch").first.click()
    settled(page)
    yield "preferences"
    if not page.locator(".plan").first.evaluate("card => card.open"):
        page.locator(".plan summary").first.click()
    page.locator(".plan .figures summary").first.click()
    page.locator(".plan").first.get_by_text("Keep", exact=True).click()
    card = moved(page, "Loan amount", "1200")
    card.locator(".curve-box summary").first.click()
    card.locator("figcaption").wait_for()
    card.get_by_text("Keep", exact=True).click()
    yield "moved and kept"
    for switch in page.locator(".preference .switch input").all():
        switch.uncheck(force=True)
    page.wait_for_selector(".nothing")
    yield "nothing"
    page.get_by_role("link", name="Many people").click()
    yield "many"


@pytest.mark.parametrize("look", LOOKS)
def test_every_state_fits_the_window_and_can_be_read_aloud(opened, address, look):
    size, scheme = LOOKS[look]
    # The checker is a script of its own, which the policy of the page forbids.
    page = opened(address, viewport=size, color_scheme=scheme, bypass_csp=True)

    def width():
        return page.evaluate("document.documentElement.scrollWidth")

    for state in states(page):
        assert serious_faults(page) == [], state
        assert width() <= size["width"], state
        if state in ("plans", "moved and kept"):
            # Words of other languages are longer.
            for code in ("de", "en"):
                page.select_option("#language", code)
                page.wait_for_selector(f"html[lang={code}] .sentence", state="attached")
                assert width() <= size["width"], (state, code)


def test_a_plan_is_printed_on_a_sheet_of_its_own(case):
    page, _ = case
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
        choose(page)
        settled(page)
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
    table = applicants.head(20).to_csv(index=False).encode()

    page.set_input_files("#file", {"name": "people.csv", "mimeType": "text/csv", "buffer": table})
    page.get_by_role("link", name="One person").click()
    page.wait_for_selector(".person")
    page.get_by_role("link", name="Many people").click()
    page.wait_for_selector("text=Done.", timeout=120_000)
    with page.expect_download() as answers:
        page.get_by_role("button", name="Save answers.csv").click()
    with page.expect_download() as report:
        page.get_by_role("button", name="Save report.html").click()

    table = pd.read_csv(answers.value.path())
    assert "Duration" in table.columns
    # Everybody who is answered has two plans, where the explainer would look for three.
    assert set(table["rank"].dropna()) == {1, 2}
    assert report.value.path().read_text().startswith("<!DOCTYPE html>")
    with page.expect_request(lambda one: one.method == "DELETE" and "/jobs/" in one.url):
        page.get_by_role("button", name="Remove from the service: people.csv").click()
    expect(page.locator(".job")).to_have_count(0)
    expect(page.locator("#file")).to_be_focused()


def test_a_file_that_does_not_fit_is_refused_with_the_reason(opened, address, expected_failure):
    page = opened(address)
    page.get_by_role("link", name="Many people").click()

    page.set_input_files("#file", {"name": "p.csv", "mimeType": "text/csv", "buffer": b"Age\n1\n"})

    expect(page.locator(".failure")).to_contain_text("CheckingStatus")
    expected_failure("422")
