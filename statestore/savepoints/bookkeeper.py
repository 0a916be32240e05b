"""Savepoints on BookKeeper, by address: what the command line and programs call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statestore.bk.address import Address
from statestore.bk.names import Names
from statestore.checkpoint import moved_metadata
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import creating, cut, deleting, keeping, restoring, store
from statestore.savepoints.folder import await_visible
from statestore.savepoints.manifest import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COPIES = "/.savepoints"
"""Where savepoints that are being copied to a topic are restored to for that time."""


def create(
    name: str,
    source: str,
    *,
    batch: int | None = None,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
) -> Savepoint:
    """Make a savepoint of a checkpoint, also while its query runs. No byte is copied.

    Args:
        name: unique in the tree that the checkpoint lies in.
        source: the checkpoint's address, bk://…
        batch: a committed batch that is still there; None: the newest.
        options: Hadoop options `fs.bk.…`.
        spark: whose JVM reads the few files that say what is needed; None: the active one's, or a small one of our own.

    Raises:
        InvalidInput: the name is taken or is none, the batch isn't committed.
        NotFound: there is no checkpoint.
        CutFailed: the checkpoint is not whole, or changes too fast.
        Unavailable: ZooKeeper or BookKeeper don't answer.
    """
    address = Address.parse(source, options)
    hadoop = Hadoop.of(spark, options)

    def read(path: str) -> bytes:
        return hadoop.read(address.at(path).uri)

    with Names.connect(address) as names:
        made = creating.create(names, name, address.uri, lambda: cut.take(names, address.path, read, batch))
        keeping.tell_sink(names, address, made.query, lambda: hadoop)
        return made


def list_savepoints(tree: str, options: Mapping[str, object] | None = None) -> list[Savepoint]:
    """Return the savepoints of the tree that an address lies in, oldest first, in whatever state."""
    with Names.connect(Address.parse(tree, options)) as names:
        return store.all_savepoints(names)


def find(name: str, tree: str, options: Mapping[str, object] | None = None) -> Savepoint:
    """Return a ready savepoint of the tree that an address lies in.

    Raises:
        NotFound: there is none of that name.
        InvalidInput: it is not ready.
    """
    with Names.connect(Address.parse(tree, options)) as names:
        return store.read(names, name)[0]


def restore(
    name: str,
    target: str,
    *,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
) -> Savepoint:
    """Make a new checkpoint of a savepoint, in the same tree. The query that it was taken of resumes from it.

    Args:
        target: an address in the savepoint's tree, where nothing is.

    Raises:
        NotFound: there is no such savepoint.
        InvalidInput: it is not ready, or there is something at the target.
        Damaged: the savepoint's list of files, or a ledger, is not what it was.
        Unavailable: ZooKeeper or BookKeeper don't answer, or the savepoint was deleted meanwhile.
    """
    address = Address.parse(target, options)

    def rewrite(lengths: dict[str, int]) -> None:
        hadoop = Hadoop.of(spark, options)
        for path, length in lengths.items():
            uri = address.at(path).uri
            await_visible(hadoop, uri, length)
            hadoop.write(uri, moved_metadata(hadoop.read(uri), address.uri), overwrite=True)

    with Names.connect(address) as names:
        restored = restoring.restore(names, name, address.path, rewrite)
        keeping.tell_sink(names, address, restored.query, lambda: Hadoop.of(spark, options))
        return restored


def delete(name: str, tree: str, options: Mapping[str, object] | None = None) -> None:
    """Delete a savepoint, in whatever state. Ledgers that nothing else needs are freed by the next sweep.

    Raises:
        NotFound: there is none of that name.
    """
    address = Address.parse(tree, options)
    with Names.connect(address) as names:
        known = {savepoint.name: savepoint for savepoint in store.all_savepoints(names)}
        try:
            deleting.delete(names, name)
        finally:
            names.remove_tree(f"{COPIES}/{name}")
        if name in known and known[name].source:
            source = address.at(Address.parse(known[name].source, options).path)
            keeping.tell_sink(names, source, known[name].query, lambda: Hadoop.of(None, options))
