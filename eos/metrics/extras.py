"""The message of an exporter whose library is missing."""

from __future__ import annotations

from eos.errors import InvalidInput


class ExtraMissing(InvalidInput, ImportError):
    """A library that only an optional extra brings can't be imported."""


def missing(extra: str, error: ImportError) -> ExtraMissing:
    """Return the error to raise for a library that could not be imported. Args: the extra that brings it."""
    return ExtraMissing(
        f"eos.metrics.{extra} needs what can't be imported here: {error}. Install it with pip install "
        f'"spark-pulsar-eos[{extra}]".'
    )
