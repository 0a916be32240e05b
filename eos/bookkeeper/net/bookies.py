"""The bookies of a cluster: their addresses, their connections, and which of them failed a moment ago."""

from __future__ import annotations

import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from eos.addresses import port_number
from eos.bookkeeper.errors import BookieUnauthorized, BookieUnavailable
from eos.bookkeeper.net.connection import Authentication, BookieConnection
from eos.closing import Closing

Resolve = Callable[[str], tuple[str, int]]
"""Returns host and port of a bookie by its id. Raises BookieUnavailable."""


def by_id(bookie: str) -> tuple[str, int]:
    """Return the address that a bookie's id names, as it does unless the bookie was given another id."""
    host, _, port = bookie.rpartition(":")
    number = port_number(port)
    if not host or number is None:
        raise BookieUnavailable(
            f'the bookie id "{bookie}" does not name a host and a port. Only the metadata store knows where this bookie'
            " is. Give a map from ids to addresses"
        )
    return host.strip("[]"), number


def by_map(addresses: Mapping[str, str]) -> Resolve:
    """Return a `Resolve` for bookies with ids of their own: id → "host:port". Other ids name their address."""
    return lambda bookie: by_id(addresses.get(bookie, bookie))


class Bookies(Closing):
    """Lends connections to bookies, several to each at once. Thread-safe.

    A bookie that failed is left alone for a while, unless no other one has the entry.
    """

    def __init__(
        self,
        resolve: Resolve = by_id,
        *,
        timeout_s: float = 3.0,
        quarantine_s: float = 10.0,
        connections: int = 4,
        tls: ssl.SSLContext | None = None,
        authentication: Callable[[], Authentication] | None = None,
    ) -> None:
        """Connect when a bookie is needed first.

        Args:
            resolve: where a bookie is. Default: its id is "host:port".
            timeout_s: how long the answers to a request may take before another bookie is asked; of many bytes, the
                next 256 KiB of them. Default 3.
            quarantine_s: how long a bookie that failed is asked last. Default 10.
            connections: to one bookie at once, at most: that many requests are under way there. Default 4.
            tls: begin TLS by this context on each connection. Default: none.
            authentication: makes the plug-in for a connection. Default: none.
        """
        self._resolve = resolve
        self._timeout_s, self._quarantine_s = timeout_s, quarantine_s
        self._tls, self._authentication = tls, authentication
        self._idle: dict[str, list[BookieConnection]] = defaultdict(list)
        self._turns: dict[str, threading.BoundedSemaphore] = defaultdict(
            lambda: threading.BoundedSemaphore(connections)
        )
        self._failed_at: dict[str, float] = {}
        self._single: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self, bookie: str) -> Iterator[BookieConnection]:
        """Lend a connection. One on which the caller fails is closed, and its bookie is quarantined.

        Raises BookieUnavailable, BookieUnauthorized.
        """
        with self._lock:
            turn = self._turns[bookie]
        with turn:
            try:
                lent = self._take(bookie)
                try:
                    yield lent
                except BaseException:
                    lent.close()
                    raise
            except (BookieUnavailable, BookieUnauthorized):
                self._note_failure(bookie)
                raise
            self._give_back(bookie, lent)

    def quarantined(self, bookie: str) -> bool:
        """Whether a bookie failed a moment ago."""
        with self._lock:
            failed_at = self._failed_at.get(bookie)
        return failed_at is not None and time.monotonic() - failed_at < self._quarantine_s

    def reads_batches(self, bookie: str) -> bool:
        """Whether batch reads are worth a try with this bookie."""
        with self._lock:
            return bookie not in self._single

    def knows_no_batches(self, bookie: str) -> None:
        """Note that a bookie is too old for batch reads, so that it is asked for single entries from now on."""
        with self._lock:
            self._single.add(bookie)
            self._failed_at.pop(bookie, None)

    def close(self) -> None:
        """Close all connections; those that are lent, when they come back."""
        with self._lock:
            self._closed = True
            idle = [one for connections in self._idle.values() for one in connections]
            self._idle.clear()
        for one in idle:
            one.close()

    def _note_failure(self, bookie: str) -> None:
        with self._lock:
            self._failed_at[bookie] = time.monotonic()
            stale = self._idle.pop(bookie, [])  # a bookie that was started again knows none of them
        for one in stale:
            one.close()

    def _take(self, bookie: str) -> BookieConnection:
        with self._lock:
            if self._idle[bookie]:
                return self._idle[bookie].pop()
        return BookieConnection(
            self._resolve(bookie),
            timeout_s=self._timeout_s,
            tls=self._tls,
            authentication=self._authentication() if self._authentication is not None else None,
        )

    def _give_back(self, bookie: str, lent: BookieConnection) -> None:
        with self._lock:
            self._failed_at.pop(bookie, None)
            if not self._closed:
                self._idle[bookie].append(lent)
                return
        lent.close()
