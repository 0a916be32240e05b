"""Whether two checkpoints hold the same state at a batch: row counts and a hash of the rows, store by store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from statestore.checkpoint.listing import read_state, snapshots
from statestore.checkpoint.raw_state import exact_json
from statestore.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Content:
    """The content of one store, over all partitions.

    Attributes:
        rows: how many.
        digest: sum of the rows' hashes: the same for the same rows in any order.
    """

    rows: int
    digest: int


@dataclass(frozen=True)
class Stores:
    """The content of a checkpoint's stores at a batch.

    Attributes:
        contents: by the store's name, "operator 0" or "operator 0, left-keyToNumValues".
        unread: those that Spark's state reader can't give as a table without knowing more, and why.
    """

    contents: Mapping[str, Content]
    unread: Mapping[str, str]


def read_stores(
    spark: SparkSession, checkpoint: str, batch: int, options: Mapping[str, object] | None = None
) -> Stores:
    """Read all state of a checkpoint as it was after a committed batch.

    Raises:
        NotFound: there is no checkpoint.
        Unavailable: its state at that batch is no longer there.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    found = snapshots(checkpoint, spark=spark, options=options)
    if batch not in found.loadable:
        raise Unavailable(f"{checkpoint} no longer holds the state of batch {batch}. It has {found.loadable}")
    contents: dict[str, Content] = {}
    unread: dict[str, str] = {}
    for operator, store in sorted({(one.operator, one.store) for one in found.stores}):
        name = f"operator {operator}" + ("" if store == "default" else f", {store}")
        row = F.xxhash64(exact_json("*")).cast("decimal(38,0)")
        try:
            rows = read_state(
                checkpoint, batch, operator, spark=spark, store_name=None if store == "default" else store
            )
            total = rows.select(row.alias("hash")).agg(F.count("*"), F.sum("hash")).collect()[0]
        except PySparkException as error:
            unread[name] = str(error).split("\n")[0]
        else:
            contents[name] = Content(int(total[0]), int(total[1] or 0))
    return Stores(contents, unread)
