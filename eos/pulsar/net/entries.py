"""Reading whole entries of a topic, as they are stored: for callers that decode many messages at once.

The broker counts its permits in messages, and a batch takes one for each; the memory here is counted in bytes. So
grants are sized by the average message that was seen. A part above the bound for good, since the average was wrong, is
dropped and asked for again.

An entry that arrived is handed out once the broker was asked whether it left something out before it
(`eos.pulsar.net.read_proof`). One question for all that waits takes 0.7 ms.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import attrgetter

from eos.backoff import Backoff
from eos.closing import Closing
from eos.errors import ConnectionLost, DamagedFrame, EntriesGone, EosError, NetworkError, Refused, Unreachable
from eos.pulsar.net.broker_lookup import FIRST_PAUSE_S, LONGEST_PAUSE_S, BrokerLookup
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.consumer import Subscriber
from eos.pulsar.net.permits import Permits
from eos.pulsar.net.read_proof import LOOKS, ReadProof
from eos.pulsar.net.transaction_support import refuse_uncommitted
from eos.pulsar.protocol.consumer import State
from eos.pulsar.protocol.entries import EntrySession
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand

MAX_PERMITS = 100_000
"""Messages that the broker may send ahead, at most, unless the caller says otherwise."""

MAX_BYTES = 16 * 1024 * 1024
"""Bytes that wait for the caller, about, unless it says otherwise."""

_LOSSES = 5  # lines lost in a row, without an entry between them
_TRIES = 3  # to read an entry that comes damaged
_ENOUGH_BYTES = 2 * 1024 * 1024
"""Bytes of entries that are worth a question to the broker, which costs as much CPU as 20 small entries."""

_PAUSE_S = 0.003  # a broker reads 100 entries at a time
_PAUSES = 8  # in a row that bring nothing, until what is there counts as all for now
_CREDIBLE = attrgetter("credible")
_SILENCE_S = 1.0  # until the broker is asked whether more can come: it may have moved the position past what is stored


class EntryReader(Subscriber[EntrySession], Closing):
    """Reads committed entries in order, each once and none left out, over lost connections.

    Keeps nothing at the broker once closed. Thread-safe; one `read` at a time.
    """

    def __init__(
        self,
        finder: BrokerLookup,
        topic: str,
        start: EntryId | None,
        *,
        stored: bool,
        permits: int,
        max_bytes: int,
        compacted: bool,
        subscription: str,
        patience_s: float,
    ) -> None:
        """Use `Client.entry_reader`."""
        super().__init__(finder, topic)
        self._start = start
        self._compacted = compacted
        self._subscription = subscription
        self._patience_s = patience_s
        self._permits = Permits(permits, max_bytes)
        self._proof = ReadProof(topic, start, stored=stored, compacted=compacted)
        self._held: list[Entry] = []
        self._dropped = False
        self._losses = 0
        self._refusals: Backoff | None = None  # of questions to consumers that live, without an answer between them
        self._joined_at = 0.0
        self._passed: EntryId | None = None  # it must not come again: its permits can't be counted
        self._damaged: tuple[EntryId, int] | None = None  # an entry, and how often it came damaged in a row

    def read(self, timeout_s: float, until: EntryId | None = None) -> list[Entry]:
        """Return all entries that have arrived, at least one unless none came within the time-out.

        An empty list is silence, never an end: an open transaction, many aborted ones, or nothing written. However long
        the caller waits, the broker is asked each second whether more can come. A lost connection is made again within
        the call, which may last longer for it, by the cluster's request time-out at most. Entries go on after the last
        one handed out.

        Args: the seconds; the last entry that the caller wants. With it, entries that come are gathered up to it, or as
        many as are worth a question. Default: what is there is returned at once.

        Raises TopicMissing, Refused; ConnectionLost or Unanswered when the topic can't be reached, or its broker can't
        say how far it can be read, for so long; DamagedFrame when frames arrive that are none, again and again;
        EntriesGone when entries can't be read any more: the next call goes on with what is there. An entry that comes
        damaged again and again is returned, and raises when it is decoded.
        """
        deadline = time.monotonic() + timeout_s
        with self._turn:
            while True:
                line, connection = self._connected()
                if until is not None:
                    self._gather(line, until)
                if (entries := self._taken()) and self._proves(line, entries):
                    return entries
                if not entries and not self._wait(line, connection, min(deadline, time.monotonic() + _SILENCE_S)):
                    self._look_at_silence(line)
                    if time.monotonic() >= deadline:
                        return []

    def begin_again(self) -> None:
        """Leave the topic, so that the next `read` joins it again after the last entry handed out."""
        with suppress(NetworkError):
            self._leave(unsubscribe=False)

    def last_message_id(self) -> tuple[EntryId | None, EntryId | None]:
        """Return the last entry that a reader can get now, and the broker's mark-delete position for this reader.

        None where there is none: the topic is empty, or holds nothing but open and aborted transactions.
        Raises what `read` raises.
        """
        with self._turn:
            while True:
                line, _ = self._connected()
                if (positions := self._asked(line)) is not None:
                    return positions

    def _asked(self, line: EntrySession) -> tuple[EntryId | None, EntryId | None] | None:
        """Return the positions as this line's broker tells them; None when the line was lost."""
        try:
            positions = self._positions()
        except ConnectionLost as lost:
            self.lost(lost)
        except Refused as refused:  # such as that it knows no such consumer, as a topic moves
            if self._give_up(refused):  # or that it can't read the newest message now, and the consumer lives
                self._wait_after(refused)
                return None
        except NetworkError:
            line = line if self._joined is None else self._joined[0]  # it may have been joined again for this question
            if line.failure is None:
                raise
        else:
            if line.failure is None and self._joined is not None and self._joined[0] is line:
                self._refusals = None
                return positions
        if line.failure is not None:
            self._lost(line.failure)
        return None

    def _proves(self, line: EntrySession, entries: list[Entry]) -> bool:
        """Whether no entry was left out before the last of these; else they are dropped, and reading begins again."""
        self._dropped = True
        if not self._may_be_told(entries):
            return False
        positions = self._asked(line)
        if positions is None or line.first is None:
            return False
        crossed = None if self._compacted or self._proof.gone else _last_of_ledger(self._proof.proven, entries)
        if crossed is not None and not self._is_there(crossed):
            with self._beginning_again():
                self._proof.unproven(line.first)
            self.begin_again()  # with an entry that is gone by now, or is not
            return False
        with self._beginning_again():
            if not self._proof.arrived(line.first, positions[1], [entry.id for entry in entries]):
                self.begin_again()
                return False
        if not entries[-1].credible:
            self._passed = entries[-1].id
            self._proof.passed()
        self._dropped = False
        self._losses = 0
        with self._arrived:
            self._permits.release()
            request = self._flow(line)
        if request is not None and self._joined is not None:
            self._send(self._joined[1], request)
        return True

    def _may_be_told(self, entries: list[Entry]) -> bool:
        """Return False where the connection was lost. Raises RefusedForGood where they need not be committed."""
        if self._joined is None:
            return False
        try:
            refuse_uncommitted(self.topic, self._joined[1], entries)
        except ConnectionLost as lost:
            self.lost(lost)
            return False
        except Refused:
            self.begin_again()
            raise
        return True

    def _look_at_silence(self, line: EntrySession) -> None:
        positions = self._asked(line) if line.failure is None else None
        with self._beginning_again():
            if positions is not None and not self._proof.silent(line.first, positions[1], positions[0]):
                self.begin_again()

    @contextmanager
    def _beginning_again(self) -> Iterator[None]:
        try:
            yield
        except EntriesGone:
            self.begin_again()
            raise

    def _is_there(self, entry: EntryId) -> bool:
        """Whether an entry is stored. Then all after it are too: ledgers are deleted whole, the oldest first."""
        try:
            return self._comes(entry)
        except Refused:  # such as that the topic has room for one consumer
            self.begin_again()
            return self._comes(entry)

    def _comes(self, entry: EntryId) -> bool:
        """Whether the broker gives a reader of its own this entry."""
        looking = EntryReader(
            self._finder,
            self.topic,
            entry,
            stored=True,
            permits=1,
            max_bytes=1,
            compacted=False,
            subscription=self._subscription,
            patience_s=self._patience_s,
        )
        with looking:
            try:
                return any(looking.read(_SILENCE_S) for _ in range(2 * LOOKS))
            except EntriesGone:
                return False

    def _line(self, consumer_id: int, broker: str) -> EntrySession:
        proven = self._proof.proven
        passed = proven is not None and proven == self._passed
        return EntrySession(
            self.topic, consumer_id, broker, self._start, proven, compacted=self._compacted, passed=passed
        )

    def _request(self, line: EntrySession) -> BaseCommand:
        self._proof.joined()
        with self._arrived:
            self._permits.start(slowly=self._dropped or bool(self._held))
            self._held = []
            self._dropped = False
        # A name of its own each time: a half-open connection may still hold the last one.
        return line.read(f"{self._subscription}-{uuid.uuid4().hex}")

    def _take(self, line: EntrySession, entries: Sequence[Entry]) -> None:
        line.arrived(entries)
        for credible, together in groupby(entries, _CREDIBLE):
            if credible:
                self._take_all(line, list(together))
            else:
                for entry in together:
                    self._take_incredible(line, entry)

    def _take_all(self, line: EntrySession, entries: Sequence[Entry]) -> None:
        """Take entries whose messages the broker has counted as they say."""
        self._permits.spend(sum(entry.size for entry in entries), sum(entry.num_messages for entry in entries))
        reached = line.reached
        fresh = []
        for entry in entries:
            if reached is None or entry.id > reached:
                reached = entry.id
                fresh.append(entry)
        if fresh and self._permits.hold(sum(entry.size for entry in fresh)):
            line.reached = reached
            self._held += fresh

    def _take_incredible(self, line: EntrySession, entry: Entry) -> None:
        """Take an entry whose messages nobody can count, so that nobody knows how many permits the broker has left.

        An entry that was damaged on the way comes again undamaged. It is read again some times, and then handed on as
        it is.
        """
        if not line.fresh(entry) or self._permits.overdrawn:
            return
        self._permits.overdrawn = True  # so this consumer is left, and the next one begins at the last entry taken
        if entry.damage:
            times = self._damaged[1] + 1 if self._damaged is not None and self._damaged[0] == entry.id else 1
            self._damaged = entry.id, times
            if times < _TRIES:
                return
        line.reached = entry.id
        self._held.append(entry)

    def _gather(self, line: EntrySession, until: EntryId) -> None:
        """Where entries have come, let more come: up to this one, or until there are enough for a question."""
        permits, silent = self._permits, 0
        while 0 < permits.held_bytes < _ENOUGH_BYTES and silent < _PAUSES:
            if permits.used_up or line.failure is not None or (line.reached is not None and line.reached >= until):
                return
            held = permits.held_bytes
            time.sleep(_PAUSE_S)
            silent = silent + 1 if permits.held_bytes == held else 0

    def _taken(self) -> list[Entry]:
        with self._arrived:
            entries, self._held = self._held, []
        return entries

    def _wait(self, line: EntrySession, connection: Connection, deadline: float) -> bool:
        """Wait until something is to be done; False when nothing came before the deadline."""
        while True:
            with self._arrived:
                if self._held:
                    return True
                left = deadline - time.monotonic()
                request = self._flow(line)
                if request is None and line.failure is None and left > 0 and not self._permits.overdrawn:
                    self._arrived.wait(left)
                    continue
            if request is not None:
                self._send(connection, request)
                continue
            if line.failure is not None:
                self._lost(line.failure)
            elif self._permits.overdrawn:
                self._leave(unsubscribe=False)
            return left > 0

    def _flow(self, line: EntrySession) -> BaseCommand | None:
        permits = self._permits.grant() if line.state is State.READY else 0
        return line.flow(permits) if permits else None

    def _send(self, connection: Connection, request: BaseCommand) -> None:
        try:
            connection.command(request)
        except ConnectionLost as lost:
            self.lost(lost)

    def _connected(self) -> tuple[EntrySession, Connection]:
        """Return the live line, joining again for as long as the patience lasts."""
        backoff = Backoff(self._patience_s, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while True:
            before = self._joined
            try:
                joined = self._join()
            except Unreachable:
                raise
            except ConnectionLost:
                if not backoff.pause():
                    raise
            else:
                if joined is not before:
                    self._joined_at = time.monotonic()
                return joined

    def _wait_after(self, refused: Refused) -> None:
        """Pause before the next consumer asks the same question. Raises when the patience is over."""
        if self._refusals is None or time.monotonic() - self._joined_at > self._patience_s:
            self._refusals = Backoff(self._patience_s, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        if not self._refusals.pause():
            self._refusals = None
            unknown = f"the broker could not say for {self._patience_s:g} s how far the topic can be read"
            raise ConnectionLost(f"{self._where()}: {unknown}. The last problem was {refused}") from refused

    def _where(self) -> str:
        reached = self._joined[0].reached if self._joined is not None else None
        return f"read {self.topic} from its start" if reached is None else f"read {self.topic} behind entry {reached}"

    def _lost(self, why: EosError) -> None:
        """Count a line that was lost. Raises when too many were lost in a row, and none of them brought anything."""
        if time.monotonic() - self._joined_at > self._patience_s:
            self._losses = 0
        self._losses += 1
        if self._losses < _LOSSES:
            return
        self._losses = 0
        where = self._where()
        if isinstance(why.__cause__, DamagedFrame):
            raise DamagedFrame(f"{where}, {_LOSSES} times: {why.__cause__}") from why
        raise ConnectionLost(f"{where}: {_LOSSES} consumers in a row were lost. The last: {why}") from why


def _last_of_ledger(before: EntryId | None, entries: list[Entry]) -> EntryId | None:
    """Return the last entry of the first ledger, where entries come of several. The one before them counts."""
    old = entries[0].id if before is None else before
    if entries[-1].id.ledger == old.ledger:
        return None
    return max((entry.id for entry in entries if entry.id.ledger == old.ledger), default=old)
