"""The rules that tell which entries are visible: the one list, for the model and for docs/models.md."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Rule(Enum):
    """One rule each. The value is a sentence that is true of `eos.history.visibility`."""

    AFTER = "Only a marker after an entry tells of it"
    FIRST = "Of several markers of its transaction the first one tells"
    LATER = "Markers count up to a last confirmed entry that was taken after the end of the range"
    HIDDEN = "An entry without a marker up to there is not visible"


ALL: Final = frozenset(Rule)
