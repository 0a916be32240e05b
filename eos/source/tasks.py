"""What a task of a stream or of a batch read does: read its range into record batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from eos.pulsar.wire.encryption import as_it_is, decryptor_of
from eos.source.brokers import PulsarBrokers
from eos.source.columns import Columns
from eos.source.errors import DataLost
from eos.source.options import SourceOptions
from eos.source.ranges import Range
from eos.source.reading import read_range
from eos.source.typed import TypedValues, ValueSchema

log = logging.getLogger("eos.source")


@dataclass
class RangePartition(InputPartition):
    """One task's range."""

    part: Range


def losses(options: SourceOptions) -> Callable[[str], None]:
    """Return what takes a loss: it raises DataLost, or only warns, as the options say."""

    def lose(what: str) -> None:
        if options.fail_on_data_loss:
            raise DataLost(what)
        log.warning(what)

    return lose


def read_partition(
    part: Range, options: SourceOptions, schema: StructType, values: ValueSchema | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range as record batches of the declared schema.

    Args: the range; the checked options; the checked schema; what `value` is typed by, None where it is bytes.

    Raises DataLost for a loss, unless it is only warned of, and what readers raise.
    """

    lose = losses(options)
    brokers = PulsarBrokers(options)
    columns = Columns(schema, part.topic, TypedValues(values, part.topic, brokers.schema) if values else None)
    decrypt = decryptor_of(options.decryption_keys) if options.decryption_keys else as_it_is
    for entries in read_range(part, brokers.open, lose, decrypt):
        yield columns.batch(entries)
