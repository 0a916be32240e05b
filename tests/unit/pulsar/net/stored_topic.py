"""A topic of the scripted broker, for readers of entries."""

from __future__ import annotations

from collections.abc import Callable

from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.frames import Frame, encode_message
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseConsumer,
    CommandGetLastMessageIdResponse,
    CommandMessage,
    MessageIdData,
    MessageMetadata,
)
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, answer_well

LEDGER = 1


class Stored:
    """A topic of the scripted broker: it begins at the start id and sends as long as it has permits.

    Attributes:
        payloads: of the entries, each a batch of `messages`.
        before: {entry: what to do before it is sent, once}; True: send it all the same.
        garbled: entries that go out with a wrong byte, so many times.
        heeds_permits: whether it stops at none.
        of_transactions: entries whose metadata name one.
        stands: by session and consumer, the entry up to which the consumer's mark-delete position has come.
    """

    def __init__(self, broker: FakeBroker, payloads: list[bytes], messages: int = 1) -> None:
        self.payloads = payloads
        self.messages = messages
        self.before: dict[int, Callable[[Session, int], bool]] = {}
        self.garbled: dict[int, int] = {}
        self.heeds_permits = True
        self.of_transactions: set[int] = set()
        self.granted: list[int] = []
        self.stands: dict[tuple[int, int], int] = {}
        self.trimmed = 0
        self._consumers: dict[tuple[int, int], list[int]] = {}
        broker.handlers[Type.SUBSCRIBE] = self._subscribe
        broker.handlers[Type.FLOW] = self._flow
        broker.handlers[Type.CLOSE_CONSUMER] = self._close
        broker.handlers[Type.GET_LAST_MESSAGE_ID] = self._last

    def trim(self, entries: int) -> None:
        """Delete so many entries from the front."""
        self.trimmed = entries

    def move(self, session: Session, number: int, to: int) -> None:
        """Move the position of a consumer, so that it goes on with an entry."""
        self.stands[id(session), number] = to - 1
        self._consumers[id(session), number][0] = to

    def _subscribe(self, session: Session, frame: Frame) -> None:
        wanted = frame.command.subscribe
        begin = max(self.trimmed, wanted.start_message_id.entry_id)
        self._consumers[id(session), wanted.consumer_id] = [begin, 0]
        self.stands[id(session), wanted.consumer_id] = begin - 1
        answer_well(session, frame)

    def _close(self, session: Session, frame: Frame) -> None:
        del self._consumers[id(session), frame.command.close_consumer.consumer_id]
        answer_well(session, frame)

    def _flow(self, session: Session, frame: Frame) -> None:
        self.granted.append(frame.command.flow.message_permits)
        number = frame.command.flow.consumer_id
        consumer = self._consumers.get((id(session), number))
        if consumer is None:
            return
        consumer[1] += frame.command.flow.message_permits
        while (consumer[1] > 0 or not self.heeds_permits) and consumer[0] < len(self.payloads):
            what = self.before.pop(consumer[0], None)
            if what is not None and not what(session, number):
                return
            session._socket.sendall(self._message(number, consumer[0]))
            consumer[0] += 1
            consumer[1] -= self.messages

    def _message(self, number: int, entry: int) -> bytes:
        where = MessageIdData(ledger_id=LEDGER, entry_id=entry)
        command = BaseCommand(type=Type.MESSAGE, message=CommandMessage(consumer_id=number, message_id=where))
        metadata = MessageMetadata(producer_name="p", sequence_id=entry, publish_time=1)
        if entry in self.of_transactions:
            metadata.txnid_most_bits, metadata.txnid_least_bits = 3, 7
        if self.messages > 1:
            metadata.num_messages_in_batch = self.messages
        frame = bytearray(b"".join(encode_message(command, metadata, [self.payloads[entry]])))
        if self.garbled.get(entry):
            self.garbled[entry] -= 1
            frame[-1] ^= 1
        return bytes(frame)

    def _last(self, session: Session, frame: Frame) -> None:
        last = MessageIdData(ledger_id=LEDGER if self.payloads else -1, entry_id=len(self.payloads) - 1)
        asked = id(session), frame.command.get_last_message_id.consumer_id
        stands = MessageIdData(ledger_id=LEDGER, entry_id=self.stands.get(asked, -1))
        told = CommandGetLastMessageIdResponse(last_message_id=last, consumer_mark_delete_position=stands)
        session.answer(
            frame.command, BaseCommand(type=Type.GET_LAST_MESSAGE_ID_RESPONSE, get_last_message_id_response=told)
        )


def cut_off(session: Session, number: int) -> bool:
    session.cut()
    return False


def closed(session: Session, number: int) -> bool:
    """Close the consumer, as when the topic moves."""
    closing = CommandCloseConsumer(consumer_id=number)
    session.send(BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=closing))
    return False


def ten(broker: FakeBroker) -> Stored:
    return Stored(broker, [b"%d" % entry for entry in range(10)])
