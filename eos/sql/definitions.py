"""CREATE, ALTER and DROP TABLE of a topic, and the properties that DESCRIBE EXTENDED shows of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NoReturn, cast

from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from eos.errors import EosError, InvalidInput, NetworkError, Refused, TopicMissing
from eos.option_names import VALUE_FORMAT, same_name, spelling_key, whole_number
from eos.pulsar.net.admin import Admin, if_there
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.schemas import Declared
from eos.pulsar.protocol.topics import physical_topics
from eos.sinks.columns import ALIASES, ValueFormat
from eos.sinks.schemas import new_version
from eos.source.columns import PARTS
from eos.source.table import OPTIONS

PARTITIONS = "partitions"
DROPPABLE = "droppable"
"""The property of a topic without which DROP TABLE does not delete it."""
PROPERTIES = "properties"
"""Stands for a topic's own properties where these are not known."""
_OURS = (PARTITIONS, DROPPABLE)
"""The properties that mean something here, in any spelling."""
_WRITTEN = ("avro", "json")
_OF_MESSAGES = {name.lower() for name in (*(part.name for part in PARTS), *ALIASES)} - {"value"}
"""The columns that are no fields of a value, in lower case: SQL does not tell names by their case."""
_FIGURES = ("retention", "schema", "schema.version", "segments", "size")
"""What DESCRIBE EXTENDED shows of a topic beside its properties."""
_PLAIN_COLLATION = "UTF8_BINARY"
_OF_SPARK = ("owner", "provider")
"""The properties that Spark itself adds to those of CREATE TABLE."""
_OF_OPTIONS = "option."
"""Begins the name of a property that Spark makes of OPTIONS (...): Spark's CatalogV2Util.convertTableProperties."""
_OPTIONS = {spelling_key(one.name) for one in OPTIONS} - {spelling_key(VALUE_FORMAT)} | {"guarantee"}
_WHERE = "give it to the catalog by eos.configure_spark(options=…), or to one statement by WITH (…)"
_OF_FILES: Mapping[str, str] = {
    "location": "LOCATION means nothing to it: Pulsar stores it. Leave it out",
    "external": "EXTERNAL means nothing to it: DROP TABLE deletes each topic that allows it. Leave it out",
    "hive.": "STORED AS and ROW FORMAT mean nothing to it: Pulsar stores it. Leave them out",
}
"""What of a table of files Pulsar has no sense for, by the name of the property, or its beginning."""


def create(client: Client, admin: Admin, topic: str, columns: StructType, properties: Mapping[str, str]) -> bool:
    """Make a topic, and register the schema that its columns make; return whether there was no such topic.

    Args:
        columns: those of a message are passed over; `value` as bytes, or no other column, makes no schema; a struct
            `value` makes its fields one, and all other columns together do.
        properties: `partitions`, 1 by default; `valueFormat`, "avro" by default, or "json"; the others become the
            topic's own.

    Raises InvalidInput for a column or a property that means nothing here: then no topic is made; and where one is made
    in part, or perhaps. Refused where none is.
    """
    form, partitions, own = _parsed(topic, properties)
    schema = _declared(columns, form, topic)
    try:
        admin.create(topic, partitions)
    except NetworkError as error:
        if isinstance(error, Refused) and not _may_be_done(error):
            if error.code == "409":
                return False
            raise
        raise _half_made(topic, "may be made, without its schema and its properties", error) from error
    state = "is made, and may have no schema"
    try:
        if schema is not None:
            client.register(topic, schema)
        state = "is made, and may lack its properties"
        admin.set_properties(topic, own)
    except (NetworkError, TopicMissing) as error:
        raise _half_made(topic, state, error) from error
    return True


def _may_be_done(refused: Refused) -> bool:
    """Whether an answer leaves open if the topic is made: a proxy gave up, or a broker failed on the way."""
    return refused.code == "408" or re.fullmatch("5[0-9]{2}", refused.code) is not None


def _half_made(topic: str, state: str, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"{topic} {state} ({error}). See what is there by DESCRIBE TABLE EXTENDED. CREATE TABLE does not complete it, "
        "and with IF NOT EXISTS takes it as it is. Register the schema and set the properties, or delete the topic and "
        "run the statement again."
    )


def alter(client: Client, admin: Admin, topic: str, properties: Mapping[str, str | None]) -> None:
    """Set or unset properties of a topic. Args: {name: text, or None to unset it}; `partitions` is their number.

    Raises TopicMissing; InvalidInput for fewer partitions, and where there are none: then nothing is changed. Refused.
    """
    properties = same_name(properties, _OURS)
    _refuse_foreign(topic, {name for name, text in properties.items() if text is not None})
    now = client.partitions(topic)
    if PARTITIONS in properties:
        wanted = _number(topic, properties[PARTITIONS] or "")
        if now == 0:
            _refuse(topic, "it has no partitions, and Pulsar gives none to such a topic. Make another topic")
        if wanted < now:
            _refuse(topic, f"it has {now} partitions, and Pulsar takes none away. Give a larger number")
        if wanted > now:
            admin.set_partitions(topic, wanted)
    own = {name: text for name, text in properties.items() if name != PARTITIONS}
    admin.set_properties(topic, {name: text for name, text in own.items() if text is not None})
    if unset := {name for name, text in own.items() if text is None}:
        for name in unset & admin.properties(topic).keys():
            admin.unset_property(topic, name)


def drop(client: Client, admin: Admin, topic: str) -> None:
    """Delete a topic whose properties allow it, with its messages and its schema. Raises TopicMissing, InvalidInput."""
    partitions = client.partitions(topic)
    if admin.properties(topic).get(DROPPABLE) != "true":
        raise InvalidInput(
            f"DROP TABLE would delete {topic} with all its messages, for every reader. The topic does not allow it. "
            f"Nothing is deleted. Allow it by ALTER TABLE … SET TBLPROPERTIES ('{DROPPABLE}' = 'true')."
        )
    if partitions:
        admin.delete_partitioned(topic)
    else:
        admin.delete(topic)


def described(client: Client, admin: Admin | None, topic: str) -> dict[str, str]:
    """Return what is known of a topic, by name; for what a role may not see, why. Raises TopicMissing.

    Without an admin API only partitions and schema are known.
    """
    partitions = client.partitions(topic)
    found = {PARTITIONS: str(partitions)}
    schema = client.schema(topic)
    if schema is not None:
        found |= {"schema": schema.kind, "schema.version": str(schema.number)}
    if admin is None:
        return found
    physical = physical_topics(topic, partitions)
    figures: Mapping[str, Callable[[], str]] = {
        "retention": lambda: _retention(admin, topic),
        "segments": lambda: str(sum(len(if_there(admin.ledgers, one) or ()) for one in physical)),
        "size": lambda: f"{admin.stored_bytes(topic, partitioned=partitions > 0)} bytes",
    }
    try:
        own = dict(admin.properties(topic))
    except EosError as error:
        own = {PROPERTIES: _not_known(error)}
    return own | found | {name: _or_why(figure) for name, figure in figures.items()}


def _or_why(figure: Callable[[], str]) -> str:
    try:
        return figure()
    except EosError as error:
        return _not_known(error)


def _not_known(error: EosError) -> str:
    return f"not known: {error}"


def _retention(admin: Admin, topic: str) -> str:
    policies = admin.keeping(topic)
    return f"{policies.retention_minutes} minutes, {policies.retention_mb} MB (-1: without limit)"


def _parsed(topic: str, properties: Mapping[str, str]) -> tuple[str, int, dict[str, str]]:
    """Return how values are written, the number of partitions, and the topic's own properties."""
    own = {name: text for name, text in properties.items() if name not in _OF_SPARK}
    provider = properties.get("provider", "pulsar")
    if provider.lower() != "pulsar":
        _refuse(
            topic,
            f"USING {provider} is another data source. Leave it out. toTable(...) asks for it where there is no table: "
            "run CREATE TABLE before",
        )
    own = same_name(own, (*_OURS, VALUE_FORMAT))
    form = own.pop(VALUE_FORMAT, _WRITTEN[0]).lower()
    _refuse_foreign(topic, own)
    if form not in _WRITTEN:
        _refuse(topic, f"valueFormat={form!r} can't be made of columns. Give 'avro' or 'json'")
    return form, _number(topic, own.pop(PARTITIONS, "1")), own


def _refuse_foreign(topic: str, names: Collection[str]) -> None:
    """Refuse what would become a property of the topic, which every role that may look at it sees, and is none.

    No message shows a value: it may be a secret.
    """
    for name in sorted(names, key=lambda name: not name.startswith(_OF_OPTIONS)):
        if name.startswith(_OF_OPTIONS):
            _refuse(
                topic,
                f"OPTIONS ({name.removeprefix(_OF_OPTIONS)} …) mean nothing to it. Properties of a topic stand in "
                f"TBLPROPERTIES. Of an option of reads and writes: {_WHERE}",
            )
        if spelling_key(name) in _OPTIONS:
            _refuse(
                topic,
                f"{name} is an option of a read or a write, and no property of a topic, which others see: {_WHERE}",
            )
        if name.lower() in _FIGURES:
            _refuse(
                topic,
                f"{name} is not a property that is set here. DESCRIBE EXTENDED shows the {name} that the topic has. "
                "Leave it out. An administrator sets policies and schemas",
            )
        for file_like, why in _OF_FILES.items():
            if name == file_like or (file_like.endswith(".") and name.startswith(file_like)):
                _refuse(topic, why)


def _declared(columns: StructType, form: str, topic: str) -> Declared | None:
    fields = [column for column in columns.fields if column.name.lower() not in _OF_MESSAGES]
    if (why := next(_without_meaning(StructType(fields)), None)) is not None:
        _refuse(topic, f"{why}. Leave it out")
    if [column.name.lower() for column in fields] == ["value"]:
        kind = fields[0].dataType
        if isinstance(kind, BinaryType | StringType):
            return None
        if isinstance(kind, StructType):
            fields = kind.fields
    if not fields:
        return None
    return new_version(StructType(fields), cast(ValueFormat, form), None, "Row")


def _without_meaning(kind: DataType, name: str = "") -> Iterator[str]:
    """Yield what columns say that no schema has, at any depth. Args: their type; the name of what has it."""
    collation = getattr(kind, "collation", _PLAIN_COLLATION)  # of a string, from Spark 4.0 on
    if collation != _PLAIN_COLLATION:
        yield f"COLLATE {collation} of {name} means nothing to it. Queries compare its texts by their bytes"
    if isinstance(kind, StructType):
        for field in kind.fields:
            if not field.nullable:
                yield f"NOT NULL of {field.name} means nothing to it. Any field of its schema may be null"
            yield from _without_meaning(field.dataType, field.name)
    elif isinstance(kind, ArrayType):
        yield from _without_meaning(kind.elementType, name)
    elif isinstance(kind, MapType):
        yield from _without_meaning(kind.keyType, name)
        yield from _without_meaning(kind.valueType, name)


def _number(topic: str, text: str) -> int:
    number = whole_number(text)
    if not number:
        _refuse(topic, f"{PARTITIONS}={text!r} is not a whole number of 1 or more")
    return number


def _refuse(topic: str, why: str) -> NoReturn:
    raise InvalidInput(f"{topic} is not made or changed: {why}.")
