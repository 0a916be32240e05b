"""What the sink says when it is made and can't use the cluster."""

from __future__ import annotations

import pytest

import eos
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.unit.pulsar.net.fake_broker import FakeBroker, free_port, refusing


def test_a_bad_token_is_told_as_such_and_not_as_a_bad_address(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = refusing(ServerError.AuthenticationError, "Failed to authenticate")
    with pytest.raises(
        eos.InvalidInput, match=r"does not accept the credentials.* options token, basic or oauth2"
    ) as caught:
        eos.sink(broker.url, topic="t", name="flights", token="wrong-s3cret")
    assert "Check the address" not in str(caught.value)
    assert "wrong-s3cret" not in str(caught.value)


def test_a_sink_without_transactions_asks_for_no_coordinator(broker: FakeBroker) -> None:
    eos.sink(broker.url, name="flights", guarantee="at-least-once")
    assert broker.commands(Type.CONNECT)
    assert not broker.commands(Type.PARTITIONED_METADATA)


def test_the_address_of_the_admin_api_is_told_as_such(broker: FakeBroker) -> None:
    broker.handlers[Type.CONNECT] = lambda session, _: session._socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(eos.InvalidInput, match=rf"{broker.url} is not a Pulsar broker \(it answers in HTTP"):
        eos.sink(broker.url, topic="t", name="flights")


def test_an_admin_url_out_of_reach_is_named(broker: FakeBroker) -> None:
    with free_port() as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(eos.InvalidInput, match=rf'The sink can\'t use admin_url="{url}": '):
            eos.sink(broker.url, topic="t", name="flights", admin_url=url)
