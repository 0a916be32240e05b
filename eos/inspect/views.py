"""`eos.catalog`: a cluster's topics as views in a Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from eos.by_name.session import register
from eos.inspect.tables import listed
from eos.option_names import same_name
from eos.pulsar.net.client import Client
from eos.source.options import parse_options
from eos.source.value_schema import typed

_SOURCE = "pulsar_eos"  # "pulsar" may be the source of another connector's jar: Spark takes that one first
_OF_CLUSTER, _VALUE_FORMAT = "service.url", "valueFormat"


def catalog(
    spark: SparkSession,
    service_url: str,
    *,
    namespaces: Iterable[str] = ("public/default",),
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Make a temporary view of each topic, named `tenant/namespace/topic`, and return the sorted names.

    A query of a view, such as "select * from `public/default/flights`", reads the rows that are committed then. The
    value has the type of the topic's registered schema. It is bytes where the topic has no schema, or one that Spark
    has no type for. Topics that begin with two underscores are left out. The next call adds topics that are made later.
    Each view takes Spark a moment.

    Args:
        spark: the session that gets the views. A view of the same name is replaced.
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651".
        namespaces: the namespaces of the topics. Default: public/default.
        options: further options of a batch read by the source, such as token, or valueFormat. Default: none.

    Raises:
        InvalidInput: a namespace or an option is wrong.
        NetworkError: the cluster can't be reached.
    """
    given = same_name({_OF_CLUSTER: service_url, **(options or {})}, (_OF_CLUSTER, _VALUE_FORMAT))
    with Client(parse_options({**given, "topic": "any"}, "batch").cluster) as client:
        found = [topic for namespace in namespaces for topic in listed(client, namespace)]
        schemas = {topic: typed(topic, client.schema(topic)) for topic in found}
    register(spark, _SOURCE)
    for topic, schema in schemas.items():
        by_schema = {} if schema is None else {_VALUE_FORMAT: "schema"}
        read = spark.read.format(_SOURCE).options(**(by_schema | given)).option("topic", topic)
        read.load().createOrReplaceTempView(f"`{_name(topic)}`")
    return sorted(map(_name, schemas))


def _name(topic: str) -> str:
    return topic.removeprefix("persistent://")
