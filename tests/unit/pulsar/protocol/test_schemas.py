from __future__ import annotations

import pytest

from eos.errors import InvalidInput, Refused
from eos.pulsar.protocol.requests import Type
from eos.pulsar.protocol.schemas import Registered, ask_schema, kind_name, schema_answer
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandError,
    CommandGetSchemaResponse,
    KeyValue,
    Schema,
    ServerError,
)

TOPIC = "persistent://public/default/t"
VERSION = (3).to_bytes(8, "big")


def answer(**fields: object) -> BaseCommand:
    response = CommandGetSchemaResponse(**fields)  # type: ignore[arg-type]
    return BaseCommand(type=Type.GET_SCHEMA_RESPONSE, get_schema_response=response)


def test_a_partition_is_asked_for_by_its_topic_and_the_newest_without_a_version() -> None:
    asked = ask_schema(f"{TOPIC}-partition-2", None).get_schema
    assert asked.topic == TOPIC
    assert not asked.HasField("schema_version")
    assert ask_schema(TOPIC, VERSION).get_schema.schema_version == VERSION


def test_what_is_registered() -> None:
    schema = Schema(type=Schema.Type.Json, schema_data=b"{}", properties=[KeyValue(key="a", value="b")])
    given = schema_answer(answer(schema=schema, schema_version=VERSION), f"{TOPIC}-partition-2")
    assert given == Registered(TOPIC, VERSION, "JSON", b"{}", {"a": "b"})
    assert str(given) == f"version 3 of the schema of {TOPIC}"


@pytest.mark.parametrize("number", Schema.Type.values())
def test_what_is_registered_is_declared_as_the_same(number: int) -> None:
    schema = Schema(name="", type=number, schema_data=b"{}", properties=[KeyValue(key="a", value="b")])  # type: ignore[arg-type]
    given = schema_answer(answer(schema=schema, schema_version=VERSION), TOPIC)
    assert given is not None
    assert given.declared.on_the_wire() == schema


def test_a_schema_of_a_newer_pulsar_can_not_be_declared() -> None:
    """Known by its number alone, as a topic's schema has it."""
    with pytest.raises(InvalidInput, match=r'does not know the schema type "99".*Use a newer version'):
        Registered(TOPIC, VERSION, kind_name(99), b"", {}).declared.on_the_wire()


def test_a_topic_without_a_schema_has_none() -> None:
    refused = answer(error_code=ServerError.TopicNotFound, error_message="Topic not found or no-schema")
    assert schema_answer(refused, TOPIC) is None


@pytest.mark.parametrize("kind", [Type.GET_SCHEMA_RESPONSE, Type.ERROR])
def test_another_refusal_is_raised_with_the_brokers_words(kind: BaseCommand.Type) -> None:
    command = answer(error_code=ServerError.AuthorizationError, error_message="not you")
    if kind == Type.ERROR:
        error = CommandError(error=ServerError.AuthorizationError, message="not you")
        command = BaseCommand(type=Type.ERROR, error=error)
    with pytest.raises(
        Refused, match=f"ask for the schema of {TOPIC}: the broker answered AuthorizationError: not you"
    ):
        schema_answer(command, TOPIC)


def test_kinds_have_the_names_of_the_admin_api() -> None:
    names = [kind_name(kind) for kind in Schema.Type.values()]
    assert names[:6] == ["BYTES", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN"]
    assert {"KEY_VALUE", "LOCAL_DATE_TIME", "INT8", "PROTOBUF_NATIVE", "AUTO_CONSUME"} <= set(names)
    assert kind_name(99) == "99"
