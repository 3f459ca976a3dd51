"""Privacy audits as pictures and pages: words, languages, and nothing from elsewhere."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, MissingExtraError, ParameterError, privacy
from mcce.report import languages, plots, write_privacy_report, write_report
from mcce.report.plots.privacy import roc
from report_pages import Page

pytest.importorskip("jinja2")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


PEOPLE = pd.DataFrame(
    {
        "income": np.random.default_rng(0).normal(50, 9, 360),
        "age": np.random.default_rng(1).integers(20, 70, 360),
        "job": np.random.default_rng(2).choice(list("abc"), 360),
    }
)
PARTS = PEOPLE[:120], PEOPLE[120:240], PEOPLE[240:]


@pytest.fixture(scope="module")
def copied():
    known = {"immutable": ["age"], "quasi_identifiers": ["age", "job"]}
    return privacy.audit_rows(PARTS[0], *PARTS, **known)


@pytest.fixture(scope="module")
def fresh():
    return privacy.audit_rows(PARTS[2], *PARTS)


@pytest.mark.parametrize("language", languages())
def test_the_page_is_valid_and_in_its_language(copied, language, tmp_path):
    path = tmp_path / "privacy.html"

    write_privacy_report(copied, path, {"language": language}, title="Our <bank>")

    content = path.read_text(encoding="utf-8")
    page = Page(content)
    assert page.faults == []
    assert page.elements[0] == ("html", {"lang": language})
    assert "Our <bank>" in page.text
    found = {"en": "A leak was found.", "de": "Ein Leck wurde", "nb": "En lekkasje ble funnet."}
    assert found[language] in page.text
    assert page.count("table") == 3
    assert page.count("tr") == len(copied.figures) + 3
    assert page.count("img") == 2
    assert all(page.attributes("alt"))
    assert page.count("script") == 0
    assert not re.search(r"(?:src|href|srcset)=\"(?!data:)", content)


@pytest.mark.parametrize("language", languages())
def test_the_page_says_that_the_outcome_is_the_worst_of_many(copied, fresh, language, tmp_path):
    path = tmp_path / "privacy.html"
    worst = {"en": "not corrected for how many", "de": "ohne Korrektur", "nb": "uten korreksjon"}

    for found in (copied, fresh):
        write_privacy_report(found, path, {"language": language})
        assert worst[language] in Page(path.read_text(encoding="utf-8")).text

    n_judged = sum(figure.finding != "unknown" for figure in copied.figures)
    assert f"the worst of {n_judged} figures" in copied.summary()


def test_an_audit_without_linkage_has_no_such_part(fresh, tmp_path):
    path = tmp_path / "privacy.html"

    write_privacy_report(fresh, path)

    page = Page(path.read_text(encoding="utf-8"))
    assert page.count("table") == 2
    assert "Who fits a released row?" not in page.text
    assert "What an audit cannot show" in page.text


def test_the_same_audit_gives_the_same_bytes(fresh, tmp_path):
    for name in ("first.html", "second.html"):
        write_privacy_report(fresh, tmp_path / name)

    first, second = ((tmp_path / name).read_bytes() for name in ("first.html", "second.html"))
    assert first == second


def test_a_report_shows_an_audit_where_there_is_one(fresh, tmp_path):
    explainer = MCCE(lambda frame: frame["income"], (60, 999), random_state=0).fit(PARTS[0])
    result = explainer.explain(PARTS[2].head(3))

    write_report(explainer, result, tmp_path / "with.html", privacy=fresh)
    write_report(explainer, result, tmp_path / "without.html")

    shown, plain = (
        Page((tmp_path / name).read_text(encoding="utf-8"))
        for name in ("with.html", "without.html")
    )
    assert shown.faults == []
    assert "#privacy" in shown.attributes("href")
    assert "Who was in the training data?" in shown.text
    assert "#privacy" not in plain.attributes("href")
    with pytest.raises(ParameterError, match=r"privacy must be what mcce\.privacy\.audit returned"):
        write_report(explainer, result, tmp_path / "with.html", privacy="audit")


def test_curves_of_membership_end_in_the_corner(copied):
    axes = plots.plot_membership(copied)

    lines = axes.get_lines()
    assert len(lines) == 4
    for line in lines[1:]:
        assert line.get_xdata()[-1] == line.get_ydata()[-1] == 1.0
        assert (np.diff(line.get_ydata()) >= 0).all()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    # All members are found before the first false alarm.
    alarms, found = roc(*copied.scores["distance"])
    assert found[alarms == 0].max() > 0.98


def test_histograms_hold_every_row(copied, fresh):
    for audit in (copied, fresh):
        axes = plots.plot_closest_records(audit, labels={"language": "de"})

        assert sum(bar.get_height() for bar in axes.patches[:30]) == pytest.approx(1)
        assert axes.get_legend().get_texts()[0].get_text() == "zum Training"


def test_colours_follow_the_background(fresh):
    with plt.style.context("dark_background"):
        dark = plots.plot_membership(fresh).get_lines()[1].get_color()
    light = plots.plot_membership(fresh).get_lines()[1].get_color()

    assert (light, dark) == ("#0072b2", "#56b4e9")


@pytest.mark.parametrize("draw", [plots.plot_membership, plots.plot_closest_records])
def test_only_audits_are_drawn(draw):
    with pytest.raises(ParameterError, match=r"audit must be what mcce\.privacy\.audit returned"):
        draw(PEOPLE)


def test_wrong_arguments_of_a_page_are_named(fresh, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="audit must be what"):
        write_privacy_report(PEOPLE, tmp_path / "privacy.html")
    with pytest.raises(ParameterError, match="title must be a text or None, got 3"):
        write_privacy_report(fresh, tmp_path / "privacy.html", title=3)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="Jinja2"):
        write_privacy_report(fresh, tmp_path / "privacy.html")
