"""What is said of ledgers where ZooKeeper does not answer, or answers what is old."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from kazoo.client import KeeperState
from kazoo.exceptions import NoNodeError, SessionExpiredError

from eos.bookkeeper.errors import BookieUnavailable, EntryMissing, MetadataUnreadable
from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from tests.waiting import PATIENCE_S, until

LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
TIMEOUT_S = 0.3


# ---- a server that goes away


class GoesAway:
    """A ZooKeeper that answers until it is told to end: a handshake, pings, and the layout to each question."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._connection: socket.socket | None = None
        threading.Thread(target=self._serve, daemon=True).start()

    def end(self) -> None:
        self._server.close()
        if self._connection is not None:
            with suppress(OSError):  # it has ended
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()

    def _serve(self) -> None:
        try:
            self._connection, _ = self._server.accept()
            self._frame()
            self._send(struct.pack(">iiqi", 0, 1_000, 77, 16) + b"p" * 16 + b"\0")
            while True:
                xid, op = struct.unpack(">ii", self._frame()[:8])
                if op == 11:  # ping
                    self._send(struct.pack(">iqi", -2, 1, 0))
                else:
                    data = struct.pack(">i", len(LAYOUT)) + LAYOUT + struct.pack(">qqqqiiiqiiq", *[0] * 11)
                    self._send(struct.pack(">iqi", xid, 1, 0) + data)
        except (OSError, struct.error):
            return

    def _frame(self) -> bytes:
        assert self._connection is not None
        left = struct.unpack(">i", self._connection.recv(4))[0]
        found = b""
        while len(found) < left:
            found += self._connection.recv(left - len(found))
        return found

    def _send(self, answer: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(struct.pack(">i", len(answer)) + answer)


@pytest.fixture
def server() -> Iterator[GoesAway]:
    made = GoesAway()
    yield made
    made.end()


ASKS: list[Callable[[ZooKeeperMetadata], object]] = [lambda one: one.metadata(7), lambda one: one.address("bk0")]


@pytest.mark.parametrize("ask", ASKS)
def test_a_zookeeper_that_has_gone_away_is_waited_for_no_longer_than_was_said(
    ask: Callable[[ZooKeeperMetadata], object], server: GoesAway
) -> None:
    with ZooKeeperMetadata(server.address, timeout_s=TIMEOUT_S) as zookeeper:
        server.end()
        until(lambda: not zookeeper._client.connected, "the client thinks that it is there")
        errors: list[BaseException] = []

        def asking() -> None:
            try:
                ask(zookeeper)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=asking, daemon=True)
        thread.start()
        thread.join(PATIENCE_S)
        assert [type(error) for error in errors] == [BookieUnavailable]


# ---- a server that lags behind


class Lags:
    """A session on a server without some nodes until it is asked to catch up. Of kazoo's client it has what we use."""

    def __init__(self, nodes: dict[str, bytes], later: dict[str, bytes], state: str, synced: Exception | None) -> None:
        self.client_state = state
        self._nodes, self._later, self._synced = nodes, later, synced

    def start(self, timeout: float) -> None:
        """See KazooClient."""

    stop = close = lambda self: None

    def get_async(self, path: str) -> Any:
        return Answer(self._nodes[path] if path in self._nodes else NoNodeError())

    def sync_async(self, path: str) -> Any:
        self._nodes = self._nodes | self._later
        return Answer(self._synced or path.encode())


class Answer:
    def __init__(self, told: bytes | Exception) -> None:
        self._told = told

    def get(self, timeout: float) -> tuple[bytes, None]:
        assert timeout == TIMEOUT_S
        if isinstance(self._told, Exception):
            raise self._told
        return self._told, None


CONNECTED, READ_ONLY = KeeperState.CONNECTED, KeeperState.CONNECTED_RO
AT, LEDGER = "/ledgers/LAYOUT", "/ledgers/00/0000/L0007"


def opened(
    monkeypatch: pytest.MonkeyPatch,
    later: dict[str, bytes],
    state: str = CONNECTED,
    synced: Exception | None = None,
    nodes: dict[str, bytes] | None = None,
) -> ZooKeeperMetadata:
    session = Lags({AT: LAYOUT} if nodes is None else nodes, later, state, synced)
    monkeypatch.setattr("eos.bookkeeper.net.zookeeper.KazooClient", lambda hosts, **given: session)
    return ZooKeeperMetadata("nowhere", timeout_s=TIMEOUT_S)


def test_a_ledger_is_gone_only_where_a_server_that_has_caught_up_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MetadataUnreadable):  # it is there: no ledger's metadata look so
        opened(monkeypatch, {LEDGER: b"metadata"}).metadata(7)
    with pytest.raises(EntryMissing, match="no longer exists"):
        opened(monkeypatch, {}).metadata(7)
    assert opened(monkeypatch, {AT: LAYOUT}, nodes={}) is not None
    with pytest.raises(MetadataUnreadable, match="no BookKeeper has its ledgers there"):
        opened(monkeypatch, {}, nodes={})


@pytest.mark.parametrize(("state", "synced"), [(READ_ONLY, None), (CONNECTED, SessionExpiredError())])
def test_a_server_that_cannot_catch_up_proves_nothing(
    state: str, synced: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BookieUnavailable):
        opened(monkeypatch, {}, state, synced).metadata(7)
    with pytest.raises(BookieUnavailable):
        opened(monkeypatch, {}, state, synced, nodes={})


def test_without_kazoo_the_extra_is_named() -> None:
    lacks = "import sys; sys.modules['kazoo'] = None; import eos.bookkeeper.net.zookeeper"
    done = subprocess.run([sys.executable, "-c", lacks], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "spark-pulsar-eos[zookeeper]"' in done.stderr.splitlines()[-1]
