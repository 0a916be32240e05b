"""The answers to the Java class `eos.sql.PulsarCatalog`, which has no protocol and no admin API of its own.

A catalog of Spark is a class of the JVM. The only call by which Spark lets that class reach Python without a job is the
one for the schema of a data source. So a question is an option of `format("pulsar")`, `catalog.question`. The answer is
a schema: a column for each thing found, its text as the comment. A question that is refused is answered by one column
that says why in its metadata, as `refused`. An error would reach the user as a stack trace of Python's, and a column's
name can be that of a topic, a tenant or a property.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext

from pyspark.sql.types import StringType, StructField, StructType

from eos.errors import EosError, InvalidInput, Refused, TopicMissing
from eos.option_names import CATALOG_QUESTION, VALUE_FORMAT, spelling_key
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.admin_requests import FORBIDDEN
from eos.pulsar.net.client import Client
from eos.pulsar.net.topic_list import topic_names
from eos.pulsar.protocol.topics import NAMESPACE, check_namespace, is_hidden, persistent_name
from eos.source.brokers import admin_api
from eos.source.columns import ALL, all_with
from eos.source.value_schema import typed
from eos.sql.definitions import alter, create, described, drop
from eos.sql.options import catalog_options

_PREFIX = "catalog."
_REFUSED = "refused"
"""The key of a column's metadata that marks a refusal. Texts from Pulsar are only names and comments of columns."""
_NOTHING = StructType([])
_AS_SELECT_WAYS = (
    "CREATE TABLE ... AS SELECT, as writeTo(...).create() and saveAsTable(...) also ask for it, is refused. It can "
    f"only copy all columns of a message ({', '.join(ALL.names)}), and only with guarantee=at-least-once in the "
    "options of the catalog or of the writer. No topic is made. Run CREATE TABLE, and then INSERT INTO or "
    "eos.write(...)."
)


def answer(given: Mapping[str, str], may_write: Callable[[str], None]) -> StructType:
    """Return the answer to a question of the catalog.

    Args:
        given: the options of the source, with `catalog.question` and what it is about; for a table that is written too,
            without the options of the writer.
        may_write: raises InvalidInput with this text where the source may not write by the options.
    """
    about = {name.lower(): value for name, value in given.items() if name.lower().startswith(_PREFIX)}
    of_source = {name: value for name, value in given.items() if name.lower() not in about}
    try:
        if "catalog.as.select" in about:
            may_write(_AS_SELECT_WAYS)
        return _ANSWERS[about[CATALOG_QUESTION]](about, of_source)
    except EosError as error:
        return StructType([StructField(_REFUSED, StringType(), metadata={_REFUSED: str(error)})])


def _text(name: str, text: str = "") -> StructField:
    return StructField(name, StringType(), metadata={"comment": text})


def _names(names: Iterable[str]) -> StructType:
    return StructType([_text(name) for name in sorted(names)])


def _tenants(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    with _admin(given) as admin:
        return _names(admin.tenants())


def _namespaces(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    with _admin(given) as admin:
        return _names(admin.namespaces(about["catalog.namespace"]))


def _namespace(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    """Answer whether there is a tenant, or a namespace; yes where nobody can say: then its topics will tell."""
    name = about["catalog.namespace"]
    there = _names([name])
    if name.count("/") > 1 or not name:
        return _NOTHING
    if catalog_options(given).admin_url is None:
        return there
    tenant, _, namespace = name.partition("/")
    try:
        with _admin(given) as admin:
            found = name in admin.namespaces(tenant) if namespace else tenant in admin.tenants()
    except Refused as refused:
        if refused.code in FORBIDDEN:
            return there
        if refused.code == "404":
            return _NOTHING
        raise
    return there if found else _NOTHING


def _tables(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    namespace = about["catalog.namespace"]
    check_namespace(namespace)
    with Client(catalog_options(given).cluster) as client:
        topics = topic_names(client, namespace, lambda topic: not is_hidden(topic))
    return _names(topic.rsplit("/", 1)[1] for topic in topics)


def _table(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    """Answer with the columns of a topic, and the options that it is read by; with nothing where there is none."""
    if not NAMESPACE.fullmatch(about["catalog.namespace"]):
        return _NOTHING
    topic = _topic(about)
    with Client(catalog_options(given).cluster) as client:
        try:
            client.partitions(topic)
        except TopicMissing:
            return _NOTHING
        persistent_name(topic)  # of a name with a blank at its end the source would read the topic without it
        schema = client.schema(topic)
    named = spelling_key(VALUE_FORMAT) in map(spelling_key, given)
    values = None if named and not catalog_options(given).typed else typed(topic, schema, must=named)
    options = [_text("topic", topic)]
    if values is not None and not named:
        options.append(_text("valueFormat", "schema"))
    columns = ALL if values is None else all_with(values.spark_type)
    return StructType([StructField("columns", columns), StructField("options", StructType(options))])


def _create(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    columns = StructType.fromJson(json.loads(about["catalog.columns"]))
    properties = {name: text or "" for name, text in _properties(about).items()}
    topic = persistent_name(_topic(about))  # another one could be made, and neither read nor written
    with Client(catalog_options(given).cluster) as client, _admin(given) as admin:
        made = create(client, admin, topic, columns, properties)
    return _names(["made"]) if made else _NOTHING


def _columns(about: Mapping[str, str], _: Mapping[str, str]) -> StructType:
    """Answer with the columns of the topic that CREATE TABLE … AS SELECT would make."""
    columns = StructType.fromJson(json.loads(about["catalog.columns"]))
    if sorted(columns.names) != sorted(ALL.names):
        raise InvalidInput(_AS_SELECT_WAYS)
    return StructType([StructField("columns", all_with(columns["value"].dataType))])


def _alter(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    return _if_there(about, given, lambda client, admin, topic: alter(client, admin, topic, _properties(about)))


def _drop(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    return _if_there(about, given, drop)


def _if_there(
    about: Mapping[str, str], given: Mapping[str, str], change: Callable[[Client, Admin, str], None]
) -> StructType:
    """Change a topic; answer with nothing where there is none."""
    with Client(catalog_options(given).cluster) as client, _admin(given) as admin:
        try:
            change(client, admin, _topic(about))
        except TopicMissing:
            return _NOTHING
    return _names(["done"])


def _described(about: Mapping[str, str], given: Mapping[str, str]) -> StructType:
    options = catalog_options(given)
    with Client(options.cluster) as client, nullcontext() if options.admin_url is None else _admin(given) as admin:
        return _texts(described(client, admin, _topic(about)))


def _texts(texts: Mapping[str, str]) -> StructType:
    return StructType([_text(name, text) for name, text in texts.items()])


def _properties(about: Mapping[str, str]) -> dict[str, str | None]:
    """Return the properties of a statement; None for one that is to be unset."""
    given = StructType.fromJson(json.loads(about["catalog.properties"]))
    return {field.name: (field.metadata or {}).get("comment") for field in given.fields}


def _topic(about: Mapping[str, str]) -> str:
    return f"persistent://{about['catalog.namespace']}/{about['catalog.table']}"


def _admin(given: Mapping[str, str]) -> Admin:
    options = catalog_options(given)
    if options.admin_url is None:
        raise InvalidInput(
            "The catalog has no admin.url. The admin API alone knows tenants and namespaces, and makes, changes and "
            "deletes topics. Give "
            'eos.configure_spark an admin_url such as "http://host:8080", or set spark.sql.catalog.NAME.admin.url.'
        )
    return admin_api(options)


_ANSWERS: Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], StructType]] = {
    "tenants": _tenants,
    "namespaces": _namespaces,
    "namespace": _namespace,
    "tables": _tables,
    "table": _table,
    "properties": _described,
    "columns": _columns,
    "create": _create,
    "alter": _alter,
    "drop": _drop,
}
