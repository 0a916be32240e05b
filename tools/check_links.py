"""Looks for dead links and missing names in the pages: `python tools/check_links.py`. Exit code 1 when there are any.

With `--site FOLDER` it looks at the built site instead. No page of it may load anything from another place.

Every relative link of the pages at the top, of changes/README.md and of docs/ must lead to a file, and its anchor to a
heading. README and docs/index.md must state the same requirements and limits. Every page of docs/ must be in
mkdocs.yml, every `::: name` of the API reference must be a name of the code, and every public name of the code must
stand there.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
_TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "changes/README.md")
PAGES = [*(ROOT / name for name in _TOP), *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_ELSEWHERE = re.compile(r"(?:https?:)?//")
_IN_STYLE = re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"') ;]+)")


def anchors(page: Path) -> set[str]:
    """Return what a link can name after `#`: the headings in small letters, without signs, blanks as hyphens."""
    plain = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(plain)}


def dead_links(page: Path) -> Iterator[str]:
    """Give the links of a page that lead nowhere."""
    text = _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))
    for link in _LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: {link}: there is no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{page.relative_to(ROOT)}: {link}: there is no such heading"


def missing_names(page: Path) -> Iterator[str]:
    """Give the names of the API reference that the code doesn't have."""
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        if not _exists(name):
            yield f"{page.relative_to(ROOT)}: ::: {name}: the code has no such name"


def untold_names(package: str, page: Path) -> Iterator[str]:
    """Give the public names of a package that a page of the API reference tells neither by name nor with a module."""
    told = re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    modules = [importlib.import_module(name) for name in told if _is_module(name)]
    for name in importlib.import_module(package).__all__:
        if (
            name != "__version__"
            and f"{package}.{name}" not in told
            and not any(hasattr(module, name) for module in modules)
        ):
            yield f"{page.relative_to(ROOT)}: {package}.{name} is public, and not told"


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, AttributeError):
        return False


def _exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return not module or hasattr(importlib.import_module(module), attribute) or bool(importlib.import_module(name))
    except ModuleNotFoundError:
        return False


def pages_out_of_sight() -> Iterator[str]:
    """Give the pages of docs/ that mkdocs.yml doesn't name, and those that it names and docs/ doesn't have."""
    named = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    held = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    for page in sorted(named ^ held):
        yield f"{page}: {'mkdocs.yml does not name it' if page in held else 'there is no such page'}"


def differences_from_readme() -> Iterator[str]:
    """Give a sentence where README and docs/index.md differ in requirements, limits and the choice of an API."""
    start, end = "## Requirements and limits", "<!-- end of what is the same -->"
    readme, index = (
        page.read_text(encoding="utf-8").partition(start)[2].partition(end)[0]
        for page in (ROOT / "README.md", ROOT / "docs" / "index.md")
    )
    if not readme or readme.replace("](docs/", "](") != index:
        yield f"README.md and docs/index.md differ between {start!r} and {end!r}"


class _Loads(HTMLParser):
    """Collects what a page makes a browser fetch from other places. A link that a reader may follow is not a load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            text = (value or "").strip()
            if (tag, name) == ("link", "href") or name in ("src", "data", "poster", "background"):
                self.found += [text] if _ELSEWHERE.match(text) else []
            elif name in ("srcset", "imagesrcset"):
                self.found += [one.split()[0] for one in text.split(",") if _ELSEWHERE.match(one.strip())]
            elif name == "href" and tag in ("image", "use"):  # of SVG
                self.found += [text] if _ELSEWHERE.match(text) else []
            elif name == "class" and "mermaid" in text.split():
                self.found.append("https://unpkg.com/mermaid: the theme fetches it to draw a diagram")


def loads_from_elsewhere(site: Path) -> Iterator[str]:
    """Give what the pages of a built site fetch from other places: scripts, styles, fonts, pictures."""
    for page in sorted([*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]):
        text, loads = page.read_text(encoding="utf-8"), _Loads()
        if page.suffix != ".css":
            loads.feed(text)
        for found in (*loads.found, *(one[1] for one in _IN_STYLE.finditer(text))):
            yield f"{page}: loads {found}"


def undrawn_diagrams(site: Path) -> Iterator[str]:
    """Give the pages of a built site that show a diagram as code."""
    for page in sorted(site.rglob("*.html")):
        if 'class="language-mermaid' in page.read_text(encoding="utf-8"):
            yield f"{page}: shows a diagram as code, which tools/site_diagrams.py must draw"


def main(arguments: list[str]) -> int:
    """Print what is wrong. Returns the exit code."""
    if arguments[:1] == ["--site"]:
        wrong = [*loads_from_elsewhere(Path(arguments[1])), *undrawn_diagrams(Path(arguments[1]))]
    else:
        wrong = [line for page in PAGES for line in (*dead_links(page), *missing_names(page))]
        wrong += [*pages_out_of_sight(), *differences_from_readme()]
        for package in ("eos", "statestore"):
            wrong += untold_names(package, ROOT / "docs" / "reference" / "api" / f"{package}.md")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
