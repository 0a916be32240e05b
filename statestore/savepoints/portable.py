"""Savepoints on a Pulsar topic, by address: from any checkpoint, to any file system, on any machine."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from eos.config import Cluster
from statestore.bk.address import Address, is_bk
from statestore.bk.names import Names
from statestore.checkpoint.hadoop_files import HadoopFiles
from statestore.errors import CutFailed, NotFound, StateStoreError
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import bookkeeper, creating, cut, deleting, restoring, store, topic
from statestore.savepoints.folder import HadoopFolder, Source, await_visible
from statestore.savepoints.manifest import METADATA, check_name
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import Progress, TopicAddress, What

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRANSACTION_S = 600.0
_ATTEMPTS = 3


def create(
    name: str,
    source: str,
    to: str,
    *,
    batch: int | None = None,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    cluster: Cluster | None = None,
    timeout_s: float = TRANSACTION_S,
    progress: Progress = lambda *_: None,
) -> Manifest:
    """Write a savepoint of a checkpoint to a topic, as one transaction, also while its query runs.

    A checkpoint on BookKeeper is held by a savepoint of its own while its bytes are copied. On other file systems a
    file may be deleted under our hands; then it is begun again.

    Args:
        source: the checkpoint's address, of any scheme that Hadoop knows.
        to: pulsar://host:port/tenant/namespace/topic.
        cluster: credentials and TLS; its service URL wins over that of `to`.
        timeout_s: how long the transaction may take. Default 600. A copy that dies leaves it open that long, and hides
            what is written to the topic after it.

    Raises:
        InvalidInput, NotFound, CutFailed, Unavailable: as `bookkeeper.create`.
        NotCommitted, CommitUnknown: as `topic.write`.
    """
    where = TopicAddress.parse(to)
    check_name(name)
    hadoop = Hadoop.of(spark, options)

    def send(what: What, copied: Source) -> Manifest:
        return topic.write(cluster or Cluster(where.service_url), where.topic, what, copied, timeout_s, progress)

    if is_bk(source):
        with _held(name, Address.parse(source, options), hadoop, batch) as (what, held):
            return send(what, held)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return send(*_as_it_is(name, source, hadoop, batch))
        except (NotFound, CutFailed) as error:
            if attempt == _ATTEMPTS:
                raise CutFailed(f"{source} changed {_ATTEMPTS} times while it was copied: {error}") from error
    raise AssertionError


def find(source: str, name: str | None = None, cluster: Cluster | None = None) -> Manifest:
    """Return the savepoint on a topic that `restore` would restore.

    Raises:
        NotFound, InvalidInput, Damaged: as `topic.read`.
    """
    where = TopicAddress.parse(source)
    return topic.find(cluster or Cluster(where.service_url), where.topic, name)


def restore(
    source: str,
    target: str,
    name: str | None = None,
    *,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    cluster: Cluster | None = None,
    progress: Progress = lambda *_: None,
) -> Manifest:
    """Make a new checkpoint of a savepoint on a topic.

    Args:
        source: pulsar://host:port/tenant/namespace/topic.
        target: an address of any scheme that Hadoop knows, where nothing is.
        name: the savepoint's; None: the only one on the topic.

    Raises:
        NotFound, InvalidInput, Damaged: as `topic.read`. What was begun at the target is removed.
    """
    where = TopicAddress.parse(source)
    hadoop = Hadoop.of(spark, options)
    folder = HadoopFolder(hadoop, hadoop.qualified(target))
    return topic.read(cluster or Cluster(where.service_url), where.topic, name, folder, progress)


def _as_it_is(name: str, source: str, hadoop: Hadoop, batch: int | None) -> tuple[What, Source]:
    """A checkpoint that nobody holds: a file may go before it is read."""
    files = HadoopFiles(hadoop, source)
    chosen, paths = cut.choose(files, batch)
    lengths = {}
    for path in paths:
        status = hadoop.status(files.uri(path))
        if status is None:
            raise CutFailed(f"Batch {chosen} can't be copied: {path} is not there")
        lengths[path] = status.length
    query = creating.query_of(files.read(METADATA))
    return What(name, source, chosen, query, time.time_ns() // 1_000_000), HadoopFolder(hadoop, source, lengths)


@contextlib.contextmanager
def _held(name: str, address: Address, hadoop: Hadoop, batch: int | None) -> Iterator[tuple[What, Source]]:
    """A checkpoint that stays as it is in the meantime: a savepoint of it, restored to a place of its own."""
    hold = f"{name[:80]}-copy-{uuid.uuid4().hex[:12]}"
    place = address.at(f"{bookkeeper.COPIES}/{hold}")
    with Names.connect(address) as names:
        savepoint = creating.create(
            names, hold, address.uri, lambda: cut.take(names, address.path, _reader(hadoop, address), batch)
        )
        try:
            restoring.restore(names, hold, place.path)
            files = store.read(names, hold)[1]
            lengths = {path: record.length for path, record in files.items()}
            await_visible(hadoop, place.at(METADATA).uri, lengths[METADATA])
            what = What(name, address.uri, savepoint.batch, savepoint.query, savepoint.created_ms)
            yield what, HadoopFolder(hadoop, place.uri, lengths)
        finally:
            with contextlib.suppress(StateStoreError):
                deleting.delete(names, hold)
                names.remove_tree(place.path)


def _reader(hadoop: Hadoop, address: Address) -> Callable[[str], bytes]:
    return lambda path: hadoop.read(address.at(path).uri)
