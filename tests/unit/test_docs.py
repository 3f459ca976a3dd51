"""Every page of the repository: its links lead somewhere, its examples run.

Pages are found, not listed, so they can be renamed freely.
"""

from __future__ import annotations

import doctest
import re
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", ".github/**/*.md")
    for page in ROOT.glob(pattern)
    if "generated" not in page.parts
)
# Pages whose examples take seconds.
SLOW = {"README.md", "baselines.md", "getting_started.md", "ranges.md"}
FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})(?P<kind>[^\n]*)\n", re.MULTILINE)
LINK = re.compile(r"\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^\[[^\]]+\]: +(?P<target>\S+)", re.MULTILINE)
HTML_LINK = re.compile(r"<(?:a|img)\s[^>]*?(?:href|src)=\"(?P<target>[^\"]+)\"")
HTML_ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")


def named(page):
    return page.relative_to(ROOT).as_posix()


def without_code(text):
    """The text between fenced blocks, without inline code."""
    prose, position = [], 0
    while opening := FENCE.search(text, position):
        prose.append(text[position : opening.start()])
        closing = re.compile(rf"^{re.escape(opening['fence'])}\s*$", re.MULTILINE)
        end = closing.search(text, opening.end())
        position = end.end() if end else len(text)
    prose.append(text[position:])
    return re.sub(r"`[^`\n]+`", "", "".join(prose))


def anchors(page):
    """What a link into a page may name: its headings, as GitHub does, and HTML anchors."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#{1,6} +(.+?) *#*$", re.sub(r"(?ms)^```.*?^```$", "", text), re.M)
    found, times = set(HTML_ANCHOR.findall(text)), {}
    for heading in headings:
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        times[slug] = times.get(slug, -1) + 1
        found.add(f"{slug}-{times[slug]}" if times[slug] else slug)
    return found


def shown_on(page):
    """The page itself, and the file of the root that it shows in full, if it does."""
    includes = re.findall(r"^```\{include\} (\S+)$", page.read_text(encoding="utf-8"), re.M)
    return [page, *((page.parent / include).resolve() for include in includes)]


def broken(page, target):
    """Why a link of a page leads nowhere, or nothing."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.exists():
        return f"{target}: no such file"
    if anchor and there.suffix == ".md":
        known = set().union(*(anchors(shown) for shown in shown_on(there)))
        return None if anchor in known else f"{target}: no such heading"
    return None


def test_every_internal_link_leads_somewhere():
    reasons = [
        f"{named(page)}: {reason}"
        for page in PAGES
        for kind in (LINK, REFERENCE, HTML_LINK)
        for match in kind.finditer(without_code(page.read_text(encoding="utf-8")))
        if (reason := broken(page, match["target"]))
    ]

    assert reasons == []


def examples_by_block(page):
    """The examples of each block of Python on a page, each knowing its line."""
    text = page.read_text(encoding="utf-8")
    parser = doctest.DocTestParser()
    for block in re.finditer(r"^```(?:python|pycon)\n(.*?)^```$", text, re.M | re.S):
        examples = parser.get_examples(block[1], named(page))
        for example in examples:
            example.lineno += text.count("\n", 0, block.start(1))
        if examples:
            yield examples


def absent_packages(examples):
    """The packages that examples import and that are not installed."""
    source = "".join(example.source for example in examples)
    packages = re.findall(r"^\s*(?:from|import) (\w+)", source, re.M)
    return sorted({package for package in packages if find_spec(package) is None})


def test_the_examples_of_pages_are_found():
    assert sum(len(block) for page in PAGES for block in examples_by_block(page)) > 300


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=named(page), marks=[pytest.mark.slow] * (page.name in SLOW))
        for page in PAGES
    ],
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may save files
    ready, absent = [], []
    for examples in examples_by_block(page):
        if absent := absent_packages(examples):
            break
        ready += examples
    text, failures = page.read_text(encoding="utf-8"), []
    test = doctest.DocTest(ready, {}, named(page), str(page), 0, text)

    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)

    assert not failures, "".join(failures)
    if absent:
        pytest.skip(f"the rest of the page needs {', '.join(absent)}, which is not installed")


def test_the_examples_of_the_guide_for_contributors_pass_their_own_checks(monkeypatch):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### (.+?)$(?:(?!^###).)*?^```python\n(.*?)^```$", text, re.M | re.S)

    for _, code in sections:
        module = types.ModuleType("guide")
        monkeypatch.setitem(sys.modules, "guide", module)  # so that its classes can be pickled
        exec(compile(code, "guide", "exec"), vars(module))
        assert any(name.startswith("check_") for name in vars(module))
    assert [title for title, _ in sections] == ["A generator", "A distance", "An explainer"]
