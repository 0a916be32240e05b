"""docs/troubleshooting.md quotes messages as the code has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUOTED = re.findall(
    r"^\| `([^`]+)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
)
SOURCES = [path for folder in ("eos", "statestore") for path in (ROOT / folder).rglob("*.py")]


@pytest.fixture(scope="module")
def code() -> str:
    """All code; texts that stand on several lines are put together."""
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in SOURCES))


def test_the_page_quotes_messages() -> None:
    assert len(QUOTED) == 28


@pytest.mark.parametrize("text", QUOTED)
def test_a_quoted_message_is_in_the_code(text: str, code: str) -> None:
    assert text in code
