"""A ZooKeeper session whose writes always have a known outcome.

A read is asked again until it is answered. A write that got no answer is never sent again blindly: after `sync` its own
trace decides. That is sound: ZooKeeper carries nothing out for a session that has expired or moved to another server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Literal

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    NoNodeError,
    OperationTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL

from statestore.bk.address import Address
from statestore.errors import InvalidInput, StateStoreError, Unavailable
from statestore.hadoop import options

# What kazoo says of lost connections is for those who ask for it: our errors tell what became of a call.
_LOG = logging.getLogger("statestore.bk.zookeeper")
_LOG.addHandler(logging.NullHandler())
MULTI_BYTES = 512 * 1024
"""A multi is kept below this: ZooKeeper's servers refuse requests over 1 MiB."""
_IN_FLIGHT = 500
_CONNECT_S = 20.0
_UNANSWERED = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    OperationTimeoutError,
    SessionMovedError,
    KazooTimeoutError,
)
_PAUSE_S = 0.2
_ZOOKEEPER = options.PREFIX + "zookeeper."


class Refused(StateStoreError):
    """ZooKeeper refused a multi, and nothing was changed.

    Attributes:
        position: which of the operations it refused.
        why: the kind of refusal as kazoo names it, such as "NodeExistsError".
    """

    def __init__(self, position: int, operation: Operation, why: str) -> None:
        super().__init__(f"ZooKeeper refused {operation.kind} {operation.path}: {why}")
        self.position = position
        self.why = why


@dataclass(frozen=True, slots=True)
class Operation:
    """One part of a multi.

    Attributes:
        version: of the znode, for all but "create"; -1: any.
        ephemeral: "create" only: it goes when the session ends.
    """

    kind: Literal["create", "set", "delete", "check"]
    path: str
    data: bytes = b""
    version: int = -1
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A znode: its bytes, their version, its time of change in milliseconds since the epoch, the number of children."""

    data: bytes
    version: int
    mtime_ms: int
    children: int


class ZooKeeper:
    """One session. Usable as a context manager; safe for one thread at a time."""

    def __init__(self, client: KazooClient, root: str, patience_s: float) -> None:
        self._client = client
        self._root = root
        self._patience_s = patience_s

    @classmethod
    def connect(cls, address: Address) -> ZooKeeper:
        """Open a session to the servers of an address, with its options for credentials and TLS.

        Raises:
            Unavailable: no server answers.
            InvalidInput: an option that only Java can follow.
        """
        session_s = int(options.value(address.options, "session.timeout.ms")) / 1000
        patience_s = int(options.value(address.options, "patience.ms")) / 1000
        client = KazooClient(
            hosts=address.servers,
            timeout=session_s,
            logger=_LOG,
            connection_retry=KazooRetry(max_tries=-1, delay=_PAUSE_S, max_delay=1),
            **_credentials(options.value(address.options, "zookeeper-auth")),
            **_tls(address.options),
        )
        try:
            client.start(timeout=min(patience_s, _CONNECT_S))
        except KazooTimeoutError as error:
            client.stop()
            client.close()
            raise Unavailable(f"No ZooKeeper answers at {address.servers}: is it running, is it that port?") from error
        return cls(client, address.root, patience_s)

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def __enter__(self) -> ZooKeeper:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session."""
        self.close()

    def node(self, path: str) -> Node | None:
        """Return the znode, or None where there is none."""
        return next(self.nodes([path]))

    def nodes(self, paths: Iterable[str]) -> Iterator[Node | None]:
        """Read many znodes, some hundreds of requests on their way at a time; None for each that is not there."""
        for found in self._each("get_async", paths):
            if found is None:
                yield None
            else:
                data, stat = found
                yield Node(data, stat.version, stat.mtime, stat.numChildren)

    def exist(self, paths: Iterable[str]) -> Iterator[bool]:
        """Tell of many znodes whether they are there."""
        for stat in self._each("exists_async", paths):
            yield stat is not None

    def children(self, path: str) -> list[str] | None:
        """Return the names of the children, sorted; None where there is no such znode."""
        found = next(self._each("get_children_async", [path]))
        return None if found is None else sorted(found)

    def children_of(self, paths: Iterable[str]) -> Iterator[list[str] | None]:
        """Return the children's names of many znodes, as `children` does."""
        for found in self._each("get_children_async", paths):
            yield None if found is None else sorted(found)

    def there(self, path: str) -> Callable[[], bool]:
        """Return a question for `write`: is this znode there?"""
        return lambda: all(self.exist([path]))

    def gone(self, path: str) -> Callable[[], bool]:
        """Return a question for `write`: is this znode gone?"""
        return lambda: not any(self.exist([path]))

    def sync(self) -> None:
        """Wait until the server we talk to has seen all that was committed before."""
        self._asked_until_answered(lambda: self._client.sync_async(self._root))

    def write(self, operations: Sequence[Operation], happened: Callable[[], bool]) -> None:
        """Carry out all of the operations or none.

        Args:
            operations: together below `MULTI_BYTES`.
            happened: reads what only this write leaves behind; asked when ZooKeeper gave no answer.

        Raises:
            Refused: nothing was changed.
            Unavailable: ZooKeeper stayed away for too long; it is not known whether it happened.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            request = self._client.transaction()
            for operation in operations:
                _add(request, operation)
            try:
                results = request.commit_async().get(timeout=self._patience_s)
            except _UNANSWERED as error:
                # Not sent again before the trace says that it did not happen.
                try:
                    self.sync()
                    if happened():
                        return
                except Unavailable as lost:
                    raise Unavailable(
                        f"ZooKeeper was lost during a write, and it is not known whether it happened: {lost}"
                    ) from error
                _pause(deadline, error)
                continue
            _raise_refusal(operations, results)
            return

    def _each(self, call: str, paths: Iterable[str]) -> Iterator[Any]:
        left = iter(paths)
        while batch := list(islice(left, _IN_FLIGHT)):
            begun = [(path, self._begin(call, path)) for path in batch]
            for path, answer in begun:
                yield self._asked_until_answered(partial(self._begin, call, path), answer)

    def _begin(self, call: str, path: str) -> Any:
        return getattr(self._client, call)(path)

    def _asked_until_answered(self, ask: Callable[[], Any], answer: Any = None) -> Any:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return (answer if answer is not None else ask()).get(timeout=self._patience_s)
            except NoNodeError:
                return None
            except _UNANSWERED as error:
                answer = None
                _pause(deadline, error)
            except ZookeeperError as error:
                raise _failed(error) from error


def split(operations: Iterable[Sequence[Operation]]) -> Iterator[list[Operation]]:
    """Gather groups of operations into multis below `MULTI_BYTES`; a group is never divided."""
    gathered: list[Operation] = []
    size = 0
    for group in operations:
        # Each operation takes a header, an ACL and lengths besides its path and data.
        more = sum(len(operation.path) + len(operation.data) + 100 for operation in group)
        if gathered and size + more > MULTI_BYTES:
            yield gathered
            gathered, size = [], 0
        gathered.extend(group)
        size += more
    if gathered:
        yield gathered


def _add(request: Any, operation: Operation) -> None:
    if operation.kind == "create":
        request.create(operation.path, operation.data, ephemeral=operation.ephemeral)
    elif operation.kind == "set":
        request.set_data(operation.path, operation.data, operation.version)
    elif operation.kind == "delete":
        request.delete(operation.path, operation.version)
    else:
        request.check(operation.path, operation.version)


def _raise_refusal(operations: Sequence[Operation], results: Sequence[object]) -> None:
    for position, result in enumerate(results):
        if isinstance(result, Exception) and not isinstance(result, RolledBackError | RuntimeInconsistency):
            if isinstance(result, ZookeeperError):
                raise Refused(position, operations[position], type(result).__name__)
            raise result


def _failed(error: ZookeeperError) -> StateStoreError:
    name = type(error).__name__
    if name in ("NoAuthError", "AuthFailedError"):
        return InvalidInput(
            f"ZooKeeper refuses access ({name}): set {options.PREFIX}zookeeper-auth to digest:user:password"
        )
    return Unavailable(f"ZooKeeper answered {name}: {error}")


def _pause(deadline: float, error: Exception) -> None:
    if time.monotonic() > deadline:
        raise Unavailable(f"ZooKeeper gave no answer for too long ({type(error).__name__})") from error
    time.sleep(_PAUSE_S)


def _credentials(text: str) -> dict[str, Any]:
    """`digest:user:password`: then what we make is for that user only, as in the jar."""
    if not text:
        return {}
    scheme, colon, credential = text.partition(":")
    if not colon or not credential:
        raise InvalidInput(f"{options.PREFIX}zookeeper-auth must read digest:user:password")
    return {"auth_data": [(scheme, credential)], "default_acl": CREATOR_ALL_ACL}


def _tls(given: Mapping[str, str]) -> dict[str, Any]:
    """ZooKeeper's Java options for TLS, as kazoo takes them; only PEM files, which Java reads too."""

    def option(name: str) -> str:
        return given.get(_ZOOKEEPER + name, "")

    if option("client.secure").lower() != "true":
        return {}
    key, trusted = option("ssl.keyStore.location"), option("ssl.trustStore.location")
    for name, file in (("ssl.keyStore.location", key), ("ssl.trustStore.location", trusted)):
        if file and not file.endswith(".pem"):
            raise InvalidInput(
                f"{_ZOOKEEPER}{name} is {file}: Python reads PEM only. Convert it (keytool -importkeystore to PKCS12, "
                "then openssl pkcs12 -nodes) and name it .pem; Java reads that file too"
            )
    return {
        "use_ssl": True,
        "ca": trusted or None,
        # One file with key and certificate, as Java's PEM key stores are.
        "certfile": key or None,
        "keyfile": key or None,
        "keyfile_password": option("ssl.keyStore.password") or None,
        "check_hostname": option("ssl.hostnameVerification").lower() != "false",
    }
