"""Schemas as the registry keeps them: asking for one, and what the answer says.

The registry keeps the schema of a topic, not of its partitions, and numbers its versions from 0; any broker answers.
A version is eight bytes, most significant first, in the answer as in a message's metadata.

A producer declares a schema when it opens. The broker looks for it among the topic's versions, registers it if it is
new and the topic's settings let it in, and answers with its version (ServerCnx.tryAddSchema, AbstractTopic.addSchema).
To put that version on each frame is left to the client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eos.errors import InvalidInput, Refused
from eos.pickling import PickledByName
from eos.pulsar.protocol.requests import Type, granted
from eos.pulsar.protocol.topics import whole_topic
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandGetSchema, KeyValue, Schema


@dataclass(frozen=True, slots=True)
class Declared:
    """A schema as a producer declares it.

    Attributes:
        kind: the type's name as Pulsar's admin API writes it, such as "JSON", "INT32" or "KEY_VALUE".
        definition: what defines it: Avro's text for JSON and AVRO; empty for a primitive. Default empty.
        properties: what else is to be said of it, as pairs. Default none.
    """

    kind: str
    definition: bytes = b""
    properties: tuple[tuple[str, str], ...] = ()

    def on_the_wire(self) -> Schema:
        """Return it as PRODUCER carries it. Raises InvalidInput for a type of a newer Pulsar."""
        if self.kind not in _NUMBERS:
            raise InvalidInput(
                f'this version does not know the schema type "{self.kind}", so it can\'t declare such a schema, and '
                "nothing was written. Use a newer version, or another topic"
            )
        pairs = [KeyValue(key=key, value=value) for key, value in self.properties]
        number = _NUMBERS[self.kind]
        return Schema(name="", schema_data=self.definition, type=number, properties=pairs)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Registered(PickledByName):
    """One version of a topic's schema.

    Attributes:
        topic: the topic, without the partition.
        version: its number as eight bytes, most significant first.
        kind: the type's name as Pulsar's admin API writes it, such as "JSON", "INT32" or "KEY_VALUE".
        definition: what defines it: Avro's text for JSON and AVRO; empty for a primitive.
        properties: what else the producer or the admin said of it.
    """

    topic: str
    version: bytes
    kind: str
    definition: bytes
    properties: Mapping[str, str]

    @property
    def number(self) -> int:
        """The version's number."""
        return int.from_bytes(self.version, "big")

    @property
    def declared(self) -> Declared:
        """The same schema as a producer declares it."""
        return Declared(self.kind, self.definition, tuple(sorted(self.properties.items())))

    def __str__(self) -> str:
        return f"version {self.number} of the schema of {self.topic}"


def ask_schema(topic: str, version: bytes | None) -> BaseCommand:
    """Return GET_SCHEMA. Args: the topic or a partition of it; a version, or None for the newest."""
    question = CommandGetSchema(topic=whole_topic(topic))
    if version is not None:
        question.schema_version = version
    return BaseCommand(type=Type.GET_SCHEMA, get_schema=question)


def schema_answer(command: BaseCommand, topic: str) -> Registered | None:
    """Return what is registered, None where there is no schema, or no such version. Raises Refused."""
    try:
        given = granted(command, f"ask for the schema of {topic}").get_schema_response
    except Refused as refused:
        if refused.code != "TopicNotFound":  # the broker says so of a missing topic, and of one without a schema
            raise
        return None
    schema = given.schema
    return Registered(
        whole_topic(topic),
        given.schema_version,
        kind_name(schema.type),
        schema.schema_data,
        {pair.key: pair.value for pair in schema.properties},
    )


_OTHER_NAMES = {"UNSET": "BYTES", "Bool": "BOOLEAN"}


def kind_name(kind: int) -> str:
    """Return the name of a type: `LocalDate` on the wire is "LOCAL_DATE"; the number of one that isn't known."""
    if kind not in Schema.Type.values():
        return str(kind)
    name = Schema.Type.Name(kind)
    return _OTHER_NAMES.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper())


_NUMBERS = {kind_name(number): number for number in Schema.Type.values()}
