"""Where each row goes: its topic, and the partition there.

All rows of a record batch are routed in one pass, however many topics they name: a pass for each topic would cost the
number of topics times the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eos.config import KeyHash
from eos.errors import InvalidInput
from eos.pulsar.protocol.topics import full_name, is_partition, is_persistent, partition_name
from eos.pulsar.wire.columns import row_name
from eos.pulsar.wire.keys import as_bytes, first_not_text
from eos.pulsar.wire.routing import Sorted, part_by_delivery_time, part_by_sticky_key, partition_of, sort_by_partition

MESSAGE_COLUMNS = ("value", "key", "ordering_key", "event_time", "properties", "deliver_at", "row")

Numbers = npt.NDArray[np.int64]


class Routed(NamedTuple):
    """The rows of a record batch, in parts by where they go; the parts of one topic lie side by side.

    Attributes:
        topics: the topic of each part, without a partition.
        names: the physical topic of each part.
        parts: the rows. Its `partitions` number the physical topics of this record batch.
    """

    topics: list[str]
    names: list[str]
    parts: Sorted


class _Named(NamedTuple):
    """Attributes: topics; for each of them the number of its partitions; the place of each row's in `topics`."""

    topics: list[str]
    counts: Numbers
    places: Numbers | None  # None: all rows go to the only one

    def of_rows(self, numbers: Numbers) -> Numbers:
        """Return the number for each row of what has one for each topic."""
        return numbers if self.places is None else numbers[self.places]

    def place(self, row: int) -> int:
        """Return the place of a row's topic."""
        return 0 if self.places is None else int(self.places[row])


class Router:
    """Routes the record batches of one writer.

    Args:
        topic: of rows that name none; None where each must.
        key_hash: which hash of the key picks the partition.
        keyed: whether rows are parted by what a Key_Shared subscription goes by.
        counts: tells how many partitions topics have, 0 for one without. Raises TopicMissing.
        first_partition: where keyless rows begin to be spread.
    """

    def __init__(
        self,
        topic: str | None,
        key_hash: KeyHash,
        keyed: bool,
        counts: Callable[[Sequence[str]], Sequence[int]],
        first_partition: int,
    ) -> None:
        self._topic, self._key_hash, self._keyed, self._counts = topic, key_hash, keyed, counts
        self._next_keyless = first_partition

    def route(self, batch: pa.RecordBatch, first_row: int) -> Routed:
        """Route rows. Args: message columns; the number of the first row, as errors name it.

        Raises InvalidInput for a row that can't be routed, and what asking for partitions raises.
        """
        numbers = pa.array(np.arange(first_row, first_row + batch.num_rows))
        rows = batch.append_column("row", numbers)  # errors name the row, wherever it is routed to
        named = self._named(rows)
        ends = np.cumsum(np.maximum(named.counts, 1))
        begins = ends - np.maximum(named.counts, 1)
        message = rows.select([name for name in MESSAGE_COLUMNS if name in rows.schema.names])
        parts = sort_by_partition(message, named.of_rows(begins) + self._choose(rows, named))
        if self._keyed:
            parts = part_by_sticky_key(parts)
        parts = part_by_delivery_time(parts)
        owners = np.searchsorted(ends, parts.partitions, side="right")
        names = [
            partition_name(named.topics[at], place - int(begins[at])) if named.counts[at] else named.topics[at]
            for at, place in zip(owners.tolist(), parts.partitions, strict=True)
        ]
        return Routed([named.topics[at] for at in owners.tolist()], names, parts)

    def _named(self, rows: pa.RecordBatch) -> _Named:
        if "topic" not in rows.schema.names:
            assert self._topic is not None  # columns.canonical refuses a batch with no topic at all
            return self._counted([self._topic], None)
        column = rows.column("topic")
        given = column.fill_null(self._topic) if self._topic is not None else column
        if given.null_count:
            at = int(np.argmax(np.asarray(given.is_null())))
            raise InvalidInput(f"{row_name(rows, at)} has no topic, and nor has the sink. Fill the column `topic`.")
        encoded = given.dictionary_encode()
        spelled, which = encoded.dictionary, np.asarray(encoded.indices)
        if (wrong := first_not_text(as_bytes(spelled, "topic"))) is not None:
            at = int(np.argmax(which == wrong))
            raise InvalidInput(f"{row_name(rows, at)} has a topic that is not valid UTF-8. Correct the column `topic`.")
        full = [full_name(name) for name in spelled.to_pylist()]
        if (other := next((place for place, name in enumerate(full) if not is_persistent(name)), None)) is not None:
            raise InvalidInput(
                f'{row_name(rows, int(np.argmax(which == other)))} names the topic "{full[other]}", which is not '
                "persistent. Brokers store nothing of such a topic and acknowledge all the same, so the row could be "
                "lost. Name a persistent:// topic in the column `topic`."
            )
        if (part := next((place for place, name in enumerate(full) if is_partition(name)), None)) is not None:
            raise InvalidInput(
                f'{row_name(rows, int(np.argmax(which == part)))} names the topic "{full[part]}", which is one '
                "partition. Name the whole topic in the column `topic`, and the partition's number in the column "
                "`partition`."
            )
        place_of = {name: place for place, name in enumerate(dict.fromkeys(full))}
        # Two spellings of one topic would part a key's rows.
        places = np.array([place_of[name] for name in full], dtype=np.int64)[which]
        return self._counted(list(place_of), places if len(place_of) > 1 else None)

    def _counted(self, topics: list[str], places: Numbers | None) -> _Named:
        return _Named(topics, np.array(self._counts(topics), dtype=np.int64), places)

    def _choose(self, rows: pa.RecordBatch, named: _Named) -> Numbers:
        """Return each row's partition: the explicit one, else the key's, else the keyless one in turn."""
        if "key" in rows.schema.names:
            counts = named.of_rows(np.maximum(named.counts, 1))
            chosen = partition_of(rows.column("key"), counts, self._key_hash).astype(np.int64)
        else:
            chosen = np.full(rows.num_rows, -1, dtype=np.int64)
        if "partition" in rows.schema.names:
            chosen = self._explicit(rows, named, chosen)
        keyless = chosen < 0
        if keyless.any():
            chosen = np.where(keyless, named.of_rows(self._turns(named, keyless)), chosen)
        return chosen

    def _explicit(self, rows: pa.RecordBatch, named: _Named, chosen: Numbers) -> Numbers:
        explicit = rows.column("partition")
        given = np.asarray(explicit.is_valid())
        values = np.asarray(explicit.fill_null(0), dtype=np.int64)
        wrong = given & ((values < 0) | (values >= named.of_rows(np.maximum(named.counts, 1))))
        if wrong.any():
            at = int(np.argmax(wrong))
            topic, count = named.topics[named.place(at)], int(named.counts[named.place(at)])
            if count == 0:
                raise InvalidInput(
                    f"The column 'partition' or '__partition' names partitions of {topic}, which has none. "
                    "Drop the column, or set it to null."
                )
            raise InvalidInput(
                f"{row_name(rows, at)} asks for partition {values[at]} of {topic}, which has partitions 0 to "
                f"{count - 1}. Correct the column 'partition' or '__partition', or drop it."
            )
        return np.where(given, values, chosen)

    def _turns(self, named: _Named, keyless: npt.NDArray[np.bool_]) -> Numbers:
        """Return for each topic the partition of its keyless rows; the next record batch has the one after it."""
        places = [0] if named.places is None else np.unique(named.places[keyless]).tolist()
        turns = np.zeros(len(named.topics), dtype=np.int64)
        for place in places:
            if count := int(named.counts[place]):
                turns[place] = self._next_keyless % count
                self._next_keyless += 1
        return turns
