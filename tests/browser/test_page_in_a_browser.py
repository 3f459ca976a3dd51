"""The page of the service in Chromium: a person, a decision, plans, and a plan of one's own."""

from __future__ import annotations

import json
import re

import pytest

import served_bank
from mcce.report import Labels
from mcce.serve import ServiceSettings, create_app

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

# A search that finds nothing warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")
# Declined; a shorter loan would be enough.
DECLINED = 39


@pytest.fixture
def case(opened, address):
    """The page with a declined person, and the rules of every search that it asked for."""
    page = opened(address)
    searches = []

    def listen(request):
        if request.url.endswith("/explain"):
            searches.append(json.loads(request.post_data))

    page.on("request", listen)
    choose(page, DECLINED)
    return page, searches


def choose(page, row):
    page.fill("#search", f"{row:05d}")
    expect(page.locator(".person")).to_have_count(1)
    page.click(".person")
    page.wait_for_selector("#h-person")


def settled(page):
    """Waits until plans and all that belongs to them are there."""
    page.wait_for_selector(".results:not(.waiting) .plan .sentence:not(:empty)")


def score_shown(page, where="#decision"):
    return float(page.inner_text(f"{where} .score strong"))


def wish(page, label):
    """The row of a feature, opened."""
    row = page.locator(".wish", has_text=label)
    row.locator(".wish-name").click()
    return row


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
    row = wish(page, "The term of the loan")
    row.get_by_role("radio", name="only if needed").check()
    page.wait_for_timeout(600)
    page.wait_for_selector(".plan .sentence:not(.coming)")

    assert searches[-1]["rules"] == [{"frozen": {"features": ["Duration"]}}]
    assert "The term of the loan" not in page.locator(".plans").inner_text()

    page.locator(".panel fieldset").first.get_by_role("radio", name="1").check()
    page.wait_for_selector(".plan")


def test_the_way_back_leads_to_the_list(case):
    page, _ = case
    page.go_back()
    page.wait_for_selector("#h-choose")
    page.locator(".person").first.wait_for()


def test_the_sentence_and_the_card_show_the_same_numbers(case):
    page, _ = case
    page.wait_for_selector(".plan .sentence:not(.coming)")
    for card in page.locator(".plan").all():
        said = card.locator(".sentence").inner_text().replace("\xa0", " ")
        for value in card.locator(".way strong").all_inner_texts():
            if value.replace("\xa0", " ")[0].isdigit():
                assert value.replace("\xa0", " ") in said


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


def test_a_search_that_time_ended_claims_nothing(case):
    page, _ = case
    settled(page)

    record = {"status": "no answer", "reason": "", "counterfactuals": []}
    page.route(
        "**/explain", lambda route: route.fulfill(json={"people": [record], "stopped": True})
    )
    page.locator(".wish .switch").first.click()

    expect(page.locator(".nothing h3")).to_have_text("The time was up before a plan was found")


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


def test_a_try_by_hand_starts_from_a_plan_and_can_be_kept(case):
    page, _ = case
    settled(page)

    page.locator(".plan").first.get_by_text("Try by hand").click()
    page.wait_for_selector(".follow .badge.yes")
    page.locator(".follow").get_by_text("Keep", exact=True).click()
    page.click("#tab-kept")

    assert page.locator(".compare thead th").all_inner_texts() == ["Now", "Your plan 1"]


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
