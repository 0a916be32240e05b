"""docs/troubleshooting.md quotes messages as the code has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for folder in ("eos", "statestore") for path in (ROOT / folder).rglob("*.py")]
JAVA = (ROOT / "statestore" / "java" / "src" / "main").rglob("*.java")
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
CELLS = [
    cell for cell in re.findall(r"^\|([^|]*)\|", PAGE, re.MULTILINE) if cell.strip() not in ("message contains", "---")
]
"""The first cell of each row of the tables."""
QUOTED = [text for cell in CELLS for text in re.findall(r"^ `([^`]+)` $", cell)]


@pytest.fixture(scope="module")
def code() -> str:
    """All code; texts that stand on several lines are put together."""
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in (*SOURCES, *JAVA)))


def test_each_row_quotes_a_message() -> None:
    assert len(QUOTED) == len(CELLS) == 60


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_message_is_in_the_code(text: str, code: str) -> None:
    assert text in code
