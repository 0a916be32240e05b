"""The parts of PySpark beyond its public API that this library uses.

Parts that older versions have elsewhere or call in another way (`eos.spark.capabilities` says which version is which),
and which of Spark's Python processes this one is, where a data source behaves differently in one of them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas import types as arrow_types
from pyspark.sql.types import DataType, StructType

from eos.spark.capabilities import Capability, has

if TYPE_CHECKING or has(Capability.SPLIT_DATAFRAMES):
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.util import PythonEvalType, local_connect_and_auth
else:  # its one class of DataFrames is the classic one
    from pyspark.java_gateway import local_connect_and_auth
    from pyspark.rdd import PythonEvalType
    from pyspark.sql import DataFrame as ClassicDataFrame

__all__ = [
    "ENDS_A_MICRO_BATCH",
    "PUSHES_FILTERS",
    "ClassicDataFrame",
    "PythonEvalType",
    "arrow_schema",
    "arrow_type",
    "is_worker",
    "local_connect_and_auth",
    "map_in_arrow",
]

PUSHES_FILTERS = "pyspark.sql.worker.data_source_pushdown_filters"
ENDS_A_MICRO_BATCH = "pyspark.sql.worker.python_streaming_sink_runner"
"""Modules that a worker of Spark's runs."""

_UTC: dict[str, Any] = {"timezone": "UTC"} if has(Capability.NAMES_ARROW_TIMEZONES) else {}
"""Before there was a choice, moments were in UTC."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark takes such rows, moments in UTC."""
    return arrow_types.to_arrow_schema(schema, **_UTC)


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark takes such a column, moments in UTC."""
    return arrow_types.to_arrow_type(kind, **_UTC)


def map_in_arrow(jdf: Any, columns: Any) -> Any:
    """Return the JVM's DataFrame of what a function yields. Args: the JVM's DataFrame; the function over columns."""
    if has(Capability.SPLIT_DATAFRAMES):
        return jdf.mapInArrow(columns._jc, False, None)
    return jdf.pythonMapInArrow(columns._jc.expr(), False)


def is_worker(module: str) -> bool:
    """Whether this process is the worker that runs a module of Spark's: of a daemon, or started for it alone."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return module in sys.modules or getattr(started, "name", None) == module
