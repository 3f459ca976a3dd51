"""Letters: what they say, of whom, why there is nothing, and no harm from hostile names."""

from __future__ import annotations

import unicodedata
import warnings
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from mcce import (
    MCCE,
    Counterfactuals,
    ExactSearch,
    Interval,
    LabelsError,
    McceWarning,
    ParameterError,
    SchemaError,
    Search,
    constraints,
)
from mcce import constraints as c
from mcce.counterfactuals.parts import ReasonKind
from mcce.datasets import load_german_credit
from mcce.report import Labels, Letters, languages, write_letters

# That somebody has no answer is what some of these letters are about.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

NAMES = ["age", "salary", "housing", "loans"]


def people(n_rows=400, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(20, 70, n_rows),
            "salary": random.integers(200, 900, n_rows) * 100 + 37,
            "housing": random.choice(["own", "rent"], n_rows),
            "loans": random.integers(0, 5, n_rows),
        }
    )


def score(frame):
    owns = (frame["housing"] == "own") * 10_000
    return frame["salary"] + owns - 6_000 * frame["loans"]


LABELS = {
    "decision": {"would": "We would have said yes", "declined": "We said no."},
    "features": {
        "salary": {
            "unit": "${number}",
            "verbs": "you had earned {after}[ instead of {before}]",
            "reason": {"more": "Your salary is low.", "less": "Your salary is high."},
        },
        "housing": {
            "become": {"own": "you had owned your home", "rent": "you had rented"},
            "reason": "Your housing.",
            "being": {"rent": "You rent."},
        },
        "loans": {
            "unit": {"one": "{number} loan", "other": "{number} loans"},
            "verbs": "you had had {after}[ instead of {before}]",
            "reason": "Your loans.",
        },
    },
}


@pytest.fixture(scope="module")
def explained():
    train = people()
    explainer = MCCE(
        score,
        Interval(50_000, np.inf),
        immutable=["age"],
        search="sparse",
        n_counterfactuals=3,
        diversity=0.5,
        random_state=0,
    ).fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer, explainer.explain(train.head(30))


def test_everybody_gets_a_letter(explained):
    explainer, result = explained

    letters = write_letters(explainer, result, LABELS)

    assert isinstance(letters, Letters)
    assert letters.people.index.equals(result.people.index)
    assert letters.people["status"].equals(result.people["status"])
    already = letters.people["status"] == "already desired"
    assert letters.people.loc[already, "text"].str.startswith("The decision was in your").all()
    answered = letters.people["status"] == "answered"
    assert letters.people.loc[answered, "text"].str.contains("We would have said yes if").all()
    assert letters.answers.index.equals(letters.frame.index)
    assert letters.frame.columns.tolist() == NAMES
    assert repr(letters) == "Letters(30 people, language 'en')"


def test_only_what_changes_is_spoken_of(explained):
    explainer, result = explained
    letters = write_letters(explainer, result, LABELS)
    words = {"salary": "earned", "housing": ("owned", "rented"), "loans": "loan"}

    for row, text in enumerate(letters.answers["text"]):
        own = result.factuals.loc[letters.frame.index[row][0]]
        for name, said in words.items():
            mentioned = any(word in text for word in ([said] if isinstance(said, str) else said))
            assert mentioned == (own[name] != letters.frame[name].iloc[row]), (name, text)


def test_reasons_are_differences_and_at_most_four(explained):
    explainer, result = explained

    letters = write_letters(explainer, result, LABELS)

    reasons = letters.reasons
    assert reasons.columns.tolist() == ["factual", "place", "feature", "text"]
    assert reasons["place"].between(1, 4).all()
    changes = result.changes()
    real = set(zip(changes["factual"], changes["feature"], strict=True))
    assert set(zip(reasons["factual"], reasons["feature"], strict=True)) <= real
    answered = result.people.index[result.people["status"] == "answered"]
    assert set(reasons["factual"]) == set(answered)
    assert not reasons["text"].str.contains("high").any()
    assert not reasons.duplicated(["factual", "feature"]).any()


WEIGHTS = {"a": 1.0, "b": 5.0, "c": 3.0, "d": 4.0, "e": 2.0, "f": 0.0}


def weighted(frame):
    return sum(weight * frame[name] for name, weight in WEIGHTS.items())


def weigh(**options):
    """An explainer of whole numbers that count more or less, and one person who has none."""
    numbers = np.random.default_rng(0).integers(0, 5, (400, len(WEIGHTS)))
    train = pd.DataFrame(numbers, columns=list(WEIGHTS))
    explainer = MCCE(weighted, Interval(15.0, np.inf), random_state=0, **options).fit(train)
    return explainer, pd.DataFrame([[0] * len(WEIGHTS)], columns=list(WEIGHTS))


def test_the_four_reasons_with_the_largest_effect_on_the_score_are_given():
    explainer, person = weigh()
    answers = person.assign(a=1, b=1, c=1, d=1, e=1)
    result = Counterfactuals.from_frame(
        person, answers, schema=explainer.schema_, decision=explainer.decision_
    )

    letters = write_letters(explainer, result)

    assert letters.reasons["feature"].tolist() == ["b", "d", "c", "e"]
    assert letters.reasons["place"].tolist() == [1, 2, 3, 4]


def test_a_reason_never_contradicts_the_remedy():
    order = ["none", "little", "much"]
    train = pd.DataFrame({"savings": order * 40, "amount": [1, 2, 3, 9] * 30})

    def score(frame):
        return ((frame["savings"] != "little") & (frame["amount"] != 3)) * 1.0

    words = {
        "savings": {
            "order": order,
            "reason": "Your savings: {before}.",
            "being": {"little": "You have too little savings."},
        },
        "amount": {"reason": {"less": "It is much.", "more": "It is little."}},
    }
    explainer = MCCE(score, (0.5, 1), random_state=0).fit(train)
    person = pd.DataFrame({"savings": ["little"], "amount": [2]})

    def said(*levels, person=person):
        answers = pd.concat([person.assign(savings=level) for level in levels])
        result = Counterfactuals.from_frame(
            person,
            answers,
            schema=explainer.schema_,
            decision=explainer.decision_,
            owner=[0] * len(levels),
        )
        return write_letters(explainer, result, {"features": words}).reasons["text"].tolist()

    assert said("much") == ["You have too little savings."]
    assert said("none") == said("much", "none") == ["Your savings: “little”."]
    explained = explainer.explain(person.assign(savings="none", amount=3))
    reasons = write_letters(explainer, explained, {"features": words}).reasons["text"]
    after = explained.frame["amount"].iloc[0]
    assert reasons.tolist() == ["It is little." if after > 3 else "It is much."]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_letter_is_the_same_alone_and_among_others(explained, language):
    explainer, _ = explained
    some = people().iloc[[4, 7, 4, 31, 12]]
    labels = Labels.make({"language": language})
    together = write_letters(explainer, explainer.explain(some), labels)
    alone = [
        write_letters(explainer, explainer.explain(some.iloc[[row]]), labels)
        for row in range(len(some))
    ]

    assert together.people["text"].tolist() == [one.people["text"].iloc[0] for one in alone]
    assert together.frame.equals(pd.concat([one.frame for one in alone]))


def test_answers_that_ask_for_more_than_another_are_left_out(explained):
    explainer, _ = explained
    person = pd.DataFrame({"age": [30], "salary": [30_037], "housing": ["own"], "loans": [0]})
    answers = pd.concat([person] * 4, ignore_index=True)
    answers["salary"] = [52_000, 60_000, 52_000, 47_000]
    answers["loans"] = [0, 0, 1, 0]
    result = Counterfactuals.from_frame(
        person,
        answers,
        schema=explainer.schema_,
        decision=explainer.decision_,
        owner=[0, 0, 0, 0],
    )

    letters = write_letters(explainer, result, LABELS)

    text = letters.people["text"].iloc[0]
    assert "We would have said yes if you had earned $41,000 instead of $30,037." in text
    assert letters.frame[["salary", "loans"]].to_numpy().tolist() == [[41_000, 0], [52_000, 1]]


def test_an_answer_that_the_predictor_refuses_is_never_shown(explained):
    explainer, _ = explained
    person = pd.DataFrame({"age": [30], "salary": [30_037], "housing": ["rent"], "loans": [0]})
    refused = person.assign(salary=31_000)
    result = Counterfactuals.from_frame(
        person, refused, schema=explainer.schema_, decision=explainer.decision_
    )

    with pytest.warns(McceWarning, match="1 of 1 counterfactuals are not valid"):
        letters = write_letters(explainer, result, LABELS)

    assert (
        letters.people["text"]
        .iloc[0]
        .endswith("We cannot say with certainty what would have altered this decision.")
    )
    assert letters.frame.empty
    assert letters.answers.empty
    assert letters.reasons.empty


def test_constraints_of_the_call_hold_for_rounded_rows(explained):
    explainer, _ = explained
    some = people().head(20)
    rule = constraints.relation("odd cents", "salary % 100 == 37")
    result = explainer.explain(some, constraints=[rule])

    letters = write_letters(explainer, result, LABELS, constraints=[rule])

    assert letters.frame.index.get_level_values("factual").nunique() == 8
    assert (letters.frame["salary"] % 100 == 37).all()


def test_wrong_arguments_are_named(explained, bank):
    explainer, result = explained
    with pytest.raises(ParameterError, match="explainer must be an MCCE"):
        write_letters(None, None)
    with pytest.raises(LabelsError, match="labels must be Labels, the path"):
        write_letters(explainer, result, 3)
    with pytest.raises(LabelsError, match=r"no reason.*'housing', 'loans'"):
        write_letters(explainer, result, {"features": {"salary": {"reason": "Low."}}})
    other = MCCE(lambda x: x["salary"], (0, np.inf), random_state=0).fit(bank)
    with pytest.raises(ParameterError, match="ranges must be True or False, got a DataFrame"):
        write_letters(explainer, result, ranges=explainer.ranges(result))
    with pytest.raises(SchemaError, match="Pass a result of this explainer"):
        write_letters(other, result)


def test_what_rules_hold_fixed_for_everybody_needs_no_reason(explained):
    explainer, result = explained
    labels = {"features": {"salary": {"reason": "Low."}}}
    some = constraints.frozen("housing", "loans", where="salary > 0")
    everybody = constraints.frozen("housing", "loans")

    with pytest.raises(LabelsError, match=r"no reason.*'housing', 'loans'"):
        write_letters(explainer, result, labels, constraints=some)

    result = explainer.explain(people().head(5), constraints=everybody)
    assert len(write_letters(explainer, result, labels, constraints=everybody).people) == 5


def answer_of(explainer, person, **cells):
    """A result with one answer to a person."""
    return Counterfactuals.from_frame(
        person, person.assign(**cells), schema=explainer.schema_, decision=explainer.decision_
    )


PERSON = pd.DataFrame({"age": [30], "salary": [30_037], "housing": ["own"], "loans": [3]})


AT_LEAST = {
    "en": "if salary had been at least 59,000 instead of 30,037.",
    "nb": "dersom salary hadde vært minst 59\xa0000 i stedet for 30\xa0037.",
    "de": "wenn salary mindestens 59.000 statt 30.037 gewesen wäre.",
}


@pytest.mark.parametrize("language", AT_LEAST)
def test_ranges_say_how_far_to_go(explained, language):
    explainer, _ = explained
    result = answer_of(explainer, PERSON, salary=61_537)

    letters = write_letters(explainer, result, {"language": language}, ranges=True)

    assert AT_LEAST[language] in letters.answers["text"].iloc[0]
    assert letters.frame["salary"].tolist() == [59_000]


def test_a_range_with_two_ends_names_both():
    explainer = MCCE(
        lambda frame: ((frame["salary"] > 58_000) & (frame["salary"] < 70_000)).astype(float),
        (0.5, 1),
        immutable=["age"],
        random_state=0,
    ).fit(people())

    letters = write_letters(
        explainer, answer_of(explainer, PERSON, salary=61_537), LABELS, ranges=True
    )

    assert (
        "We would have said yes if you had earned $59,000 to $69,000 instead of $30,037."
        in letters.answers["text"].iloc[0]
    )


def test_two_numbers_have_no_choice(explained):
    explainer, _ = explained
    result = answer_of(explainer, PERSON, salary=51_537, loans=1)

    letters = write_letters(explainer, result, LABELS, ranges=True)

    assert letters.answers["text"].tolist() == [
        "We would have said yes if you had earned $52,000 instead of $30,037 and had had "
        "1\xa0loan instead of 3."
    ]


def housed(**labels):
    """Whoever has a home of their own is accepted, and others are not."""
    train = people().assign(housing=np.resize(["own", "rent", "free", "none"], 400))
    explainer = MCCE(
        lambda frame: frame["housing"].isin(["own", "rent", "free"]).astype(float),
        (0.5, 1),
        immutable=["age", "salary", "loans"],
        random_state=0,
    ).fit(train)
    result = answer_of(explainer, PERSON.assign(housing="none"), housing="own")
    texts = {"features": {"housing": {"reason": "Your housing.", **labels}}} if labels else None
    return write_letters(explainer, result, texts, ranges=True).answers["text"].iloc[0]


def test_other_levels_that_would_do_are_named():
    become = {"own": "you had owned your home", "rent": "you had rented your home"}

    assert "if housing had been “own”, “free” or “rent” instead of “none”." in housed()
    assert "if you had lived in a flat, for nothing or to rent, not “none”." in housed(
        verbs="you had lived {after}[, not {before}]",
        levels={"own": "in a flat", "free": "for nothing", "rent": "to rent"},
    )
    assert housed(become=become | {"free": "you had shared your home"}).endswith(
        "if you had owned, shared or rented your home."
    )
    assert housed(become=become | {"free": "you had not paid"}).splitlines() == [
        "The decision would have been in your favour if",
        "1. you had owned your home,",
        "2. you had not paid, or",
        "3. you had rented your home.",
    ]


def test_letters_of_german_credit_read_well():
    german = load_german_credit()
    explainer = MCCE(
        lambda x: 1.4 - x["Duration"] / 40 - x["CreditAmount"] / 20_000,
        (0.5, np.inf),
        immutable=german.immutable,
        search="sparse",
        random_state=0,
    ).fit(german.features)
    result = explainer.explain(german.features[german.features["Duration"] > 40].head(3))

    for language in languages():
        labels = Labels.bundled("german", language)
        letters, with_ranges = (
            write_letters(explainer, result, labels, ranges=ranges) for ranges in (False, True)
        )

        at_most = labels.language.say("values.at_most", value="")
        assert not letters.people["text"].str.contains(at_most).any()
        assert with_ranges.people["text"].str.contains(at_most).any()
        for text in [*letters.people["text"], *with_ranges.people["text"]]:
            assert text.startswith(labels.say("declined"))
            assert labels.say("would") in text
            assert not set(text) & set("{}[]")
            assert "  " not in text
            assert ".." not in text
            assert "Duration" not in text


GRID = {"a": np.repeat(np.arange(21), 21), "b": np.tile(np.arange(21), 21)}
WHY = {
    "no_desired": {"search": "paper", "desired": Interval(99, np.inf)},
    # Neither bound is in the way alone.
    "proven": {"search": ExactSearch(max_sparsity=1, max_distance=0.01)},
    "too_many_changes": {"search": Search("sparse", max_sparsity=1, min_plausibility=0)},
    "too_far": {"search": Search("paper", max_distance=0.01)},
    "unknown": {"search": Search("sparse", margin=20.0, min_plausibility=0)},
    "ruled_out": {"constraints": [constraints.relation("small", "a + b < 15")]},
    "refused": {"search": "paper", "n_samples": 1, "desired": Interval(40, np.inf)},
    "stopped": {"search": "sparse", "desired": Interval(40, np.inf)},
}


@pytest.mark.parametrize("kind", WHY)
def test_the_letter_says_what_stood_in_the_way(kind):
    def total(frame):
        return frame["a"] + frame["b"]

    settings = {"search": "sparse", "n_samples": 50, "desired": Interval(30, np.inf), **WHY[kind]}
    explainer = MCCE(total, random_state=0, **settings).fit(pd.DataFrame(GRID))
    stop = (lambda progress: True) if kind == "stopped" else None

    result = explainer.explain(pd.DataFrame({"a": [3], "b": [3]}), callback=stop)

    assert result.people[["status", "reason_kind"]].to_numpy().tolist() == [["no answer", kind]]
    for language in languages():
        labels = Labels.make({"language": language})
        (text,) = write_letters(explainer, result, labels).people["text"]
        said = labels.language.messages[f"nothing.{kind}"]
        assert text.endswith(said), result.people["reason"].iloc[0]


def test_every_language_has_a_sentence_for_every_kind_of_reason():
    for language in languages():
        messages = Labels.make({"language": language}).language.messages

        assert {f"nothing.{kind}" for kind in get_args(ReasonKind)} <= messages.keys()


HOSTILE = {
    "markup": "<script>alert('x')</script> \"&amp;",
    "placeholder": "{before}",
    "attribute": "{0.__class__}",
    "brackets": "[ instead of {before}]",
    "controls": "a\nb\r\nc\td\x1b[31mred\x00\u202egnol\u2066",
    "long": "long " * 2_000,
    "empty": "",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_and_levels_are_text_on_one_line(kind):
    nasty = HOSTILE[kind]
    name = nasty or "empty"
    train = pd.DataFrame({name: [nasty, "fine", "other"] * 40, "x": list(range(12)) * 10})
    explainer = MCCE(lambda frame: (frame[name] == nasty) * 1.0, (0.5, 1), random_state=0)
    result = explainer.fit(train).explain(pd.DataFrame({name: ["fine"], "x": [3]}))

    for language in languages():
        letters = write_letters(explainer, result, {"language": language})

        text = letters.people["text"].iloc[0]
        assert len(text) < 2_000
        for line in text.split("\n"):
            assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)
        assert "\n" not in letters.answers["text"].iloc[0]
        if nasty and len(nasty) < 40 and nasty.isprintable():
            assert nasty in text  # neither filled in nor escaped: that is for the medium


def test_long_levels_that_differ_in_the_middle_are_not_said_to_be_the_same():
    first, second = "a" * 5_000 + "b" + "a" * 5_000, "a" * 5_000 + "c" + "a" * 5_000
    train = pd.DataFrame({"kind": [first, second] * 60})
    explainer = MCCE(lambda frame: (frame["kind"] == second) * 1.0, (0.5, 1), random_state=0)

    result = explainer.fit(train).explain(train.head(1))
    text = write_letters(explainer, result).answers["text"].iloc[0]

    assert text == "The decision would have been in your favour if kind had been different."


def test_missing_values_dates_and_booleans_have_words():
    day = pd.Timestamp("2024-05-03")
    train = pd.DataFrame(
        {
            "start": [day, day + pd.Timedelta(days=40)] * 60,
            "member": [True, False] * 60,
            "note": ["a", None] * 60,
            "debt": [np.nan, 2_000.0] * 60,
        }
    )

    def said(name, wanted, person, language="en"):
        lost = [c.not_up("debt"), c.levels("note", ["a", None])]
        explainer = MCCE(
            lambda x: wanted(x[name]) * 1.0, (0.5, 1), constraints=lost, random_state=0
        ).fit(train)
        result = explainer.explain(person)
        return write_letters(explainer, result, {"language": language}).answers["text"].iloc[0]

    person = train.iloc[[0]]
    assert "member had been no instead of yes" in said("member", lambda c: ~c.astype(bool), person)
    late = said("start", lambda c: c > day, person, "de")
    assert "start 12.06.2024 statt 03.05.2024 gewesen wäre" in late
    assert "note had not been stated" in said("note", lambda c: c.isna(), person)
    stated = said("debt", lambda c: c.notna(), person)
    assert "debt had been 2,000" in stated
    assert "instead of not" not in stated
    assert "debt ikke hadde vært oppgitt" in said("debt", lambda c: c.isna(), train.iloc[[1]], "nb")


FIELDS = {
    "creditor": "Example Bank\n1 Main Street",
    "contact": "800-555-0100",
    "date": "2026-11-19",
    "name": "Alex Smith",
    "case_number": "17",
}
MORE = {
    ("us", "en"): {
        "agency": "CFPB",
        "bureau": False,
        "bureau_score": False,
        "bureau_factors": False,
    },
    ("eu", "en"): {"sources": "you", "authority": "DPC", "database": False, "debt_advice": False},
    ("eu", "de"): {"sources": "Ihnen", "authority": "Amt", "database": False, "debt_advice": False},
    ("no", "en"): {"sources": "you", "bureau": False, "complaints_board": "the board"},
    ("no", "nb"): {"sources": "deg", "bureau": False, "complaints_board": "nemnda"},
}
WORDED = {
    name: {"reason": f"Too little of {name}." if name != "f" else "None of f."} for name in WEIGHTS
}
CITED = {
    "us": ["Equal Credit Opportunity Act", "CFPB", "NOTICE OF ACTION TAKEN"],
    "eu": ["22", "18", "2023/2225", "86", "2024/1689", "15"],
    "no": ["22", "15", "Datatilsynet"],
}


@pytest.fixture(scope="module")
def weighed():
    explainer, person = weigh(immutable=["b"])
    some = pd.concat([person, person.assign(a=4, b=4, c=4), person.assign(b=1)], ignore_index=True)
    return explainer, explainer.explain(some)


@pytest.mark.parametrize("place", MORE, ids=".".join)
def test_a_letter_by_jurisdiction_says_what_its_law_asks_for(weighed, place):
    template, language = place
    labels = {"language": language, "features": WORDED}
    fields = FIELDS | MORE[place] | {"name": ["Alex", "Kim", "Sam"]}

    letters = write_letters(*weighed, labels, template=template, fields=fields)

    plain = write_letters(*weighed, labels).people["text"]
    texts = letters.people["text"]
    assert texts[1] == plain[1]  # has the desired decision
    for person, name in ((0, "Alex"), (2, "Sam")):
        text = texts[person]
        assert text.startswith("Example Bank\n1 Main Street\n800-555-0100\n\n2026-11-19")
        for said in (name, "17", *CITED[template]):
            assert said in text
        for paragraph in plain[person].split("\n\n"):
            if "Too little" not in paragraph:
                assert paragraph in text
        assert "\n\n\n" not in text
        assert not set(text) & set("{}[]")
        reasons = letters.reasons[letters.reasons["factual"] == person]
        # What cannot change is named, too.
        first = {0: ["b", "d", "c", "e"], 2: ["d", "c", "b", "e"]}
        assert reasons["feature"].tolist() == first[person]
        assert all(reason in text for reason in reasons["text"])
        score = weighed[1].people["score"][person]
        assert f"{score:g}" in text
        assert ("A, B, C, D, E, F" in text) == (template != "us")


def test_people_without_an_answer_are_told_the_reasons_too(weighed):
    explainer, _ = weighed
    person = pd.DataFrame([[0] * 6], columns=list(WEIGHTS))
    rule = constraints.frozen(*(name for name in WEIGHTS if name != "b"))
    result = explainer.explain(person, constraints=rule)
    fields = FIELDS | MORE["us", "en"]

    letters = write_letters(
        explainer, result, {"features": WORDED}, constraints=rule, template="us", fields=fields
    )

    (text,) = letters.people["text"]
    assert " Too little of b.\n\N{EN DASH} Too little of d." in text
    assert "We found nothing you can change" in text


def test_parts_that_a_case_lacks_are_left_out(weighed):
    named = {"bureau": "Example Bureau", "bureau_score": "640 of 850", "bureau_factors": "Debts"}
    texts = {}
    for fields in (FIELDS | MORE["us", "en"], FIELDS | MORE["us", "en"] | named):
        letters = write_letters(*weighed, {"features": WORDED}, template="us", fields=fields)
        texts[fields["bureau"]] = letters.people["text"][0]

    assert "consumer reporting agency" not in texts[False]
    for said in ("within 60 days", "Example Bureau", "640 of 850", "Debts"):
        assert said in texts["Example Bureau"]


def test_a_missing_field_is_named_and_never_an_empty_line(weighed):
    full = FIELDS | MORE["us", "en"]

    def write(template="us", labels=None, **fields):
        given = {name: text for name, text in (full | fields).items() if text != "left out"}
        labels = labels or {"features": WORDED}
        return write_letters(*weighed, labels, template=template, fields=given)

    wrong = [
        ({"agency": "left out", "name": "left out"}, r"the fields \['agency', 'name'\]"),
        ({"name": ["Alex", "Kim", "  "]}, r"fields\['name'\] must be a text, got '  ' for 2"),
        ({"name": ["Alex", None, "Sam"]}, r"fields\['name'\] must be a text, got None for 1"),
        ({"name": ["Alex"]}, "one for each of 3 people, got 1"),
        ({"date": False}, r"fields\['date'\] must be a text, got False"),
        ({"case_nr": "7"}, r"'case_nr', which the template does not use. Did you mean 'case_n"),
        ({"template": "uk"}, "There are 'eu' in 'de', 'eu' in 'en', 'no' in 'en'"),
        ({"template": "absent.txt"}, "The template in .* cannot be read"),
        ({"labels": {"language": "de", "features": WORDED}}, "got 'us' in 'de'"),
    ]
    for fields, message in wrong:
        with pytest.raises(ParameterError, match=message):
            write(**fields)
    with pytest.raises(ParameterError, match="Pass a template too"):
        write_letters(*weighed, fields=FIELDS)
    lacking = {name: words for name, words in WORDED.items() if name != "b"}
    with pytest.raises(LabelsError, match="Of 3 decisions, 2 rest on 'b' above all"):
        write(labels={"features": lacking})


def test_a_template_may_be_a_file_of_yours(weighed, tmp_path):
    path = tmp_path / "ours.txt"
    path.write_text("To {name}\n[\nOn {day}\n]\n{reasons}\n\n{answers}\n{before}", encoding="utf-8")
    fields = {"name": "{answers} [x] <b>\x1b", "day": False, "before": "B"}

    labels = {"features": WORDED}
    text = write_letters(*weighed, labels, template=path, fields=fields).people["text"][0]

    assert text.startswith("To {answers} [x] <b>\n\nThe main reasons for this decision:\n")
    assert text.endswith("\nB")
