from __future__ import annotations

import pytest

from eos.errors import Refused, UnexpectedFrame
from eos.pulsar.protocol.handshake import CLIENT_VERSION, PROTOCOL_VERSION, Handshake, State
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import (
    AuthData,
    BaseCommand,
    CommandAuthChallenge,
    CommandAuthResponse,
    CommandConnected,
    CommandError,
    FeatureFlags,
    ServerError,
)


def connected(version: int = 21, **flags: bool) -> BaseCommand:
    return BaseCommand(
        type=Type.CONNECTED,
        connected=CommandConnected(
            server_version="broker 4",
            protocol_version=version,
            max_message_size=1000,
            feature_flags=FeatureFlags(**flags),
        ),
    )


CHALLENGE = BaseCommand(
    type=Type.AUTH_CHALLENGE,
    auth_challenge=CommandAuthChallenge(challenge=AuthData(auth_method_name="token", auth_data=b"PulsarAuthRefresh")),
)


def test_connect_says_who_we_are_and_what_we_can_do() -> None:
    command = Handshake("token").connect(b"secret")
    assert command.connect.auth_method_name == "token"
    assert command.connect.auth_data == b"secret"
    assert command.connect.protocol_version == PROTOCOL_VERSION >= 19
    assert command.connect.feature_flags.supports_auth_refresh
    assert command.connect.feature_flags.supports_get_partitioned_metadata_without_auto_creation
    assert not command.connect.HasField("proxy_to_broker_url")


def test_connect_through_a_proxy_names_the_broker() -> None:
    assert Handshake("none", "broker-1:6650").connect(b"").connect.proxy_to_broker_url == "broker-1:6650"


def test_connected_tells_the_limits_of_the_broker() -> None:
    handshake = Handshake("none")
    handshake.connect(b"")
    answer = connected(supports_get_partitioned_metadata_without_auto_creation=True)
    assert handshake.receive(answer) is State.CONNECTED
    assert (handshake.max_message_size, handshake.server_version) == (1000, "broker 4")
    assert not handshake.creates_topics_unasked


def test_a_broker_without_the_flag_may_create_topics_when_asked_for_partitions() -> None:
    handshake = Handshake("none")
    handshake.connect(b"")
    handshake.receive(connected())
    assert handshake.creates_topics_unasked


def test_a_broker_that_is_too_old_for_transactions_is_refused() -> None:
    handshake = Handshake("none")
    handshake.connect(b"")
    with pytest.raises(Refused, match="protocol version 18; transactions need 19"):
        handshake.receive(connected(version=18))


def test_challenges_are_answered_before_and_after_the_connection_stands() -> None:
    handshake = Handshake("token")
    handshake.connect(b"first")
    assert handshake.receive(CHALLENGE) is State.CONNECTING
    response = handshake.response(b"second")
    assert response == BaseCommand(
        type=Type.AUTH_RESPONSE,
        auth_response=CommandAuthResponse(
            client_version=CLIENT_VERSION,
            protocol_version=PROTOCOL_VERSION,
            response=AuthData(auth_method_name="token", auth_data=b"second"),
        ),
    )
    handshake.receive(connected())
    assert handshake.receive(CHALLENGE) is State.CONNECTED


def test_a_refusal_carries_the_brokers_words() -> None:
    handshake = Handshake("token")
    handshake.connect(b"wrong")
    error = CommandError(request_id=2**64 - 1, error=ServerError.AuthenticationError, message="bad token")
    with pytest.raises(Refused, match="AuthenticationError: bad token"):
        handshake.receive(BaseCommand(type=Type.ERROR, error=error))
    assert handshake.state is State.REFUSED


@pytest.mark.parametrize("kind", [Type.PING, Type.SUCCESS, Type.MESSAGE])
def test_a_command_that_is_no_answer_to_connect_is_unexpected(kind: BaseCommand.Type) -> None:
    handshake = Handshake("none")
    handshake.connect(b"")
    with pytest.raises(UnexpectedFrame, match=f"handshake: received {Type.Name(kind)} while connecting"):
        handshake.receive(BaseCommand(type=kind))
    assert handshake.receive(connected()) is State.CONNECTED


def test_an_answer_before_the_question_is_unexpected() -> None:
    with pytest.raises(UnexpectedFrame):
        Handshake("none").receive(connected())
