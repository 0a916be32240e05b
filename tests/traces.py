"""Stack traces of libraries on a user's screen."""

from __future__ import annotations

_OF_JAVA, _OF_PYTHON = "\tat ", "Traceback (most recent call last)"


def traces(text: str) -> list[str]:
    """Return the lines of a command's output that are of a stack trace."""
    return [line for line in text.splitlines() if line.startswith(_OF_JAVA) or _OF_PYTHON in line]
