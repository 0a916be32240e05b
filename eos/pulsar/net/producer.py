"""A producer, as a task or the driver sees it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Protocol

from eos.errors import EosError, Fenced, FrameTooLarge, InvalidInput, NetworkError, Refused, Unanswered
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.in_flight import InFlight, waited
from eos.pulsar.net.transactions import Transactions
from eos.pulsar.net.waiting import look
from eos.pulsar.protocol.producer import ENDED, ProducerIdentity, ProducerSession, State
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.protocol.topics import full_name, whole_topic
from eos.pulsar.wire.batch import FRAME_RESERVE, Chunk
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import shrunk
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from eos.pulsar.wire.sending import send_frame, single_message_frame
from eos.pulsar.wire.txn import TxnId

_LARGE_RECORD_BYTES = 16 * 1024
"""Above this a record of its own is compressed: below, a round trip costs more than its bytes."""


_CUT = 8
"""A refused frame teaches an eighth of its size: from 1 MiB to 256 bytes within four refusals."""


class FrameLimits:
    """The size that frames of a topic may have, as far as refusals have shown: bytes of payload, by whole topic.

    A broker tells its own limit when a connection begins. A topic may have a smaller one, the topic policy
    `maxMessageSize`, which only the admin API tells: a frame above it is refused with NotAllowedError. Nothing is ever
    sent again inside a transaction, so what a refusal teaches serves the next one.
    """

    def __init__(self) -> None:
        self._learned: dict[str, int] = {}
        self._guard = threading.Lock()

    @property
    def learned(self) -> dict[str, int]:
        """A copy of all of them, to be learned by another process."""
        with self._guard:
            return dict(self._learned)

    def of(self, topic: str) -> int | None:
        """Return the limit of a topic; None where none was learned."""
        with self._guard:
            return self._learned.get(whole_topic(topic))

    def refused(self, partition: str, size: int) -> None:
        """Learn from a refused frame. Args: the physical topic; the frame's bytes of payload."""
        self.learn({whole_topic(partition): max(1, size // _CUT)})

    def learn(self, limits: Mapping[str, int]) -> None:
        """Learn what another process has; the smaller limit counts."""
        with self._guard:
            for topic, limit in limits.items():
                self._learned[topic] = min(limit, self._learned.get(topic, limit))


class _Framing(Protocol):
    """Makes the frame of what is to be sent."""

    def __call__(
        self, *, producer_id: int, producer_name: str, sequence_id: int, publish_time_ms: int, txn: TxnId | None
    ) -> Sequence[Buffer]: ...


class Producer:
    """One open producer. Any thread may send; frames go out one at a time.

    Any fault ends the producer for good, and every later call raises that problem
    again: nothing is ever sent twice. Use it in a `with` statement: it is closed at the end of
    the block, and abandoned when the block raises.

    Attributes:
        topic: the physical topic, as it was given.
        schema: by which its values are written, whose version its frames carry; None where no schema is known.
        name: its name at the broker.
        topic_epoch: the epoch an exclusive producer holds; None for a shared one.
        max_message_size: bytes; the broker's limit for one entry.
    """

    def __init__(
        self,
        connection: Connection,
        topic: str,
        budget: InFlight,
        transactions: Transactions,
        limits: FrameLimits,
        timeout_s: float,
    ) -> None:
        """Use `Client.producer`; this one is still to be opened."""
        self._connection = connection
        self.topic = topic
        self.schema: Declared | None = None
        self._line = ProducerSession(full_name(topic), connection.listen_as_producer(self), connection.broker)
        self._budget = budget
        self._transactions = transactions
        self._limits = limits
        self._timeout_s = timeout_s
        self._sending = threading.Lock()
        self._changed = threading.Condition(threading.Lock())
        self._reserved = 0
        self._last_receipt: MessageId | None = None

    @property
    def name(self) -> str:
        """Its name at the broker."""
        return self._line.name

    @property
    def topic_epoch(self) -> int | None:
        """The epoch an exclusive producer holds; None for a shared one."""
        return self._line.topic_epoch

    @property
    def schema_version(self) -> bytes:
        """The version of the schema that it declared; empty where it declared none."""
        return self._line.schema_version

    @property
    def max_message_size(self) -> int:
        """Bytes; the broker's limit for one entry."""
        return self._connection.max_message_size

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and each frame that it sent has its receipt."""
        with self._changed:
            return self._line.state is State.READY and not self._line.unanswered

    @property
    def is_unused(self) -> bool:
        """Whether it has sent nothing yet."""
        with self._changed:
            return self._last_receipt is None and not self._line.unanswered

    def open(
        self,
        access: str,
        topic_epoch: int | None,
        name: str | None,
        schema: Declared | None = None,
        *,
        stamped: bool = True,
        introduction: ProducerIdentity | None = None,
    ) -> None:
        """Open it; `Client.producer` does this. Raises Fenced, Refused, Unanswered, ConnectionLost."""
        asked = f"open a producer on {self.topic}"
        with self._giving_up_on_error():
            answer = self._connection.ask(self._line.open(access, name, topic_epoch, schema, introduction), asked)
            with self._changed:
                self._check()
                self._line.opened(answer, asked)
                self.schema = schema if stamped else None

    def send(self, chunk: Chunk, txn: TxnId | None, until: float = inf) -> None:
        """Hand a chunk to the socket; its receipt is awaited by `flush` and `close`.

        The pieces of a message share a sequence id: one thread sends them, and nothing between them.

        Waits while the budget is full, at most to `until`, an instant of `time.monotonic`. Raises what ended the
        producer, Unanswered when no receipt comes for the request time-out or until then, OutOfTurn once the
        transaction's end was asked for.
        """
        version = self._line.schema_version if self.schema is not None else b""
        frame = partial(send_frame, chunk, schema_version=version)
        self._send(
            frame, len(chunk.payload), chunk.messages, txn, until, can_be_cut=chunk.can_be_cut or chunk.messages > 1
        )

    def send_record(
        self,
        data: bytes,
        txn: TxnId | None,
        properties: Mapping[str, str] | None = None,
        *,
        local: bool = False,
        until: float = inf,
    ) -> MessageId:
        """Send one message that is not batched, wait for its receipt, and return where it is stored.

        A large one is compressed.

        Args: its bytes; the transaction; its properties; whether it is not replicated to other clusters; the end of all
        waiting, an instant of `time.monotonic`.

        Raises like `send` and `flush`; InvalidInput, with nothing sent, for more bytes than brokers take in a message.
        """
        packed, compression = shrunk(data, "zstd" if len(data) > _LARGE_RECORD_BYTES else "none")
        most = self.max_message_size - FRAME_RESERVE
        if len(packed) > most:
            shorter = f", compressed from {len(data)}" if compression != "none" else ""
            raise InvalidInput(f"a record of {len(packed)} bytes{shorter} is more than brokers take: {most}")
        frame = partial(
            single_message_frame,
            packed,
            properties=properties,
            local=local,
            compression=compression,
            uncompressed_size=len(data),
        )
        self._send(frame, len(packed), 1, txn, until)
        self.flush(until)
        assert self._last_receipt is not None
        return self._last_receipt

    def flush(self, until: float = inf) -> None:
        """Wait until every frame sent so far has its receipt.

        The wait ends when no producer of the same budget had a receipt for the request time-out, or at `until`, an
        instant of `time.monotonic`. Raises what ended the producer, or Unanswered, which ends it.
        """
        since = time.monotonic()
        with self._changed:
            while self._line.failure is None and self._line.unanswered:
                left = self._budget.patience(since, self._timeout_s, until)
                if left <= 0:
                    break
                since = max(since, look(self._changed.wait, left) + time.monotonic() - self._timeout_s)
            self._check()
            if not self._line.unanswered:
                return
            late = Unanswered(
                f"no receipt for {self._line.unanswered} frames on {self.topic} "
                f"from {self._connection.broker} {waited(until, self._timeout_s)}"
            )
            self._end(lambda: self._line.lost(late))
        self.abandon()
        raise late

    def close(self, until: float = inf) -> None:
        """Wait for all receipts and for the broker's confirmation: from then on the broker refuses its sends.

        Waits at most to `until`, an instant of `time.monotonic`. Does nothing when it is closed already. Raises what
        ended the producer, Refused, Unanswered.
        """
        if self._line.state is State.CLOSED:
            return
        self.flush(until)
        timeout_s = max(0.0, until - time.monotonic())
        with self._giving_up_on_error():
            with self._changed:
                request = self._line.close()
            answer = self._connection.ask(request, f"close the producer on {self.topic}", timeout_s)
            with self._changed:
                self._line.closed(answer)
        self._connection.ignore_producer(self._line.producer_id)

    def abandon(self) -> None:
        """Give it up: ask the broker to close it, wait for nothing, raise nothing."""
        if self._line.state is State.CLOSED:
            return
        with contextlib.suppress(NetworkError):
            self._connection.tell(self._line.close_command())
        self._connection.ignore_producer(self._line.producer_id)
        with self._changed:
            self._end(lambda: self._line.lost(NetworkError(f"the producer on {self.topic} was given up")))

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def received(self, frames: Sequence[Frame]) -> None:
        """Take frames from the reading thread; what comes after the producer has ended says nothing new."""
        with self._changed:
            for frame in frames:
                if self._line.state in ENDED:
                    return
                self._take(frame.command)

    def lost(self, why: EosError) -> None:
        """Learn from the connection that it has ended."""
        with self._changed:
            self._end(lambda: self._line.lost(why))

    def _take(self, command: BaseCommand) -> None:
        if command.type == Type.SEND_RECEIPT:
            accepted = self._line.receipt(command.send_receipt)
            if accepted is not None:
                size, self._last_receipt = accepted
                self._reserved -= size
                self._budget.receipt(size)
                if not self._line.unanswered:
                    self._changed.notify_all()
                return
            self._settle()
        elif command.type == Type.SEND_ERROR:
            self._end(lambda: self._line.send_error(command.send_error))
            if isinstance(self._line.failure, FrameTooLarge):
                self._limits.refused(self.topic, self._line.failure.size)
        else:
            self._end(self._line.closed_by_broker)

    def _send(
        self, frame: _Framing, size: int, messages: int, txn: TxnId | None, until: float, *, can_be_cut: bool = False
    ) -> None:
        with self._sending:
            self._budget.acquire(size, self._timeout_s, self._check, until)
            try:
                if txn is not None:
                    self._transactions.sending(txn)
                with self._changed:
                    number = self._line.send(size, messages, can_be_cut=can_be_cut)
                    self._reserved += size
            except BaseException:
                self._budget.release(size)
                raise
            try:
                self._connection.send(
                    frame(
                        producer_id=self._line.producer_id,
                        producer_name=self._line.name,
                        sequence_id=number,
                        publish_time_ms=time.time_ns() // 1_000_000,
                        txn=txn,
                    )
                )
            except BaseException as error:
                why = error if isinstance(error, EosError) else NetworkError(f"send to {self.topic}: {error!r}")
                self.lost(why)
                raise

    def _check(self) -> None:
        if self._line.failure is not None:
            raise self._line.failure

    def _end(self, move: Callable[[], None]) -> None:
        if self._line.failure is None:
            move()
            self._settle()

    def _settle(self) -> None:
        """Give back the budget of frames that get no receipt any longer, and wake every thread that waits."""
        self._budget.release(self._reserved)
        self._reserved = 0
        self._changed.notify_all()

    @contextlib.contextmanager
    def _giving_up_on_error(self) -> Iterator[None]:
        try:
            yield
        except (Refused, Fenced):
            self._connection.ignore_producer(self._line.producer_id)
            raise
        except BaseException as error:
            if isinstance(error, EosError):
                self.lost(error)
            self.abandon()
            raise
