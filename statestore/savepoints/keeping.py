"""Telling an exactly-once sink which of its batches savepoints may want to be rolled forward from.

A savepoint at batch n can be brought in step with the sink's output as long as the control log has the MARKERs after n.
The sink keeps those of its newest thousand batches, and all since the batch that a file in the query's checkpoint
names. It looks at that file when it starts, and every hundred batches.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from eos.commit.registration import KEEP, REGISTRATION
from statestore.bk.address import Address
from statestore.bk.names import FileRecord, Names
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints import store
from statestore.savepoints.folder import await_visible
from statestore.savepoints.manifest import METADATA


def tell_sink(names: Names, checkpoint: Address, query: str, hadoop: Callable[[], Hadoop]) -> None:
    """Write the batch of the query's oldest savepoint into its checkpoint; without a savepoint remove the file.

    A crash before it leaves the sink with the older word: its newest thousand are kept all the same.

    Args:
        checkpoint: where the query runs. Nothing is done if nothing is there, or no sink of this project has used it.
        query: its id.
        hadoop: gives access to files, if it is needed.
    """
    metadata = names.find(f"{checkpoint.path}/{METADATA}")
    if names.find(f"{checkpoint.path}/{REGISTRATION}") is None or not isinstance(metadata, FileRecord):
        return
    access = hadoop()
    await_visible(access, checkpoint.at(METADATA).uri, metadata.length)
    batches = [one.batch for one in store.all_savepoints(names) if one.query == query and one.state == "ready"]
    kept = checkpoint.at(KEEP).uri
    if batches:
        access.replace(kept, json.dumps({"markers_since": min(batches) + 1}).encode())
    else:
        access.delete(kept)
