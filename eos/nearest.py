"""The known word that was probably meant, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHORT = 5


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known word, or an empty string."""
    least = 0.6 if len(word) <= _SHORT else 0.75  # one wrong letter is a larger part of a short word
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=least)
    if not close:
        close = [name for name in known if name.lower() == word.lower()]
    return f" Did you mean {close[0]!r}?" if close else ""
