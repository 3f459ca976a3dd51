"""Reports: who and what is in them, that they are valid, and that nothing in data does harm."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, MissingExtraError, ParameterError
from mcce.constraints import frozen, max_changes
from mcce.datasets import load_german_credit
from mcce.errors import LabelsError, WriteError
from mcce.report import Labels, languages, write_letters, write_report
from report_pages import Page

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
    people = TRAIN.iloc[[0, 3, 120, 150, 199]]
    result = explainer.explain(people, constraints=frozen("salary", where="sex == 'm'"))
    path = tmp_path_factory.mktemp("report") / "report.html"
    more = frozen("salary", where="sex == 'm'")
    write_report(explainer, result, path, constraints=more, title="A bank", card="Made up.")
    return explainer, result, path


def test_the_page_is_valid_and_everybody_is_there(made):
    _, result, path = made

    page = read(path)

    assert page.faults == []
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert [i for i in ids if i.startswith("person-")] == [f"person-{at}" for at in range(5)]
    links = [target for target in page.attributes("href") if target != "#"]
    assert all(target.removeprefix("#") in ids for target in links)
    assert all(f"Person {label}" in page.text for label in result.people.index)
    shown = [status.replace("_", " ") for status in page.attributes("data-status")]
    assert shown == result.people["status"].tolist()


def test_nothing_is_loaded_from_elsewhere(made):
    content = made[2].read_text(encoding="utf-8")
    page = Page(content)

    targets = [*page.attributes("src"), *page.attributes("srcset"), *page.attributes("href")]
    assert all(target.startswith(("data:image/svg+xml;base64,", "#")) for target in targets)
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
            assert given["scope"] in ("col", "row")
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
        text = Page(person(content, at)).text
        assert letters.people["text"].loc[label] in text
        mine = changes[changes["factual"] == label]
        assert all(name in text for name in mine["feature"])
        assert text.count("Answer ") >= row["n_counterfactuals"]
        assert row["reason"] in text
        assert "Held fixed" in text
        assert f"explainer.explain(people.iloc[[{at}]])" in text
        assert "seed 0" in text
    held = Page(person(content, 1)).text.split("Held fixed")[1].split("Could change")[0]
    assert "housing" in held  # this person is older than 50
    assert "salary" in held  # and a man


def test_the_run_is_described(made):
    text = read(made[2]).text

    assert "A bank" in text
    assert "Made up." in text
    assert "max_changes(n=1)" in text
    assert "frozen('salary', where=\"sex == 'm'\")" in text
    assert "balanced" in text
    for heading in ("Summary", "What changes most often", "Cost by group", "How to read"):
        assert heading in text


def test_a_report_scores_no_row_that_letters_and_robustness_do_not(tmp_path):
    n_scored = []

    def counting(frame):
        n_scored.append(len(frame))
        return score(frame)

    explainer = MCCE(counting, (0.7, 2.0), immutable=["age", "sex"], random_state=0).fit(TRAIN)
    result = explainer.explain(TRAIN.head(20))
    n_scored.clear()
    write_letters(explainer, result, ranges=True)
    explainer.robustness(result)
    n_needed = sum(n_scored)
    n_scored.clear()

    write_report(explainer, result, tmp_path / "report.html")

    assert sum(n_scored) == n_needed


def test_the_same_answers_give_the_same_bytes(made, tmp_path):
    explainer, result, path = made
    more = frozen("salary", where="sex == 'm'")

    again = tmp_path / "again.html"
    write_report(explainer, result, again, constraints=more, title="A bank", card="Made up.")

    assert again.read_bytes() == path.read_bytes()


def test_a_fingerprint_is_the_same_alone_and_among_others(tmp_path):
    explainer, people = make_explainer(), TRAIN.iloc[[0, 3, 60]]
    write_report(explainer, explainer.explain(people), tmp_path / "all.html")
    write_report(explainer, explainer.explain(people.iloc[[1]]), tmp_path / "one.html")

    found = [
        re.findall(r"Fingerprint <code>(\w{16})</code>", (tmp_path / name).read_text("utf-8"))
        for name in ("all.html", "one.html")
    ]

    assert len(set(found[0])) == 3
    assert found[1] == [found[0][1]]


HOSTILE = [
    "<script>alert(1)</script>",
    "</style></script><img src=x onerror=alert(1)>",
    "\"quoted\" 'twice' & so on &lt;b&gt;",
    "{{ 7 * 7 }} {% raw %} {0.__class__} {after}",
    "a\nb\r\nc\td\x1b[31m\x00\u202e",
    "$x^2$ \\frac{1}{2} %s",
    "long" * 2_500,
    "javascript:alert(1)",
]


@pytest.mark.parametrize("nasty", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_does_no_harm_in_any_place(nasty, tmp_path):
    train = pd.DataFrame(
        {
            nasty: [nasty, "fine", "other"] * 40,
            "x": list(range(12)) * 10,
            "fixed": [nasty, "plain"] * 60,
        }
    )
    explainer = MCCE(lambda frame: (frame[nasty] == nasty) * 1.0, (0.5, 1), immutable=["fixed"])
    explainer.set_params(random_state=0, constraints=[frozen(nasty, where="x == 3")]).fit(train)
    people = train.iloc[[1, 2, 4, 3]].set_axis([nasty, nasty, 7, "z"])
    labels = None
    # Braces and brackets mean something in texts of labels, and are refused elsewhere.
    if not set("{[") & set(nasty) and len(nasty) < 400:
        label = {"name": nasty, "reason": nasty}
        labels = {"decision": {"would": nasty}, "features": {nasty: label, "x": label}}
    result = explainer.explain(people)
    usual, path = tmp_path / "usual.html", tmp_path / "nasty.html"

    write_report(explainer, result, usual)
    write_report(explainer, result, path, labels, title=nasty, card=nasty, names=[nasty] * 4)

    content = path.read_text(encoding="utf-8")
    page = Page(content)
    assert page.faults == []
    assert page.count("script") == page.count("style") == 1
    # Only the card may have added an element.
    assert 0 <= len(page.elements) - len(read(usual).elements) <= 1
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    assert all(h.startswith("#") for h in page.attributes("href"))
    assert len(content) < 1_000_000
    assert not re.search("[\x00\x1b\u202e]", content)
    if nasty.isprintable() and len(nasty) < 40:
        assert nasty in page.text


@pytest.mark.slow
def test_a_thousand_people_fit_15_megabytes(tmp_path):
    german = load_german_credit()

    def risk(frame):
        return 1 / (1 + np.exp(0.06 * frame["Duration"].to_numpy(float) - 1.5))

    explainer = MCCE(risk, (0.6, 1), immutable=german.immutable, search="balanced")
    explainer.set_params(n_counterfactuals=3, random_state=0).fit(german.features)
    path = tmp_path / "report.html"

    write_report(explainer, explainer.explain(german.features), path, Labels.bundled("german"))

    page = read(path)
    assert page.faults == []
    assert page.count("article") == 1_000
    assert path.stat().st_size < 15e6


def test_wide_tables_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr("mcce.report.html.people.MOST_CELLS", 0)
    monkeypatch.setattr("mcce.report.html.people.MOST_CHANGES", 0)
    rng = np.random.default_rng(0)
    names = [f"column_{at}_{'x' * 60}" for at in range(60)]
    train = pd.DataFrame(rng.integers(0, 9, (200, 60)), columns=names)
    explainer = MCCE(lambda frame: frame[names[0]] / 9, (0.5, 1), random_state=0).fit(train)
    path = tmp_path / "report.html"

    write_report(explainer, explainer.explain(train.head(10)), path)

    page = read(path)
    people = re.findall("<article.*?</article>", path.read_text(encoding="utf-8"), re.S)
    assert max(map(len, people)) < 15_000
    assert re.search(r"\d+ further changes are not shown", page.text)
    assert re.search(r"\d+ further features are not shown", page.text)


def test_one_feature_that_is_left_out_is_said_in_the_singular(tmp_path, monkeypatch):
    monkeypatch.setattr("mcce.report.html.people.MOST_CELLS", 0)
    monkeypatch.setattr("mcce.report.html.people.LEAST_CELLS", 2)
    explainer, path = make_explainer(), tmp_path / "report.html"

    write_report(explainer, explainer.explain(TRAIN.iloc[[0]]), path)

    assert "1 further feature is not shown." in read(path).text


def test_only_the_first_people_are_shown_but_all_are_counted(tmp_path):
    explainer = make_explainer()
    path = tmp_path / "report.html"

    write_report(explainer, explainer.explain(TRAIN.head(30)), path, max_people=4)

    page = read(path)
    assert page.count("article") == 4
    assert "The first 4 of 30 people are shown one by one" in page.text


@pytest.mark.parametrize("language", languages())
def test_the_page_is_in_the_language_of_the_labels(language, tmp_path):
    explainer = make_explainer()
    path = tmp_path / "report.html"

    write_report(explainer, explainer.explain(TRAIN.head(2)), path, {"language": language})

    page = read(path)
    assert page.elements[0] == ("html", {"lang": language})
    heading = {"en": "Who has no answer", "de": "Wer keine Antwort", "nb": "Hvem som ikke har svar"}
    assert heading[language] in page.text


@pytest.mark.parametrize("rows", [[], [199], [0]], ids=["nobody", "already", "one"])
def test_small_reports(rows, tmp_path):
    explainer, path = make_explainer(), tmp_path / "report.html"

    write_report(explainer, explainer.explain(TRAIN.iloc[rows]), path)

    page = read(path)
    assert page.faults == []
    assert page.count("article") == len(rows)


@pytest.mark.slow
def test_groups_are_chosen_or_named(tmp_path):
    explainer, path = make_explainer(), tmp_path / "report.html"
    result = explainer.explain(TRAIN.head(60))

    write_report(explainer, result, path)
    chosen = read(path).text
    write_report(explainer, result, path, groups=["salary"])
    named = read(path).text
    write_report(explainer, result, path, groups=[])
    none = read(path).text

    assert "age: cost by group" in chosen
    assert "sex: cost by group" in chosen
    assert "salary: cost by group" in named
    least = TRAIN["salary"].head(60).min()
    assert re.search(rf"{least} to \d+", named)  # the first quarter
    assert "cost by group" not in none
    with pytest.raises(ParameterError, match="groups must be columns of the people"):
        write_report(explainer, result, path, groups=["sxe"])


def test_frames_of_other_kinds_and_labels_that_repeat(tmp_path):
    pl = pytest.importorskip("polars")
    people = TRAIN.iloc[[0, 3, 7]]
    explainer = make_explainer()
    write_report(explainer, explainer.explain(people.set_axis([1, 1, 1])), tmp_path / "same.html")
    train = pl.from_pandas(TRAIN.astype({"housing": str}))
    other = MCCE(
        lambda frame: frame["salary"].to_numpy() / 1_000,
        (0.7, 2.0),
        random_state=0,
        mutable=["salary"],
    ).fit(train)
    write_report(other, other.explain(train.head(3)), tmp_path / "polars.html")

    for name in ("same.html", "polars.html"):
        assert read(tmp_path / name).count("article") == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_answers": 0}, ParameterError, "n_answers"),
        ({"max_people": 0}, ParameterError, "max_people"),
        ({"names": ["one"]}, ParameterError, "names must have one name for each of 2 people"),
        ({"title": 7}, ParameterError, "title must be a text"),
        ({"labels": {"nonsense": 1}}, LabelsError, "has no key"),
    ],
)
def test_wrong_options(options, error, message, tmp_path):
    explainer = make_explainer()
    result, path = explainer.explain(TRAIN.head(2)), tmp_path / "report.html"

    with pytest.raises(error, match=message):
        write_report(explainer, result, path, **options)

    assert not path.exists()


def test_wrong_arguments_and_a_folder_that_is_not_there(tmp_path):
    explainer = make_explainer()
    result = explainer.explain(TRAIN.head(2))

    with pytest.raises(ParameterError, match="explainer must be an MCCE"):
        write_report(None, result, tmp_path / "report.html")
    with pytest.raises(ParameterError, match="result must be what explain returned"):
        write_report(explainer, None, tmp_path / "report.html")
    with pytest.raises(WriteError, match="Cannot write to"):
        write_report(explainer, result, tmp_path / "absent" / "report.html")


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_a_missing_library_is_named(library, tmp_path, monkeypatch):
    explainer = make_explainer()
    result = explainer.explain(TRAIN.head(2))
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtraError, match=r"mcce\[report\]"):
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
        write_report(explainer, explainer.explain(train.head(3)), path)
        pages[bool(ignored)] = read(path).text

    assert all(name in pages[False] for name in names)
    assert "Relations that answers keep" in pages[False]
    assert "Relations that answers keep" not in pages[True]
