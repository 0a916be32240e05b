"""Savepoints on a Pulsar topic: written as one transaction by the sink's own producer, listed, and read back.

A reader sees all of a savepoint or nothing. Geo-replication doesn't carry transactions: what it brings to another
cluster may be incomplete, and then it is refused.
"""

from __future__ import annotations

import contextlib
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from eos.commit.retry import Retry
from eos.commit.transaction import TransactionEnd, end, open_transaction
from eos.config import Cluster
from eos.errors import CommitUnknown, DamagedEntry, EosError, NetworkError, NotCommitted
from eos.pulsar.net.client import Client
from eos.pulsar.net.producer import Producer
from eos.pulsar.wire.message_id import MessageId
from eos.pulsar.wire.txn import TxnId
from statestore.errors import Damaged, InvalidInput, NotFound, Unavailable, UnknownVersion
from statestore.savepoints.folder import Source, Target
from statestore.savepoints.stream import (
    CHUNK,
    SAVEPOINT,
    Condition,
    Cutter,
    FilePart,
    Kind,
    Manifest,
    SavepointContent,
    Seen,
    Sum,
    files_of,
    pack_list,
    unpack_list,
)
from statestore.savepoints.topic_scan import TopicScan, messages_behind

HOLD = "__eos-savepoints"
"""The durable subscription that keeps the topic's messages; nothing on it is ever acknowledged."""
_AROUND = 64 * 1024  # bytes of a message's frame beside its data, generously
_END_PATIENCE_S = 120.0

_DELETED = "A message TTL, a backlog quota or a command may have deleted savepoints that were there"

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all, after each message."""


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic and its cluster, as one address: pulsar://host:port/tenant/namespace/topic.

    Attributes:
        service_url: pulsar://host:port, or pulsar+ssl://…
        topic: the full name, persistent://tenant/namespace/topic.
    """

    service_url: str
    topic: str

    @classmethod
    def parse(cls, uri: str) -> TopicAddress:
        """Read an address; with one name after the host it is a topic in public/default.

        Raises:
            InvalidInput: no such address.
        """
        parts = urlsplit(uri)
        names = parts.path.strip("/").split("/")
        if parts.scheme not in ("pulsar", "pulsar+ssl") or not parts.netloc or len(names) not in (1, 3) or "" in names:
            raise InvalidInput(
                f"{uri} is not the address of a topic. Write pulsar://host:port/tenant/namespace/topic, or "
                "pulsar://host:port/topic for a topic in public/default"
            )
        path = "/".join(names) if len(names) == 3 else f"public/default/{names[0]}"
        return cls(f"{parts.scheme}://{parts.netloc}", f"persistent://{path}")


def is_topic(uri: str) -> bool:
    """Whether this is the address of a topic, well made or not."""
    return uri.startswith(("pulsar:", "pulsar+ssl:"))


@dataclass(frozen=True, slots=True)
class What:
    """The facts about a savepoint beside its files, as of `statestore.savepoints.savepoint.Savepoint`."""

    name: str
    source: str
    batch_id: int
    query: str
    created_ms: int


def write(
    cluster: Cluster, topic: str, what: What, source: Source, timeout_s: float, progress: Progress = lambda *_: None
) -> Manifest:
    """Write a savepoint to a topic as one transaction; returns once it is committed.

    The topic is made if it is missing; a subscription keeps its messages from being deleted.

    Args:
        timeout_s: how long the transaction may take; after it the coordinator aborts it.

    Raises:
        InvalidInput: the topic has partitions, or the cluster no transactions.
        NotCommitted: nothing of it is or will be readable; write it again.
        CommitUnknown: whether it is readable is not known yet; `list_topic` tells.
    """
    with Client(cluster) as client:
        client.ensure_topic(topic)
        client.hold(topic, HOLD).close()
        coordinator = zlib.crc32(topic.encode()) % client.coordinators()
        _prime(client, coordinator, topic)
        writing = _Writing(what, uuid.uuid4().hex, source, progress)
        txn = _in_transaction(client, coordinator, topic, timeout_s, writing.send)
        manifest = writing.manifest
        assert manifest is not None
        ended = _end(client, txn, commit=True)
        if ended is TransactionEnd.COMMITTED or (
            ended is TransactionEnd.ENDED and _was_committed(client, topic, manifest)
        ):
            return manifest
        if ended is TransactionEnd.ENDED:
            raise NotCommitted(
                f"Savepoint {what.name} took longer than its transaction lives ({timeout_s:.0f} s), or the transaction "
                "was aborted by another client. Nothing of it is readable. Write it again with more time"
            )
        raise CommitUnknown(
            f"No answer told whether savepoint {what.name} was committed to {topic}. List the topic's savepoints later"
        )


class Listed(NamedTuple):
    """A savepoint on a topic.

    Attributes:
        manifest: None where it is missing or can't be read.
        name: the savepoint's, or its id where no message tells the name; of a damaged entry that may be of any
            savepoint, or of none, the place of the entry.
        condition: only one that is "ready" can be restored.
        lacks: what is missing of it, or can't be read, in words; "" for one that is ready.
    """

    manifest: Manifest | None
    name: str
    condition: Condition
    lacks: str


def list_topic(cluster: Cluster, topic: str) -> list[Listed]:
    """Return the savepoints on a topic, oldest first, and after them damaged entries that none of them lacks.

    All messages are read.

    Raises:
        Unavailable: the topic could not be read to its end.
    """
    with Client(cluster) as client:
        scan = TopicScan.of(client, topic)
    found = [Listed(seen.manifest, seen.name, seen.condition, seen.lacks()) for seen in scan.found.values()]
    return found + [Listed(None, where, "damaged", str(error)) for where, error in scan.nobodys()]


def find(cluster: Cluster, topic: str, name: str | None) -> Manifest:
    """Return the savepoint that `read` would restore.

    Raises:
        NotFound, InvalidInput, Damaged: as `read`.
    """
    with Client(cluster) as client:
        found = TopicScan.of(client, topic).found
        return _whole(found[_choose(found, name, topic)], topic)


def read(
    cluster: Cluster, topic: str, name: str | None, target: Target, progress: Progress = lambda *_: None
) -> Manifest:
    """Restore a savepoint from a topic.

    Args:
        name: the savepoint's; None: the only one there is.

    Raises:
        NotFound: there is none of that name.
        InvalidInput: there are several and none is named, or there is something at the target.
        Damaged: the copy on this topic is incomplete, or its bytes are not those that were written. Nothing is left at
            the target. Other savepoints on the topic don't matter.
        UnknownVersion: a newer statestore wrote it.
        Unavailable: the topic could not be read to its end. Nothing is left there either.
    """
    with Client(cluster) as client:
        scan = TopicScan.of(client, topic)
        id_ = _choose(scan.found, name, topic)
        seen = scan.found[id_]
        manifest = _whole(seen, topic)
        contents = unpack_list(manifest, seen.lists)
        target.begin()
        try:
            data = _data(client, topic, id_, scan.begins[id_], manifest, progress)
            for path, blocks in files_of(manifest, contents, data):
                target.write(path, blocks)
        except BaseException:
            with contextlib.suppress(EosError, OSError):
                target.abandon()
            raise
        return manifest


def _whole(seen: Seen, topic: str) -> Manifest:
    lacks = seen.lacks()
    if seen.condition == "unknown version":
        raise UnknownVersion(f"Savepoint {seen.name} on {topic} is of an unknown version, because {lacks}")
    if seen.condition == "damaged":
        raise Damaged(
            f"Savepoint {seen.name} on {topic} is damaged, because {lacks}. Restore another savepoint, or, if "
            "geo-replication brought it here, this one on the cluster that it was written to"
        )
    if seen.manifest is None or lacks:
        raise Damaged(
            f"Savepoint {seen.name} on {topic} is incomplete, because {lacks}. If geo-replication brought it here, "
            "wait until all of it has come, or restore it on the cluster that it was written to. Otherwise write "
            "it again"
        )
    return seen.manifest


class _Writing:
    """The messages of one savepoint, sent one by one."""

    def __init__(self, what: What, id_: str, source: Source, progress: Progress) -> None:
        self._what, self._id, self._source, self._progress = what, id_, source, progress
        self._number = 0
        self.manifest: Manifest | None = None

    def send(self, producer: Producer, txn: TxnId) -> None:
        chunk = min(CHUNK, producer.max_message_size - _AROUND)
        files = list(self._source.files())
        total = sum(length for _, length in files)
        cutter = Cutter(chunk)
        contents = []
        for path, length in files:
            own = Sum()
            for part in cutter.cut(own.over(self._source.read(path))):
                self._part(producer, txn, "data", part)
                self._progress(cutter.sum.size, total)
            if own.size != length:
                raise NotCommitted(f"{path} had {length} bytes when it was listed and {own.size} when it was read")
            contents.append(SavepointContent(path, own.size, own.crc32c))
        for part in cutter.rest():
            self._part(producer, txn, "data", part)
        data = self._number
        for part in pack_list(contents, chunk):
            self._part(producer, txn, "files", part)
        what = self._what
        self.manifest = Manifest(
            *(self._id, what.name, what.source, what.batch_id, what.query, what.created_ms),
            *(len(files), cutter.sum.size, cutter.sum.crc32c, data, self._number - data),
        )
        self._part(producer, txn, "manifest", self.manifest.encode())
        self._progress(total, total)

    def _part(self, producer: Producer, txn: TxnId, kind: Kind, data: bytes) -> None:
        part = FilePart(self._id, self._what.name, kind, self._number, data)
        producer.send_record(data, txn, part.properties())
        self._number += 1


def _in_transaction(
    client: Client, coordinator: int, topic: str, timeout_s: float, send: Callable[[Producer, TxnId], None]
) -> TxnId:
    """Send into a new transaction. When this returns, it is open, and nothing can be sent into it any longer."""
    try:
        with open_transaction(client, coordinator, [topic], timeout_s, _patience) as txn:
            # Closed, with the broker's confirmation, before the end: a send that comes later would undo the commit.
            with client.producer(topic) as producer:
                send(producer, txn)
            return txn
    except NetworkError as error:
        raise NotCommitted(f"The transaction on {topic} was aborted, or none was opened. {error}") from error


def _prime(client: Client, coordinator: int, topic: str) -> None:
    """End one transaction on the topic: until then it forgets aborts, and a late send would hide all that follows."""

    def send(producer: Producer, txn: TxnId) -> None:
        producer.send_record(b"", txn)

    _end(client, _in_transaction(client, coordinator, topic, 30, send), commit=False)


def _end(client: Client, txn: TxnId, commit: bool) -> TransactionEnd:
    """Ask for the end of a transaction until it has ended; NOT_YET when patience is at an end."""
    return end(client, txn, commit, _patience()).ending


def _patience() -> Retry:
    return Retry(_END_PATIENCE_S)


def _was_committed(client: Client, topic: str, manifest: Manifest) -> bool:
    try:
        return manifest in [seen.manifest for seen in TopicScan.of(client, topic).found.values()]
    except (Unavailable, NetworkError) as error:
        raise CommitUnknown(
            f"The transaction of savepoint {manifest.name} has ended, and it is unknown whether the "
            f"savepoint was committed. List the topic's savepoints later. {error}"
        ) from error


def _data(
    client: Client, topic: str, id_: str, after: MessageId, manifest: Manifest, progress: Progress
) -> Iterator[bytes]:
    """The bytes of one savepoint in order."""
    seen, done = Seen(manifest.name), 0
    for message in messages_behind(client, topic, after):
        if isinstance(message, DamagedEntry):  # of another savepoint, or a repeated one: this one was seen to be whole
            continue
        if message.properties.get(SAVEPOINT) != id_ or (part := seen.look(message.properties, message.data)) is None:
            continue
        if part.kind != "data":
            return
        done += len(part.data)
        progress(done, manifest.size)
        yield part.data


def _choose(found: dict[str, Seen], name: str | None, topic: str) -> str:
    """The id of the newest savepoint of that name, a whole one before one that isn't."""
    names = sorted({seen.name for seen in found.values()})
    if name is None and len(names) == 1:
        name = names[0]
    if name is None and names:
        raise InvalidInput(f"{topic} holds several savepoints. Name one of {', '.join(names)}")
    fitting = [id_ for id_, seen in found.items() if seen.name == name]
    if not fitting:
        raise NotFound(
            f"There is no savepoint {name or ''} on {topic}. There are: {', '.join(names) or 'none'}. {_DELETED}"
        )
    whole = [id_ for id_ in fitting if found[id_].condition == "ready"]
    return (whole or fitting)[-1]
