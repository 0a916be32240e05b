"""A hook of mkdocs: links out of docs/, to the source, become plain words in the site, which has no source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s:]+?)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page without links to files that are not pages."""
    folder = Path(page.file.abs_src_path).parent
    docs = Path(page.file.abs_src_path[: -len(page.file.src_path)])

    def kept(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(docs.resolve()) and target.suffix in (".md", ".svg") else link[1]

    return _LINK.sub(kept, markdown)
