"""Reports: who and what is in them, that they are valid, and that nothing in data does harm."""

from __future__ import annotations

import base64
import re
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, MissingExtraError, ParameterError
from mcce.constraints import frozen, max_changes
from mcce.datasets import load_german_credit
from mcce.errors import LabelsError, WriteError
from mcce.report import Labels, write_letters, write_report
from report_pages import Page
from searches import slow

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
# That somebody has no answer is what these reports are about.
pytestmark = pytest.mark.filterwarnings("ignore::mcce.errors.McceWarning")

TRAIN = pd.DataFrame(
    {
        "age": [25, 36, 47, 52, 61] * 40,
        "sex": ["f", "m"] * 100,
        "salary": np.arange(200) * 37 % 200 * 4 + 100,
        "housing": pd.Categorical(["rent", "own", "free", "own"] * 50),
    }
)


def score(frame):
    return frame["salary"].to_numpy(float) / 1_000 + 0.2 * (frame["housing"] == "own")


def make_explainer(**options):
    options = {"immutable": ["age", "sex"], "random_state": 0, "search": "balanced", **options}
    return MCCE(score, (0.7, 2.0), **options).fit(TRAIN)


@pytest.fixture(scope="module")
def explainer():
    return make_explainer()


def read(path):
    return Page(Path(path).read_text(encoding="utf-8"))


def person(page_text, row):
    """The HTML of one person."""
    return re.search(rf'<article class="person" id="person-{row}".*?</article>', page_text, re.S)[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on people with and without answers, and what it was made of."""
    rules = [max_changes(1), frozen("housing", where="age > 50")]
    explainer = make_explainer(constraints=rules, n_counterfactuals=3)
    people = TRAIN.iloc[[0, 13, 120, 150, 199]]
    result = explainer.explain(people, constraints=frozen("salary", where="sex == 'm'"))
    path = tmp_path_factory.mktemp("report") / "report.html"
    more = frozen("salary", where="sex == 'm'")
    write_report(explainer, result, path, constraints=more, title="A bank", card="Made up.")
    return explainer, explainer.finalize(result, constraints=more), path


def test_the_page_is_valid_and_everybody_is_there(made):
    _, result, path = made

    page = read(path)

    assert page.faults == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    declined = np.flatnonzero(result.people["status"] != "already desired")
    assert 0 < len(declined) < 5
    assert [i for i in ids if i.startswith("person-")] == [f"person-{at}" for at in declined]
    links = [target for target in page.attributes("href") if target != "#"]
    assert all(target.removeprefix("#") in ids for target in links)
    assert all(f"Person {label}" in page.text for label in result.people.index[declined])
    shown = [status.replace("_", " ") for status in page.attributes("data-status")]
    assert shown == result.people["status"].iloc[declined].tolist()


def test_nothing_is_loaded_from_elsewhere(made):
    content = made[2].read_text(encoding="utf-8")
    page = Page(content)

    targets = [*page.attributes("src"), *page.attributes("srcset"), *page.attributes("href")]
    assert all(target.startswith(("data:image/svg+xml;base64,", "#")) for target in targets)
    for target in targets:
        if target.startswith("data:"):
            ElementTree.fromstring(base64.b64decode(target.partition(",")[2]))
    assert not re.search(r"@import|url\(", content)
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    policy = next(c for c in page.attributes("content") if c.startswith("default-src"))
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    assert not page.attributes("style")
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]


def test_pictures_and_tables_can_be_read_aloud(made):
    page = read(made[2])

    assert all(given.get("alt") for tag, given in page.elements if tag == "img")
    for tag, given in page.elements:
        if tag == "svg":
            assert given.get("aria-hidden") == "true" or given.get("aria-label")
        if tag == "th":
            assert given["scope"] in ("col", "row", "rowgroup")
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.elements[0] == ("html", {"lang": "en"})


def test_a_person_has_answers_ranges_letter_and_what_was_held_fixed(made):
    explainer, result, path = made
    content = path.read_text(encoding="utf-8")
    more = frozen("salary", where="sex == 'm'")
    letters = write_letters(explainer, result, ranges=True, constraints=more)
    changes = result.changes()

    for at, (label, row) in enumerate(result.people.iterrows()):
        if row["status"] == "already desired":
            continue
        text = Page(person(content, at)).text
        assert all(part in text for part in letters.people["text"].loc[label].split("\n\n"))
        mine = changes[changes["factual"] == label]
        for change in mine.itertuples():
            assert re.search(rf"\b{change.feature}\b.*\b{change.after}\b", text, re.S)
        assert text.count("Plan ") >= row["n_counterfactuals"]
        assert row["reason"] in read(path).text
        assert "Held fixed" in text
    held = Page(person(content, 1)).text.split("Held fixed")[1]
    assert "housing" in held  # this person is older than 50
    assert "salary" in held  # and a man
    assert "explainer.explain(people.iloc[[ROW]])" in read(path).text


def test_the_run_is_described(made):
    text = read(made[2]).text

    assert "A bank" in text
    assert "Made up." in text
    assert "max_changes(n=1)" in text
    assert "frozen('salary', where=\"sex == 'm'\")" in text
    assert "balanced" in text
    for heading in ("At a glance", "What would have been enough", "by group", "How to read"):
        assert heading in text


def test_a_report_scores_no_row_that_letters_do_not(tmp_path):
    n_scored = []

    def counting(frame):
        n_scored.append(len(frame))
        return score(frame)

    explainer = MCCE(counting, (0.7, 2.0), immutable=["age", "sex"], random_state=0).fit(TRAIN)
    result = explainer.explain(TRAIN.head(5))
    n_scored.clear()
    final = explainer.finalize(result)
    write_letters(explainer, final, ranges=True)
    n_needed = sum(n_scored)
    n_scored.clear()

    write_report(explainer, result, tmp_path / "report.html")

    assert sum(n_scored) == n_needed


def test_reports_of_the_same_answers_agree(made, tmp_path):
    explainer, result, path = made
    more = frozen("salary", where="sex == 'm'")
    alone = explainer.explain(result.factuals.iloc[[1]], constraints=more)
    for name, found in (("again", result), ("alone", alone)):
        options = {"constraints": more, "title": "A bank", "card": "Made up."}
        write_report(explainer, found, tmp_path / name, **options)

    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    # The fingerprint of a person is the same alone and among others.
    prints, one = (
        dict(re.findall(r"Person (\d+) <code>(\w{16})</code>", file.read_text("utf-8")))
        for file in (path, tmp_path / "alone")
    )
    label = str(result.people.index[1])
    assert len(set(prints.values())) == (result.people["status"] != "already desired").sum()
    assert one == {label: prints[label]}


HARMLESS = "0 plain text"
HOSTILE = {
    "markup": '</script></style><img src=x onerror=alert(1)>"&lt;b&gt;',
    "templates": "{{ 7 * 7 }} {% raw %} {0.__class__} {after} $x^2$ %s",
    "unprintable": "0\nb\r\nc\td\x1b[31m\x00\u202e" + "long" * 2_500,
}


def write_with(text, path):
    """A report in which a text stands wherever a text can stand."""
    train = pd.DataFrame(
        {
            text: [text, "fine", "other"] * 40,
            "x": list(range(12)) * 10,
            "fixed": [text, "plain"] * 60,
        }
    )
    explainer = MCCE(lambda frame: (frame[text] == text) * 1.0, (0.5, 1), immutable=["fixed"])
    explainer.set_params(random_state=0, constraints=[frozen(text, where="x == 3")]).fit(train)
    people = train.iloc[[1, 2, 4, 3]].set_axis([text, text, 7, "z"])
    labels = None
    # Braces and brackets mean something in texts of labels, and are refused elsewhere.
    if not set("{[") & set(text):
        label = {"name": text, "reason": text}
        labels = {"decision": {"would": text}, "features": {text: label, "x": label}}
    texts = {"title": text, "card": text, "names": [text] * 4}
    write_report(explainer, explainer.explain(people), path, labels, **texts)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["markup", *slow("templates", "unprintable")])
def test_hostile_text_does_no_harm_in_any_place(kind, tmp_path):
    nasty = HOSTILE[kind]

    content = write_with(nasty, tmp_path / "report.html")

    page = Page(content)
    assert page.faults == []
    assert page.count("script") == page.count("style") == 1
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    assert all(target.startswith("#") for target in page.attributes("href"))
    assert len(content) < 1_000_000
    assert not re.search("[\x00\x1b\u202e]", content)
    if kind == "markup":
        # The same elements and the same words as with a text that means nothing.
        usual = Page(write_with(HARMLESS, tmp_path / "usual.html"))
        assert [tag for tag, _ in page.elements] == [tag for tag, _ in usual.elements]
        assert page.text.count(nasty) == usual.text.count(HARMLESS) > 10


@pytest.mark.slow
def test_a_hundred_people_fit_two_megabytes(tmp_path):
    german = load_german_credit()

    def risk(frame):
        return 1 / (1 + np.exp(0.06 * frame["Duration"].to_numpy(float) - 1.5))

    explainer = MCCE(risk, (0.6, 1), immutable=german.immutable, search="balanced")
    explainer.set_params(n_counterfactuals=3, random_state=0).fit(german.features)
    path = tmp_path / "report.html"

    write_report(
        explainer, explainer.explain(german.features.head(100)), path, Labels.bundled("german")
    )

    page = read(path)
    assert page.faults == []
    assert 20 < page.count("article") < 100
    assert path.stat().st_size < 1e6


def test_wide_tables_stay_small(tmp_path):
    names = [f"column_{at}_{'x' * 60}" for at in range(60)]
    train = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (100, 60)), columns=names)
    explainer = MCCE(lambda frame: frame[names[0]] / 9, (0.5, 1), random_state=0).fit(train)
    path = tmp_path / "report.html"

    declined = train[train[names[0]] < 4].head(3)
    write_report(explainer, explainer.explain(declined), path)

    people = re.findall("<article.*?</article>", path.read_text(encoding="utf-8"), re.S)
    assert max(map(len, people)) < 60_000
    assert read(path).faults == []


def test_only_the_first_people_are_shown_but_all_are_counted(explainer, tmp_path):
    path = tmp_path / "report.html"

    result = explainer.explain(TRAIN.head(20))
    n_declined = (result.people["status"] != "already desired").sum()

    write_report(explainer, result, path, max_people=4)

    page = read(path)
    assert page.count("article") == 4
    assert f"The first 4 of {n_declined} people are shown one by one" in page.text
    assert "20 people" in page.text


def test_the_page_is_in_the_language_of_the_labels(explainer, tmp_path):
    path = tmp_path / "report.html"

    write_report(explainer, explainer.explain(TRAIN.head(1)), path, {"language": "de"})

    page = read(path)
    assert page.elements[0] == ("html", {"lang": "de"})
    assert "Für wen kein Plan gefunden wurde" in page.text


@pytest.mark.parametrize("row", [None, 199], ids=["nobody", "already"])
def test_a_report_may_be_about_nobody_who_is_declined(explainer, row, tmp_path):
    path, rows = tmp_path / "report.html", [] if row is None else [row]

    write_report(explainer, explainer.explain(TRAIN.iloc[rows]), path)

    page = read(path)
    assert page.faults == []
    assert page.count("article") == 0


def test_groups_are_chosen_or_named(explainer, tmp_path):
    result, path = explainer.explain(TRAIN.head(20)), tmp_path / "report.html"
    texts = {}
    for name, options in {"chosen": {}, "named": {"groups": ["salary"]}}.items():
        write_report(explainer, result, path, max_people=1, **options)
        texts[name] = read(path).text

    assert "age: what it would have taken" in texts["chosen"]
    assert "sex: what it would have taken" in texts["chosen"]
    assert "salary: what it would have taken" in texts["named"]
    least = TRAIN["salary"].head(20).min()
    assert re.search(rf"{least} to \d+", texts["named"])  # the first quarter
    assert "age: what it would have taken" not in texts["named"]


def test_groups_are_those_nobody_can_act_on_and_small_ones_are_not_shown(tmp_path):
    path, people = tmp_path / "report.html", TRAIN.head(22).assign(sex=["f"] * 20 + ["m"] * 2)
    explainer = make_explainer(roles={"sex": "past", "salary": "action"})

    write_report(explainer, explainer.explain(people), path)

    text = read(path).text
    assert "sex: what it would have taken" in text
    assert "age: what it would have taken" not in text
    assert re.search(r"\bm\s*fewer than 5\s", text)


def test_decisions_have_the_words_of_the_labels(tmp_path):
    train = pd.DataFrame({"calls": [*range(10)] * 10, "fee": [20, 30] * 50})
    words = {"decision": {"yes": "stays", "no": "leaves"}}

    class Churn:
        classes_ = np.array(["leaves", "stays"])

        def predict(self, frame):
            return np.where(frame["calls"] > 4, "leaves", "stays")

    explainer = MCCE(Churn(), "stays", random_state=0).fit(train)
    result = explainer.explain(train.head(10))
    texts = {}
    for name, labels in (("named", words), ("label", None)):
        write_report(explainer, result, tmp_path / name, labels)
        texts[name] = read(tmp_path / name).text

    assert "5 leaves, with a plan" in texts["named"]
    assert "not “stays”, with a plan" in texts["label"]
    assert "1 stands for “stays”, 0 for not “stays”" in texts["label"]
    assert not any(word in text for text in texts.values() for word in ("declined", "accepted"))


@pytest.mark.slow
def test_frames_of_other_kinds_and_labels_that_repeat(explainer, tmp_path):
    pl = pytest.importorskip("polars")
    same = TRAIN.iloc[[0, 3]].set_axis([1, 1])
    write_report(explainer, explainer.explain(same), tmp_path / "same.html")
    train = pl.from_pandas(TRAIN.astype({"housing": str}))
    other = MCCE(
        lambda frame: frame["salary"].to_numpy() / 1_000,
        (0.7, 2.0),
        random_state=0,
        mutable=["salary"],
    ).fit(train)
    write_report(other, other.explain(train.head(2)), tmp_path / "polars.html")

    for name in ("same.html", "polars.html"):
        assert read(tmp_path / name).count("article") > 0


def test_wrong_arguments_are_named_and_nothing_is_written(explainer, tmp_path):
    result, path = explainer.explain(TRAIN.head(2)), tmp_path / "report.html"
    options = [
        ({"n_answers": 0}, "n_answers"),
        ({"max_people": 0}, "max_people"),
        ({"names": ["one"]}, "names must have one name for each of 2 people"),
        ({"title": 7}, "title must be a text"),
        ({"labels": {"nonsense": 1}}, "has no key"),
        ({"groups": ["sxe"]}, "groups must be columns of the people"),
    ]
    for given, message in options:
        with pytest.raises((ParameterError, LabelsError), match=message):
            write_report(explainer, result, path, **given)
    with pytest.raises(ParameterError, match="explainer must be an MCCE"):
        write_report(None, result, path)
    with pytest.raises(ParameterError, match="result must be what explain returned"):
        write_report(explainer, None, path)
    with pytest.raises(WriteError, match="Cannot write to"):
        write_report(explainer, result, tmp_path / "absent" / "report.html")

    assert not path.exists()


def test_a_missing_library_is_named(explainer, tmp_path, monkeypatch):
    result = explainer.explain(TRAIN.head(2))
    for name in [name for name in sys.modules if name.split(".")[0] == "jinja2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(MissingExtraError, match=r"\.\[report\]"):
        write_report(explainer, result, tmp_path / "report.html")


def test_only_relations_that_answers_keep_are_listed(tmp_path):
    train = TRAIN.assign(total=TRAIN["salary"] * 2 + TRAIN["age"])
    explainer = MCCE(score, (0.7, 2.0), immutable=["age", "sex"], search="balanced", random_state=0)
    explainer.fit(train)
    names = explainer.relations_.loc[explainer.relations_["enforced"], "relation"].tolist()
    assert names
    pages = {}

    for ignored in (False, names):
        explainer.set_params(ignore_relations=ignored)
        path = tmp_path / "report.html"
        write_report(explainer, explainer.explain(train.head(1)), path)
        pages[bool(ignored)] = read(path).text

    assert all(name in pages[False] for name in names)
    assert "Relations that plans keep" in pages[False]
    assert "Relations that plans keep" not in pages[True]
