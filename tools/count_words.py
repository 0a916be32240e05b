"""Count the words of the pages: `python tools/count_words.py [--check]`. Words in code and tables count too.

It prints the words of each part of the menu in mkdocs.yml, and those of the reader's path. That path is the README
and the pages that docs/index.md lists under "Path to production". With `--check` it prints the path alone. The exit
code is 1 when the path has more words than it may have.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_ON_THE_PATH = 6_000
_PATH = re.compile(r"^## Path to production\n(.*?)^## ", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r"^\d+\. \[[^\]]+\]\(([^)]+)\)", re.MULTILINE)
_ENTRY = re.compile(r"^( *)- (?:(.+):|(\S+\.md))$", re.MULTILINE)


def path(root: Path = ROOT) -> list[Path]:
    """Return the pages on the way to a job in production, in a reader's order."""
    index = root / "docs" / "index.md"
    listed = _PATH.search(index.read_text(encoding="utf-8"))
    if listed is None:
        raise LookupError(f'{index} has no part "Path to production"')
    return [root / "README.md", *(index.parent / one for one in _STEP.findall(listed[1]))]


def words(page: Path) -> int:
    """Return how many words a page has."""
    return len(page.read_text(encoding="utf-8").split())


def words_by_menu(root: Path = ROOT) -> Counter[str]:
    """Return the words of the pages in each part of the menu, and in each part of a part, by the titles on the way."""
    counted: Counter[str] = Counter()
    titles: list[str] = []
    for indent, title, page in _ENTRY.findall((root / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]):
        titles = titles[: (len(indent) - 2) // 4]
        if title:
            titles.append(title)
            continue
        for depth in range(1, len(titles) + 1):
            counted[" / ".join(titles[:depth])] += words(root / "docs" / page)
        counted["all pages"] += words(root / "docs" / page)
    return counted


def main(arguments: list[str]) -> int:
    """Print the numbers. Returns the exit code."""
    if "--check" not in arguments:
        for name, number in words_by_menu().items():
            print(f"{number:7,}  {name}")
    pages = path()
    for page in pages:
        print(f"{words(page):7,}  path: {page.relative_to(ROOT).as_posix()}")
    total = sum(map(words, pages))
    print(f"{total:7,}  path, of {MOST_ON_THE_PATH:,} words at most")
    return 1 if total > MOST_ON_THE_PATH else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
