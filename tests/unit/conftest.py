"""Tests of columns and of the driver path share one Spark session."""

from tests.spark_session import spark as spark
