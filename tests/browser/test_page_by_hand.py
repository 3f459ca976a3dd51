"""The page of the service in Chromium: persons that are typed in, and values that are tried."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

import served_bank
from mcce import MCCE
from mcce.report import Labels
from mcce.serve import ServiceSettings, create_app
from page_steps import DECLINED, expect, score_shown, settled

# A search that finds nothing warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


def test_the_score_follows_a_drag(case, bank, applicants):
    page, _ = case
    page.wait_for_selector("#decision .gauge")
    page.click("#tab-whatif")
    card = page.locator(".try", has_text="The term of the loan")
    slider = card.locator("input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    own = int(applicants["Duration"].iloc[DECLINED])
    at = box["x"] + 10 + (box["width"] - 20) * (own - 4) / 68

    page.mouse.move(at, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 21):
        page.mouse.move(at + 6 * step, box["y"] + box["height"] / 2)
    page.mouse.up()
    page.wait_for_timeout(400)

    months = int(card.locator(".box").input_value())
    tried = applicants.iloc[[DECLINED]].assign(Duration=months)
    assert months > own
    assert score_shown(page, ".follow") == pytest.approx(
        float(bank.predictor.predict_proba(tried)[0, 1]), abs=1e-3
    )
    assert card.locator(".was").inner_text() == f"now {own}\xa0months"


def test_a_number_can_be_not_stated(opened):
    with served_bank.running(create_app(served_bank.fitted())) as client:
        page = opened(str(client.base_url))
        for name, text in (("Age", "30"), ("Salary", "40000"), ("Savings", "0.5")):
            page.get_by_label(name, exact=True).fill(text)
        for field in page.locator("form select").all():
            field.select_option(index=1)
        page.click("text=Show the decision")
        page.wait_for_selector("#decision .gauge")
        page.click("#tab-whatif")
        card = page.get_by_role("group", name="Savings")

        with page.expect_request("**/score") as none:
            card.get_by_label("not stated").check()
        assert card.locator(".box").input_value() == ""
        with page.expect_request("**/score") as some:
            card.locator(".box").fill("1.25")

        expect(card.get_by_label("not stated")).not_to_be_checked()
        assert json.loads(none.value.post_data)["people"][0]["savings"] is None
        assert json.loads(some.value.post_data)["people"][0]["savings"] == 1.25
        assert page.get_by_role("group", name="Salary").get_by_label("not stated").count() == 0


def test_an_answer_that_comes_late_is_dropped(case):
    page, _ = case
    page.wait_for_selector("#decision .gauge")
    page.click("#tab-whatif")
    held = []

    def hold(route):
        held.append(route)
        if len(held) > 1:
            route.continue_()

    page.route("**/score", hold)
    field = page.locator(".try", has_text="The term of the loan").locator(".box")
    field.fill("70")
    field.fill("5")
    page.wait_for_timeout(200)
    before = score_shown(page, ".follow")
    held[0].fulfill(json={"scores": [0.123], "desired": [False]})
    page.wait_for_timeout(500)

    assert len(held) == 2
    assert score_shown(page, ".follow") not in (0.123, before)


def test_a_try_by_hand_starts_from_a_plan_and_can_be_kept(case):
    page, _ = case
    settled(page)

    page.locator(".plan").first.get_by_text("Try by hand").click()
    page.wait_for_selector(".follow .badge.yes")
    page.locator(".follow").get_by_text("Keep", exact=True).click()
    page.click("#tab-kept")

    assert page.locator(".compare thead th").all_inner_texts() == ["Now", "Your plan 1"]


def test_totals_follow_what_is_tried(opened):
    train = pd.DataFrame({"pay": range(10, 410), "extra": [0, 5, 9, 20] * 100})
    train["total"] = train["pay"] + train["extra"]

    def by_total(rows):
        return rows["total"].to_numpy() / 500

    explainer = MCCE(by_total, (0.5, 1.0), search="balanced", random_state=0).fit(train)
    with served_bank.running(create_app(explainer)) as client:
        page = opened(str(client.base_url))
        for name, text in (("Pay", "100"), ("Extra", "5"), ("Total", "105")):
            page.get_by_label(name, exact=True).fill(text)
        page.click("text=Show the decision")
        settled(page)
        page.click("#tab-whatif")
        page.get_by_role("group", name="Pay").locator(".box").fill("300")
        total = page.get_by_role("group", name="Total")

        expect(total.locator("strong")).to_have_text("305")
        assert total.locator("input").count() == 0
        assert score_shown(page, ".follow") == 0.61
        page.locator(".follow").get_by_text("Keep", exact=True).click()
        page.click("#tab-kept")
        assert "305" in page.locator(".compare").inner_text()


def test_a_typed_person_is_checked_field_by_field(opened, address, applicants):
    page = opened(address)
    page.click("#tab-form")
    page.click("text=Show the decision")
    assert page.locator(".error:not(:empty)").count() == applicants.shape[1]

    for field in page.locator("form select").all():
        field.select_option(index=1)
    for name, text in (("The term", "abc"), ("The loan amount", "2000"), ("Your age", "40")):
        page.get_by_label(re.compile(name)).fill(text)
    page.click("text=Show the decision")
    page.wait_for_selector(".error:has-text('abc')")
    assert page.locator(".error:not(:empty)").count() == 1

    page.get_by_label(re.compile("The term")).fill("12")
    page.click("text=Show the decision")
    page.wait_for_selector("#decision .gauge")
    assert page.inner_text("#h-person") == "Unnamed person"
    opened.wrong[:] = [text for text in opened.wrong if "422" not in text]


@pytest.mark.parametrize(
    ("code", "salary", "savings"), [("en", "40,000", "1.25"), ("de", "40.000", "1,25")]
)
def test_numbers_are_typed_as_they_are_written(opened, code, salary, savings):
    """Percent of a share, a number without groups, and groups that are no decimal points."""
    features = {
        name: {"reason": "Because."}
        for name in served_bank.customers().columns.drop(["age", "sex"])
    }
    features["savings"] |= {"scale": 100, "unit": "{number} %"}
    features["salary"] |= {"grouping": False}
    labels = {code: Labels.make({"language": code, "features": features})}
    settings = ServiceSettings(labels=labels)
    sent = []
    with served_bank.running(create_app(served_bank.fitted(), settings)) as client:
        page = opened(str(client.base_url))
        page.on("request", lambda one: one.url.endswith("/score") and sent.append(one.post_data))
        for name, text in (("age", "30"), ("salary", salary), ("savings", savings)):
            page.get_by_label(re.compile(f"^{name}", re.I)).fill(text)
        for field in page.locator("form select").all():
            field.select_option(index=1)
        page.locator("form button[type=submit]").click()
        page.wait_for_selector("#decision .gauge")
        page.locator(".values summary").click()
        shown = page.locator(".values dd").all_inner_texts()
        page.locator(".hero .actions button").nth(1).click()
        again = [
            page.get_by_label(re.compile(f"^{name}", re.I)).input_value()
            for name in ("salary", "savings")
        ]

    (person,) = json.loads(sent[0])["people"]
    assert (person["salary"], person["savings"]) == (40_000, 0.0125)
    assert "40000" in shown
    assert f"{savings}\xa0%" in shown
    assert again == ["40000", savings]
