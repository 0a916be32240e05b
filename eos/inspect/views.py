"""`eos.catalog`: a cluster's topics as views in a Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from eos.by_name.data_source import NAME
from eos.inspect.tables import tables
from eos.option_names import same_name
from eos.pulsar.net.client import Client
from eos.source.options import parse_options
from eos.source.value_schema import typed

_OF_CLUSTER, _VALUE_FORMAT = "service.url", "valueFormat"


def catalog(
    spark: SparkSession,
    service_url: str,
    *,
    namespaces: Iterable[str] = ("public/default",),
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Make a temporary view of each topic, named `tenant/namespace/topic`; return the names, sorted.

    A view is a batch read of what is committed when it is queried, such as by "select * from `public/default/flights`".
    A namespace is the first part of its views' names, as a database is that of its tables'. The value has the type of
    the topic's registered schema, and is bytes where there is none that Spark has a counterpart of. Topics that begin
    with two underscores are left out, and topics that are made later come with the next call. Each view takes Spark a
    moment.

    Args:
        spark: the session that gets the views; one of the same name is replaced.
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651".
        namespaces: which topics. Default: those of public/default.
        options: further options of a batch read by the source, such as token, or valueFormat. Default: none.

    Raises:
        InvalidInput: a namespace or an option is wrong.
        NetworkError: the cluster can't be reached.
    """
    given = same_name({_OF_CLUSTER: service_url, **(options or {})}, (_OF_CLUSTER, _VALUE_FORMAT))
    with Client(parse_options({**given, "topic": "any"}, "batch").cluster) as client:
        found = [table.topic for namespace in namespaces for table in tables(client, namespace)]
        schemas = {topic: typed(topic, client.schema(topic)) for topic in found}
    for topic, schema in schemas.items():
        by_schema = {} if schema is None else {_VALUE_FORMAT: "schema"}
        read = spark.read.format(NAME).options(**(by_schema | given)).option("topic", topic)
        read.load().createOrReplaceTempView(f"`{_name(topic)}`")
    return sorted(map(_name, schemas))


def _name(topic: str) -> str:
    return topic.removeprefix("persistent://")
