"""The plan of a DataFrame that a sink writes: rows as message columns, a topic, and the schema of its values."""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from eos.delivery.delivery import Write
from eos.errors import InvalidInput, Refused
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.producer import ProducerIdentity
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.protocol.topics import valid_topic
from eos.sinks.columns import ColumnRoles, roles_of
from eos.sinks.message_rows import message_rows
from eos.sinks.options import SinkOptions
from eos.sinks.schemas import check_columns, new_version, not_taken
from eos.spark.pyspark_api import ClassicDataFrame

log = logging.getLogger("eos.sink")


class WritePlan:
    """Plans the writes of one sink, and remembers for a run what a broker has said of its topics.

    Args: of the cluster; the sink's options.
    Its methods raise InvalidInput for what must be changed by hand, and NetworkError. They run nothing.
    """

    def __init__(self, client: Client, options: SinkOptions) -> None:
        self._client, self._options = client, options
        self._topics: set[str] = set()
        self._schemas: dict[str, Registered | None] = {}
        self._noted: set[str] = set()  # columns that the log has named already
        self._run_id: str | None = None

    def begin(self, run_id: str | None) -> None:
        """Ask for schemas again in a new run: columns that did not fit may fit a version that was added since."""
        if run_id != self._run_id:
            self._run_id = run_id
            self._topics.clear()
            self._schemas.clear()

    def check(self, df: DataFrame, topic: str | None) -> ColumnRoles:
        """Return what each column of a DataFrame becomes, by its topic's newest schema; registers nothing."""
        options = self._options
        _, roles, where = self.message(df, topic)
        if where is None or options.value_format == "raw":
            return roles
        newest, name = self._client.schema(where), options.register_schema
        if name is None or new_version(roles.payload, options.value_format, newest, name) is None:
            check_columns(df.schema, roles, options.value_format, where, newest)
        return roles

    def write(self, df: DataFrame, topic: str | None) -> Write:
        """Plan the write of a DataFrame. A schema is registered first where the options say so."""
        rows, roles, where = self.message(df, topic)
        options = self._options
        if where is None or options.value_format == "raw":
            return Write(rows, where)
        if options.register_schema is not None:
            self._register(roles.payload, where, options.register_schema)
        schema = check_columns(df.schema, roles, options.value_format, where, self._schema_of(where))
        return Write(rows, where, schema)

    def message(self, df: DataFrame, topic: str | None) -> tuple[DataFrame, ColumnRoles, str | None]:
        """Return the rows as message columns, what these were made of, and the topic; None where each row names one."""
        if not isinstance(df, ClassicDataFrame):
            raise InvalidInput(
                f"The sink was given a {type(df).__module__}.{type(df).__name__}. It needs a DataFrame of Spark in "
                "classic mode, since it works through the driver's JVM. Spark Connect's clients have none."
            )
        if not isinstance(topic, (str, type(None))):
            raise InvalidInput(
                f"topic= is {type(topic).__name__}. It must be a str, which counts for all rows. Where each row names "
                "its topic, give the rows a column 'topic' or '__topic', and leave topic= out."
            )
        if df.sparkSession.sparkContext._jsc is None:
            raise InvalidInput(
                "The sink was given a DataFrame of a Spark session that was stopped. Nothing is written. Make the "
                "DataFrame again, in a session that runs. The sink itself can be used there."
            )
        where = valid_topic(topic) if topic is not None else self._options.topic
        if where is not None:
            self.require_topic(where)
        options = self._options
        roles = roles_of(df.schema, options.value_format, topic=where, named=options.named)
        rows = message_rows(df, roles, options.value_format, options.ignore_null_fields)
        for column, note in roles.notes.items():
            if column not in self._noted:
                self._noted.add(column)
                log.info('sink "%s": %s', options.name, note)
        return rows, roles, where

    def require_topic(self, topic: str) -> None:
        """Return if a topic exists, which is asked once. Raises TopicMissing."""
        if topic not in self._topics:
            self._client.partitions(topic)
            self._topics.add(topic)

    def _schema_of(self, topic: str) -> Registered | None:
        """Return what the run has registered, or the topic's newest schema when the run wrote to it first.

        A running query keeps its columns.
        """
        if topic not in self._schemas:
            self._schemas[topic] = self._client.schema(topic)
        return self._schemas[topic]

    def _register(self, payload: StructType, topic: str, name: str) -> None:
        """Register a schema for columns of a payload where the topic has none that they fit. Raises InvalidInput."""
        newest, value_format = self._schema_of(topic), self._options.value_format
        new = new_version(payload, value_format, newest, name)
        if new is None:
            return
        try:
            self._schemas[topic] = self._client.register(
                topic, new, ProducerIdentity(self._options.name, encrypted=bool(self._options.public_keys))
            )
        except Refused as refused:
            if refused.code != "IncompatibleSchema":
                raise
            raise InvalidInput(not_taken(payload, value_format, topic, newest, refused.detail)) from refused
