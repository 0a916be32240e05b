"""What the registry is asked for, and what becomes of its answers."""

from __future__ import annotations

import pytest

from eos.errors import Refused
from eos.pulsar.protocol.requests import ANSWERS, Type
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandGetSchemaResponse, Schema, ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, Session, first_then_well, refusing

TOPIC = "persistent://public/default/t"
VERSION = (5).to_bytes(8, "big")


def has_a_schema(session: Session, frame: Frame) -> None:
    asked = frame.command.get_schema
    response = CommandGetSchemaResponse(
        schema=Schema(type=Schema.Type.Int32, name=asked.topic),
        schema_version=asked.schema_version or VERSION,
    )
    session.answer(frame.command, BaseCommand(type=Type.GET_SCHEMA_RESPONSE, get_schema_response=response))


def has_none(session: Session, frame: Frame) -> None:
    response = CommandGetSchemaResponse(error_code=ServerError.TopicNotFound, error_message="no-schema")
    session.answer(frame.command, BaseCommand(type=ANSWERS[Type.GET_SCHEMA], get_schema_response=response))  # type: ignore[arg-type]


def test_the_newest_schema_and_one_by_its_version(broker: FakeBroker) -> None:
    broker.handlers[Type.GET_SCHEMA] = has_a_schema
    with broker.client() as client:
        assert client.schema("t-partition-1") == Registered(TOPIC, VERSION, "INT32", b"", {})
        assert client.schema("t", bytes(8)) == Registered(TOPIC, bytes(8), "INT32", b"", {})
    newest, given = (command.get_schema for command in broker.commands(Type.GET_SCHEMA))
    assert (newest.topic, newest.HasField("schema_version")) == (TOPIC, False)
    assert (given.topic, given.schema_version) == (TOPIC, bytes(8))


def test_no_schema_is_no_error(broker: FakeBroker) -> None:
    broker.handlers[Type.GET_SCHEMA] = has_none
    with broker.client() as client:
        assert client.schema("t") is None


def test_a_registry_that_is_not_ready_is_asked_again(broker: FakeBroker) -> None:
    broker.handlers[Type.GET_SCHEMA] = first_then_well(refusing(ServerError.ServiceNotReady, "loading"))
    with broker.client() as client:
        client.schema("t")
    assert len(broker.commands(Type.GET_SCHEMA)) == 2


def test_another_refusal_reaches_the_caller(broker: FakeBroker) -> None:
    broker.handlers[Type.GET_SCHEMA] = refusing(ServerError.AuthorizationError, "not you")
    with broker.client() as client, pytest.raises(Refused, match=f"ask for the schema of {TOPIC}: .*not you"):
        client.schema("t")
