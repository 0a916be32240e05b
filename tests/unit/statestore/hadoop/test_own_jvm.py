"""The small JVM of our own beside Spark's: whose exception it is."""

from __future__ import annotations

from typing import Any

import py4j.java_gateway
import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from statestore.hadoop import own_jvm


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the JVM answers, in order."""
    said: list[Any] = []
    monkeypatch.setattr(GatewayClient, "send_command", lambda *_: said.pop(0))
    return said


@pytest.fixture
def client() -> Any:
    """The client of a gateway that has not connected yet."""
    parameters = GatewayParameters()
    client = own_jvm._client(parameters)
    JavaGateway(gateway_parameters=parameters).set_gateway_client(client)
    return client


def test_pyspark_is_not_asked_about_an_exception_of_our_own_jvm(
    client: Any, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark would look for the object in Spark's JVM: what has this number there is another object."""
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", lambda *_: pytest.fail("PySpark was asked"))
    answers += ["yv", "xro5"]
    assert client.send_command("a call that returns nothing") == "yv"
    with pytest.raises(Py4JJavaError) as caught:
        client.send_command("a call that throws")
    assert caught.value.java_exception._target_id == "o5"
    assert caught.value.java_exception._gateway_client is client


def test_what_is_no_exception_of_java_is_left_to_py4j(client: Any, answers: list[Any]) -> None:
    connection = object()
    answers += ["xsno such method", ("xro5", connection)]
    assert client.send_command("a call of nothing") == "xsno such method"
    assert client.send_command("a stream", binary=True) == ("xro5", connection)
