"""The steps of an exactly-once micro-batch, in their order. Other guarantees have some of them.

Metrics, the crash matrix of the tests and the chapters of docs/protocol.md all use this list. A step that is not here
cannot be reported. For each step that is here, the crash matrix kills a driver just before it and just after it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Protocol


class Step(StrEnum):
    """One step of the protocol. The value is its name in metrics, docs and crash plans."""

    TAKEOVER = "takeover"  # open the control topic's producer, fencing the former owner
    OWNER = "owner-record"  # write OWNER and wait until it is readable
    OPEN = "open"  # NEW_TXN
    INTENT = "intent"  # write INTENT outside the transaction
    ADD_CONTROL = "add-control"  # ADD_PARTITION_TO_TXN for the control topic
    ADD_PARTITIONS = "add-partitions"  # ADD_PARTITION_TO_TXN for data
    FIRST_SEND = "first-send"  # the first data frame handed to the socket
    ALL_SENT = "all-sent"  # every data frame acknowledged
    CLOSE_PRODUCERS = "close-producers"  # a task's producers closed, and confirmed by the broker; the driver's put by
    MARKER = "marker"  # write MARKER inside the transaction, acknowledged
    END_SENT = "end-sent"  # END_TXN(commit) handed to the socket
    END_ANSWERED = "end-answered"  # the coordinator's answer to it
    RETURN = "return"  # control goes back to Spark, which writes its own commit


WRITER_STEPS = (Step.ADD_PARTITIONS, Step.FIRST_SEND, Step.ALL_SENT, Step.CLOSE_PRODUCERS)
"""The steps that each task takes for itself when a batch is large. The driver takes all others."""

PLAIN_STEPS = (Step.FIRST_SEND, Step.ALL_SENT, Step.CLOSE_PRODUCERS, Step.RETURN)
"""The steps of a batch that is written without a transaction."""

COMMIT_STEPS = (Step.MARKER, Step.END_SENT, Step.END_ANSWERED)
"""The steps that count as the commit of a batch in what is told of it."""

Phase = Literal["before", "after"]


class Observer(Protocol):
    """Called just before and just after each step. It must be picklable, since tasks call it too."""

    def __call__(self, step: Step, phase: Phase, batch_id: int | None) -> None:
        """Take note. `batch_id` is None while the driver takes the sink over."""
        ...


def unobserved(step: Step, phase: Phase, batch_id: int | None) -> None:
    """Observe nothing: the default."""
