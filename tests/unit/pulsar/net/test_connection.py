"""How a connection hands out what arrives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eos.errors import ConnectionLost, EosError
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame, encode
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandMessage,
    CommandPing,
    MessageIdData,
    ServerError,
)
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, refusing
from tests.waiting import until


class Listener:
    """Notes the entries of the frames that come together."""

    def __init__(self, all_calls: list[tuple[int, list[int]]]) -> None:
        self.number = -1
        self._calls = all_calls

    def received(self, frames: Sequence[Frame]) -> None:
        self._calls.append((self.number, [entry.id.entry for frame in frames for entry in frame.entries]))

    def lost(self, why: EosError) -> None:
        pass


def message(consumer: int, entry: int) -> bytes:
    where = MessageIdData(ledger_id=1, entry_id=entry)
    return encode(BaseCommand(type=Type.MESSAGE, message=CommandMessage(consumer_id=consumer, message_id=where)))


def test_frames_that_came_together_are_handed_out_together_and_in_order(broker: FakeBroker, client: Client) -> None:
    calls: list[tuple[int, list[int]]] = []
    ping = encode(BaseCommand(type=Type.PING, ping=CommandPing()))
    sessions: list[Session] = []
    broker.handlers[Type.PARTITIONED_METADATA] = lambda session, frame: sessions.append(session)
    connection = client._pool.service()
    listeners = [Listener(calls) for _ in range(2)]
    one, two = numbers = [connection.listen_as_consumer(listener) for listener in listeners]
    for listener, number in zip(listeners, numbers, strict=True):
        listener.number = number
    connection.tell(BaseCommand(type=Type.PARTITIONED_METADATA))
    until(lambda: bool(sessions))
    unknown = two + 1
    parts = (message(one, 0), message(one, 1), message(two, 0), ping, message(unknown, 9), message(one, 2))
    sessions[0]._socket.sendall(b"".join(parts))
    until(lambda: len(calls) == 3 and bool(broker.commands(Type.PONG)))
    assert calls == [(one, [0, 1]), (two, [0]), (one, [2])]


@pytest.mark.parametrize("to_no_request", [True, False])
def test_only_an_error_that_answers_no_request_says_why_a_connection_ends(
    broker: FakeBroker, client: Client, to_no_request: bool
) -> None:
    """A request that was only told is refused, and nobody waits for it: its words name another thing."""

    def last_words(session: Session, frame: Frame) -> None:
        if to_no_request:
            error = CommandError(request_id=2**64 - 1, error=ServerError.UnknownError, message="why it ends")
            session.send(BaseCommand(type=Type.ERROR, error=error))
        session.cut()

    producer = client.producer("t")
    broker.handlers[Type.CLOSE_PRODUCER] = refusing(ServerError.UnknownError, "why the producer stays")
    broker.handlers[Type.PARTITIONED_METADATA] = last_words
    producer.abandon()
    with pytest.raises(ConnectionLost) as lost:
        client.partitions("t")
    assert ("closed by the broker: why it ends" in str(lost.value)) is to_no_request
    assert "why the producer stays" not in str(lost.value)
