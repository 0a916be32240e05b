"""The sink's tests share one Spark session."""

from tests.spark_session import spark as spark
