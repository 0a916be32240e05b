"""The control log of a sink with what its batches have read, which a roll forward needs to run them again."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from eos.commit.control_log import LogView, Marker, Record
from eos.pulsar.wire.message_id import MessageId


@dataclass(frozen=True, slots=True)
class BatchInput:
    """What a committed batch has read.

    Attributes:
        batch_id: of the batch.
        offsets: the text of the checkpoint's file `offsets/<batchId>`.
    """

    batch_id: int
    offsets: str


@dataclass
class InputLog(LogView):
    """The fold of a whole log.

    Attributes:
        inputs: of each batch whose MARKER is still there, by its id, oldest first.
    """

    retain: int = sys.maxsize
    inputs: dict[int, BatchInput] = field(default_factory=dict)

    def apply(self, record: Record, position: MessageId) -> None:
        """Add the next record. Raises what `LogView.apply` does."""
        super().apply(record, position)
        if isinstance(record, Marker):
            self.inputs[record.batch_id] = BatchInput(record.batch_id, record.offsets)
