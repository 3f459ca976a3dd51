"""Every page of the repository: its links lead somewhere, and its examples run.

Pages are found, not listed, so they can be renamed freely.
"""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", ".github/**/*.md")
    for page in ROOT.glob(pattern)
    if "generated" not in page.parts
)
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


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_internal_link_of_a_page_leads_somewhere(page):
    text = without_code(page.read_text(encoding="utf-8"))
    targets = [
        match["target"] for kind in (LINK, REFERENCE, HTML_LINK) for match in kind.finditer(text)
    ]

    reasons = [reason for target in targets if (reason := broken(page, target))]

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


WITH_EXAMPLES = [page for page in PAGES if any(examples_by_block(page))]


def assert_examples_pass(examples, page):
    """Run examples in one namespace; fail with the output of doctest."""
    text = page.read_text(encoding="utf-8")
    test = doctest.DocTest(examples, {}, named(page), str(page), 0, text)
    failures = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=named)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may save files
    ready, absent = [], []
    for examples in examples_by_block(page):
        if absent := absent_packages(examples):
            break
        ready += examples

    assert_examples_pass(ready, page)

    if absent:
        pytest.skip(f"the rest of the page needs {', '.join(absent)}, which is not installed")


@pytest.mark.parametrize("kind", ["example", "output"])
def test_a_page_that_is_wrong_is_noticed(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    wrong = {"example": ">>> 1 / 0\n", "output": ">>> 1 + 1\n3\n"}[kind]
    page.write_text(f"# A page\n\n```python\n{wrong}\n```\n", encoding="utf-8")

    (examples,) = examples_by_block(page)

    with pytest.raises(AssertionError, match=r"page\.md"):
        assert_examples_pass(examples, page)


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## `f(x)`, explained\n", encoding="utf-8")

    assert broken(page, "#fx-explained") is None
    assert broken(page, "page.md#a-page") is None
    assert broken(page, "https://example.org/absent") is None
    assert broken(page, "#absent") == "#absent: no such heading"
    assert broken(page, "absent.md") == "absent.md: no such file"
