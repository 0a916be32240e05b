"""`eos.sink`: its parameters are the options, in one place for an editor, the docs and the checks."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from typing import Any

import pytest

import eos
from eos.sinks import factory
from eos.sinks.columns import NAMED
from eos.sinks.options import SinkOptions
from eos.steps import unobserved

DIFFERENT: dict[str, Any] = {
    "name": "flights",
    "topic": "persistent://public/default/rows",
    "guarantee": "at-least-once",
    "value_format": "json",
    "register_schema": "org.example.Flight",
    **{part: f"the {part}" for part in NAMED},
    "ignore_null_fields": False,
    "key_hash": "java",
    "compression": "zstd",
    "batching": "key-based",
    "chunking": True,
    "encryption_keys": {"k": "file:k.pem"},
    "transaction_timeout_s": 61.0,
    "max_in_flight_bytes": 2 * 1024 * 1024,
    "small_batch_rows": 7,
    "attempts": 2,
    "request_timeout_s": 3.0,
    "connect_timeout_s": 4.0,
    "token": "file:/run/token",
    "basic": None,  # not together with a token
    "oauth2": None,  # nor this
    "tls_trust_certs": "a.pem",
    "tls_verify_hostname": False,
    "tls_certificate": "c.pem",
    "tls_key": "k.pem",
    "listener_name": "outside",
    "subscription_prefix": "role",
    "admin_url": "http://localhost:8080",
    "control_namespace": "public/control",
    "markers_kept": 9,
    "principal": "role",
    "producer_properties": {"team": "flights"},
    "observer": print,
    "metrics": [print],
}


def test_the_parameters_are_the_options_with_the_same_types_and_defaults() -> None:
    parameters = list(inspect.signature(eos.sink).parameters.values())
    options = {field.name: field for field in fields(SinkOptions)}
    assert parameters[0].name == "service_url"
    assert {one.name for one in parameters[1:]} == set(options)
    for one in parameters[1:]:
        assert one.kind is inspect.Parameter.KEYWORD_ONLY
        assert one.annotation == options[one.name].type
        missing = one.default is inspect.Parameter.empty
        assert missing == (one.name == "name")
        assert missing or one.default == options[one.name].default


def test_each_option_is_described_once() -> None:
    arguments = (inspect.getdoc(eos.sink) or "").partition("Raises:")[0]  # Python 3.13 keeps no indent in __doc__
    assert re.findall(r"^ {4}(\w+): ", arguments, re.MULTILINE) == list(inspect.signature(eos.sink).parameters)


def test_each_option_reaches_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, SinkOptions]] = []
    monkeypatch.setattr(factory, "Sink", lambda url, options: made.append((url, options)))
    monkeypatch.setattr(factory, "checked", lambda options: options)  # some of these don't go together
    assert set(DIFFERENT) == {field.name for field in fields(SinkOptions)}
    eos.sink("pulsar://a:1", **DIFFERENT)
    eos.sink(service_url="pulsar://a:1", name="flights", basic="user:password", oauth2="{}")
    assert made == [
        ("pulsar://a:1", SinkOptions(**DIFFERENT)),
        ("pulsar://a:1", SinkOptions(name="flights", basic="user:password", oauth2="{}", observer=unobserved)),
    ]


def test_unknown_and_missing_options_are_bad_input_before_anything_is_opened() -> None:
    given: dict[str, Any] = {"name": "flights", "compresion": "lz4"}
    with pytest.raises(eos.InvalidInput, match=r"no option 'compresion'\. Did you mean 'compression'\?"):
        eos.sink("pulsar://a:1", **given)
    with pytest.raises(eos.InvalidInput, match=r"'service_uri'\. Did you mean 'service_url'\?"):
        eos.sink(**{"service_uri": "pulsar://a:1", "name": "flights"})  # type: ignore[arg-type]
    with pytest.raises(eos.InvalidInput, match="needs name="):
        eos.sink("pulsar://a:1")  # type: ignore[call-arg]
