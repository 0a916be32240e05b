"""The task of a stream or of a batch read: read its range into record batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.encryption import as_it_is, decryptor_of
from eos.pulsar.wire.entry import Entry
from eos.source.brokers import PulsarBrokers
from eos.source.columns import SourceColumns
from eos.source.errors import Damaged, UnreadableMessage, losses
from eos.source.options import SourceOptions
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath, read_stored
from eos.source.silence import ReadTimeout
from eos.source.value_schema import TypedValues, ValueSchema

log = logging.getLogger("eos.source")


@dataclass
class RangePartition(InputPartition):
    """One task's range.

    Attributes:
        part: the range.
        path: how much of it is read past the brokers; None for nothing.
        read_id: 32 hexadecimal digits that all ranges of one batch read share; None for a stream.
    """

    part: Range
    path: SegmentPath | None = None
    read_id: str | None = None


def read_partition(
    partition: RangePartition, options: SourceOptions, schema: StructType, values: ValueSchema | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range as record batches of the declared schema.

    Args: the range; the checked options; the checked schema; what `value` is typed by, None where it is bytes.

    Raises DataLost for a loss, unless it is only warned of, InvalidInput for an entry that can't be read, unless it is
    left out, and what readers raise.
    """
    part, path = partition.part, partition.path
    lose = losses(options.fail_on_data_loss)
    left_out = 0

    def damaged(damage: DamagedFrame | UnreadableMessage) -> None:
        nonlocal left_out
        words = str(damage).rstrip(".")
        if not options.skip_damaged:
            what = "messages" if isinstance(damage, UnreadableMessage) else "entries"
            advice = f"Set onDamagedEntry=skip to go on without such {what}. Each is then named in the log of its task."
            raise InvalidInput(f"{words}. {advice}") from damage
        left_out += 1
        log.warning("%s. It is left out: onDamagedEntry=skip (%d so far in %s).", words, left_out, part)

    brokers = PulsarBrokers(options)
    columns = SourceColumns(schema, part.topic, TypedValues(values, part.topic, brokers.schema) if values else None)
    decrypt = decryptor_of(options.decryption_keys) if options.decryption_keys else as_it_is
    most = options.max_message_bytes
    stored = None if path is None else read_stored(part, path, options)
    wait = ReadTimeout(options.read_timeout_s)
    asked = brokers.entry_kind, wait, brokers.may_pass_over
    with closing(brokers):
        for entries in read_range(part, brokers.open, lose, decrypt, damaged, most, stored, *asked):
            yield from readable(columns, entries, damaged)


def readable(columns: SourceColumns, entries: Sequence[Entry], damaged: Damaged) -> Iterator[pa.RecordBatch]:
    """Yield the messages of entries, without those that can't be read.

    Entries are halved until the one that can't be read as a whole is alone.

    Args: called with each entry and message that can't be read.
    """
    if len(entries) == 1:
        yield from _readable_of_one(columns, entries, damaged)
        return
    try:
        yield columns.batch(entries)
    except (DamagedFrame, UnreadableMessage):
        middle = len(entries) // 2
        yield from readable(columns, entries[:middle], damaged)
        yield from readable(columns, entries[middle:], damaged)


def _readable_of_one(columns: SourceColumns, entry: Sequence[Entry], damaged: Damaged) -> Iterator[pa.RecordBatch]:
    """Yield the messages of one entry that can be read: it is decoded once more for each one that can't."""
    without: list[int] = []
    while True:
        try:
            yield columns.batch(entry, without)
            return
        except DamagedFrame as damage:
            damaged(damage)
            return
        except UnreadableMessage as wrong:
            damaged(wrong)
            without.append(wrong.row)
