"""What a broker that is slow, late or out of reach must not cost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from eos.errors import NetworkError, Unanswered
from eos.pulsar.net.client import Client, InFlight, Producer
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandCloseConsumer, CommandCloseProducer, CommandSendError
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, answer_well, receipt, silent
from tests.waiting import until

CHUNK = Chunk(messages=1, payload=b"x" * 100, uncompressed_size=100, rows_bytes=60, compression="none")
TIMEOUT_S = 0.1
PASSES_S = 2 / 3 * TIMEOUT_S


class SlowReceipts:
    """Producers that share a budget, and a broker that lets two thirds of their time-out pass before each receipt.

    Their clock is one of the test's own. A receipt comes only once the thread that made this has looked at the clock.
    """

    def __init__(self, broker: FakeBroker, client: Client, budget: InFlight, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        monkeypatch.setattr("eos.pulsar.net.in_flight.time", self.clock)
        monkeypatch.setattr("eos.pulsar.net.producer.time", self.clock)
        broker.handlers[Type.SEND] = lambda session, frame: self._held.append((session, frame))
        self._held: list[tuple[Session, Frame]] = []
        self._client, self._budget, self._waiter = client, budget, threading.get_ident()

    def producer(self, topic: str) -> Producer:
        made = self._client.producer(topic, budget=self._budget)
        made._timeout_s = TIMEOUT_S
        return made

    def give(self, count: int) -> None:
        """Send so many receipts while the test waits for them, and let the same time pass once more."""
        threading.Thread(target=self._give, args=[count], daemon=True).start()

    def _give(self, count: int) -> None:
        for place in range(count):
            until(lambda here=place: len(self._held) > here)  # type: ignore[misc]
            self.clock.sleep(PASSES_S)
            until(lambda: self.clock.seen.get(self._waiter) == self.clock.now)
            session, frame = self._held[place]
            session.send(receipt(frame))
            until(lambda: self._budget._last_receipt_at == self.clock.now)
        self.clock.sleep(PASSES_S)


def test_receipts_that_keep_coming_are_waited_for(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowReceipts(broker, client, InFlight(), monkeypatch)
    producer = slow.producer("t")
    for _ in range(6):  # four times the time-out in all
        producer.send(CHUNK, None)
    slow.give(6)
    producer.flush()


def test_another_producers_receipts_show_that_the_brokers_are_slow_not_dead(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowReceipts(broker, client, InFlight(), monkeypatch)
    first, last = (slow.producer(topic) for topic in "ab")
    for producer in (*[first] * 5, last):
        producer.send(CHUNK, None)
    slow.give(6)
    last.flush()


def test_a_full_budget_is_waited_for_as_long_as_receipts_come(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowReceipts(broker, client, InFlight(600), monkeypatch)
    producer = slow.producer("t")
    for _ in range(6):
        producer.send(CHUNK, None)
    large = Chunk(messages=1, payload=b"x" * 600, uncompressed_size=600, rows_bytes=600, compression="none")
    slow.give(6)
    producer.send(large, None)  # waits for all six


def test_waiting_for_receipts_ends_with_the_time_that_the_caller_gives(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowReceipts(broker, client, InFlight(350), monkeypatch)
    producer = slow.producer("t")
    ends = slow.clock.now + 1.5 * PASSES_S
    for _ in range(3):
        producer.send(CHUNK, None, ends)
    large = Chunk(messages=1, payload=b"x" * 350, uncompressed_size=350, rows_bytes=350, compression="none")
    slow.give(1)
    with pytest.raises(Unanswered, match="no receipt before the time given for it ended while"):
        producer.send(large, None, ends)
    with pytest.raises(Unanswered, match=r"no receipt for 2 frames on t from .* before the time given for it ended"):
        producer.flush(ends)


def ask(client: Client) -> None:
    assert client.partitions("t") == 0


def flush(client: Client) -> None:
    producer = client.producer("t")
    producer.send(CHUNK, None)
    producer.flush()


def wait_for_room(client: Client) -> None:
    producer = client.producer("t", budget=InFlight(100))
    for _ in range(2):
        producer.send(CHUNK, None)


@pytest.mark.parametrize(
    ("call", "kind"), [(ask, Type.PARTITIONED_METADATA), (flush, Type.SEND), (wait_for_room, Type.SEND)]
)
def test_what_came_while_the_process_was_stopped_is_taken(
    broker: FakeBroker, client: Client, monkeypatch: pytest.MonkeyPatch, call: Callable[[Client], None], kind: Type
) -> None:
    """The thread that waits may wake up before the one that receives. Here it always does."""
    clock, waiter = Clock(), threading.get_ident()
    for module in ("in_flight", "producer", "waiting"):
        monkeypatch.setattr(f"eos.pulsar.net.{module}.time", clock)
    monkeypatch.setattr("eos.pulsar.net.waiting.LOOK_S", 0.05)

    def stop(session: Session, frame: Frame) -> None:
        broker.handlers[kind] = answer_well
        for seconds in (0.001, 10 * client.cluster.request_timeout_s):  # it waits by now, and is stopped
            clock.sleep(seconds)
            until(lambda: clock.seen.get(waiter) == clock.now)
        answer_well(session, frame)

    broker.handlers[kind] = stop
    call(client)


def late_receipt(session: Session, frame: Frame) -> BaseCommand:
    return receipt(frame)


def late_refusal(session: Session, frame: Frame) -> BaseCommand:
    error = CommandSendError(producer_id=frame.command.send.producer_id, sequence_id=0, message="late")
    return BaseCommand(type=Type.SEND_ERROR, send_error=error)


def late_close(session: Session, frame: Frame) -> BaseCommand:
    closing = CommandCloseProducer(producer_id=frame.command.send.producer_id)
    return BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=closing)


@pytest.mark.parametrize("late", [late_receipt, late_refusal, late_close])
def test_what_comes_after_a_producer_has_ended_leaves_the_connection_alone(
    broker: FakeBroker, client: Client, late: object
) -> None:
    def close_then_late(session: Session, frame: Frame) -> None:
        session.send(late_close(session, frame))
        session.send(late(session, frame))  # type: ignore[operator]

    other = client.producer("other")
    producer = client.producer("t")
    broker.handlers[Type.SEND] = lambda session, frame: (
        close_then_late(session, frame) if frame.command.send.producer_id == 1 else answer_well(session, frame)
    )
    with pytest.raises(NetworkError, match="closed by the broker"):
        producer.send_record(b"x", None)
    assert client.partitions("t") == 0  # asked behind the late frame, on the same connection
    other.send_record(b"y", None)
    assert len(broker.sessions) == 1


def test_a_receipt_before_the_producer_is_open_is_no_protocol(broker: FakeBroker, client: Client) -> None:
    def out_of_turn(session: Session, frame: Frame) -> None:
        sent = BaseCommand(type=Type.SEND_RECEIPT)
        sent.send_receipt.producer_id = frame.command.producer.producer_id
        sent.send_receipt.sequence_id = 0
        session.send(sent)

    broker.handlers[Type.PRODUCER] = out_of_turn
    with pytest.raises(NetworkError):
        client.producer("t")
    until(lambda: not broker.sessions[0].alive)


def test_a_close_after_a_consumer_was_closed_leaves_the_connection_alone(broker: FakeBroker, client: Client) -> None:
    def closed_twice(session: Session, frame: Frame) -> None:
        answer_well(session, frame)
        closing = CommandCloseConsumer(consumer_id=frame.command.close_consumer.consumer_id)
        session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))

    broker.handlers[Type.CLOSE_CONSUMER] = closed_twice
    for _ in range(20):
        client.hold("t", "keep").close()
    assert len(broker.sessions) == 1


def test_silence_is_not_waited_out_for_ever(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.SEND] = silent
    producer = client.producer("t")
    producer._timeout_s = TIMEOUT_S
    producer.send(CHUNK, None)
    with pytest.raises(Unanswered, match="no receipt for 1 frames"):
        producer.flush()
