"""Savepoints on a Pulsar topic, by address: from any checkpoint, to any file system, on any machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from eos.config import MOST_S, Cluster
from statestore.bk.address import is_bk
from statestore.checkpoint.cut import cut_of
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.place import NewCheckpoint
from statestore.defaults import TRANSACTION_S
from statestore.errors import CutFailed, InvalidInput, NotFound
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import bookkeeper, topic
from statestore.savepoints.folder import HadoopFolder, Source
from statestore.savepoints.savepoint import check_name
from statestore.savepoints.store import SavepointStore
from statestore.savepoints.stream import Manifest
from statestore.savepoints.topic import Progress, TopicAddress, What

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 3


def create(
    name: str,
    source: str,
    to: str,
    *,
    batch_id: int | None = None,
    operators: int | None = None,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    cluster: Cluster | None = None,
    timeout_s: float = TRANSACTION_S,
    progress: Progress = lambda *_: None,
) -> Manifest:
    """Write a savepoint of a checkpoint to a topic, as one transaction, also while its query runs.

    A checkpoint on BookKeeper is held by a savepoint of its own while its bytes are copied. On other file systems a
    file may be deleted or replaced under our hands; then it is begun again.

    Args:
        source: the checkpoint's address, of any scheme that Hadoop knows.
        to: pulsar://host:port/tenant/namespace/topic.
        batch_id, operators: as of `bookkeeper.create`.
        cluster: credentials and TLS; its service URL wins over that of `to`.
        timeout_s: how long the transaction may take. Default 600. A copy that dies leaves it open that long, and hides
            what is written to the topic after it.

    Raises:
        InvalidInput, NotFound, CutFailed, Unavailable: as `bookkeeper.create`.
        NotCommitted, CommitUnknown: as `topic.write`.
    """
    where = TopicAddress.parse(to)
    check_name(name)
    if not isinstance(timeout_s, int | float) or not 1 <= timeout_s <= MOST_S:
        raise InvalidInput(f"The transaction's time-out is {timeout_s!r}. Give seconds, from 1 to {MOST_S:,.0f}")

    def send(what: What, copied: Source) -> Manifest:
        return topic.write(cluster or Cluster(where.service_url), where.topic, what, copied, timeout_s, progress)

    if is_bk(source):
        with _held(name, SavepointStore.of(source, options, spark), batch_id, operators) as (what, held):
            return send(what, held)
    hadoop = Hadoop.of(spark, options)
    failed: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            cut = cut_of(HadoopFiles(hadoop, source), source, batch_id, operators)
        except CutFailed as error:
            failed = error
            continue
        what = What(name, source, cut.batch_id, cut.query, time.time_ns() // 1_000_000)
        try:
            return send(what, HadoopFolder(NewCheckpoint(hadoop, source), cut.lengths, cut.written_ms))
        except (NotFound, CutFailed) as error:
            failed = error
    raise CutFailed(f"{source} changed {_ATTEMPTS} times while it was copied: {failed}") from failed


def find(source: str, name: str | None = None, cluster: Cluster | None = None) -> Manifest:
    """Return the savepoint on a topic that `restore` would restore.

    Raises:
        NotFound, InvalidInput, Damaged, Unavailable: as `topic.read`.
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
        NotFound, InvalidInput, Damaged, Unavailable: as `topic.read`. The unfinished target is removed.
    """
    where = TopicAddress.parse(source)
    hadoop = Hadoop.of(spark, options)
    folder = HadoopFolder(NewCheckpoint(hadoop, hadoop.qualified(target)))
    return topic.read(cluster or Cluster(where.service_url), where.topic, name, folder, progress)


@contextlib.contextmanager
def _held(
    name: str, store: SavepointStore, batch_id: int | None, operators: int | None = None
) -> Iterator[tuple[What, Source]]:
    """A checkpoint that stays as it is in the meantime."""
    with bookkeeper.cut_to_copy(name, store, batch_id, operators) as (own, made, lengths):
        what = What(name, store.address.uri, made.batch_id, made.query, made.created_ms)
        yield what, HadoopFolder(NewCheckpoint(own.hadoop, own.address.uri), lengths)
