"""The page of the service in Chromium: a person, a decision, plans, and what may change."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from page_steps import DECLINED, expect, score_shown, settled, wish

# A search that finds nothing warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


def test_a_person_from_the_list_gets_a_decision_and_plans(case, bank, applicants):
    page, _ = case
    settled(page)

    person = applicants.iloc[[DECLINED]]
    expected = bank.explain(person)
    assert score_shown(page) == pytest.approx(
        float(bank.predictor.predict_proba(person)[0, 1]), abs=1e-3
    )
    assert page.inner_text("#decision .badge") == "declined"
    assert page.locator(".plan").count() == len(expected.frame)
    first = page.locator(".plan").first
    assert first.locator(".changes > li").count() == len(expected.changes().query("rank == 1"))
    assert first.locator(".sentence").inner_text().startswith("We would have granted the loan if")
    assert first.locator("svg.dumbbell").count() >= 1
    assert "plausibility" in first.locator(".facts").inner_text()


def test_a_locked_feature_stays_as_it_is(case):
    page, searches = case
    settled(page)
    changed = page.locator(".plan").first.locator("h4").first.inner_text()

    page.locator(".wish", has_text=changed).locator(".switch").click()
    expect(page.locator(".plan h4", has_text=changed)).to_have_count(0)
    settled(page)

    (rule,) = searches[-1]["rules"]
    assert list(rule) == ["frozen"]


def test_a_range_of_acceptable_values_holds(case):
    page, searches = case
    row = wish(page, "The term of the loan")

    row.locator(".box").nth(0).fill("10")
    row.locator(".box").nth(1).fill("20")
    page.wait_for_timeout(600)

    assert searches[-1]["rules"] == [{"between": {"feature": "Duration", "low": 10, "high": 20}}]
    assert row.locator(".tag").inner_text() == "10 to 20\xa0months"
    assert row.locator(".bar.outside").count() > 0


def test_every_wish_becomes_a_rule(case):
    page, searches = case
    row = wish(page, "The term of the loan")
    row.get_by_role("radio", name="hard", exact=True).check()
    row.get_by_role("radio", name="only down").check()
    row = wish(page, "Your housing")
    row.locator(".tick").first.click()
    page.locator(".panel fieldset").first.get_by_role("radio", name="2").check()
    page.wait_for_timeout(600)

    rules = {name: arguments for rule in searches[-1]["rules"] for name, arguments in rule.items()}
    assert rules["weight"] == {"feature": "Duration", "weight": 10}
    assert rules["only_down"] == {"feature": "Duration"}
    assert rules["levels"]["feature"] == "Housing"
    assert len(rules["levels"]["allowed"]) == 1
    assert rules["max_changes"] == {"n": 2}

    page.get_by_text("Reset (4)").click()
    page.wait_for_timeout(600)
    assert searches[-1]["rules"] == []


def test_what_is_very_hard_changes_only_if_needed(case):
    page, searches = case
    settled(page)
    row = wish(page, "The term of the loan")
    row.get_by_role("radio", name="only if needed").check()
    expect(page.locator(".plans")).not_to_contain_text("The term of the loan")
    settled(page)
    assert searches[-1]["rules"] == [{"frozen": {"features": ["Duration"]}}]

    # Nothing else may change: now it is needed.
    for switch in page.locator(".wish .switch input").all():
        switch.uncheck(force=True)
    row.locator(".switch input").check(force=True)
    expect(page.locator(".plan h4")).to_have_text(["The term of the loan"])
    assert {"weight": {"feature": "Duration", "weight": 100}} in searches[-1]["rules"]


def test_the_way_back_leads_to_the_list(case, address):
    page, _ = case
    settled(page)
    # Also from another part of the page.
    page.get_by_role("link", name="Many people").click()

    page.go_back()

    expect(page.locator("#h-choose")).to_be_focused()
    assert page.url.startswith(address)
    expect(page.locator(".person").nth(1)).to_be_visible()


def test_the_sentence_and_the_card_show_the_same_numbers(case):
    page, _ = case
    settled(page)

    shown = []
    for card in page.locator(".plan").all():
        said = card.locator(".sentence").inner_text()
        numbers = [
            text for text in card.locator(".way strong").all_inner_texts() if text[0].isdigit()
        ]
        assert all(number in said for number in numbers)
        shown += numbers
    assert shown


def test_a_search_that_time_ended_claims_nothing(case):
    page, _ = case
    settled(page)

    record = {"status": "no answer", "reason": "", "counterfactuals": []}
    page.route(
        "**/explain", lambda route: route.fulfill(json={"people": [record], "stopped": True})
    )
    page.locator(".wish .switch").first.click()

    expect(page.locator(".nothing h3")).to_have_text("The time was up before a plan was found")


def test_plans_are_kept_and_compared(case):
    page, _ = case
    settled(page)

    for at in (0, 1):
        page.locator(".plan").nth(at).get_by_text("Keep", exact=True).click()
    page.click("#tab-kept")

    heads = page.locator(".compare thead th").all_inner_texts()
    assert heads == ["Now", "Plan 1", "Plan 2"]
    assert page.locator(".compare .badge").all_inner_texts() == ["declined", "accepted", "accepted"]
    page.locator(".compare").get_by_text("Remove").first.click()
    assert page.locator(".compare thead th").all_inner_texts() == ["Now", "Plan 2"]


def test_plans_stay_while_the_reader_looks_at_something_else(case):
    page, searches = case
    settled(page)
    plans = page.locator(".plan").all_inner_texts()
    n_searches = len(searches)

    page.get_by_role("link", name="Many people").click()
    page.get_by_role("link", name="One person").click()

    assert page.locator(".plan").all_inner_texts() == plans
    assert len(searches) == n_searches


def test_details_are_edited_and_the_case_begins_anew(case):
    page, searches = case
    settled(page)

    page.get_by_text("Edit the details").click()
    expect(page.locator("#h-choose")).to_be_focused()
    page.click("text=Show the decision")
    settled(page)
    n_searches = len(searches)
    page.locator(".wish .switch").first.click()
    settled(page)

    # Plans, and then what belongs to them.
    assert len(searches) == n_searches + 2


def test_an_impossible_wish_is_lifted_by_one_click(case):
    page, searches = case
    settled(page)
    row = page.locator(".wish", has_text="The term of the loan")
    for switch in page.locator(".wish .switch input").all():
        switch.uncheck(force=True)
    row.locator(".switch input").check(force=True)
    row.locator(".wish-name").click()
    row.locator(".box").nth(0).fill("40")

    page.wait_for_selector(".nothing .letter")
    page.wait_for_selector(".nothing .lifts", timeout=60_000)
    assert "We found nothing" in page.inner_text(".nothing .letter")
    lift = page.locator(".lifts > li").first
    assert lift.inner_text().startswith("Accept all values: The term of the loan")
    lift.get_by_role("button").click()

    settled(page)
    assert all(list(rule) == ["frozen"] for rule in searches[-1]["rules"])
    assert page.locator(".plan h4").all_inner_texts()[0] == "The term of the loan"
    assert row.locator(".box").nth(0).input_value() == "4"


def test_ten_thousand_people_are_a_few_rows(opened, address):
    page = opened(address)
    page.wait_for_selector(".person")
    assert page.inner_text(".found") == "10,000 people"
    assert page.locator(".person").count() < 40

    page.evaluate("document.querySelector('.people').scrollTop = 1e9")
    page.wait_for_selector("text=Applicant 09999")
    assert page.locator(".person").count() < 40

    page.fill("#search", "  0777 ")
    page.wait_for_selector("text=of 10,000 people")
    assert all("0777" in name for name in page.locator(".who").all_inner_texts())


def test_the_keyboard_is_enough(opened, address):
    page = opened(address)
    page.wait_for_selector(".person")
    press = page.keyboard.press
    while page.evaluate("document.activeElement.id") != "search":
        press("Tab")
    page.keyboard.type(f"{DECLINED:05d}")
    expect(page.locator(".person")).to_have_count(1)
    press("Enter")
    settled(page)
    assert page.evaluate("document.activeElement.id") == "h-person"

    for _ in range(200):
        press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "switch":
            break
    press("Space")
    page.wait_for_selector(".tag:has-text('stays as it is')")
    settled(page)
    for _ in range(200):
        press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Keep":
            break
    press("Enter")
    assert page.inner_text("#tab-kept .count") == "1"


def test_all_three_languages_can_be_chosen(case):
    page, searches = case
    settled(page)
    page.locator(".wish .switch").first.click()
    settled(page)

    page.select_option("#language", "de")
    page.wait_for_selector("text=Was darf sich ändern?")
    page.wait_for_selector(".sentence:has-text('Wir hätten Ihnen den Kredit gewährt')")
    assert page.locator("html").get_attribute("lang") == "de"
    assert page.locator(".tag").inner_text() == "bleibt, wie es ist"
    assert len(searches[-1]["rules"]) == 1

    page.select_option("#language", "nb")
    page.wait_for_selector("text=Hva kan endres?")


def test_markup_in_names_is_text(opened, address):
    page = opened(address)
    page.fill("#search", "img")
    expect(page.locator(".person")).to_have_count(1)
    assert page.inner_text(".person .who") == "<img src=x onerror=alert(1)>"
    assert page.inner_text(".brand") == "A <b>bank</b>"
    page.click(".person")
    page.wait_for_selector("#decision .gauge")
    assert page.inner_text("#h-person") == "<img src=x onerror=alert(1)>"
    assert page.title() == "A <b>bank</b>"
