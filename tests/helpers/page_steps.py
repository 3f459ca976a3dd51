"""What tests do on pages in a browser; they wait for what the page shows, never for a time."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

# Modules here are imported for the examples in their docstrings, also where there is no browser.
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

expect.set_options(timeout=60_000)

# Declined; a shorter loan would be enough.
DECLINED = 39
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# A window of 1280 pixels in which everything is twice as large.
ZOOMED = {"width": 640, "height": 450}


def choose(page, row=DECLINED):
    """Opens the case of a person of the list."""
    page.fill("#search", f"{row:05d}")
    expect(page.locator(".person")).to_have_count(1)
    page.click(".person")
    page.wait_for_selector("#h-person")


def settled(page):
    """Waits until plans and all that belongs to them are there."""
    page.wait_for_selector(".results:not(.waiting) .plan:not(.own-card)")


@contextmanager
def searching(page):
    """Waits until what is done in the block has led to a search, and its details are there."""

    def is_last(response):
        return response.url.endswith("/explain") and response.request.post_data_json.get("details")

    with page.expect_response(is_last):
        yield


def eventually(page, condition):
    """Waits until something is true of the page, or of what it has asked for."""
    for _ in range(3_000):
        if condition():
            return
        page.wait_for_timeout(20)
    raise AssertionError("what must come did not come")


def score_shown(page):
    """The score of the person that stands on the page."""
    return float(page.inner_text("#decision .score strong"))


def score_of(card):
    """The score of the values that a card shows."""
    words = card.locator(".score-line").inner_text()
    return float(words.split(":")[0].removeprefix("Score "))


def preference(page, label):
    """The row of a feature, opened."""
    row = page.locator(".preference", has_text=label)
    row.locator(".preference-name").click()
    return row


def moved(page, label, value, card=".own-card"):
    """A card in which a value was changed by hand; the card of one's own is opened for it."""
    found = page.locator(card).first
    if not found.evaluate("card => card.open"):
        found.locator("summary").first.click()
    field = found.get_by_role("group", name=label, exact=True)
    if not field.count():
        found.locator(".adder").select_option(label=label)
    field.locator(".box").fill(value)
    return found


def fill_form(page, **texts):
    """Type in a person of the bank: numbers by their labels, the first of all levels."""
    for name, text in texts.items():
        page.get_by_label(name, exact=True).fill(text)
    for field in page.locator("form select").all():
        field.select_option(index=1)
    page.locator("form button[type=submit]").click()


def serious_faults(page):
    """What screen readers stumble over, by axe; animations are over."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
    faults = axe.Axe().run(page).response["violations"]
    return [
        (fault["id"], fault["nodes"][0]["html"])
        for fault in faults
        if fault["impact"] in ("serious", "critical")
    ]
