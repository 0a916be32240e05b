"""What the options of authentication come to, and that a refusal of them shows no secret."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

import eos
from eos.cli.connection import connection
from eos.config import Credentials, OAuth2
from eos.credentials import credentials_of, parse_oauth2
from eos.errors import InvalidInput
from eos.sinks.options import SinkOptions, checked
from eos.source.options import parse_options
from statestore.errors import InvalidInput as InvalidOfState
from statestore.hadoop.options import checked as checked_for_hadoop
from tests.unit.statestore.hadoop.test_session import Builder

ISSUER, SECRET = "https://issuer.example.com/realm", "s3cr3t"
OWN = {"issuer_url": ISSUER, "client_id": "etl", "client_secret": SECRET}
PARSED = OAuth2(ISSUER, "etl", SECRET)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, Credentials()),
        ({"token": "t"}, Credentials("token", "t")),
        ({"token": "t", "tls_certificate": "c.pem"}, Credentials("token", "t")),
        ({"basic": "u:p"}, Credentials("basic", "u:p")),
        ({"oauth2": OWN}, Credentials("token", PARSED)),
        ({"tls_certificate": "c.pem"}, Credentials("tls")),
    ],
)
def test_what_options_come_to(given: dict[str, Any], wanted: Credentials) -> None:
    assert credentials_of(**{"token": None, "basic": None, "oauth2": None, "tls_certificate": None} | given) == wanted


def test_two_ways_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^token and basic are 2 ways to authenticate. Give one of them"):
        credentials_of("t", "u:p", None, None)
    with pytest.raises(InvalidInput, match=r"^token and oauth2 are 2 ways"):
        credentials_of("t", None, "{}", None)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (OWN, PARSED),
        (json.dumps(OWN), PARSED),
        (OWN | {"type": "client_credentials", "scope": "", "audience": None}, PARSED),
        (
            OWN | {"audience": "urn:pulsar", "scope": "a b", "trust_certs": "ca.pem"},
            OAuth2(ISSUER, "etl", SECRET, None, "urn:pulsar", "a b", "ca.pem"),
        ),
        ({"issuer_url": ISSUER, "key_file": "file:key.json"}, OAuth2(ISSUER, key_file="key.json")),
        ({"issuerUrl": ISSUER, "privateKey": "file:///etc/key.json"}, OAuth2(ISSUER, key_file="/etc/key.json")),
        ({"issuer_url": ISSUER, "private_key": "/etc/key.json"}, OAuth2(ISSUER, key_file="/etc/key.json")),
        (
            {
                "issuerUrl": ISSUER,
                "privateKey": "data:application/json;base64,"
                + base64.b64encode(json.dumps({"client_id": "etl", "client_secret": SECRET}).encode()).decode(),
            },
            PARSED,
        ),
    ],
)
def test_our_names_and_those_of_the_official_clients(given: Any, wanted: OAuth2) -> None:
    assert parse_oauth2(given) == wanted


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (SECRET, "oauth2 is not a JSON object of texts"),
        (f'["{SECRET}"]', "oauth2 is not a JSON object of texts"),
        (7, "oauth2 is not a JSON object of texts"),
        (OWN | {"scope": 7}, "oauth2 is not a JSON object of texts"),
        (
            OWN | {"clientsecret": SECRET},
            r"no option 'clientsecret'\. Did you mean 'client_secret'\? It takes issuer_url,",
        ),
        (OWN | {"clientSecret": SECRET}, "oauth2 has client_secret twice, once as 'clientSecret'"),
        (OWN | {"type": "device"}, "unknown type 'device'. The only type is client_credentials"),
        (OWN | {"issuer_url": ""}, "needs issuer_url"),
        (OWN | {"issuer_url": "issuer.example.com"}, "needs issuer_url"),
        (OWN | {"issuer_url": "https://[::1"}, "needs issuer_url"),
        (OWN | {"issuer_url": "https://issuer:port"}, "needs issuer_url"),
        (OWN | {"issuer_url": "https://issuer:99999"}, "needs issuer_url"),
        (OWN | {"issuer_url": "https://issuer..example.com"}, "needs issuer_url"),
        (OWN | {"issuer_url": f"https://etl:{SECRET}@issuer.example.com"}, "needs issuer_url.*without a user"),
        ({"issuer_url": ISSUER}, "needs client_id and client_secret, or in place of both key_file"),
        ({"issuer_url": ISSUER, "client_secret": SECRET}, "needs client_id and client_secret"),
        (OWN | {"key_file": "file:key.json"}, "needs client_id and client_secret, or in place of both"),
        (
            {"issuer_url": ISSUER, "key_file": f"data:{SECRET}"},
            'key_file="data:application/json;base64,…" is not a JSON',
        ),
        ({"issuer_url": ISSUER, "key_file": "data:application/json;base64,e30="}, "lacks client_id or client_secret"),
    ],
)
def test_wrong_options_of_oauth2_are_named_and_their_values_are_not_shown(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as told:
        parse_oauth2(given)
    error: BaseException | None = told.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_the_secret_is_in_no_repr() -> None:
    assert SECRET not in f"{PARSED!r} {PARSED} {Credentials('token', PARSED)!r}"


TLS_URL = "pulsar+ssl://localhost:6651"
TLS = {"tls_certificate": "/c.pem", "tls_key": "/k.pem"}
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"
TEXTS = [
    PEM,
    f"\n {PEM}",
    PEM.replace("\n", ""),
    PEM.replace("PRIVATE KEY", "CERTIFICATE"),
    f"Bag Attributes\n{PEM}",
    json.dumps({"client_id": "me", "client_secret": SECRET}),
    f"DATA:application/json;base64,{SECRET}",
    f"Data:,{SECRET}",
]
"""What somebody may give in place of a path: what stands in such a file, or Pulsar's other way to give a key."""

_OF_TLS = ("tls_trust_certs", "tls_certificate", "tls_key")
_OAUTH2 = ("key_file", "privateKey", "private_key", "trust_certs", "trustCertsFilePath")


def _oauth2(name: str, text: str) -> dict[str, str]:
    own = OWN if name.startswith("trust") else {"issuer_url": ISSUER}
    return own | {name: text}


def _read(**given: str) -> object:
    return parse_options({"service.url": TLS_URL, "topic": "t", **given}, "batch")


def _configured(name: str, text: str) -> object:
    return eos.configure_spark(Builder(), service_url=TLS_URL, options=TLS | {name: text})


def _sunk(**given: Any) -> object:
    return checked(SinkOptions(name="n", topic="t", **given)).cluster(TLS_URL)


def _on_the_command_line(name: str, text: str) -> object:
    given: dict[str, Any] = TLS | {name: text}
    return connection(**given)


def _for_bookies(name: str, text: str) -> object:
    return _read(**{"bookie.tls": "true"} | {f"bookie.{one}": path for one, path in (TLS | {name: text}).items()})


def _each(said: str, names: Iterable[str], put: Callable[[str, str], object]) -> dict[str, Callable[[str], object]]:
    return {f"{said} {name}": partial(put, name) for name in names}


OFFLOADED = {"offload.url": "s3://b", "read.from": "auto", "admin.url": "http://h:80"}
PLACES: dict[str, Callable[[str], object]] = {
    **_each("oauth2", _OAUTH2, lambda name, text: parse_oauth2(_oauth2(name, text))),
    **_each("eos.sink", _OF_TLS, lambda name, text: _sunk(**TLS | {name: text})),
    **_each("source", _OF_TLS, lambda name, text: _read(**TLS | {name: text})),
    **_each("source bookie", _OF_TLS, _for_bookies),
    **_each("configure_spark", _OF_TLS, _configured),
    **_each("command", _OF_TLS, _on_the_command_line),
    "token": lambda text: _read(token=f"file:{text}"),
    "basic": lambda text: _read(basic=f"file://{text}"),
    "decryption_keys": lambda text: _read(decryption_keys=json.dumps({"k": f"file:{text}"})),
    "encryption_keys": lambda text: _sunk(encryption_keys={"k": f"file:{text}"}),
    "offload.credentials": lambda text: _read(**OFFLOADED, **{"offload.credentials": f"file:{text}"}),
    **_each(
        "fs.bk.",
        ("tls.trust-certs", "tls.certificate"),
        lambda name, text: checked_for_hadoop({f"fs.bk.{name}": text}),
    ),
    **_each(
        "file of fs.bk.",
        ("password", "zookeeper-auth"),
        lambda name, text: checked_for_hadoop({f"fs.bk.{name}": f"file:{text}"}),
    ),
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_in_place_of_a_path_is_refused_and_not_shown(
    place: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises((InvalidInput, InvalidOfState)) as told:
        PLACES[place](text)
    shown = [repr(told.value), str(told.value), *caplog.messages]
    error = told.value.__cause__ or told.value.__context__
    while error is not None:
        shown.append(str(error))
        error = error.__cause__ or error.__context__
    assert SECRET not in "".join(shown)


@pytest.mark.parametrize("place", [place for place in PLACES if place.startswith(("oauth2", "eos.sink", "source"))])
def test_a_path_is_a_path(place: str) -> None:
    for path in ("/etc/pulsar/key.pem", "key.json", "file:key.json", "../data/{host}.pem"):
        PLACES[place](path)


@pytest.mark.parametrize("name", _OF_TLS)
def test_a_secret_of_another_type_is_not_shown_either(name: str) -> None:
    given: dict[str, Any] = {**TLS, name: PEM.encode()}
    with pytest.raises(InvalidInput, match=f"{name}= is bytes. It must be str") as told:
        _sunk(**given)
    assert SECRET not in str(told.value)
    assert SECRET not in repr(SinkOptions(name="n", **given))
