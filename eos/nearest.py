"""The known word that was probably meant, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from eos.option_names import spelling_key

_SHORT = 5


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known word, whatever its spelling, or an empty string."""
    least = 0.6 if len(word) <= _SHORT else 0.75  # one wrong letter is a larger part of a short word
    by_key = {spelling_key(name): name for name in reversed(list(known))}
    close = difflib.get_close_matches(spelling_key(word), list(by_key), n=1, cutoff=least)
    return f" Did you mean {by_key[close[0]]!r}?" if close else ""
