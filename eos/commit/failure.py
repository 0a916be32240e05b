"""The note of a query's checkpoint about failed batches, one entry for each of its sinks.

Of a failure that the function of `foreachBatch` swallows Spark learns nothing: it goes on with the next batch, and so
does its next run. The entry tells that run which batches are missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from eos.commit.registration import refuse_newer
from eos.errors import DamagedLog
from eos.json_reader import read_json

FAILED: Final = "eos-failed.json"
"""The file in the query's checkpoint folder that holds the failures, each until its batch was written after all."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The batches of a sink that failed, or were refused after one that did.

    Attributes:
        name: the sink's.
        batch_id: the first batch that failed.
        run_id: of the run it failed in.
        error: the words of its error.
        last: the newest batch that was refused since: Spark may have passed all of them.
        replayed: nothing of it was to be written: it is missing from the query's state, not from the output.
        partly: it is committed, and a second call for it failed, whose rows are missing.
        several: calls for it with different rows failed. If it is committed, it has the rows of one of them.
        topic: of a sink without a control log, since several of one name may write side by side; None: of any.
    """

    name: str
    batch_id: int
    run_id: str
    error: str
    last: int
    replayed: bool = False
    partly: bool = False
    topic: str | None = None
    several: bool = False

    def missing(self, before: int) -> int:
        """Return the last batch that is missing where Spark has passed all batches before this one."""
        return max(self.batch_id, min(self.last, before - 1))


def text_of(failures: Sequence[Failure]) -> str:
    """Return the text of the file."""
    return json.dumps([asdict(failure) for failure in failures])


def parse(text: str | None) -> list[Failure]:
    """Read the text of the file; none where there is no file. Raises DamagedLog, NewerVersion."""
    if text is None:
        return []
    refuse_newer(text, Failure.__slots__, FAILED)
    try:
        found = [Failure(**entry) for entry in read_json(text)]
        if not all(isinstance(one.batch_id, int) and isinstance(one.last, int) for one in found):
            raise TypeError("batch_id and last must be whole numbers")
        return found
    except (ValueError, TypeError) as error:
        raise DamagedLog(
            f"{FAILED} in the query's checkpoint cannot be read: {error}. The file names the batches that failed and"
            " may be missing from the output. Restore the file from a backup of the checkpoint, or delete it if the"
            " output is complete."
        ) from error
