"""Telling an exactly-once sink which of its batches savepoints may want to be rolled forward from.

A savepoint at batch n can be brought in step with the sink's output as long as the control log has the MARKERs after n.
The sink keeps those of its newest thousand batches, and all since the batch that a file in the query's checkpoint
names. It looks at that file when it starts, and every hundred batches, or more often where it keeps fewer than a
thousand.
"""

from __future__ import annotations

import json

from eos.commit.registration import KEEP, REGISTRATION
from statestore.bk.address import BkAddress
from statestore.checkpoint.logs import METADATA
from statestore.savepoints.store import SavepointStore


def tell_sink(store: SavepointStore, checkpoint: BkAddress, query: str) -> None:
    """Write the batch of the query's oldest savepoint into its checkpoint; without a savepoint remove the file.

    A crash before it leaves the sink with the older word: its newest thousand are kept all the same.

    Args:
        checkpoint: where the query runs. Nothing is done if nothing is there, or no sink of this project has used it.
        query: its id.
    """
    if any(store.hadoop.status(checkpoint.at(name).uri) is None for name in (REGISTRATION, METADATA)):
        return
    batches = [one.batch_id for one in store.all() if one.query == query and one.state == "ready"]
    kept = checkpoint.at(KEEP).uri
    if batches:
        store.hadoop.replace(kept, json.dumps({"markers_since": min(batches) + 1}).encode())
    else:
        store.hadoop.delete(kept)
