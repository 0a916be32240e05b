"""Making the source known to a Spark session that has not found it by itself."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from eos.errors import InvalidInput
from eos.spark.capabilities import Capability, require


def register(spark: SparkSession) -> None:
    """Make `format("pulsar")` known to this session, and to no other.

    Spark finds `format("pulsar")` by itself in the Python path of the driver. This call is needed where it can't, for
    instance with `spark.sql.execution.pyspark.python` set to another Python.

    Args:
        spark: the session.

    Raises:
        InvalidInput: a data source of that name is there already, such as another connector's jar, or Spark is older
            than 4.0, which has no data sources in Python.
    """
    require(Capability.PYTHON_SOURCES, 'format("pulsar")', "Nothing is registered. eos.sink and eos.write need none.")
    from eos.by_name.data_source import PulsarDataSource  # its base class came with that capability

    try:
        spark.dataSource.register(PulsarDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise InvalidInput(
            f'this session has another data source "{PulsarDataSource.name()}" already, most likely of a jar such as '
            "pulsar-spark-connector, so eos.by_name.data_source.PulsarDataSource can't be registered. Take that jar "
            "off the classpath (spark.jars, spark.jars.packages)."
        ) from error
