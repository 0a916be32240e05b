"""The content of state, in one number for each store, to see that it is the same after it was rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statestore.checkpoint.raw_state import BatchState, raw_rows
from statestore.errors import InvalidInput, StateStoreError, Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The content of a store, whatever its order.

    Attributes:
        rows: how many; a list has one for each of its values.
        sum: of a 64-bit hash of each row's column family, key and value.
        misplaced: rows in another partition than the hash of their partitioning key says.
    """

    rows: int
    sum: int
    misplaced: int


def fingerprints(
    session: SparkSession, uri: str, kept: BatchState, batch: int, partitions: int
) -> Mapping[tuple[int, str], Fingerprint]:
    """Return the fingerprint of each store, by operator and store, after a batch.

    Args:
        session: of `session_for`.
        kept: which stores there are.
        partitions: how many the state should have.

    Raises:
        InvalidInput: an operator has no key.
        Unavailable: Spark can't read the state.
    """
    return {
        (operator.id, store): _fingerprint(session, uri, kept, batch, operator.id, store, partitions)
        for operator, store in kept.stores
    }


def _fingerprint(
    session: SparkSession, uri: str, kept: BatchState, batch: int, operator: int, store: str, partitions: int
) -> Fingerprint:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    from eos.spark.query import reason

    try:
        rows = raw_rows(session, uri, kept, batch, operator, store)
        if rows.schema["partition_key"].dataType == StructType([]):
            raise InvalidInput(
                f"Operator {operator} has one group for all rows, which Spark keeps in partition 0 whatever their "
                "number. There is nothing to rescale, and by the hash of its key it would be lost"
            )
        # Spark's own partitioning of rows: Murmur3 of the key, modulo the number (HashPartitioning).
        wanted = F.pmod(F.hash("partition_key"), F.lit(partitions))
        row_hash = F.xxhash64("column_family_name", "key_bytes", "value_bytes").cast("decimal(38,0)")
        counted = rows.agg(
            F.count("*"), F.coalesce(F.sum(row_hash), F.lit(0)), F.count_if(F.col("partition") != wanted)
        ).collect()[0]
    except StateStoreError:
        raise
    except Exception as error:
        raise Unavailable(
            f"The state of operator {operator}, store {store}, after batch {batch} of {uri} can't be read by Spark: "
            f"{reason(error)}"
        ) from error
    return Fingerprint(int(counted[0]), int(counted[1]), int(counted[2]))
