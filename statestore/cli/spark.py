"""Spark, for verbs that need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from statestore.bk.address import is_bk
from statestore.cli.options import settings_of
from statestore.errors import Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.hadoop.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_for(
    options: Mapping[str, object], conf: Sequence[str] | None, *addresses: str | None
) -> Iterator[SparkSession]:
    """Make a Spark session that is connected to the trees of some addresses, and stop it at the end of the block.

    A wrong `bk://` address fails soon. Spark's own tasks would wait as patiently as a job.

    Args:
        options: Hadoop options `fs.bk.…`.
        conf: of `--conf`.
        addresses: what the verb was given: other addresses, and names, are passed over.

    Raises:
        InvalidInput: `conf` is wrong.
        Unavailable: no ZooKeeper is there; or Spark failed in the block, with its reason in place of its stack trace.
    """
    with session(options, settings_of(conf)) as spark:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from eos.spark.query import reason

        try:
            for address in addresses:
                if address is not None and is_bk(address):
                    Hadoop.of(spark, options).connect(address)
            yield spark
        except (Py4JError, PySparkException) as error:
            raise Unavailable(
                f"Spark failed: {reason(error)}. The command did not finish. Check the files with `statestore verify`. "
                "If they are whole, this version of Spark cannot read or write such state"
            ) from error
