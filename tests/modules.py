"""Which modules have a piece of text: for rules that hold of all code but that of one place."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def modules_with(pattern: str, *folders: str) -> set[str]:
    """Return the modules below these folders, as paths from the project's root, in which the pattern is found."""
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }
