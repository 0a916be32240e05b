"""What the registry is asked for, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import InvalidInput, Refused, RefusedForGood, TopicMissing
from eos.pulsar.net.client import Client
from eos.pulsar.net.service_url import Address, addresses
from eos.pulsar.protocol.requests import ANSWERS, Type
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.frames import Frame
from eos.pulsar.wire.pulsar_pb2 import (
    BaseCommand,
    CommandGetSchemaResponse,
    CommandPartitionedTopicMetadataResponse,
    Schema,
    ServerError,
)
from tests.unit.pulsar.net.fake_broker import FakeBroker, Handler, Session, first_then_well, looked_up, refusing

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


def test_the_newest_schema_and_one_by_its_version(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.GET_SCHEMA] = has_a_schema
    assert client.schema("t-partition-1") == Registered(TOPIC, VERSION, "INT32", b"", {})
    assert client.schema("t", bytes(8)) == Registered(TOPIC, bytes(8), "INT32", b"", {})
    newest, given = (command.get_schema for command in broker.commands(Type.GET_SCHEMA))
    assert (newest.topic, newest.HasField("schema_version")) == (TOPIC, False)
    assert (given.topic, given.schema_version) == (TOPIC, bytes(8))


def test_no_schema_is_no_error(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.GET_SCHEMA] = has_none
    assert client.schema("t") is None


def test_a_registry_that_is_not_ready_is_asked_again(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.GET_SCHEMA] = first_then_well(refusing(ServerError.ServiceNotReady, "loading"))
    client.schema("t")
    assert len(broker.commands(Type.GET_SCHEMA)) == 2


def test_another_refusal_reaches_the_caller(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.GET_SCHEMA] = refusing(ServerError.AuthorizationError, "not you")
    with pytest.raises(Refused, match=f"ask for the schema of {TOPIC}: .*not you"):
        client.schema("t")


UNKNOWN = "Exception occurred while trying to authorize it"
NO_RIGHT = "Client is not authorized to do it"


def no_partitions(words: str) -> Handler:
    failed = CommandPartitionedTopicMetadataResponse.LookupType.Failed
    code = ServerError.AuthorizationError
    response = CommandPartitionedTopicMetadataResponse(response=failed, error=code, message=words)
    found = BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE, partition_metadata_response=response)
    return lambda session, frame: session.answer(frame.command, found)


def no_lookup(words: str) -> Handler:
    return looked_up("Failed", error=ServerError.AuthorizationError, message=words)


def nothing(words: str) -> Handler:
    return refusing(ServerError.AuthorizationError, words)


ASKED: dict[Type, tuple[Callable[[str], Handler], Callable[[Client], object]]] = {
    Type.LOOKUP: (no_lookup, lambda client: client.coordinator(0)),
    Type.PARTITIONED_METADATA: (no_partitions, lambda client: client.coordinators()),
    Type.GET_TOPICS_OF_NAMESPACE: (nothing, lambda client: client.topics("public/default")),
    Type.GET_SCHEMA: (nothing, lambda client: client.schema("t")),
    Type.PRODUCER: (nothing, lambda client: client.producer("t")),
    Type.SUBSCRIBE: (nothing, lambda client: client.hold("t", "s")),
}


@pytest.mark.parametrize("kind", ASKED, ids=Type.Name)
def test_a_right_that_the_broker_could_not_look_up_is_asked_for_again(
    broker: FakeBroker, client: Client, kind: Type
) -> None:
    """As while its metadata store is away for a moment. A right that is missing is refused at once."""
    answer, ask = ASKED[kind]
    broker.handlers[kind] = answer(NO_RIGHT)
    with pytest.raises(RefusedForGood, match=NO_RIGHT):
        ask(client)
    assert len(broker.commands(kind)) == 1
    broker.handlers[kind] = first_then_well(answer(UNKNOWN))
    ask(client)
    assert len(broker.commands(kind)) >= 3


RELAYED = '{"errorMsg":"%s","reqId":3662447564887239489, "remote":"broker/10.0.0.1:6650", "local":"/10.0.0.2:55604"}'


def as_a_proxy(code: ServerError, words: str) -> Handler:
    """Refuse a request in the way of Pulsar Proxy: by the answer to a lookup, with the broker's words wrapped."""
    return looked_up("Failed", error=code, message=RELAYED % words)


def test_a_proxy_that_passes_on_a_refusal_by_a_vague_code_is_asked_for_the_broker_itself(
    broker: FakeBroker, client: Client
) -> None:
    """Proxies before 4.0 tell each refusal as ServiceNotReady, also the one for a topic that is missing."""
    broker.handlers[Type.PARTITIONED_METADATA] = first_then_well(as_a_proxy(ServerError.ServiceNotReady, ""))
    assert client.partitions("t") == 0
    assert client._pool.service().alive
    assert len(broker.commands(Type.LOOKUP)) == 1
    assert len(broker.commands(Type.PARTITIONED_METADATA)) == 2


@pytest.mark.parametrize("code", [ServerError.ServiceNotReady, ServerError.UnknownError])
@pytest.mark.parametrize(
    ("words", "expected"),
    [("Namespace not found", TopicMissing), ("Invalid topic name: x", RefusedForGood)],
)
def test_what_a_proxy_passes_on_has_the_meaning_of_the_brokers_words(
    broker: FakeBroker, client: Client, code: ServerError, words: str, expected: type[Exception]
) -> None:
    broker.handlers[Type.LOOKUP] = as_a_proxy(code, words)
    with pytest.raises(expected, match=words if expected is RefusedForGood else "namespace"):
        client.producer(TOPIC)


def test_a_broker_that_is_not_ready_is_no_proxy(broker: FakeBroker, client: Client) -> None:
    broker.handlers[Type.PARTITIONED_METADATA] = first_then_well(refusing(ServerError.ServiceNotReady, "loading"))
    assert client.partitions("t") == 0
    assert not broker.commands(Type.LOOKUP)


# ---- service URLs


def test_service_urls() -> None:
    assert addresses("pulsar://a:1,b,[::1]:2/") == [Address("a", 1), Address("b", 6650), Address("::1", 2)]
    assert addresses("pulsar+ssl://a") == [Address("a", 6651, tls=True)]
    assert str(Address("::1", 2, tls=True)) == "pulsar+ssl://[::1]:2"


@pytest.mark.parametrize(
    "url",
    [
        *("http://a:8080", "a:6650", "pulsar://", "pulsar://a:x", "pulsar://a:0", "pulsar://a/b", "pulsar://a:²"),
        *("pulsar://my..broker:6650", "pulsar://.a", f"pulsar+ssl://{'a' * 64}.example.com", "pulsar://a,b..c"),
        *("pulsar://::1", "pulsar://2001:db8::5", "pulsar://::1:6650", "pulsar://[::1:6650", "pulsar://]::1[:6650"),
        *("pulsar://[a]:1", "pulsar://a:1;b:1", "pulsar://a b:1", "pulsar://a\n:1", "pulsar://a?x:1", "pulsar://a#b:1"),
    ],
)
def test_wrong_service_urls(url: str) -> None:
    with pytest.raises(InvalidInput):
        addresses(url)


@pytest.mark.parametrize("url", ["pulsar://me:s3cret@a:1", "me:s3cret@a:1", "pulsar+ssl://a:1,s3cret@b:1"])
def test_a_user_in_a_service_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"before the @.*by the option basic, token or oauth2") as told:
        addresses(url)
    assert "s3cret" not in str(told.value)
