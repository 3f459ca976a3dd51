"""One final row: result, letter, report, receipt, service and page show the same answers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape

import numpy as np
import pandas as pd
import pytest

import bills
from mcce import MCCE, constraints
from mcce.datasets import load_german_credit
from mcce.report import write_letters, write_report
from mcce.report.receipts import Origin, make_receipt
from mcce.serve import ServiceSettings, create_app
from served_bank import running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

N_PEOPLE, N_BORROWERS, AT_ONCE = 200, 6, 3
MADE, ORIGIN = datetime(2026, 11, 19, tzinfo=UTC), Origin("sha256:rows", "test")


def german():
    """The bundled data and its rules, and declined applicants."""
    data = load_german_credit()

    def score(rows):
        saves = (rows["Savings"] == ">=1000 DM").to_numpy() / 4
        return 1.2 - rows["Duration"] / 40 - rows["CreditAmount"] / 20_000 + saves

    explainer = MCCE(score, (0.5, np.inf), immutable=data.immutable, constraints=data.rules)
    explainer.set_params(n_counterfactuals=2, random_state=0).fit(data.features)
    return explainer, data.features[score(data.features) < 0.5].head(N_BORROWERS)


def billed():
    """Bills with a total that follows, and customers below the value that is needed."""
    rules = [constraints.only_up("price"), constraints.max_changes(3)]
    explainer = MCCE(bills.value, (2.5, np.inf), immutable=["age"], constraints=rules)
    explainer.set_params(n_counterfactuals=2, random_state=0)
    people = bills.bills(2_000, seed=1)
    declined = people[bills.value(people) < 2.5].head(N_PEOPLE)
    return explainer.fit(bills.bills(1_000)), declined.reset_index(drop=True)


CASES = [
    pytest.param(german, marks=pytest.mark.slow, id="german"),
    pytest.param(billed, id="bills"),
]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """An explainer, people, their raw result and their final one."""
    explainer, people = request.param()
    people = people.reset_index(drop=True)
    result = explainer.explain(people)
    return explainer, people, result, explainer.finalize(result)


def shown(records):
    """What a person reads of answers: rows, scores and what changes."""
    # The last bits of a product of matrices depend on how many rows are scored at a time.
    return [
        [
            (one["row"], round(one["measures"]["score"], 12), one["changes"])
            for one in person["counterfactuals"]
        ]
        for person in records
    ]


def said(cell):
    """A cell as letters and reports write it."""
    return f"{cell:,}".removesuffix(".0") if isinstance(cell, (int, float)) else str(cell)


def test_final_rows_are_accepted_measured_and_keep_the_rules(case):
    explainer, people, result, final = case
    owned = people.iloc[final.owner].reset_index(drop=True)
    rows = final.frame.reset_index(drop=True)

    assert len(people) in (N_PEOPLE, N_BORROWERS)
    assert final.final
    assert not result.final
    assert explainer.finalize(final) is final
    assert explainer.ranges(final).equals(final.ranges)
    assert set(final.owner) == set(result.owner)
    scored = explainer.decision_.score(rows)
    assert scored.valid.all()
    np.testing.assert_allclose(scored.score, final.measures["score"], rtol=1e-12)
    assert list(final.measures) == list(result.measures)
    assert final.measures.dtypes.equals(result.measures.dtypes)
    held = list(explainer.immutable)
    assert rows[held].equals(owned[held])
    assert not pd.concat([pd.Series(final.owner, name="whose"), rows], axis=1).duplicated().any()
    own = explainer.plausibility(owned)["plausibility"].to_numpy()
    assert (final.measures["plausibility"].to_numpy() >= np.minimum(own, 0.05)).all()
    if "total" in rows:
        assert np.abs(bills.deviation(rows)).max() < 0.006
        assert (rows["price"] >= owned["price"]).all()


def test_every_value_lies_in_its_range_and_the_own_one_in_none(case):
    _, people, _, final = case
    by_answer = dict(zip(final.frame.index, final.owner, strict=True))
    for row in final.ranges.itertuples():
        own = people[row.feature].iloc[by_answer[row.factual, row.rank]]
        assert final.frame[row.feature][row.factual, row.rank] == row.value
        if row.kind == "numeric":
            assert row.low <= row.value <= row.high
            assert not row.low <= own <= row.high
        else:
            assert own not in row.others
            assert row.value not in row.others


def test_letters_show_the_final_rows(case):
    explainer, _, result, final = case

    letters = [write_letters(explainer, one, ranges=True) for one in (result, final)]

    for letter in letters:
        pd.testing.assert_frame_equal(letter.frame, final.frame)
    assert letters[0].people.equals(letters[1].people)
    actions = final.changes().query("kind == 'action'").set_index(["factual", "rank"])
    numbers = actions[actions["after"].map(lambda cell: isinstance(cell, (int, float)))]
    texts = letters[0].answers["text"]
    listed = zip(numbers.index, numbers["feature"], numbers["after"], strict=True)
    for key, feature, after in listed:
        assert re.search(rf"{feature} had been [^“]*?{re.escape(said(after))}\b", texts[key])


def test_the_service_and_so_the_cards_of_the_page_show_the_final_rows(case):
    explainer, people, _, final = case
    expected = shown(final.to_dict())
    with running(create_app(explainer, ServiceSettings())) as client:
        for details in (False, True):
            found = []
            for start in range(0, len(people), AT_ONCE):
                some = people.iloc[start : start + AT_ONCE].to_dict("records")
                asked = {"people": some, "details": details}
                found += client.post("/explain", json=asked).json()["people"]
            assert shown(found) == expected
    texts = write_letters(explainer, final, ranges=True).answers["text"].tolist()
    ranges = final.ranges.groupby(["factual", "rank"], sort=False)
    cards = [card for person in found for card in person["counterfactuals"]]
    assert [card["text"] for card in cards] == texts
    for card, (_, table) in zip(cards, ranges, strict=True):
        assert [one["value"] for one in card["ranges"]] == table["value"].tolist()
        assert [one["low"] for one in card["ranges"]] == table["low"].tolist()
        assert [one["high"] for one in card["ranges"]] == table["high"].tolist()


def test_receipts_hold_the_final_rows(case):
    explainer, people, _, final = case
    for person, record in enumerate(final.to_dict()):
        for at, answer in enumerate(record["counterfactuals"]):
            place = np.flatnonzero(final.owner == person)[[at]]
            row = final.frame.iloc[place].reset_index(drop=True)
            own = people.iloc[[person]]
            receipt = make_receipt(explainer, own, row, origin=ORIGIN, made=MADE)
            assert receipt["answer"] == answer["row"]
            for name, measure in (("score_after", "score"), ("gower", "gower")):
                assert receipt[name] == pytest.approx(answer["measures"][measure], abs=1e-12)
            assert len(receipt["changes"]) == receipt["sparsity"] == answer["measures"]["sparsity"]


def test_the_report_shows_the_final_rows(case, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    explainer, _, result, final = case

    for name, one in (("raw", result), ("final", final)):
        write_report(explainer, one, tmp_path / name)

    content = (tmp_path / "raw").read_text()
    assert content == (tmp_path / "final").read_text()
    articles = [unescape(article) for article in content.split("<article")[1:]]
    changes = final.changes()
    assert len(articles) == len(final.people)
    for person, article in enumerate(articles):
        for after in changes.loc[changes["factual"] == person, "after"]:
            assert said(after) in article
