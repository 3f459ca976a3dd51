"""The files of the page: no markup from data, nothing inline, nothing foreign, all words."""

from __future__ import annotations

import re
from importlib.resources import files


def page_files(ending):
    """The texts of the page's files of a kind, by their names."""
    found, folders = {}, [files("mcce.serve").joinpath("page")]
    while folders:
        for one in folders.pop().iterdir():
            if one.is_dir():
                folders.append(one)
            elif one.name.endswith(ending):
                found[one.name] = one.read_text(encoding="utf-8")
    assert found
    return found


def test_scripts_make_no_markup_and_no_code_from_text():
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\("
    forbidden += r"|srcdoc|DOMParser|createContextualFragment|https?://(?!www\.w3\.org)"

    found = {name: re.findall(forbidden, text) for name, text in page_files(".js").items()}

    assert [name for name, words in found.items() if words] == []


def test_the_page_holds_nothing_inline_and_nothing_foreign():
    for text in page_files(".html").values():
        assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|<script(?![^>]*\bsrc=)", text)
    for text in page_files(".css").values():
        assert not re.search(r"@import|https?:|url\(\W*//", text)


def test_every_word_that_scripts_say_is_in_the_messages(client):
    words = {code: client.get(f"/messages/{code}").json() for code in ("en", "nb", "de")}
    text = "".join(page_files(".js").values())
    said = set(re.findall(r'\bsay\("(\w+)"', text))
    counted = set(re.findall(r'\bcount\("(\w+)"', text))
    searches = {f"search_{name}" for name in client.get("/schema").json()["searches"]}

    expected = said | counted | {f"{key}_one" for key in counted} | searches
    assert len(said) > 50
    for known in words.values():
        assert expected <= known.keys()
