"""A consumer, which reads entries (`eos.pulsar.protocol.entries`), or keeps stored messages.

The broker sends messages only as long as it has permits (FLOW). It sends the messages before the first open
transaction, and leaves out aborted ones. So every message that arrives is committed.

A reader is a non-durable exclusive subscription. A retaining subscription is durable and asks for no message at all. It
only keeps the broker from deleting messages that it has not acknowledged.
"""

from __future__ import annotations

from enum import StrEnum

from eos.errors import ConsumerClosed, EosError, Refused
from eos.pulsar.protocol.machine import Machine, TransitionTable
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.wire.message_id import EARLIEST, EntryId, MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandAck,
    CommandCloseConsumer,
    CommandFlow,
    CommandGetLastMessageId,
    CommandSeek,
    CommandSubscribe,
    CommandUnsubscribe,
)


class State(StrEnum):
    """Where the consumer stands."""

    NEW = "new"
    SUBSCRIBING = "subscribing"
    READY = "ready"
    CLOSING = "closing"
    CLOSED = "closed"
    CLOSED_BY_BROKER = "closed by broker"
    FAILED = "failed"


class Input(StrEnum):
    """Its inputs."""

    SUBSCRIBE = "subscribe"
    FLOW = "flow"
    ASK_LAST = "ask for last message id"
    ACKNOWLEDGE = "acknowledge"
    SEEK = "seek"
    CLOSE = "close"
    SUBSCRIBED = "subscribed"
    MESSAGE = "message"
    CLOSED = "close confirmed"
    BROKER_CLOSED = "closed by broker"
    REFUSED = "refused"
    LOST = "connection lost"


CONSUMER: TransitionTable[State, Input] = TransitionTable(
    name="consumer",
    start=State.NEW,
    ours=frozenset({Input.SUBSCRIBE, Input.FLOW, Input.ASK_LAST, Input.ACKNOWLEDGE, Input.SEEK, Input.CLOSE}),
    moves={
        (State.NEW, Input.SUBSCRIBE): State.SUBSCRIBING,
        (State.SUBSCRIBING, Input.SUBSCRIBED): State.READY,
        (State.SUBSCRIBING, Input.REFUSED): State.FAILED,
        (State.SUBSCRIBING, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.SUBSCRIBING, Input.LOST): State.FAILED,
        (State.READY, Input.FLOW): State.READY,
        (State.READY, Input.MESSAGE): State.READY,
        (State.READY, Input.ASK_LAST): State.READY,
        (State.READY, Input.ACKNOWLEDGE): State.READY,
        (State.READY, Input.SEEK): State.READY,
        (State.READY, Input.CLOSE): State.CLOSING,
        (State.READY, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.READY, Input.LOST): State.FAILED,
        (State.CLOSING, Input.MESSAGE): State.CLOSING,
        (State.CLOSING, Input.CLOSED): State.CLOSED,
        (State.CLOSING, Input.REFUSED): State.FAILED,
        (State.CLOSING, Input.BROKER_CLOSED): State.CLOSED_BY_BROKER,
        (State.CLOSING, Input.LOST): State.FAILED,
    },
)


ENDED = frozenset({State.CLOSED, State.CLOSED_BY_BROKER, State.FAILED})
"""The states in which nothing more can happen."""


_OTHER = {
    CommandSubscribe.SubType.Exclusive: CommandSubscribe.SubType.Failover,
    CommandSubscribe.SubType.Failover: CommandSubscribe.SubType.Exclusive,
}


class ConsumerSession:
    """One consumer's line to its broker.

    Attributes:
        failure: why it ended; None while it lives and after a close that we asked for.
        other_type: whether it subscribes as Failover in place of Exclusive, and as Exclusive in place of Failover.
    """

    def __init__(self, topic: str, consumer_id: int, broker: str) -> None:
        """Args: the topic; our number for this consumer; the broker's address."""
        self._machine = Machine(CONSUMER)
        self.topic = topic
        self.consumer_id = consumer_id
        self.broker = broker
        self.failure: EosError | None = None
        self.other_type = False

    @property
    def state(self) -> State:
        """Where the consumer stands."""
        return self._machine.state

    def read(self, subscription: str) -> BaseCommand:
        """Return SUBSCRIBE that leaves no subscription. Args: a subscription name that no other consumer uses."""
        command = self._subscribe(subscription, CommandSubscribe.SubType.Exclusive, durable=False)
        command.subscribe.start_message_id.CopyFrom(EARLIEST.written())
        return command

    def hold(
        self, subscription: str, *, latest: bool = False, alone: bool = False, create: bool = False
    ) -> BaseCommand:
        """Return SUBSCRIBE for a hold. A new subscription begins at the earliest message, or after the latest.

        Alone: it is refused, with the code ConsumerBusy, where another hold has joined. Create: the broker may make a
        topic that is missing.
        """
        kind = CommandSubscribe.SubType.Exclusive if alone else CommandSubscribe.SubType.Failover
        command = self._subscribe(subscription, kind, durable=True)
        command.subscribe.force_topic_creation = create
        if latest:
            command.subscribe.initial_position = CommandSubscribe.InitialPosition.Latest
        return command

    def subscribed(self, answer: BaseCommand) -> None:
        """Take the answer to SUBSCRIBE. Raises Refused."""
        self._answer(answer, f"subscribe to {self.topic}", Input.SUBSCRIBED)

    def flow(self, permits: int) -> BaseCommand:
        """Return FLOW: the broker may send this many frames more."""
        self._take(Input.FLOW)
        return BaseCommand(type=Type.FLOW, flow=CommandFlow(consumer_id=self.consumer_id, message_permits=permits))

    def ask_last(self) -> BaseCommand:
        """Return GET_LAST_MESSAGE_ID."""
        self._take(Input.ASK_LAST)
        return BaseCommand(
            type=Type.GET_LAST_MESSAGE_ID,
            get_last_message_id=CommandGetLastMessageId(consumer_id=self.consumer_id),
        )

    def positions(self, answer: BaseCommand) -> tuple[EntryId | None, EntryId | None]:
        """Take its answer: the last entry that a reader can get, and the last acknowledged one. Raises Refused."""
        given = granted(answer, f"ask for the last message of {self.topic}").get_last_message_id_response
        last, acknowledged = EntryId.read(given.last_message_id), EntryId.read(given.consumer_mark_delete_position)
        known = given.HasField("consumer_mark_delete_position") and acknowledged.ledger >= 0
        return last if last.ledger >= 0 else None, acknowledged if known else None

    def acknowledge(self, message_id: MessageId) -> BaseCommand:
        """Return ACK for this message and all before it."""
        self._take(Input.ACKNOWLEDGE)
        return BaseCommand(
            type=Type.ACK,
            ack=CommandAck(
                consumer_id=self.consumer_id,
                ack_type=CommandAck.AckType.Cumulative,
                message_id=[message_id.written()],
            ),
        )

    def acknowledged(self, answer: BaseCommand) -> None:
        """Take its answer. Raises Refused."""
        granted(answer, f"acknowledge on {self.topic}")

    def seek(self, place: EntryId | int) -> BaseCommand:
        """Return SEEK: the subscription goes on with this entry, or with what was published at a time (ms) or later."""
        self._take(Input.SEEK)
        command = CommandSeek(consumer_id=self.consumer_id)
        if isinstance(place, EntryId):
            command.message_id.CopyFrom(place.written())
        else:
            command.message_publish_time = place
        return BaseCommand(type=Type.SEEK, seek=command)

    def sought(self, answer: BaseCommand) -> None:
        """Take its answer. The broker has closed the consumer by then, or is about to. Raises Refused."""
        granted(answer, f"move the subscription on {self.topic}")

    def close(self, *, unsubscribe: bool = False) -> BaseCommand:
        """Return CLOSE_CONSUMER, or UNSUBSCRIBE, which also deletes a durable subscription."""
        self._take(Input.CLOSE)
        if unsubscribe:
            return BaseCommand(type=Type.UNSUBSCRIBE, unsubscribe=CommandUnsubscribe(consumer_id=self.consumer_id))
        return self.close_command()

    def close_command(self) -> BaseCommand:
        """Return CLOSE_CONSUMER for a consumer that is given up, whatever its state."""
        return BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=CommandCloseConsumer(consumer_id=self.consumer_id))

    def closed(self, answer: BaseCommand) -> None:
        """Take its answer. Raises Refused. A confirmation stays valid if the consumer has ended meanwhile."""
        asked = f"close the consumer on {self.topic}"
        if self.failure is not None:
            granted(answer, asked)
            return
        self._answer(answer, asked, Input.CLOSED)

    def closed_by_broker(self) -> None:
        """Take a CLOSE_CONSUMER that we didn't ask for."""
        why = f"the consumer on {self.topic} was closed by the broker {self.broker} (the topic moves or is closed)"
        self._end(Input.BROKER_CLOSED, ConsumerClosed(why))

    def lost(self, why: EosError) -> None:
        """Note that the connection, or the wait for an answer, has ended."""
        if self._machine.allows(Input.LOST):
            self._end(Input.LOST, why)

    def _subscribe(self, subscription: str, kind: CommandSubscribe.SubType, *, durable: bool) -> BaseCommand:
        self._take(Input.SUBSCRIBE)
        return BaseCommand(
            type=Type.SUBSCRIBE,
            subscribe=CommandSubscribe(
                topic=self.topic,
                subscription=subscription,
                sub_type=_OTHER[kind] if self.other_type else kind,
                consumer_id=self.consumer_id,
                durable=durable,
                initial_position=CommandSubscribe.InitialPosition.Earliest,
                force_topic_creation=False,
            ),
        )

    def _answer(self, answer: BaseCommand, asked: str, good: Input) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            granted(answer, asked)
        except Refused as refused:
            self._end(Input.REFUSED, refused)
            raise
        self._machine.take(good)

    def _take(self, happening: Input) -> None:
        if self.failure is not None:
            raise self.failure
        self._machine.take(happening)

    def _end(self, happening: Input, why: EosError) -> None:
        self._machine.take(happening)
        self.failure = why
