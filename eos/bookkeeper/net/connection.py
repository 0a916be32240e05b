"""One connection to a bookie: a request goes out, its answers come in."""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from eos.bookkeeper.errors import (
    BookieClosed,
    BookieUnauthorized,
    BookieUnavailable,
    BookieUntrusted,
    LedgerReadError,
)
from eos.bookkeeper.wire import frames
from eos.bookkeeper.wire.frames import BookieAnswer, BookieFrames, Code

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""The largest answer that is taken: an entry of Pulsar is 5 MiB unless the cluster's `maxMessageSize` is larger."""

LEAST_BYTES = 256 * 1024
"""Bytes that must arrive of a request's answers within its time-out, unless all of them do. A bookie that sends less is
as good as silent: another one may be quick."""

_CHUNK = 1024 * 1024
_SHORTEST_S = 0.001  # also where time is up: what has arrived while this process was stopped is taken
_AUTHENTICATION_STEPS = 10


class Authentication(Protocol):
    """A plug-in that shows a bookie who we are, as BookKeeper's ClientAuthProvider does in Java.

    Attributes:
        plugin: the name that the bookie's plug-in has.
    """

    plugin: str

    def answer(self, challenge: bytes | None) -> bytes | None:
        """Return what to send next: first of all (None), or to what the bookie said. None ends it."""
        ...


class BookieConnection:
    """Blocking, for one thread at a time. A connection that has raised BookieUnavailable can't be used any longer."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        authentication: Authentication | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        """Connect to a bookie, begin TLS and authenticate, as far as they are given.

        Args:
            address: its host and port.
            timeout_s: how long the answers to a request may take, or their next LEAST_BYTES, and connecting too. It
                must be above 0.

        Raises BookieUnavailable; BookieUnauthorized, BookieUntrusted among it.
        """
        self._name = "{}:{}".format(*address)
        self._frames = BookieFrames(max_frame_bytes)
        self._arrived: deque[bytes] = deque()
        self._request_id = 0
        self._timeout_s = timeout_s
        self._deadline, self._come = 0.0, 0
        try:
            self._socket = socket.create_connection(address, timeout_s)
        except OSError as error:
            raise BookieUnavailable(f"the bookie {self._name} can't be reached: {error}") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._begin_tls(tls, address[0])
            if authentication is not None:
                self._authenticate(authentication)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection. A second time does nothing."""
        with suppress(OSError):
            self._socket.close()

    def read(self, ledger: int, entries: Sequence[int]) -> list[BookieAnswer]:
        """Ask for entries one by one, all at once; return the answers in that order.

        Raises BookieUnavailable; BookieUnauthorized.
        """
        self._send(b"".join(frames.read_request(ledger, entry) for entry in entries))
        # A bookie reads with several threads: answers come in any order.
        answers = {answer.entry: answer for answer in (self._answer(ledger) for _ in entries)}
        if missing := [entry for entry in entries if entry not in answers]:
            raise BookieUnavailable(f"the bookie {self._name} gave no answer about entry {ledger}:{missing[0]}")
        return [answers[entry] for entry in entries]

    def read_batch(self, ledger: int, first: int, count: int, max_bytes: int) -> BookieAnswer:
        """Ask for up to `count` entries from `first` on, of `max_bytes` at most, in one answer.

        Raises BookieClosed where the bookie is older than 4.17, and for other reasons; BookieUnavailable;
        BookieUnauthorized.
        """
        self._request_id += 1
        self._send(frames.batch_read_request(ledger, first, self._request_id, count, max_bytes))
        return self._answer(ledger)

    def _answer(self, ledger: int) -> BookieAnswer:
        answer = frames.answer_of(self._frame())
        if answer.code == Code.UNAUTHORIZED:
            raise BookieUnauthorized(f"the bookie {self._name} does not let this client read ledger {ledger}")
        if answer.ledger != ledger:
            raise BookieUnavailable(f"the bookie {self._name} answered about ledger {answer.ledger}, not {ledger}")
        return answer

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(data)
        except OSError as error:
            raise BookieUnavailable(f"the connection to the bookie {self._name} is lost: {error}") from error
        self._allow_time()

    def _allow_time(self) -> None:
        self._deadline, self._come = time.monotonic() + self._timeout_s, 0

    def _frame(self) -> bytes:
        while not self._arrived:
            try:
                self._socket.settimeout(max(self._deadline - time.monotonic(), _SHORTEST_S))
                data = self._socket.recv(_CHUNK)
            except TimeoutError as error:
                told = f"sent {self._come} bytes" if self._come else "did not answer"
                raise BookieUnavailable(f"the bookie {self._name} {told} within {self._timeout_s:g} s") from error
            except OSError as error:
                if _is_alert(error):  # of TLS 1.3, where a bookie looks at a client's certificate after the handshake
                    raise BookieUnauthorized(f"the bookie {self._name} refuses this client ({error})") from error
                raise BookieClosed(f"the connection to the bookie {self._name} is lost: {error}") from error
            if not data:
                raise BookieClosed(f"the bookie {self._name} closed the connection")
            self._arrived.extend(self._frames.feed(data))
            self._come += len(data)
            if self._come >= LEAST_BYTES:
                self._allow_time()
        return self._arrived.popleft()

    def _begin_tls(self, tls: ssl.SSLContext, host: str) -> None:
        self._send(frames.start_tls_request())
        status = frames.start_tls_status(self._frame())
        if status != Code.OK:
            raise BookieUnavailable(f"the bookie {self._name} does not begin TLS: status {status}")
        if self._arrived or self._frames.unfinished:
            # An attacker on the way could put answers in plain text before those that TLS protects.
            raise BookieUnavailable(f"the bookie {self._name} sent more than its answer before TLS began")
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except (OSError, ValueError) as error:
            raise _kind_of(error)(f"TLS with the bookie {self._name} failed: {error}") from error

    def _authenticate(self, authentication: Authentication) -> None:
        payload = authentication.answer(None)
        for _ in range(_AUTHENTICATION_STEPS):
            if payload is None:
                return
            self._send(frames.auth_request(authentication.plugin, payload))
            try:
                challenge = frames.auth_payload(self._frame())
            except BookieUnavailable as error:
                raise BookieUnauthorized(
                    f"the bookie {self._name} does not authenticate by {authentication.plugin!r}: {error}"
                ) from error
            payload = authentication.answer(challenge)
        raise BookieUnauthorized(
            f"the authentication {authentication.plugin!r} with the bookie {self._name} did not end after "
            f"{_AUTHENTICATION_STEPS} steps"
        )


def _kind_of(error: Exception) -> type[LedgerReadError]:
    """Return what a failed handshake proves: where one side does not trust the other, no new try can succeed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BookieUntrusted
    return BookieUnauthorized if _is_alert(error) else BookieUnavailable


def _is_alert(error: Exception) -> bool:
    """Whether the bookie ended TLS and said why."""
    return isinstance(error, ssl.SSLError) and "_ALERT_" in (error.reason or "")
