"""The oracle's eyes: the official Pulsar client, and nothing of the code that it judges.

Every reader makes a fresh subscription and starts at the earliest message. Where the end is, is known without waiting
for silence: `mark_end` sends a last message to each partition, and everything before it has been read when it comes.
It comes only after every transaction that is open on the partition has ended, so a reader that is held up is noticed.

The marks are messages of the topic. Read so only what belongs to a drill.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

import pulsar

from statestore.drills.judge import copies, rows
from statestore.drills.judge.accounting import Expected, OutputRow, OutputRows, Reading, account, live_findings
from statestore.drills.judge.findings import Account, Readers

Parse = Callable[[str, bytes], OutputRow]
"""Reads a message: its key ("" if it has none) and its bytes."""

PATIENCE_S = 60.0
"""Seconds without a message, before the end, after which a reader gives up."""

_END = "end-of-reading"
_POLL_MS = 500
_REQUEST_S = 10
_PAUSE_S = 0.5
_LONGEST_LEAVE_S = 3 * _REQUEST_S  # a reader whose broker is gone


class Unread(Exception):
    """A topic can't be reached, or not be read to its end."""


@dataclass(frozen=True)
class ReadProgress:
    """How far a reader is.

    Attributes:
        rows: read so far.
        batch: the newest one seen; -1 before the first row.
        latency_ms: from the event time of the newest row to its reading; None if it has none.
    """

    rows: int = 0
    batch: int = -1
    latency_ms: float | None = None


def messages_of(service_url: str, topic: str, patience_s: float = PATIENCE_S) -> Iterator[pulsar.Message]:
    """Give every message of a topic, the rows of a partition in their order, and end at its end.

    All writers must have ended. Transactions that were left open show their harm only after later ones of the same
    coordinator have ended: see `statestore.drills.later_transactions`.

    Raises:
        Unread: see there.
    """
    with _readable(topic), _client(service_url) as client:
        mark, left = mark_end(client, topic)
        consumer = _subscribe(client, topic, f"oracle-{mark}")
        places = _Places()
        while left:
            try:
                message = consumer.receive(timeout_millis=round(patience_s * 1000))
            except pulsar.Timeout:
                raise Unread(_held_up(left, patience_s)) from None
            if not places.is_new(message):
                continue
            if _END not in message.properties():
                yield message
            elif message.properties()[_END] == mark:
                left.discard(message.topic_name())
        _unsubscribe(client, consumer, topic)


def read_all(
    service_url: str,
    topic: str,
    parse: Parse = rows.parse,
    patience_s: float = PATIENCE_S,
    kept: Callable[[], OutputRows] = list,
) -> Reading:
    """Read a topic from earliest to its end. A reading that fell short says why in `shortfall`.

    `kept` makes what the rows of a partition are kept in.
    """
    reading = Reading("the last reader", defaultdict(kept))
    try:
        for message in messages_of(service_url, topic, patience_s):
            _add(reading, message, parse)
    except Unread as error:
        reading.shortfall = str(error)
    return reading


def mark_end(client: pulsar.Client, topic: str) -> tuple[str, set[str]]:
    """Send a last message to each partition; return what it is called, and the partitions."""
    mark = uuid.uuid4().hex
    partitions = set(client.get_topic_partitions(topic))
    for partition in sorted(partitions):
        producer = client.create_producer(partition)
        producer.send(b"", properties={_END: mark})
        producer.close()
    return mark, partitions


class LiveReaders:
    """Readers that read a topic while it is being written, each in a thread and on a subscription of its own.

    A context manager: they start with it, and at its end they have unsubscribed. A broker that goes away is waited for.
    They don't acknowledge, so that no message is dropped before the last reader has come.
    """

    def __init__(
        self,
        service_url: str,
        topic: str,
        count: int = 2,
        parse: Parse = rows.parse,
        kept: Callable[[], OutputRows] = list,
        acknowledge: bool = False,
    ) -> None:
        """`kept` makes what the rows of a partition are kept in.

        With `acknowledge` they do, where something else keeps the topic's messages. Else each broker that goes away has
        them read all from the first message again: too much where there are millions.
        """
        self._service_url, self._topic = service_url, topic
        readings = [Reading(f"reader {number + 1}", defaultdict(kept)) for number in range(count)]
        self._readers = [_LiveReader(service_url, topic, reading, parse, acknowledge) for reading in readings]

    def __enter__(self) -> Self:
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.stop.set()
        for reader in self._readers:
            reader.join(_LONGEST_LEAVE_S)

    @property
    def progress(self) -> ReadProgress:
        """How far the first reader is."""
        return self._readers[0].progress

    def finish(self, patience_s: float = PATIENCE_S) -> list[Reading]:
        """Let each reader come to the end of the topic, and return what they have read.

        All writers must have ended. A reader that doesn't get there says why in its reading.
        """
        try:
            with _readable(self._topic), _client(self._service_url) as client:
                mark, partitions = mark_end(client, self._topic)
        except Unread as error:
            for reader in self._readers:
                reader.reading.shortfall = str(error)
                reader.stop.set()
        else:
            for reader in self._readers:
                reader.read_until(mark, partitions, patience_s)
        for reader in self._readers:
            reader.join()
        return [reader.reading for reader in self._readers]


def judge(
    job: str,
    service_url: str,
    topic: str,
    expected: Expected,
    live: LiveReaders | None = None,
    *,
    parse: Parse = rows.parse,
    state_equal: bool | None = None,
    patience_s: float = PATIENCE_S,
) -> tuple[Account, Readers]:
    """Read the output of a job that has stopped, and account for it; `state_equal` as in `account`."""
    seen = live.finish(patience_s) if live is not None else []
    final = read_all(service_url, topic, parse, patience_s)
    return account(job, expected, final, seen, state_equal), live_findings(job, expected, final, seen)


def judge_copies(
    job: str,
    service_url: str,
    topic: str,
    given: LiveReaders,
    blocks: Sequence[copies.Block],
    patience_s: float = PATIENCE_S,
) -> Account:
    """Read both ends of a job that copies, which has stopped, and account for its output.

    Args:
        given: one reader of the input, which has kept `copies.PackedRows`.
        blocks: what its writers, which have ended, have sent.
    """
    (held,) = given.finish(patience_s)
    found = read_all(service_url, topic, copies.parse, patience_s, copies.PackedRows)
    return copies.account(job, held, found, blocks)


class _LiveReader(threading.Thread):
    def __init__(self, service_url: str, topic: str, reading: Reading, parse: Parse, acknowledge: bool) -> None:
        super().__init__(name=f"drill {reading.reader} of {topic}", daemon=True)
        self.reading = reading
        self.reading.shortfall = "It was stopped."
        self.progress = ReadProgress()
        self.stop = threading.Event()
        self._service_url, self._topic, self._parse = service_url, topic, parse
        self._acknowledge = acknowledge
        self._subscription = f"oracle-{uuid.uuid4().hex}"
        self._places = _Places()
        self._marks: dict[str, str] = {}
        self._until: tuple[str, frozenset[str], float] | None = None
        self._heard = time.monotonic()
        self._trouble = ""

    def read_until(self, mark: str, partitions: set[str], patience_s: float) -> None:
        """End when this mark has been read on each of the partitions, or nothing comes any longer."""
        self._heard = time.monotonic()
        self._until = (mark, frozenset(partitions), patience_s)

    def run(self) -> None:
        while True:
            try:
                with _client(self._service_url) as client:
                    known = set(client.get_topic_partitions(self._topic))
                    consumer = _subscribe(client, self._topic, self._subscription)
                    self._follow(consumer, known)
                    if self._over():
                        _unsubscribe(client, consumer, self._topic)
                        return
            except pulsar.PulsarException as error:
                self._trouble = f" The last error: {error}."
                if self._over():
                    return
                self.stop.wait(_PAUSE_S)

    def _follow(self, consumer: pulsar.Consumer, known: set[str]) -> None:
        """Read until it is over, the connection is gone, or the end is asked for on partitions that are not `known`.

        In the last two cases the client itself may wait a minute before it tries.
        """
        while not self._over() and (self._until is None or self._until[1] <= known):
            try:
                message = consumer.receive(timeout_millis=_POLL_MS)
            except pulsar.Timeout:
                if not consumer.is_connected():
                    return
            else:
                self._take(message)
                if self._acknowledge:
                    consumer.acknowledge(message)

    def _take(self, message: pulsar.Message) -> None:
        self._heard = time.monotonic()
        if not self._places.is_new(message):
            return
        if _END in message.properties():
            self._marks[message.topic_name()] = message.properties()[_END]
            return
        row = _add(self.reading, message, self._parse)
        born_ms = message.event_timestamp()
        self.progress = ReadProgress(
            rows=self.progress.rows + 1,
            batch=max(self.progress.batch, row.batch),
            latency_ms=time.time() * 1000 - born_ms if born_ms else None,
        )

    def _over(self) -> bool:
        if self.stop.is_set():
            return True
        if self._until is None:
            return False
        mark, partitions, patience_s = self._until
        left = {partition for partition in partitions if self._marks.get(partition) != mark}
        if not left:
            self.reading.shortfall = ""
            return True
        if time.monotonic() - self._heard > patience_s:
            self.reading.shortfall = _held_up(left, patience_s) + self._trouble
            return True
        return False


class _Places:
    """Where each partition has been read to. After a reconnection the broker sends again what was not acknowledged.

    Those are the same messages at the same places. Copies of a row are messages of their own.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int, int]] = {}

    def is_new(self, message: pulsar.Message) -> bool:
        at, partition = message.message_id(), message.topic_name()
        place = (at.ledger_id(), at.entry_id(), at.batch_index())
        if place <= self._last.get(partition, (-1, -1, -1)):
            return False
        self._last[partition] = place
        return True


def _add(reading: Reading, message: pulsar.Message, parse: Parse) -> OutputRow:
    row = parse(message.partition_key(), message.data())
    reading.rows[message.topic_name()].append(row)
    return row


@contextmanager
def _client(service_url: str) -> Iterator[pulsar.Client]:
    # Its own log says again what its exceptions say, and would end up in the terminal.
    quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    client = pulsar.Client(service_url, operation_timeout_seconds=_REQUEST_S, logger=quiet)
    try:
        yield client
    finally:
        with suppress(pulsar.PulsarException):
            client.close()


def _subscribe(client: pulsar.Client, topic: str, subscription: str, queue: int = 1000) -> pulsar.Consumer:
    earliest = pulsar.InitialPosition.Earliest
    return client.subscribe(topic, subscription, initial_position=earliest, receiver_queue_size=queue)


def _unsubscribe(client: pulsar.Client, consumer: pulsar.Consumer, topic: str) -> None:
    """Delete the consumer's subscription, one partition after the other.

    At once for all, as the client does it, an answer that is there too soon clears the map that is being walked
    through, and the process dies (pulsar-client 3.13, `MultiTopicsConsumerImpl::unsubscribeAsync`).
    """
    consumer.close()
    for partition in client.get_topic_partitions(topic):
        _subscribe(client, partition, consumer.subscription_name(), queue=1).unsubscribe()


@contextmanager
def _readable(topic: str) -> Iterator[None]:
    try:
        yield
    except pulsar.PulsarException as error:
        raise Unread(f"The topic {topic} can't be read ({error}). See whether its broker is up.") from error


def _held_up(left: set[str], patience_s: float) -> str:
    return (
        f"Nothing came for {patience_s:.0f} s, and {', '.join(sorted(left))} not read to the end. "
        "A transaction was left open there, or the broker is gone."
    )
