"""How the source words a loss of data."""

from __future__ import annotations

from collections.abc import Callable

from eos.errors import DamagedFrame, InvalidInput


class DataLost(InvalidInput):
    """Data can't be read any more. Callers raise it, or only warn, as `failOnDataLoss` says."""


def lost(topic: str, what: str) -> str:
    """Return the message for data that can't be read any more. Args: the physical topic; what is known."""
    return f"data of {topic} was lost: {what}.{named_by('failOnDataLoss')}"


Damaged = Callable[[DamagedFrame], None]
"""Is told of an entry that can't be read. It raises, or leaves the entry out."""


def refused(damage: DamagedFrame) -> None:
    """Raise what is wrong with an entry."""
    raise damage


def named_by(option: str) -> str:
    """Return the sentence that names the option by which a loss is accepted."""
    return f" To go on with what is left, set {option}=false: a loss is then only a warning."
