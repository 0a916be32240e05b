"""A hook of mkdocs: links out of docs/, to the source, become plain words in the site, which has no source.

The words of this project in docs/glossary.md show their meaning where the mouse rests on them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_OWN_WORDS = re.compile(r"^## This project$(.*)", re.MULTILINE | re.DOTALL)
_TERM = re.compile(r"^- \*\*([^*]+)\*\*: (.*)$", re.MULTILINE)
_PLAIN = ("*[fault]", "*[owner]", "*[package]", "*[drill]")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page without links out of docs/. Links to a heading of the page stay."""
    folder = Path(page.file.abs_src_path).parent
    docs = Path(page.file.abs_src_path[: -len(page.file.src_path)])

    def kept(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(docs.resolve()) else link[1]

    return _LINK.sub(kept, markdown) + ("" if page.file.src_path == "glossary.md" else meanings(docs / "glossary.md"))


def meanings(glossary: Path) -> str:
    """Return the words of this project as abbreviations of Markdown; words of everyday English are left out."""
    own = _OWN_WORDS.search(glossary.read_text(encoding="utf-8"))
    terms = _TERM.findall(own[1]) if own else []
    lines = [f"*[{term.lower()}]: {' '.join(meaning.replace('*', '').split())}" for term, meaning in terms]
    return "\n\n" + "\n".join(one for one in lines if not one.startswith(_PLAIN)) + "\n"
