"""One connection to a broker: a socket, a lock for writing, a daemon thread for reading.

The reading thread never waits for the writing lock: what it has to say itself (PONG, PING,
fresh credentials) goes into a queue that the holder of the lock empties. A connection that
brought nothing for two keep-alive intervals is ended.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import groupby
from math import inf
from typing import Protocol

from eos.config import Cluster
from eos.errors import (
    ConnectionLost,
    DamagedFrame,
    EosError,
    NetworkError,
    NoCredentials,
    Refused,
    Unanswered,
    UnexpectedFrame,
    Unreachable,
)
from eos.pulsar.net.authentication import auth_data, expiry, without
from eos.pulsar.net.service_url import Address
from eos.pulsar.net.transport import Transport, connect, tls_advice
from eos.pulsar.net.waiting import look
from eos.pulsar.protocol.handshake import Handshake, State
from eos.pulsar.protocol.refusals import refused as refusal
from eos.pulsar.protocol.requests import ANSWERING, Requests, Type
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.frames import FRAME_PADDING, Frame, FrameDecoder, encode
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandPing, CommandPong, CommandTopicMigrated

log = logging.getLogger("eos.connection")

KEEP_ALIVE_S = 30.0
"""Seconds of silence after which we send PING (keepAliveIntervalSeconds of the Java client)."""

_TO_NO_REQUEST = 2**64 - 1
"""The request id of an error by which a broker ends a connection. With another one it answers what was only told."""

_MESSAGE, _SEND_RECEIPT = int(Type.MESSAGE), int(Type.SEND_RECEIPT)  # looked up once: they come by the thousand
_CLOSED_EARLY = (
    "Check that the broker is up, that this is its port, and whether it is its TLS port, which takes pulsar+ssl://"
)


class Listener(Protocol):
    """A producer or consumer on a connection; called by the reading thread, so it must not wait."""

    def received(self, frames: Sequence[Frame]) -> None:
        """Take frames that are meant for this producer or consumer, in order: those that came together."""

    def lost(self, why: EosError) -> None:
        """Learn that the connection has ended."""


class Connection:
    """A connection that has shaken hands.

    Attributes:
        address: where the socket goes to.
        broker: the broker at its end, for messages.
        max_message_size: bytes.
    """

    def __init__(self, address: Address, cluster: Cluster, proxied: Address | None = None) -> None:
        """Connect and shake hands.

        Args: the address, the cluster's settings, and the broker behind a proxy at `address`, or None. Raises
        Unreachable, Refused (authentication, too old a broker), Unanswered, ConnectionLost.
        """
        self.address = address
        self.broker = str(address) if proxied is None else f"{proxied} (through {address})"
        self._cluster = cluster
        self._failure: EosError | None = None
        self._last_words = ""
        self._shown = b""
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._urgent: deque[bytes] = deque()
        self._requests: Requests[Future[BaseCommand]] = Requests()
        self._producers: dict[int, Listener] = {}
        self._consumers: dict[int, Listener] = {}
        self._next_id = 0
        self._decoder = FrameDecoder()
        self._handshake = Handshake(cluster.credentials.method, proxied.authority if proxied is not None else None)
        self._transport: Transport = connect(address, cluster)
        try:
            self._shake_hands()
        except BaseException:
            self._transport.shut()
            self._transport.drop()
            raise
        self.max_message_size = self._handshake.max_message_size
        self._decoder.max_frame_size = self.max_message_size + FRAME_PADDING
        threading.Thread(target=self._read, name=f"eos {self.address}", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it can still be used."""
        return self._failure is None

    @property
    def creates_topics_unasked(self) -> bool:
        """Whether asking this broker for a topic's partitions may create the topic (before PIP-344)."""
        return self._handshake.creates_topics_unasked

    def listen_as_producer(self, listener: Listener) -> int:
        """Number a producer on this connection, and let it hear its frames from now on."""
        return self._listen(self._producers, listener)

    def listen_as_consumer(self, listener: Listener) -> int:
        """Number a consumer on this connection, and let it hear its frames from now on."""
        return self._listen(self._consumers, listener)

    def ignore_producer(self, producer_id: int) -> None:
        """Stop listening for a producer."""
        with self._lock:
            self._producers.pop(producer_id, None)

    def ignore_consumer(self, consumer_id: int) -> None:
        """Stop listening for a consumer."""
        with self._lock:
            self._consumers.pop(consumer_id, None)

    def ask(
        self,
        request: BaseCommand,
        asked: str,
        timeout_s: float = inf,
        sent: Callable[[], None] | None = None,
        moot: Callable[[], bool] = lambda: False,
    ) -> BaseCommand:
        """Send a request and return its answer, which may be a refusal.

        Args: the request; what is asked for, in words; seconds to wait, if fewer than the
        cluster's; called as soon as the socket has taken the request; whether no answer will come any longer, looked
        at each second.
        Raises Unanswered, ConnectionLost.
        """
        limit = min(self._cluster.request_timeout_s, timeout_s)
        waiting: Future[BaseCommand] = Future()
        with self._lock:
            self._check(asked)
            request_id = self._requests.number(request, waiting)
        try:
            self.command(request)
            if sent is not None:
                sent()
            left = limit
            while left > 0 and not waiting.done() and not moot():
                left = look(waiting.exception, left)
            return waiting.result(0)
        except FutureTimeout:
            raise Unanswered(f"{asked}: no answer from {self.broker} within {limit:g} s") from None
        except ConnectionLost as lost:
            raise ConnectionLost(f"{asked}: {lost}") from lost
        finally:
            with self._lock:
                self._requests.forget(request_id)

    def tell(self, request: BaseCommand) -> None:
        """Send a request without waiting for its answer. Raises ConnectionLost."""
        with self._lock:
            self._check("tell")
            self._requests.forget(self._requests.number(request, Future()))
        self.command(request)

    def command(self, command: BaseCommand) -> None:
        """Send a command that has no answer. Raises ConnectionLost."""
        self.send([encode(command)])

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send one frame, given as any number of buffers. Raises ConnectionLost."""
        try:
            with self._writing:
                if self._failure is not None:
                    raise self._failure
                self._transport.send(buffers)
        except (OSError, ValueError) as error:
            self._end(self._gone(str(error)))
            raise self._failure_now() from error
        except ConnectionLost:
            raise
        except BaseException as error:  # such as an interrupt: half a frame may have gone out
            self._end(self._gone(f"interrupted while sending by {type(error).__name__}"))
            raise
        finally:
            self._send_urgent()

    def close(self) -> None:
        """End the connection. All that is under way on it is lost."""
        self._end(ConnectionLost(f"the connection to {self.broker} was closed by this side"))

    def close_idle(self) -> bool:
        """End the connection unless a producer or a consumer is open on it, or an answer is awaited.

        Returns whether it has ended.
        """
        with self._lock:
            if self.alive and (self._producers or self._consumers or self._requests.waiting):
                return False
        self.close()
        return True

    def forget_after_fork(self) -> None:
        """Let go, in a forked child, of a connection that belongs to its parent."""
        self._failure = ConnectionLost(f"the connection to {self.broker} belongs to the parent process")
        self._transport.drop()

    def _shake_hands(self) -> None:
        handshake = self._handshake
        credentials = self._cluster.credentials
        limit = self._cluster.request_timeout_s
        self._shown = auth_data(credentials, limit)
        reply: BaseCommand | None = handshake.connect(self._shown)
        while True:
            try:
                if reply is not None:
                    self._transport.send([encode(reply)])
                reply = None
                data = self._transport.receive(limit)
            except OSError as error:
                raise self._cut_short(str(error)) from error
            if data is None:
                raise Unanswered(f"connect: no answer from {self.broker} within {limit:g} s")
            if not data:
                raise self._cut_short("the connection was closed")
            for frame in self._first_frames(data):
                try:
                    state = handshake.receive(frame.command)
                except Refused as refused:
                    words = f"{without(self._shown, refused.detail)}{expiry(self._shown)}"
                    raise refusal(f"connect to {self.broker}", refused.code, words) from None
                except UnexpectedFrame as error:
                    raise self._no_broker(error) from error
                if state is State.CONNECTED:
                    return
                self._shown = auth_data(credentials, limit)
                reply = handshake.response(self._shown)

    def _first_frames(self, data: bytes) -> list[Frame]:
        try:
            return self._decoder.feed(data)
        except DamagedFrame as error:
            raise self._no_broker(error) from error

    def _no_broker(self, why: EosError) -> Unreachable:
        return Unreachable(f"{self.broker} is not a Pulsar broker ({why}). Check the service URL")

    def _read(self) -> None:
        silent = False
        try:
            while self._failure is None:
                data = self._transport.receive(KEEP_ALIVE_S)
                if data:
                    silent = False
                    while frames := self._decoder.feed(data):  # again, for the damage after them
                        data = b""
                        self._dispatch(frames)
                elif data is not None:
                    raise self._gone(self._last_words or "closed by the broker")
                elif silent:
                    raise self._gone(f"no sign of life for {2 * KEEP_ALIVE_S:g} s")
                else:
                    silent = True
                    self._say(BaseCommand(type=Type.PING, ping=CommandPing()))
        except NetworkError as error:
            gone = error if isinstance(error, ConnectionLost) else self._gone(str(error))
            if gone is not error:
                gone.__cause__ = error
            self._end(gone)
        except Exception as error:  # a frame that we do not understand must not leave callers waiting
            self._end(self._gone(f"{type(error).__name__}: {error}"))
        finally:
            with self._writing:  # else a writer could hit a new socket that got this one's number
                self._transport.drop()

    def _dispatch(self, frames: Sequence[Frame]) -> None:
        for listener, together in groupby(frames, self._listener):
            if listener is not None:
                listener.received(list(together))
                continue
            for frame in together:
                self._take(frame.command)

    def _listener(self, frame: Frame) -> Listener | None:
        """Return the receiver of a frame. None where that is the connection itself, or nobody any longer."""
        command = frame.command
        kind = command.type
        if kind == _MESSAGE:
            return self._consumers.get(command.message.consumer_id)
        if kind == _SEND_RECEIPT:
            return self._producers.get(command.send_receipt.producer_id)
        if kind == Type.SEND_ERROR:
            return self._producers.get(command.send_error.producer_id)
        if kind == Type.CLOSE_PRODUCER:
            return self._producers.get(command.close_producer.producer_id)
        if kind == Type.CLOSE_CONSUMER:
            return self._consumers.get(command.close_consumer.consumer_id)
        if kind == Type.TOPIC_MIGRATED:
            moved = command.topic_migrated
            producer = moved.resource_type == CommandTopicMigrated.ResourceType.Producer
            return (self._producers if producer else self._consumers).get(moved.resource_id)
        return None

    def _take(self, command: BaseCommand) -> None:
        kind = command.type
        if kind in ANSWERING:
            self._answered(command)
        elif kind == Type.PING:
            self._say(BaseCommand(type=Type.PONG, pong=CommandPong()))
        elif kind == Type.AUTH_CHALLENGE:
            self._handshake.receive(command)
            threading.Thread(target=self._show_again, name=f"eos {self.address} credentials", daemon=True).start()

    def _show_again(self) -> None:
        """Answer a challenge, in a thread of its own: where credentials take their time, receipts still come in."""
        try:
            self._shown = auth_data(self._cluster.credentials, self._cluster.request_timeout_s, fresh=True)
        except NoCredentials as error:
            self._end(self._gone(f"the broker asked for fresh credentials, and there are none: {error}"))
        else:
            self._say(self._handshake.response(self._shown))
            log.info("%s asked for fresh credentials, and they were sent to it", self.broker)

    def _answered(self, command: BaseCommand) -> None:
        with self._lock:
            waiting = self._requests.match(command)
        if waiting is not None:
            waiting.set_result(command)
        elif command.type == Type.ERROR and command.error.request_id == _TO_NO_REQUEST:
            self._last_words = f"closed by the broker: {without(self._shown, command.error.message)}"

    def _say(self, command: BaseCommand) -> None:
        self._urgent.append(encode(command))
        self._send_urgent()

    def _send_urgent(self) -> None:
        while self._urgent and self._failure is None and self._writing.acquire(blocking=False):
            try:
                while self._urgent:
                    self._transport.send([self._urgent.popleft()])
            except (OSError, ValueError) as error:
                self._end(self._gone(str(error)))
            finally:
                self._writing.release()

    def _listen(self, listeners: dict[int, Listener], listener: Listener) -> int:
        with self._lock:
            self._check("open")
            number = self._next_id
            self._next_id += 1
            listeners[number] = listener
            return number

    def _check(self, asked: str) -> None:
        if self._failure is not None:
            raise ConnectionLost(f"{asked}: {self._failure}")

    def _failure_now(self) -> EosError:
        assert self._failure is not None
        return self._failure

    def _cut_short(self, why: str) -> Unreachable:
        """The answer where no broker took the connection, or one that comes or goes, or a proxy without a broker."""
        advice = tls_advice(why) or _CLOSED_EARLY
        return Unreachable(f"can't connect to {self.broker}: {why} before it answered. {advice}")

    def _gone(self, why: str) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.broker} is gone ({why})")

    def _end(self, why: EosError) -> None:
        with self._lock:
            if self._failure is not None:
                return
            self._failure = why
            waiting = self._requests.drain()
            listeners = [*self._producers.values(), *self._consumers.values()]
            self._producers = {}
            self._consumers = {}
        self._transport.shut()
        for future in waiting:
            future.set_exception(why)
        for listener in listeners:
            listener.lost(why)
