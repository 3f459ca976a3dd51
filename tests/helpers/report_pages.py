"""Reports as a browser reads them: elements, texts, and what is wrong with a page."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "input", "img", "source", "br", "link", "hr"}


class Page(HTMLParser):
    """The elements of a page, checked for balance.

    Attributes
    ----------
    elements
        Tag and attributes of each element.
    texts
        Visible texts, in order.
    faults
        Ends that close another element than the last, and the like.
    """

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(content)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> at line {self.getpos()[0]}")

    def handle_data(self, data):
        if self._open and self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All visible text."""
        return "".join(self.texts)

    def attributes(self, name: str) -> list[str]:
        """All values of an attribute."""
        return [given[name] or "" for _, given in self.elements if name in given]

    def count(self, tag: str) -> int:
        """How many elements have a tag."""
        return sum(found == tag for found, _ in self.elements)
