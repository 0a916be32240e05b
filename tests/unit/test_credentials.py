"""What the options of authentication come to, and that a refusal of them shows no secret."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from eos.config import Credentials, OAuth2
from eos.credentials import credentials_of, parse_oauth2
from eos.errors import InvalidInput

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
