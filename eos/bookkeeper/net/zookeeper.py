"""Metadata of ledgers and addresses of bookies, from the ZooKeeper that BookKeeper keeps them in. Needs kazoo."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from eos.bookkeeper.errors import BookieUnavailable, EntryMissing, MetadataUnreadable
from eos.bookkeeper.net.bookies import by_id
from eos.bookkeeper.wire.bookkeeper_pb2 import BookieServiceInfoFormat
from eos.bookkeeper.wire.metadata import LedgerMetadata, parse_znode, znode
from eos.closing import Closing

try:
    from kazoo.client import KazooClient, KeeperState
    from kazoo.exceptions import KazooException, NoNodeError
    from kazoo.handlers.threading import KazooTimeoutError
except ImportError as error:
    raise ImportError(
        f"ZooKeeperMetadata needs kazoo, which can't be imported here: {error}. Install it with pip install "
        '"spark-pulsar-eos[zookeeper]".'
    ) from error

_LAYOUTS = {
    "FlatLedgerManagerFactory": "flat",
    "LegacyHierarchicalLedgerManagerFactory": "legacy",
    "LongHierarchicalLedgerManagerFactory": "long",
}  # each other one: hierarchical
_ENDPOINT = "bookie-rpc"


class ZooKeeperMetadata(Closing):
    """Reads, and never writes."""

    def __init__(self, hosts: str, root: str = "/ledgers", *, timeout_s: float = 10.0) -> None:
        """Connect.

        Args:
            hosts: "host:port" of the ZooKeeper servers, with commas.
            root: the cluster's root of ledgers (`zkLedgersRootPath`). Default "/ledgers".
            timeout_s: of connecting, of the session, and of each answer. Default 10.

        Raises BookieUnavailable; MetadataUnreadable where no BookKeeper has its ledgers there.
        """
        self._root, self._timeout_s = root, timeout_s
        self._client = KazooClient(hosts, timeout=timeout_s, read_only=True)
        try:
            self._client.start(timeout=timeout_s)
            self._layout = self._read_layout()
        except KazooTimeoutError as error:
            self.close()
            raise BookieUnavailable(f"ZooKeeper at {hosts} did not answer within {timeout_s:g} s") from error
        except BaseException:
            self.close()
            raise

    def metadata(self, ledger: int) -> LedgerMetadata:
        """Return the metadata of a ledger.

        Raises EntryMissing where the ledger is gone, MetadataUnreadable, BookieUnavailable.
        """
        data = self._newest(znode(ledger, self._root, layout=self._layout))
        if data is None:
            raise EntryMissing(f"ledger {ledger} no longer exists. ZooKeeper has no metadata of it")
        return parse_znode(ledger, data)

    def address(self, bookie: str) -> tuple[str, int]:
        """Return host and port of a bookie, as it registered them: a `resolve` for `Bookies`.

        Raises BookieUnavailable.
        """
        for folder in ("available", "available/readonly"):
            data = self._get(f"{self._root}/{folder}/{bookie}")
            for endpoint in _endpoints(data or b""):
                if endpoint.protocol == _ENDPOINT:
                    return endpoint.host, endpoint.port
        return by_id(bookie)

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def _read_layout(self) -> str:
        data = self._newest(f"{self._root}/LAYOUT")
        if data is None:
            raise MetadataUnreadable(f"ZooKeeper has no {self._root}/LAYOUT, so no BookKeeper has its ledgers there")
        # The layout's version, then class:version.
        name = data.decode(errors="replace").splitlines()[-1].partition(":")[0].rpartition(".")[2]
        return _LAYOUTS.get(name, "hierarchical")

    def _newest(self, path: str) -> bytes | None:
        """Return a node; None where there is none, as the servers' majority has it, not the one that answers.

        Raises BookieUnavailable where the server that answers may lag behind for long: it serves reads alone.
        """
        data = self._get(path)
        if data is None:
            if self._client.client_state == KeeperState.CONNECTED_RO:
                raise BookieUnavailable(f"{path} is not on a ZooKeeper server that has lost the others. It may be old")
            self._answer(path, self._client.sync_async(path))
            data = self._get(path)
        return data

    def _get(self, path: str) -> bytes | None:
        try:
            data: bytes = self._answer(path, self._client.get_async(path))[0]
        except NoNodeError:
            return None
        return data

    def _answer(self, path: str, asked: Any) -> Any:
        """Wait for an answer: a client that has lost ZooKeeper keeps what it is asked for until it is back."""
        try:
            return asked.get(timeout=self._timeout_s)
        except NoNodeError:
            raise
        except (KazooException, KazooTimeoutError) as error:
            raise BookieUnavailable(f"{path} could not be read from ZooKeeper ({error!r})") from error


def _endpoints(data: bytes) -> list[BookieServiceInfoFormat.Endpoint]:
    try:
        return list(BookieServiceInfoFormat.FromString(data).endpoints)
    except DecodeError:
        return []
