"""The page of the service in Chromium: a person, a decision, plans, and what may change."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

import served_bank
from mcce import MCCE
from mcce.report import Labels
from page_steps import (
    DECLINED,
    eventually,
    expect,
    fill_form,
    moved,
    preference,
    score_of,
    score_shown,
    searching,
    settled,
)

# A search that finds nothing warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TERM = "Term"
# A plan of the service, not values of one's own.
PLAN = ".plan:not(.own-card)"


def accepted_score(bank, rows):
    return pytest.approx(float(bank.predictor.predict_proba(rows)[0, 1]), abs=1e-3)


def test_a_person_from_the_list_gets_a_decision_and_plans(case, bank, applicants):
    page, _ = case

    person = applicants.iloc[[DECLINED]]
    expected = bank.explain(person)
    assert score_shown(page) == accepted_score(bank, person)
    assert page.inner_text("#decision .badge") == "declined"
    assert page.locator(PLAN).count() == len(expected.frame)
    first = page.locator(".plan").first
    n_changes = len(expected.changes().query("rank == 1"))
    assert first.locator(".act").count() == first.locator(".change").count() == n_changes
    assert first.locator("svg.gauge .today").count() == 1
    assert re.fullmatch(r"How sure: \w+\s*How usual: [\w ]+", first.locator(".sure").inner_text())
    # The title, the sentence and the field show the same number.
    numbers = []
    for card in page.locator(PLAN).all():
        said = card.locator(".sentence").text_content()
        assert said.startswith("We would have granted the loan if")
        for title in card.locator(".act").all():
            asked, _, instead = title.inner_text().partition("instead of ")
            if instead.strip()[:1].isdigit():
                numbers.append(re.findall(r"[\d,]+", asked)[-1])
                assert numbers[-1] in said
                box = card.locator(".box").first.input_value()
                assert box in {number.replace(",", "") for number in re.findall(r"[\d,]+", asked)}
    assert numbers


def test_a_locked_feature_stays_as_it_is(case):
    page, searches = case
    changed = page.locator(".change-name span").first.inner_text()

    page.locator(".preference", has_text=changed).locator(".switch").click()

    expect(page.locator(f"{PLAN} .change-name", has_text=changed)).to_have_count(0)
    expect(page.locator(".held")).to_contain_text(changed)
    (rule,) = searches[-1]["rules"]
    assert list(rule) == ["frozen"]


def test_every_preference_becomes_a_rule(case):
    page, searches = case
    row = preference(page, TERM)
    row.locator(".box").nth(0).fill("10")
    row.locator(".box").nth(1).fill("20")
    between = {"between": {"feature": "Duration", "low": 10, "high": 20}}
    eventually(page, lambda: searches[-1]["rules"] == [between])
    assert row.locator(".tag").inner_text() == "10 to 20\xa0months"
    assert row.locator(".bar.outside").count() > 0

    row.get_by_role("radio", name="hard", exact=True).check()
    row.get_by_role("radio", name="only down").check()
    preference(page, "Housing").locator(".tick").first.click()
    page.locator(".panel fieldset").first.get_by_role("radio", name="2").check()
    eventually(page, lambda: len(searches[-1]["rules"]) == 5)

    rules = {name: arguments for rule in searches[-1]["rules"] for name, arguments in rule.items()}
    assert rules["weight"] == {"feature": "Duration", "weight": 10}
    assert rules["only_down"] == {"feature": "Duration"}
    assert rules["levels"]["feature"] == "Housing"
    assert len(rules["levels"]["allowed"]) == 1
    assert rules["max_changes"] == {"n": 2}
    page.get_by_text("Reset (5)").click()
    eventually(page, lambda: searches[-1]["rules"] == [])


def test_an_impossible_preference_is_lifted_by_one_click(case):
    page, searches = case
    row = page.locator(".preference", has_text=TERM)
    for switch in page.locator(".preference .switch input").all():
        switch.uncheck(force=True)
    row.locator(".switch input").check(force=True)
    row.locator(".preference-name").click()
    row.locator(".box").nth(0).fill("40")

    expect(page.locator(".nothing .letter")).to_contain_text("We found nothing")
    lift = page.locator(".lifts > li").first
    expect(lift).to_contain_text(f"Accept all values: {TERM}")
    lift.get_by_role("button").click()

    expect(page.locator(f"{PLAN} .change-name").first).to_contain_text(TERM)
    assert all(list(rule) == ["frozen"] for rule in searches[-1]["rules"])
    assert row.locator(".box").nth(0).input_value() == "4"


def test_a_search_that_time_ended_claims_nothing(case):
    page, _ = case
    record = {"status": "no answer", "reason": "", "counterfactuals": []}
    found = {"people": [record], "stopped": True}
    page.route("**/explain", lambda route: route.fulfill(json=found))

    page.locator(".preference .switch").first.click()

    expect(page.locator(".nothing h3")).to_have_text("The time was up before a plan was found")


def test_plans_are_kept_and_compared(case):
    page, _ = case
    if page.locator(PLAN).count() < 2:
        pytest.skip("this person has one plan only")
    expect(page.locator(".kept")).to_be_hidden()
    for at in (0, 1):
        page.locator(".plan").nth(at).get_by_text("Keep", exact=True).click()

    heads = page.locator(".compare thead th")
    expect(heads).to_have_text(["Now", "Plan 1", "Plan 2"])
    badges = page.locator(".compare .badge").all_inner_texts()
    assert badges == ["declined", "granted", "granted"]
    page.locator(".compare").get_by_text("Remove").first.click()
    expect(heads).to_have_text(["Now", "Plan 2"])


def test_the_name_of_a_button_says_which_card_it_is_on(case):
    page, _ = case
    page.locator(".plan").first.get_by_text("Keep", exact=True).click()

    names = page.evaluate(
        "[...document.querySelectorAll('button')].filter(one => one.checkVisibility())"
        ".map(one => one.getAttribute('aria-label') ?? one.textContent)"
    )

    assert len(names) == len(set(names))


def test_an_address_opens_the_case_again(case, opened):
    page, searches = case
    with searching(page):
        page.locator(".preference .switch").first.click()
    settled(page)
    name, rules = page.inner_text("#h-person"), searches[-1]["rules"]

    page.reload()
    settled(page)
    other = opened(page.url)
    settled(other)

    assert page.inner_text("#h-person") == other.inner_text("#h-person") == name
    assert searches[-1]["rules"] == rules
    # Preferences stay with whoever has them.
    assert other.locator(".preference .tag").count() == 0


def test_the_page_takes_ten_requests(opened, address):
    page, asked = opened(address), []
    page.wait_for_selector(".person")
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    page.wait_for_selector(".person")

    assert 5 < len(asked) <= 10


def test_the_first_plan_is_within_ten_tab_stops(case):
    page, _ = case
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.reload()
    settled(page)
    page.evaluate("document.activeElement.blur()")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.plan') !== null"):
            return
    raise AssertionError("ten tab stops do not lead to a plan")


def test_plans_stay_while_the_reader_looks_at_something_else(case, address):
    page, searches = case
    plans = page.locator(PLAN).all_inner_texts()
    n_searches = len(searches)

    page.get_by_role("link", name="Many people").click()
    page.get_by_role("link", name="One person").click()

    assert page.locator(PLAN).all_inner_texts() == plans
    assert len(searches) == n_searches
    # The way back leads to the list, also from another part of the page.
    page.get_by_role("link", name="Many people").click()
    page.go_back()
    expect(page.locator("#h-choose")).to_be_focused()
    assert page.url.startswith(address)
    expect(page.locator(".person").nth(1)).to_be_visible()


def test_the_score_follows_a_drag(case, bank, applicants):
    page, _ = case
    card = moved(page, TERM, "20")
    slider = card.locator("input[type=range]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    own = int(applicants["Duration"].iloc[DECLINED])
    at = box["x"] + 10 + (box["width"] - 20) * (20 - 4) / 68

    page.mouse.move(at, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 21):
        page.mouse.move(at + 6 * step, box["y"] + box["height"] / 2)
    page.mouse.up()

    months = int(card.locator(".box").input_value())
    expected = accepted_score(bank, applicants.iloc[[DECLINED]].assign(Duration=months))
    assert months > 20
    eventually(page, lambda: score_of(card) == expected)
    expect(card.locator("h3")).to_contain_text(f"{months} months")
    assert card.locator(".was").inner_text() == f"now: {own}\xa0months"


def test_a_score_of_values_that_were_changed_since_is_not_shown(case, bank, applicants):
    page, _ = case
    held = []

    def hold(route):
        held.append(route)
        if len(held) > 1:
            route.continue_()

    page.route("**/score", hold)
    card = moved(page, TERM, "70")
    eventually(page, lambda: len(held) == 1)
    card.locator(".box").fill("5")
    held[0].fulfill(json={"scores": [0.123], "desired": [False]})

    expected = accepted_score(bank, applicants.iloc[[DECLINED]].assign(Duration=5))
    eventually(page, lambda: score_of(card) == expected)
    assert len(held) == 2


def test_a_plan_that_was_moved_says_so_and_can_be_kept_and_put_back(case):
    page, _ = case
    card = page.locator(PLAN, has=page.locator("input[type=range]")).first
    title = card.locator("h3").inner_text()
    thumb = card.locator("input[type=range]").first
    thumb.focus()
    page.keyboard.press("ArrowLeft")

    expect(card.locator(".kicker")).to_have_text("Moved by you")
    expect(card.locator("h3")).not_to_have_text(title)
    expect(card.locator(".sentence")).to_be_hidden()
    card.get_by_text("Keep", exact=True).click()
    expect(page.locator(".compare thead th")).to_have_text(["Now", "Your plan 1"])
    card.get_by_role("button", name="Back to the plan").click()

    assert card.locator("h3").inner_text() == title
    expect(card.locator(".kicker")).to_contain_text("Plan")


def test_a_curve_shows_how_the_score_follows_a_feature(case, bank, applicants):
    page, _ = case
    card = moved(page, TERM, "12")

    def is_curve(request):
        return request.url.endswith("/score") and len(request.post_data_json["people"]) > 1

    with page.expect_request(is_curve) as sent:
        card.locator(".curve-box summary").click()
    people = sent.value.post_data_json["people"]
    months = [person["Duration"] for person in people]
    rows = applicants.iloc[[DECLINED] * len(months)].assign(Duration=months)
    scores = bank.predictor.predict_proba(rows)[:, 1]

    words = card.locator(".curve figcaption")
    expect(words).to_contain_text(f"from {min(scores):.3f} to {max(scores):.3f}")
    assert len(people) <= 20
    assert months == sorted(set(months))
    assert len(card.locator(".curve .line").get_attribute("points").split()) == len(people)


def test_totals_follow_what_is_tried(opened, serving):
    pay = np.random.default_rng(0).integers(10, 410, 400)
    train = pd.DataFrame({"pay": pay, "extra": [0, 5, 9, 20] * 100})
    train["total"] = train["pay"] + train["extra"]

    def by_total(rows):
        return rows["total"].to_numpy() / 500

    explainer = MCCE(by_total, (0.5, 1.0), search="balanced", random_state=0).fit(train)
    with serving(explainer) as address:
        page = opened(address)
        fill_form(page, Pay="100", Extra="5", Total="105")
        settled(page)
        card = moved(page, "Pay", "300")
        total = card.get_by_role("group", name="Total")

        expect(total.locator("strong")).to_have_text("305")
        assert total.locator("input").count() == 0
        eventually(page, lambda: score_of(card) == 0.61)
        card.get_by_text("Keep", exact=True).click()
        expect(page.locator(".compare")).to_contain_text("305")


def test_a_number_can_be_not_stated(opened, serving):
    with serving(served_bank.fitted()) as address:
        page = opened(address)
        fill_form(page, Age="30", Salary="40000", Savings="0.5")
        settled(page)
        moved(page, "Salary", "41000")
        card, scored = moved(page, "Savings", "0.75"), []
        field = card.get_by_role("group", name="Savings", exact=True)
        page.on("request", lambda one: scored.append(one.post_data_json["people"][0]["savings"]))

        field.get_by_label("not stated").check()
        assert field.locator(".box").input_value() == ""
        eventually(page, lambda: scored[-1:] == [None])
        field.locator(".box").fill("1.25")
        eventually(page, lambda: scored[-1:] == [1.25])

        expect(field.get_by_label("not stated")).not_to_be_checked()
        salary = card.get_by_role("group", name="Salary", exact=True)
        assert salary.get_by_label("not stated").count() == 0


def test_a_typed_person_is_checked_field_by_field(opened, address, applicants):
    page = opened(address)
    page.click("#tab-form")
    page.click("text=Show the decision")
    wrong = page.locator(".error:not(:empty)")
    expect(wrong).to_have_count(applicants.shape[1])

    for field in page.locator("form select").all():
        field.select_option(index=1)
    for name, text in (("Term", "abc"), ("Loan amount", "2000"), ("Age", "40")):
        page.get_by_label(re.compile(f"^{name}")).fill(text)
    page.click("text=Show the decision")
    expect(wrong).to_have_count(1)
    expect(wrong).to_contain_text("abc")

    page.get_by_label(re.compile("^Term")).fill("-4")
    page.click("text=Show the decision")
    expect(wrong).to_contain_text("cannot be less than 0")
    assert "not stated" not in page.locator("form select").first.inner_text()

    # What nobody has is unusual, and no error.
    page.get_by_label(re.compile("^Term")).fill("90")
    expect(page.locator(".soft")).to_have_text("Unusual: the training data hold 4 to 72\xa0months.")
    page.click("text=Show the decision")
    page.wait_for_selector("#decision .gauge")
    assert page.inner_text("#h-person") == "Unnamed person"


@pytest.mark.parametrize("code", ["en", "de"])
def test_numbers_are_typed_as_they_are_written(opened, serving, code):
    """Percent of a share, a number without groups, and groups that are no decimal points."""
    salary, savings = {"en": ("40,000", "1.25"), "de": ("40.000", "1,25")}[code]
    mutable = served_bank.customers().columns.drop(["age", "sex"])
    features = {name: {"reason": "Because."} for name in mutable}
    features["savings"] |= {"scale": 100, "unit": "{number} %"}
    features["salary"] |= {"grouping": False}
    labels = {code: Labels.make({"language": code, "features": features})}
    with serving(served_bank.fitted(), labels=labels) as address:
        page = opened(address)
        for name, text in (("age", "30"), ("salary", salary), ("savings", savings)):
            page.get_by_label(re.compile(f"^{name}", re.I)).fill(text)
        with page.expect_request("**/score") as sent:
            fill_form(page)
        page.wait_for_selector("#decision .gauge")
        page.locator(".values summary").click()
        shown = page.locator(".values dd").all_inner_texts()
        page.locator(".hero .actions button").nth(1).click()
        again = [
            page.get_by_label(re.compile(f"^{name}", re.I)).input_value()
            for name in ("salary", "savings")
        ]

    (person,) = json.loads(sent.value.post_data)["people"]
    assert (person["salary"], person["savings"]) == (40_000, 0.0125)
    assert "40000" in shown
    assert f"{savings}\xa0%" in shown
    assert again == ["40000", savings]


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


def test_all_three_languages_can_be_chosen(case):
    page, searches = case
    with searching(page):
        page.locator(".preference .switch").first.click()

    page.select_option("#language", "de")
    page.wait_for_selector("text=Ihre Vorgaben")
    sentence = page.locator(".sentence", has_text="Wir hätten Ihnen den Kredit gewährt")
    expect(sentence.first).to_be_attached()
    assert page.locator("html").get_attribute("lang") == "de"
    assert page.locator(".tag").inner_text() == "bleibt, wie es ist"
    assert len(searches[-1]["rules"]) == 1

    page.select_option("#language", "nb")
    page.wait_for_selector("text=Dine ønsker")


def test_markup_in_names_is_text(opened, address):
    name = "<img src=x onerror=alert(1)>"
    page = opened(address)
    page.fill("#search", "img")
    expect(page.locator(".person")).to_have_count(1)
    assert page.inner_text(".person .who") == name
    assert page.inner_text(".brand") == "A <b>bank</b>"
    page.click(".person")
    page.wait_for_selector("#decision .gauge")
    assert page.inner_text("#h-person") == name
    assert page.title() == "A <b>bank</b>"


def test_the_keyboard_is_enough(opened, address):
    page = opened(address)
    page.wait_for_selector(".person")

    def tab_to(found):
        for _ in range(300):
            page.keyboard.press("Tab")
            if page.evaluate(found):
                return
        raise AssertionError(f"the keyboard does not reach {found}")

    tab_to("document.activeElement.id === 'search'")
    page.keyboard.type(f"{DECLINED:05d}")
    expect(page.locator(".person")).to_have_count(1)
    page.keyboard.press("Enter")
    settled(page)
    assert page.evaluate("document.activeElement.id") == "h-person"

    tab_to("document.activeElement.getAttribute('role') === 'switch'")
    with searching(page):
        page.keyboard.press("Space")
    settled(page)
    expect(page.locator(".tag").first).to_have_text("stays as it is")
    tab_to("document.activeElement.textContent === 'Keep'")
    page.keyboard.press("Enter")
    expect(page.locator(".compare")).to_be_visible()


def test_a_service_that_is_gone_is_said_so(case, expected_failure):
    page, _ = case
    page.route("**/explain", lambda route: route.abort())

    page.locator(".preference .switch").first.click()

    expect(page.locator(".failed .failure")).to_have_text("The service cannot be reached.")
    page.unroute("**/explain")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".plan")).not_to_have_count(0)
    expected_failure("ERR_FAILED")


def test_nothing_is_shown_without_the_token(opened, serving, bank, applicants, expected_failure):
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
    expected_failure("401")
