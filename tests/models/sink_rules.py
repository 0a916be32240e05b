"""The rules of the commit protocol: the one list, for the model and for the broken variants of the real code.

Each says what is done; the model shows what goes wrong where it isn't. Where the real code keeps a rule is told
step by step in docs/protocol.md.
"""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    """One rule each. The value is a sentence that is true of the protocol."""

    # Whose sink it is
    FENCE = "A driver opens the control topic with fencing, so that no driver before it can write there any more"
    EPOCH = "A driver whose connection broke opens the control topic again with its own epoch, never as if taking over"
    OWNER_READABLE = "A driver trusts the log only once its own OWNER record can be read"
    INTENT = "An INTENT is in the log before any data is written"
    END_LAST_INTENT = "A driver ends the transaction of the last INTENT before it writes"
    ONE_COORDINATOR = "A sink uses one coordinator for ever, whatever their number is"
    FREE = "A driver whose OWNER record stays hidden ends empty transactions on the control topic until it is not"
    PRIME = "The control topic's first transaction is a useless one, so that the topic remembers aborts from then on"

    # The decision about a batch
    REPLAY = "A batch that has a MARKER is skipped"
    STALE = "A batch older than the newest MARKER is never written"
    LOG_DECIDES = "The log alone says how a transaction has ended"

    # User code and failures
    RUN_STOPS = "A run takes no batch after one that failed in it"
    FAILED_NOTED = "A batch that failed is noted in the checkpoint, and a run that begins after it writes nothing"
    HOLE = "A batch after one that was begun and has no MARKER is never written"

    # Writing it
    ADD_DATA = "A partition is added to the transaction before the first send to it"
    RECEIPTS = "A task reports only when each frame has its receipt"
    NO_RESEND = "No frame is sent twice in one transaction"
    CLOSE = "A task reports only when the broker has confirmed the close of its producers"
    ALL_REPORTED = "The commit is asked for only when every task has reported"
    ONCE = "The commit is asked for only when every partition is known to have been run once"

    # Committing it
    ADD_CONTROL = "The control topic is added to the transaction before the MARKER is sent"
    MARKER_INSIDE = "The MARKER is part of the transaction that it speaks of"
    MARKER_RECEIPT = "The commit is asked for only when the MARKER has its receipt"


ALL = frozenset(Rule)
