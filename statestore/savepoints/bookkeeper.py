"""Savepoints on BookKeeper, by address: what the command line and programs call."""

from __future__ import annotations

import contextlib
import posixpath
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from statestore.checkpoint import moved_metadata
from statestore.checkpoint.cut import cut_of, names_its_place
from statestore.checkpoint.files import HadoopFiles
from statestore.errors import CutFailed, NotFound, StateStoreError
from statestore.savepoints.savepoint import Savepoint, check_name
from statestore.savepoints.store import SavepointStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 10
_PAUSE_S = 0.5
_OF_A_COMMAND = re.compile(r".+-(?:read|copy)-[0-9a-f]{12}")
_CUT = "-cut"
COPIES = "/.savepoints"
"""Where savepoints that are being copied to a topic, or read, are restored to for that time."""


def create(
    name: str,
    source: str,
    *,
    batch_id: int | None = None,
    operators: int | None = None,
    options: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
) -> Savepoint:
    """Make a savepoint of a checkpoint, also while its query runs. No byte is copied.

    Args:
        name: unique in the checkpoint's tree.
        source: the checkpoint's address, bk://…
        batch_id: a committed batch that is still there. None: the newest.
        operators: how many stateful operators the query has. None: as many as `eos.sink` has noted. Without such a note
            a warning says that state may be lost unseen.
        options: Hadoop options `fs.bk.…`.
        spark: the session whose JVM reads the few files that say what is needed. None: the active one's, or a small own
            JVM.

    Raises:
        InvalidInput: the name is taken or not valid, or the batch isn't committed.
        NotFound: there is no checkpoint.
        CutFailed: the checkpoint is incomplete, or changes too fast.
        Unavailable: ZooKeeper or BookKeeper don't answer.
    """
    store = SavepointStore.of(source, options, spark)
    made = make(store, name, batch_id, operators)
    store.tell_sink(store.address, made.query)
    return made


def make(store: SavepointStore, name: str, batch_id: int | None, operators: int | None = None) -> Savepoint:
    """Make a savepoint of the checkpoint at the store's address, as `create` does. The sink does not learn of it.

    The query may go on, and clean up, meanwhile. When it removes a file of the cut, or frees its ledger, before the
    ledger is held, a newer cut is taken.
    """
    source, failed = store.address.uri, ""
    for _ in range(_ATTEMPTS):
        try:
            return store.create(name, cut_of(HadoopFiles(store.hadoop, source), source, batch_id, operators))
        except CutFailed as error:
            if str(error) == failed:
                raise CutFailed(f"No savepoint could be taken of {source}: {failed}") from error
            failed = str(error)
            time.sleep(_PAUSE_S)
    raise CutFailed(
        f"{source} changed {_ATTEMPTS} times while savepoint {name} was being made. Files of the newest batch were "
        "deleted, and their ledgers freed, within moments. Raise spark.sql.streaming.minBatchesToRetain, or "
        "fs.bk.grace.ms"
    )


def list_savepoints(tree: str, *, options: Mapping[str, object] | None = None) -> list[Savepoint]:
    """Return the savepoints of the tree that an address lies in, oldest first, in whatever state."""
    return SavepointStore.of(tree, options).all()


def find(name: str, tree: str, *, options: Mapping[str, object] | None = None) -> Savepoint:
    """Return a ready savepoint of the tree that an address lies in.

    Raises:
        NotFound: there is no savepoint of that name.
        InvalidInput: it is not ready.
    """
    return SavepointStore.of(tree, options).ready(name)


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
    return restore_to(SavepointStore.of(target, options, spark), name)


def restore_to(
    store: SavepointStore, name: str, prepare: Callable[[Savepoint], None] = lambda savepoint: None
) -> Savepoint:
    """Make a new checkpoint at the store's address, as `restore` does.

    Args:
        prepare: called when all is there but the true `metadata`, so that Spark starts no query on it yet. An error
            that it raises removes the target.
    """
    address = store.address
    with store.restore(name, address.path) as (restored, lengths):
        for path in filter(names_its_place, lengths):
            uri = address.at(path).uri
            store.hadoop.write(uri, moved_metadata(store.hadoop.read(uri), address.uri), overwrite=True)
        prepare(restored)
    store.tell_sink(address, restored.query)
    return restored


@contextlib.contextmanager
def opened(
    name: str, tree: str, *, options: Mapping[str, object] | None = None, spark: SparkSession | None = None
) -> Iterator[str]:
    """Give a savepoint as a checkpoint to read while the block runs; nothing is copied. Start no query on it.

    It lies below `/.savepoints` of the tree, under the name of a savepoint that is being made as long as this process
    lives. If a process dies in the block, its savepoint shows as abandoned. `delete` removes both, as the next call
    does when they are a day old.

    Yields:
        its address.

    Raises:
        NotFound, InvalidInput, Damaged, Unavailable: as `restore`.
    """
    store = SavepointStore.of(tree, options, spark)
    store.ready(name)
    with _own_place(store, name, "read") as own:
        restore_to(own, name)
        yield own.address.uri


@contextlib.contextmanager
def cut_to_copy(
    name: str, store: SavepointStore, batch_id: int | None, operators: int | None = None
) -> Iterator[tuple[SavepointStore, Savepoint, dict[str, int]]]:
    """Give a cut of the checkpoint at the store's address that stays as it is while the block runs; nothing is copied.

    It lies where `opened` has what it gives, and what a process leaves that dies in the block is found and removed
    likewise.

    Yields:
        the store at its address, the savepoint that it was made by, and the lengths of its files by their paths.
    """
    with _own_place(store, name, "copy") as own:
        cut = posixpath.basename(own.address.path) + _CUT
        made = make(store, cut, batch_id, operators)
        with store.restore(cut, own.address.path) as (_, lengths):
            pass
        store.delete(cut)  # the files hold their ledgers themselves now
        yield own, made, lengths


@contextlib.contextmanager
def _own_place(store: SavepointStore, name: str, what: str) -> Iterator[SavepointStore]:
    """Give a place in the store's tree while the block runs, under a name that shows whether this process lives."""
    taken = f"{name[:76]}-{what}-{uuid.uuid4().hex[:12]}"
    own = SavepointStore(store.hadoop, store.address.at(f"{COPIES}/{taken}"))
    with contextlib.suppress(StateStoreError):  # a leftover of others must not make this call fail
        remove_left(own)
    own.take(taken)  # before the first file of it is there, and removed after the last
    try:
        yield own
    finally:
        with contextlib.suppress(StateStoreError):
            _remove(own, taken)


def left_behind(store: SavepointStore) -> list[Savepoint]:
    """Return the savepoints under whose names commands have left what they read or copied: their processes are dead."""
    return [one for one in store.all() if one.state == "abandoned" and _OF_A_COMMAND.fullmatch(one.name)]


def remove_left(store: SavepointStore, older_than_s: float = 86_400) -> list[str]:
    """Remove what commands have left behind that began so long ago; return the names.

    One whose ZooKeeper session was lost, and who reads on, shows as dead, too: hence a day. Should it read for longer,
    a file of it is not found then; it reads nothing wrong.
    """
    before_ms = (time.time() - older_than_s) * 1_000
    names = [one.name for one in left_behind(store) if one.created_ms < before_ms]
    for name in names:
        with contextlib.suppress(NotFound):  # another has removed it meanwhile
            _remove(store, name)
    return names


def _remove(store: SavepointStore, name: str) -> None:
    """Remove what lies under a name, and then the name: who dies in between leaves what is found again."""
    _remove_files(store, name)
    store.delete(name)


def _remove_files(store: SavepointStore, name: str) -> None:
    store.hadoop.delete(store.address.at(f"{COPIES}/{name}").uri, recursive=True)
    if _OF_A_COMMAND.fullmatch(name):
        with contextlib.suppress(NotFound):  # it is there for moments only
            store.delete(name + _CUT)


def delete(name: str, tree: str, *, options: Mapping[str, object] | None = None) -> None:
    """Delete a savepoint, in whatever state. Ledgers that nothing else needs are freed by the next sweep.

    Raises:
        InvalidInput: it is not a name. Nothing was deleted.
        NotFound: there is no savepoint of that name.
    """
    check_name(name)  # it becomes part of a path, whose files are deleted: "../q" would be a checkpoint
    store = SavepointStore.of(tree, options)
    known = {savepoint.name: savepoint for savepoint in store.all()}
    try:
        store.delete(name)
    finally:
        _remove_files(store, name)
    if name in known and known[name].source:
        store.tell_sink(store.address.at(known[name].source_path), known[name].query)
