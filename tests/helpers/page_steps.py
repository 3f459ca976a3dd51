"""What tests do on the page of the service."""

from __future__ import annotations

import pytest

# Modules here are imported for the examples in their docstrings, also where there is no browser.
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

# Declined; a shorter loan would be enough.
DECLINED = 39


def choose(page, row):
    """Opens the case of a person of the list."""
    page.fill("#search", f"{row:05d}")
    expect(page.locator(".person")).to_have_count(1)
    page.click(".person")
    page.wait_for_selector("#h-person")


def settled(page):
    """Waits until plans and all that belongs to them are there."""
    page.wait_for_selector(".results:not(.waiting) .plan .sentence:not(:empty)")


def score_shown(page, where="#decision"):
    """The score that stands on the page."""
    return float(page.inner_text(f"{where} .score strong"))


def wish(page, label):
    """The row of a feature, opened."""
    row = page.locator(".wish", has_text=label)
    row.locator(".wish-name").click()
    return row
