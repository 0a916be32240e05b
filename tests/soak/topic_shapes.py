"""Topics in each form that entries take: batched or not, in chunks, compressed, encrypted, in transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
import pyarrow as pa

from eos.config import COMPRESSIONS
from eos.delivery.encryption import encryptor_of
from eos.pulsar.net.client import Client
from eos.pulsar.net.coordinator import Coordinator
from eos.pulsar.wire.batch import BatchEncoder, Chunk
from eos.pulsar.wire.txn import TxnId
from tests.encryption import KeyPair

KEY_NAME = "soak"
NEVER_MS = 3 * 3600 * 1000
"""Milliseconds after which a transaction times out: later than the test ends."""

_STEPS = 7
_CUT_ABOVE, _LARGE = 700, 2500  # bytes: a large value takes four entries


@dataclass
class ShapedTopic:
    """One topic that is written to at random, in several visits. For one thread at a time.

    Attributes:
        admin: an HTTP client whose base URL is the admin API's.
        seen: how often each form of an entry was written.
    """

    admin: httpx.Client
    ours: Client
    coordinators: Sequence[Coordinator]
    topic: str
    choose: random.Random
    keys: KeyPair
    seen: dict[str, int] = field(default_factory=dict)
    _under_way: list[tuple[Coordinator, TxnId]] = field(default_factory=list)
    _rows: int = 0

    def visit(self, *, last: bool) -> None:
        """Write some entries, and begin and end transactions. Transactions stay open until a later visit.

        Args: whether it is the last visit: then all transactions but one in five end, and a plain entry comes last.
        """
        for _ in range(_STEPS):
            roll = self.choose.random()
            if roll < 0.35:
                self._send(None)
            elif roll < 0.55 or not self._under_way:
                self._send(self._begin())
            elif roll < 0.7:
                self._send(self.choose.choice(self._under_way)[1])
            elif roll < 0.92:
                self._end(self.choose.randrange(len(self._under_way)))
            else:
                self._unload()
        if last:
            self._send(None)
            while self._under_way:
                self._end(0)
            self._send(None)
            if self.choose.random() < 0.2:
                self._send(self._begin())
                self._send(None)
                self._note("left open")

    def _begin(self) -> TxnId:
        coordinator = self.choose.choice(self.coordinators)
        txn = coordinator.new_transaction(NEVER_MS)
        coordinator.add_partitions(txn, [self.topic])
        self._under_way.append((coordinator, txn))
        return txn

    def _end(self, place: int) -> None:
        coordinator, txn = self._under_way.pop(place)
        commit = self.choose.random() < 0.55
        coordinator.end(txn, commit)
        self._note("committed" if commit else "aborted")

    def _send(self, txn: TxnId | None) -> None:
        with self.ours.producer(self.topic) as producer:
            for chunk in self._chunks():
                producer.send(chunk, txn)

    def _chunks(self) -> Iterator[Chunk]:
        choose = self.choose
        compression = choose.choice(("none", *COMPRESSIONS))
        form = choose.choice(("batched", "batched", "unbatched", "in chunks"))
        encrypted = choose.random() < 0.25
        count = 1 if form == "in chunks" else choose.randint(1, 4)
        encoder = BatchEncoder(
            compression,
            target_bytes=200,
            cut_above=_CUT_ABOVE if form == "in chunks" else None,
            alone=form != "batched",
        )
        seal = encryptor_of(((KEY_NAME, self.keys.public),)).encrypted if encrypted else lambda chunk: chunk
        yield from map(seal, encoder.chunks(self._made(count, _LARGE if form == "in chunks" else 60)))
        for what in (form, compression, *(["encrypted"] if encrypted else [])):
            self._note(what)

    def _made(self, count: int, most: int) -> pa.RecordBatch:
        """Return rows with each field now and then, and values that don't shrink."""
        numbers = range(self._rows, self._rows + count)
        self._rows += count
        choose = self.choose

        def some(text: str) -> list[str | None]:
            return [f"{text}{choose.randrange(4)}" if choose.random() < 0.7 else None for _ in numbers]

        length = most if most == _LARGE else choose.randint(0, most)
        return pa.record_batch(
            {
                "value": pa.array(
                    [None if choose.random() < 0.05 and most < _LARGE else choose.randbytes(length) for _ in numbers],
                    pa.binary(),
                ),
                "key": pa.array(some("k"), pa.string()),
                "ordering_key": pa.array(some("o"), pa.string()),
                "event_time": pa.array([number if number % 3 else None for number in numbers], pa.int64()),
                "properties": pa.array([[("n", str(number))] for number in numbers], pa.map_(pa.string(), pa.string())),
            }
        )

    def _unload(self) -> None:
        self.admin.put(f"{self.topic.replace('://', '/')}/unload").raise_for_status()
        self._note("unloaded")

    def _note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1


def counted(topics: Sequence[ShapedTopic]) -> Mapping[str, int]:
    """Return how often each form was written, over all topics."""
    return {
        what: sum(one.seen.get(what, 0) for one in topics)
        for what in sorted({name for one in topics for name in one.seen})
    }
