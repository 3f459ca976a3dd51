"""The files of the page: no markup from data, nothing inline, the colours of reports, all words."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import get_args

import pytest

from mcce.report.html.images import PAPER
from mcce.report.language import find_language
from mcce.report.plots.style import DARK, LIGHT
from mcce.search.config import SearchName

PAGE = files("mcce.serve").joinpath("page")
SCRIPTS = sorted(PAGE.joinpath("js").iterdir(), key=lambda file: file.name)
STYLES = ["colours.css", "style.css", "parts.css", "print.css"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.name)
def test_scripts_make_no_markup_and_no_code_from_text(script):
    text = script.read_text(encoding="utf-8")

    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert word not in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert len(text.splitlines()) < 400


def test_the_page_holds_nothing_inline_and_nothing_foreign():
    text = PAGE.joinpath("index.html").read_text(encoding="utf-8")

    assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|<script(?![^>]*\bsrc=)", text)
    assert re.findall(r'href="static/(\w+\.css)"', text) == STYLES


def test_the_colours_are_those_of_pictures_and_reports():
    colours = PAGE.joinpath("colours.css").read_text(encoding="utf-8")
    report = files("mcce.report.html").joinpath("templates", "report.css").read_text("utf-8")
    light, dark = colours.split("@media screen")

    for part, theme, paper in ((light, LIGHT, PAPER["light"]), (dark, DARK, PAPER["dark"])):
        for name, colour in {**vars(theme), "card": paper}.items():
            assert f"--{name}: {colour};" in part
    for name in ("page", "edge", "yes", "no", "link"):
        found = re.findall(rf"--{name}: (#\w+);", report)
        assert re.findall(rf"--{name}: (#\w+);", colours) == found


def test_every_word_that_scripts_say_is_in_the_messages():
    words = {key for key in find_language("en").messages if key.startswith("page.")}
    text = "".join(script.read_text(encoding="utf-8") for script in SCRIPTS)
    said = set(re.findall(r'\bsay\("(\w+)"', text))
    counted = set(re.findall(r'\bcount\("(\w+)"', text))
    expected = {f"page.{key}" for key in said | counted} | {f"page.{key}_one" for key in counted}

    assert expected <= words


def test_every_search_has_words():
    words = find_language("en").messages

    assert [name for name in get_args(SearchName) if f"page.search_{name}" not in words] == []
