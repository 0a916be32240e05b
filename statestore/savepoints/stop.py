"""Stopping a query with a savepoint: output and state are in step in it.

1. END         the query ends after the batch in hand, which is committed by then. Before: it runs. After: it has ended
               in good order, and its checkpoint is what a restart goes on from.
2. SAVEPOINT   of that batch. Fails it, or dies the process: the query has ended all the same, and the savepoint can be
               made by `statestore savepoint create`; a half-made one shows as abandoned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statestore.bk.address import is_bk
from statestore.errors import InvalidInput, StateStoreError, Unavailable, own_errors
from statestore.savepoints import bookkeeper
from statestore.savepoints.savepoint import Savepoint, check_name
from statestore.savepoints.store import SavepointStore

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

PATIENCE_S = 600.0


def checkpoint_of(query: StreamingQuery) -> str:
    """Return the address of a query's checkpoint. Raises InvalidInput for what is not a query of classic Spark."""
    from eos.spark import query as of_spark

    with own_errors():
        return of_spark.checkpoint_of(query)


def stop_with_savepoint(
    query: StreamingQuery,
    name: str,
    *,
    timeout_s: float = PATIENCE_S,
    options: Mapping[str, object] | None = None,
) -> Savepoint:
    """Let a query end after its running batch, and make a savepoint of its checkpoint on bk://.

    `query.stop()` cuts a batch short, and only the next start finds out whether its rows are in the output. Here
    savepoint, checkpoint and output are at the same batch.

    Args:
        query: runs in this process, or has ended there without an error.
        name: of the savepoint, unique in the checkpoint's tree.
        timeout_s: how long the running batch may take. Default 600.
        options: Hadoop options `fs.bk.…`.

    Raises:
        InvalidInput: the checkpoint is not on bk://, the name is taken or not valid, the time is not valid, or the
            query is of Spark Connect. The query runs on.
        Unavailable: the batch took longer. The query still ends after it, and you may call again. Or the query has
            ended with an error, or the savepoint could not be made. The message says what to do. Or ZooKeeper did not
            answer before all that, and the query runs on.
    """
    from eos.spark.query import reason
    from eos.spark.query_stop import end_after_batch

    check_name(name)
    if not isinstance(timeout_s, int | float) or not timeout_s > 0:
        raise InvalidInput(f"timeout_s is {timeout_s!r}. Give seconds, a number above 0. The query runs on")
    source = checkpoint_of(query)
    if not is_bk(source):
        raise InvalidInput(
            f"The checkpoint of the query is {source}, and savepoints are of checkpoints on bk://. Of others, end the "
            "query with trigger(availableNow=True), and copy the checkpoint: statestore cp"
        )
    store = SavepointStore.of(source, options)
    if any(one.name == name and one.state in ("ready", "building") for one in store.all()):
        state = "runs on" if query.isActive else "has ended before"
        raise InvalidInput(f"There is a savepoint {name} already. The query {state}. Name another")
    if not end_after_batch(query, timeout_s):
        raise Unavailable(
            f"The batch in hand has not ended in {timeout_s:g} s. The query ends when it has. Call again to wait, and "
            "for the savepoint"
        )
    failed = query.exception()
    if failed is not None:
        raise Unavailable(
            f"The query has ended with an error, and no savepoint was made: {reason(failed)}. Its checkpoint is at the "
            "last batch that was committed. Start it again"
        ) from failed
    try:
        return bookkeeper.create(name, source, options=options)
    except StateStoreError as error:  # also that no batch is committed, or that another has taken the name meanwhile
        raise Unavailable(
            f"The query has ended in good order, but no savepoint could be made of {source}: {error}. Make it by "
            f"`statestore savepoint create {name} {source}`, or start the query again"
        ) from error
