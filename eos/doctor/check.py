"""The finding about one thing that counts: it is good, it needs care, or it can't be known from here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from eos.errors import AuthorizationUnknown, Refused

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_DECLARED = "IncompatibleSchema"
"""The job may declare the schema that a look does not."""


class CheckVerdict(StrEnum):
    """The finding about one of the things that count."""

    GOOD = "good"
    CARE = "take care"
    UNKNOWN = "can't be known"


@dataclass(frozen=True, slots=True)
class Check:
    """The finding in a sentence or two. Where it needs care, with the remedy."""

    about: str
    verdict: CheckVerdict
    said: str


def good(about: str, said: str) -> Check:
    """Make a check of something that is as it should be."""
    return Check(about, CheckVerdict.GOOD, said)


def care(about: str, said: str) -> Check:
    """Make a check of something that is to be changed."""
    return Check(about, CheckVerdict.CARE, said)


def unknown(about: str, said: str) -> Check:
    """Make a check of something that did not tell."""
    return Check(about, CheckVerdict.UNKNOWN, said)


def not_told(about: str, said: str, error: Exception) -> Check:
    """Make a check of something that could not be looked at: what a policy or a limit forbids needs care.

    Args: the thing; a sentence that ends with the error; the error, whose advice says that its cause is known.
    """
    passes = isinstance(error, AuthorizationUnknown)  # its advice is for a broker that is not well
    known = isinstance(error, Refused) and bool(error.advice) and error.code != _NOT_DECLARED and not passes
    return (care if known else unknown)(about, said)


def in_utc(milliseconds: float) -> str:
    """Write milliseconds since 1970 in ISO 8601, as all findings do: 2026-11-24T12:00:00.000Z.

    A producer may give a message any number of 64 bits. One outside the years 1 to 9999 is written as it
    is, with "ms" after it.
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
