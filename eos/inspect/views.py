"""`eos.catalog`: a cluster's topics as views in a Spark session."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from eos.by_name.session import register
from eos.errors import InvalidInput
from eos.inspect.tables import listed
from eos.option_names import as_texts, same_name, without_parameters
from eos.pulsar.net.client import Client
from eos.source.options import parse_options
from eos.source.value_schema import typed

log = logging.getLogger("eos.inspect")

_SOURCE = "pulsar_eos"  # "pulsar" may be the source of another connector's jar: Spark takes that one first
_OF_CLUSTER, _VALUE_FORMAT = "service.url", "valueFormat"


def catalog(
    spark: SparkSession,
    service_url: str,
    *,
    namespaces: Iterable[str] = ("public/default",),
    options: Mapping[str, str | int | float | bool] | None = None,
) -> list[str]:
    """Make a temporary view of each topic, named `tenant/namespace/topic`, and return the sorted names.

    A query of a view, such as "select * from `public/default/flights`", reads the rows that are committed then. The
    value has the type of the topic's registered schema. It is bytes where the topic has no schema, or one that Spark
    has no type for. Topics that begin with two underscores are left out. The next call adds topics that are made later.
    Each view takes Spark a moment.

    Args:
        spark: the session that gets the views. A view of the same name is replaced.
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651".
        namespaces: the namespaces of the topics, or a single one. Default: public/default.
        options: further options of a batch read by the source, such as token, or valueFormat. Default: none.

    Raises:
        InvalidInput: a namespace or an option is wrong. Or the names of two topics differ in case only, and the session
            takes them for one name. Then no view is made.
        NetworkError: the cluster can't be reached.
    """
    if not isinstance(namespaces, Iterable):
        raise InvalidInput(f'namespaces= is {type(namespaces).__name__}. Give a list of such as "public/default".')
    more = without_parameters(as_texts({} if options is None else options), {_OF_CLUSTER: ("service_url", service_url)})
    given = same_name(as_texts({_OF_CLUSTER: service_url}) | more, (_OF_CLUSTER, _VALUE_FORMAT))
    with Client(parse_options({**given, "topic": "any"}, "batch").cluster) as client:
        wanted = [namespaces] if isinstance(namespaces, str) else namespaces
        found = [topic for namespace in wanted for topic in listed(client, namespace) if _is_readable(topic)]
        _refuse_one_name_for_two(spark, found)
        schemas = {topic: typed(topic, client.schema(topic)) for topic in found}
    register(spark, _SOURCE)
    loaded = {}
    for topic, schema in schemas.items():
        by_schema = {} if schema is None else {_VALUE_FORMAT: "schema"}
        loaded[topic] = spark.read.format(_SOURCE).options(**(by_schema | given)).option("topic", topic).load()
    for topic, rows in loaded.items():
        rows.createOrReplaceTempView(f"`{_name(topic).replace('`', '``')}`")
    return sorted(map(_name, schemas))


def _is_readable(topic: str) -> bool:
    """Whether the source takes the name. One with a blank at its end would read the topic without it."""
    if any(character.isspace() for character in topic):
        log.warning('%r gets no view: its name has a blank, and format("pulsar") takes no such name', topic)
        return False
    return True


def _refuse_one_name_for_two(spark: SparkSession, topics: Iterable[str]) -> None:
    """Spark lower-cases the names of temporary views, unless it is told otherwise. The last view would replace all."""
    if (spark.conf.get("spark.sql.caseSensitive") or "false").lower() == "true":
        return
    by_name: dict[str, str] = {}
    for topic in topics:
        other = by_name.setdefault(_name(topic).lower(), topic)
        if other != topic:
            raise InvalidInput(
                f"The topics {_name(other)!r} and {_name(topic)!r} differ in case only, and for this session their "
                "views have one name. A query of one would read the other. No view is made. Set "
                'spark.sql.caseSensitive=true for this session, or read these topics by format("pulsar").'
            )


def _name(topic: str) -> str:
    return topic.removeprefix("persistent://")
