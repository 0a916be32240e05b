"""The task of a stream or of a batch read: read its range into record batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from eos.pickling import PickledByName
from eos.pulsar.wire.encryption import as_it_is, decryptor_of
from eos.schema.garbage import few_collections
from eos.source.brokers import PulsarBrokers
from eos.source.columns import SourceColumns
from eos.source.damage import DamagePolicy
from eos.source.errors import Losses
from eos.source.options import SourceOptions
from eos.source.range_reader import read_range
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPath, read_stored
from eos.source.shadow_topics import refuse_transactions
from eos.source.silence import ReadTimeout
from eos.source.value_schema import TypedValues, ValueSchema


@dataclass
class RangePartition(PickledByName, InputPartition):
    """One task's range.

    Attributes:
        part: the range.
        path: how much of it is read past the brokers; None for nothing.
        read_id: 32 hexadecimal digits that all ranges of one batch read share; None for a stream.
        shadow_of: the topic that the range's topic is a shadow of; None where it is not known to be a shadow topic.
    """

    part: Range
    path: SegmentPath | None = None
    read_id: str | None = None
    shadow_of: str | None = None


def read_partition(
    partition: RangePartition, options: SourceOptions, schema: StructType, values: ValueSchema | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range as record batches of the declared schema.

    Args: the range; the checked options; the checked schema; what `value` is typed by, None where it is bytes.

    Raises DataLost for a loss, unless it is only warned of, InvalidInput for an entry that can't be read, unless it is
    left out or comes as a row, RefusedForGood for a message of a transaction on a shadow topic, and what readers raise.
    """
    part, path = partition.part, partition.path
    lose = Losses(options.fail_on_data_loss)
    brokers = PulsarBrokers(options)
    columns = SourceColumns(schema, part.topic, TypedValues(values, part.topic, brokers.schema) if values else None)
    damage = DamagePolicy(options.on_damaged, part, columns)
    decrypt = decryptor_of(options.decryption_keys) if options.decryption_keys else as_it_is
    most = options.max_message_bytes
    stored = None if path is None else read_stored(part, path, options)
    wait = ReadTimeout(options.read_timeout_s)
    asked = brokers.entry_kind, wait, brokers.may_pass_over, partial(brokers.open, compacted=True)
    with closing(brokers), few_collections():
        for entries in read_range(part, brokers.open, lose, decrypt, damage, most, stored, *asked):
            if partition.shadow_of is not None:
                refuse_transactions(part.topic, partition.shadow_of, entries)
            yield from damage.rows_of_entries()
            yield from damage.readable(entries)
        yield from damage.rows_of_entries()
