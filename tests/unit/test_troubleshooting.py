"""docs/troubleshooting.md and docs/how-to/secure-state.md quote messages as the code has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for folder in ("eos", "statestore") for path in (ROOT / folder).rglob("*.py")]
JAVA = (ROOT / "statestore" / "java" / "src" / "main").rglob("*.java")


def quoted(page: str, heading: str) -> list[str]:
    """Return the messages in the first column of the tables after a heading of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(heading)[2]
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


QUOTED = quoted("troubleshooting.md", "# Troubleshooting") + quoted("how-to/secure-state.md", "## Errors")


@pytest.fixture(scope="module")
def code() -> str:
    """All code; texts that stand on several lines are put together."""
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in (*SOURCES, *JAVA)))


def test_the_pages_quote_messages() -> None:
    assert len(QUOTED) == 29 + 10


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_message_is_in_the_code(text: str, code: str) -> None:
    assert text in code
