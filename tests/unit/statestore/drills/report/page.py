"""What a browser would make of a report's HTML, as far as tests ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

EMPTY = {"meta", "link", "br", "img", "rect", "path", "hr", "input"}
INLINE = {"b", "em"}


@dataclass
class Page(HTMLParser):
    """Elements with their attributes in document order, the text outside of <style>, and what is not well nested."""

    html: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    unbalanced: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += "" if tag in INLINE else " "
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in EMPTY:
            return
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.unbalanced.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def words(self) -> str:
        """The text with single blanks."""
        return " ".join(self.text.split())

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.elements if tag in {"h1", "h2", "h3", "h4"}]
