"""A scripted broker on a loopback socket: it answers everything well, except what a test tells it to."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

from eos.closing import Closing
from eos.config import Cluster, Credentials, Tls
from eos.errors import DamagedFrame
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.requests import ANSWERS, Type, body
from eos.pulsar.wire.frames import Frame, FrameDecoder, encode
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandConnected,
    CommandError,
    CommandLookupTopicResponse,
    CommandNewTxnResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandPong,
    CommandProducerSuccess,
    CommandSendReceipt,
    FeatureFlags,
    MessageIdData,
    ServerError,
)

NOBODY = Credentials()
PLAIN = Tls()

Handler = Callable[["Session", Frame], None]


class Session:
    """One client's connection."""

    def __init__(self, broker: FakeBroker, sock: socket.socket) -> None:
        self.broker = broker
        self._socket = sock
        self.producers = 0
        self.alive = True

    def send(self, command: BaseCommand) -> None:
        self._socket.sendall(encode(command))

    def answer(self, request: BaseCommand, answer: BaseCommand) -> None:
        body(answer).request_id = body(request).request_id
        self.send(answer)

    def refuse(self, request: BaseCommand, code: ServerError, message: str = "no") -> None:
        error = BaseCommand(type=Type.ERROR, error=CommandError(request_id=2**64 - 1, error=code, message=message))
        if request.type in ANSWERS:
            self.answer(request, error)
        else:
            self.send(error)

    def cut(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        decoder = FrameDecoder()
        with self._socket, contextlib.suppress(OSError, DamagedFrame):
            while data := self._socket.recv(65536):
                for frame in decoder.feed(data):
                    self.broker.received.append(frame)
                    self.broker.handlers.get(frame.command.type, answer_well)(self, frame)
        self.alive = False


class FakeBroker(Closing):
    """Set `handlers[type]` to script an answer; `received` keeps every frame, in order."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.handlers: dict[int, Handler] = {}
        self.received: list[Frame] = []
        self.sessions: list[Session] = []
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{'pulsar+ssl' if self._context else 'pulsar'}://127.0.0.1:{self.port}"

    def client(
        self,
        timeout_s: float = 30.0,
        credentials: Credentials = NOBODY,
        tls: Tls = PLAIN,
    ) -> Client:
        return Client(Cluster(self.url, credentials, tls, request_timeout_s=timeout_s, connect_timeout_s=30.0))

    def commands(self, kind: int) -> list[BaseCommand]:
        """Return the received commands of one type."""
        return [frame.command for frame in self.received if frame.command.type == kind]

    def cut_all(self) -> None:
        for session in tuple(self.sessions):  # not one of a client that comes back meanwhile
            session.cut()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # else a thread in accept() keeps the port open
        self._listening.close()
        self.cut_all()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            try:
                if self._context is not None:
                    sock = self._context.wrap_socket(sock, server_side=True)
            except OSError:  # the client has left: in good order, or by a reset
                continue
            session = Session(self, sock)
            self.sessions.append(session)
            threading.Thread(target=session.serve, daemon=True).start()


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which nothing listens, and which no other process can get during the block."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def silent(session: Session, frame: Frame) -> None:
    """Answer nothing."""


def cut(session: Session, frame: Frame) -> None:
    """Cut the connection instead of an answer."""
    session.cut()


def refusing(code: ServerError, message: str = "no") -> Handler:
    """Return a handler that refuses."""
    return lambda session, frame: session.refuse(frame.command, code, message)


def first_then_well(first: Handler) -> Handler:
    """Return a handler that does something the first time, and answers well from then on."""
    times = [0]

    def handle(session: Session, frame: Frame) -> None:
        times[0] += 1
        (first if times[0] == 1 else answer_well)(session, frame)

    return handle


def connected(session: Session, version: str = "fake", protocol: int = 21) -> None:
    flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=protocol >= 21)
    welcome = CommandConnected(
        server_version=version, protocol_version=protocol, max_message_size=1024 * 1024, feature_flags=flags
    )
    session.send(BaseCommand(type=Type.CONNECTED, connected=welcome))


def looked_up(kind: str, **answer: Any) -> Handler:
    """Return a handler that answers a lookup: "Connect", "Redirect" or "Failed"."""
    to = CommandLookupTopicResponse(response=kind, **answer)
    found = BaseCommand(type=Type.LOOKUP_RESPONSE, lookup_topic_response=to)
    return lambda session, frame: session.answer(frame.command, found)


def partitioned(partitions: int) -> Handler:
    """Return a handler that says of every topic that it has so many partitions."""
    good = CommandPartitionedTopicMetadataResponse.LookupType.Success
    told = CommandPartitionedTopicMetadataResponse(partitions=partitions, response=good)
    found = BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=told)
    return lambda session, frame: session.answer(frame.command, found)


def receipt(frame: Frame, ledger: int = 1) -> BaseCommand:
    send = frame.command.send
    where = MessageIdData(ledger_id=ledger, entry_id=send.sequence_id if ledger >= 0 else -1)
    done = CommandSendReceipt(producer_id=send.producer_id, sequence_id=send.sequence_id, message_id=where)
    return BaseCommand(type=Type.SEND_RECEIPT, send_receipt=done)


def answer_well(session: Session, frame: Frame) -> None:
    """Answer as a broker does when nothing is wrong."""
    request = frame.command
    if request.type == Type.CONNECT:
        connected(session)
    elif request.type == Type.PING:
        session.send(BaseCommand(type=Type.PONG, pong=CommandPong()))
    elif request.type == Type.SEND:
        session.send(receipt(frame))
    elif request.type in ANSWERS:
        session.answer(request, _good(session, request))


def _good(session: Session, request: BaseCommand) -> BaseCommand:
    answer = BaseCommand(type=ANSWERS[request.type])  # type: ignore[arg-type]
    if request.type == Type.PARTITIONED_METADATA:
        partitions = 2 if "transaction_coordinator" in request.partition_metadata.topic else 0
        good = CommandPartitionedTopicMetadataResponse.LookupType.Success
        answer.partition_metadata_response.CopyFrom(
            CommandPartitionedTopicMetadataResponse(partitions=partitions, response=good)
        )
    elif request.type == Type.LOOKUP:
        answer.lookup_topic_response.CopyFrom(
            CommandLookupTopicResponse(
                response=CommandLookupTopicResponse.LookupType.Connect,
                broker_service_url=session.broker.url,
                broker_service_url_tls=session.broker.url,
            )
        )
    elif request.type == Type.PRODUCER:
        session.producers += 1
        answer.producer_success.CopyFrom(CommandProducerSuccess(producer_name=f"fake-{session.producers}"))
    elif request.type == Type.NEW_TXN:
        answer.new_txn_response.CopyFrom(
            CommandNewTxnResponse(txnid_most_bits=request.new_txn.tc_id << 48, txnid_least_bits=7)
        )
    return answer
