"""Frames by hand, without any of the guards of `eos.pulsar.net`: what a zombie or a wrong client would send."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass

from eos.config import Cluster
from eos.errors import EosError, Refused
from eos.pulsar.net.client import Client
from eos.pulsar.net.connection import Connection
from eos.pulsar.net.service_url import addresses
from eos.pulsar.protocol.producer import ACCESS_MODES
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.wire.frames import Frame, encode_message, error_name
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandCloseProducer,
    CommandProducer,
    CommandSend,
    MessageMetadata,
)
from eos.pulsar.wire.sending import single_message_frame
from eos.pulsar.wire.txn import TxnId
from tests.waiting import PATIENCE_S


def connect(service_url: str) -> Connection:
    """Return a connection of its own: a process of its own, as far as the broker can tell."""
    return Connection(addresses(service_url)[0], Cluster(service_url, request_timeout_s=PATIENCE_S))


def client(service_url: str) -> Client:
    """Return a client that knows nothing of what other clients did."""
    return Client(Cluster(service_url, request_timeout_s=PATIENCE_S))


@dataclass(frozen=True)
class Closed:
    """The broker closed the producer."""


Event = MessageId | Refused | Closed | EosError


class RawProducer:
    """Sends what it is told, whenever it is told."""

    def __init__(self, service_url: str, topic: str, access: str = "shared", name: str | None = None) -> None:
        self.connection = connect(service_url)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._id = self.connection.listen_as_producer(self)
        command = CommandProducer(topic=topic, producer_id=self._id, txn_enabled=True)
        command.producer_access_mode = ACCESS_MODES[access]
        command.user_provided_producer_name = name is not None
        if name is not None:
            command.producer_name = name
        answer = self.connection.ask(BaseCommand(type=Type.PRODUCER, producer=command), f"open {topic}")
        self.name = granted(answer, f"open {topic}").producer_success.producer_name

    def send(self, data: bytes, txn: TxnId | None, sequence_id: int, *, txn_in_metadata: bool = True) -> None:
        """Send one message; with `txn_in_metadata` off the transaction's id is in the command only."""
        frame = single_message_frame(
            data,
            producer_id=self._id,
            producer_name=self.name,
            sequence_id=sequence_id,
            publish_time_ms=1,
            txn=txn,
        )
        if txn is not None and not txn_in_metadata:
            send = CommandSend(producer_id=self._id, sequence_id=sequence_id)
            send.txnid_most_bits, send.txnid_least_bits = txn.most, txn.least
            metadata = MessageMetadata(producer_name=self.name, sequence_id=sequence_id, publish_time=1)
            frame = encode_message(BaseCommand(type=Type.SEND, send=send), metadata, [data])
        self.connection.send(frame)

    def send_described(self, metadata: MessageMetadata, payload: bytes) -> None:
        """Send one entry as it is described, whatever that is."""
        send = CommandSend(producer_id=self._id, sequence_id=metadata.sequence_id)
        self.connection.send(encode_message(BaseCommand(type=Type.SEND, send=send), metadata, [payload]))

    def event(self, timeout_s: float = PATIENCE_S) -> Event:
        """Return what the broker said next: where the frame is stored, or what went wrong."""
        return self._events.get(timeout=timeout_s)

    def close_producer(self) -> None:
        """Close the producer, but go on listening and keep the connection."""
        command = CommandCloseProducer(producer_id=self._id)
        answer = self.connection.ask(BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=command), "close")
        granted(answer, "close")

    def received(self, frames: Sequence[Frame]) -> None:
        for command in (frame.command for frame in frames):
            if command.type == Type.SEND_RECEIPT:
                self._events.put(MessageId.read(command.send_receipt.message_id))
            elif command.type == Type.SEND_ERROR:
                error = command.send_error
                self._events.put(Refused("send", error_name(error.error), error.message))
            else:
                self._events.put(Closed())

    def lost(self, why: EosError) -> None:
        self._events.put(why)
