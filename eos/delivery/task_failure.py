"""The message of a task to the driver about a problem, beyond the text of a failed Spark job, and its meaning.

A task that fails is a failed Spark job, which is tried again. So a task that knows better ends well, and its summary
row carries the problem.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from eos.errors import (
    DamagedLog,
    EosError,
    FrameTooLarge,
    InvalidInput,
    NotCommitted,
    OutOfTurn,
    StaleBatch,
    TopicMissing,
    Unacknowledged,
)

_PERMANENT: tuple[type[EosError], ...] = (TopicMissing, StaleBatch, DamagedLog, InvalidInput, OutOfTurn)
"""The errors that no further try can change, the special before the general."""

_KINDS = {kind.__name__: kind for kind in (*_PERMANENT, NotCommitted)}


def written(error: Exception, partition: int, limits: Mapping[str, int]) -> str | None:
    """Return the text for a summary row; None for a problem that is to fail the task.

    Args: the problem; Spark's number of the task's partition; what the task's client has learned of frame limits.
    """
    if isinstance(error, (FrameTooLarge, NotCommitted)):  # the next try cuts smaller ones, or looks again
        kind: type[EosError] | None = NotCommitted
    else:
        kind = next((one for one in _PERMANENT if isinstance(error, one)), None)
    if kind is None:
        return None
    return json.dumps([kind.__name__, f"in Spark's partition {partition}: {error}", dict(limits)])


def read(text: str) -> tuple[EosError, dict[str, int]]:
    """Return the error to raise in the driver, and the frame limits to learn."""
    kind, words, limits = json.loads(text)
    return _KINDS[kind](words), limits


def without_a_transaction(why: EosError, what: str) -> EosError:
    """Return the error of a try that failed and had no transaction, with what is known of its rows.

    Args: what was raised; what was to be written, such as "batch 3".
    """
    if isinstance(why, InvalidInput):
        kind = next(kind for kind in _PERMANENT if isinstance(why, kind))
        return kind(
            f"{str(why).removesuffix('.')}. Rows of {what} that were sent before may be visible, because "
            'guarantee="at-least-once" has no transaction to hide them.'
        )
    return Unacknowledged(f"not all rows of {what} were acknowledged, and some may be visible. {why}")
