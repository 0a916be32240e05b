"""`create`: a savepoint of a running query's checkpoint, without copying a byte."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable

from statestore.bk.names import Names
from statestore.errors import CutFailed, InvalidInput, StateStoreError
from statestore.savepoints import building, deleting, store
from statestore.savepoints.building import LedgerGone
from statestore.savepoints.manifest import Cut, Savepoint

_ATTEMPTS = 10
_PAUSE_S = 0.5  # the JVM's session may follow behind ours, and not see yet what we have listed

TakeCut = Callable[[], Cut]
"""Looks at the checkpoint as it is now and returns what a committed batch needs. Raises CutFailed when a file is
missing, which may be because the checkpoint changed under its eyes: it is asked again."""


def create(names: Names, name: str, source: str, take_cut: TakeCut) -> Savepoint:
    """Make a savepoint and return it once it is ready. What a maker that died has left under the name is replaced.

    The query may go on, and clean up, meanwhile. When it frees a ledger between the look and the hold, or removes a
    file under the look, all is begun again with a newer cut.

    Args:
        source: the checkpoint's address, for people.

    Raises:
        InvalidInput: there is such a savepoint, or one is being made; or what `take_cut` raises.
        CutFailed: a file of the batch is missing for good, or the checkpoint kept changing; nothing is left.
        Unavailable: ZooKeeper was lost. What is left shows as abandoned.
    """
    failed = ""
    for _ in range(_ATTEMPTS):
        _clear(names, name)
        build = building.begin(names, name, source, time.time_ns() // 1_000_000)
        try:
            cut = take_cut()
            build.hold(cut.ledgers)
            return build.finish(cut)
        except (LedgerGone, CutFailed) as error:
            deleting.delete(names, name)
            if str(error) == failed:
                raise CutFailed(f"No savepoint could be taken of {source}: {failed}") from error
            failed = str(error)
            time.sleep(_PAUSE_S)
        except BaseException:
            with contextlib.suppress(StateStoreError):
                deleting.delete(names, name)
            raise
    raise CutFailed(
        f"{source} changed {_ATTEMPTS} times while savepoint {name} was being made: files of the newest batch were "
        "deleted, and their ledgers freed, within moments. Raise spark.sql.streaming.minBatchesToRetain, or "
        "fs.bk.grace.ms"
    )


def query_of(metadata: bytes) -> str:
    """Return the query's id from the bytes of a checkpoint's file `metadata`.

    Raises:
        CutFailed: it is not complete.
    """
    try:
        return str(json.loads(metadata)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise CutFailed(f"The checkpoint's file metadata does not name a query: {metadata[:80]!r}") from error


def _clear(names: Names, name: str) -> None:
    before = store.find(names, name)
    if before is None:
        return
    if before.state in ("ready", "building"):
        raise InvalidInput(
            f"There is a savepoint {name} in this tree already, {before.state}: take another name, or delete it first"
        )
    deleting.delete(names, name, ready=False)
