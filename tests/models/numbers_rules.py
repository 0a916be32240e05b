"""The rules of `guarantee="deduplicated"`: the one list, for the model and for docs/models.md."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Rule(Enum):
    """One rule each. The value is a sentence that is true of the protocol."""

    NOTE = "The checkpoint says that a batch is begun before anything of it is sent"
    AWAIT = "A replay looks at the topics only when no producer of an earlier try is connected"
    COMPARE = "What is stored must be what the replay begins with, for each writer, before anything is sent"
    KEEP = "What was compared is what is sent: the rows are not computed again"
    NEWEST = "A writer sends only where the newest number of its name is that of the last row that was found"
    DROPPED = "A row that the broker drops as a duplicate ends the try"
    PROVEN = "A batch of which rows may be deleted is refused"


ALL: Final = frozenset(Rule)

BACKED_BY: Final[dict[Rule, Rule]] = {Rule.NEWEST: Rule.DROPPED, Rule.DROPPED: Rule.NEWEST}
"""Rules that another one makes superfluous in the model: their absence is found only where that one is absent too.

NEWEST tells it before anything is sent, and by the name of the one who is in the way; DROPPED afterwards.
"""
