"""The identity of a Pulsar transaction."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eos.errors import InvalidInput
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_PRINTED = re.compile(r"\((\d+),(\d+)\)")


@dataclass(frozen=True, order=True, slots=True)
class TxnId:
    """A transaction id: two 64-bit numbers, as the coordinator gave them.

    Attributes:
        most: the coordinator's index, unshifted (MLTransactionMetadataStore.newTransaction of the broker).
        least: a number that the coordinator counts up.
    """

    most: int
    least: int

    @property
    def coordinator(self) -> int:
        """Index of the coordinator that opened this transaction, and that alone can end it."""
        return self.most

    def __str__(self) -> str:
        return f"({self.most},{self.least})"

    @classmethod
    def of(cls, metadata: MessageMetadata) -> TxnId | None:
        """Return the id that an entry's metadata name; None for one without a transaction."""
        if not metadata.HasField("txnid_most_bits"):
            return None
        return cls(metadata.txnid_most_bits, metadata.txnid_least_bits)

    @classmethod
    def parse(cls, text: str) -> TxnId:
        """Read an id as Pulsar and `str` print it: "(most,least)". Raises InvalidInput."""
        match = _PRINTED.fullmatch(text)
        if match is None:
            raise InvalidInput(f'"{text}" is not a transaction id. One looks like "(0,12)"')
        return cls(int(match[1]), int(match[2]))
