"""Tokens of an issuer: found by discovery, kept until they get old, and refusals that show no secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest

from eos.config import Credentials, OAuth2
from eos.credentials import parse_oauth2
from eos.errors import BadCredentials, InvalidInput, NoCredentials, Refused
from eos.pulsar.net import oauth2
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.authentication import secret
from eos.pulsar.protocol.requests import Type
from eos.pulsar.wire.pulsar_pb2 import ServerError
from tests.issuer import CLIENT_ID, CLIENT_SECRET, DISCOVERY, TOKEN, Issuer, issuing
from tests.unit.pulsar.net.clock import Clock
from tests.unit.pulsar.net.fake_broker import FakeBroker, first_then_well, free_port, refusing
from tests.unit.pulsar.net.test_admin import Server
from tests.unit.pulsar.net.test_admin import server as server
from tests.unit.pulsar.net.test_client import challenge
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    numbers = count(1)
    with issuing(lambda: f"token-{next(numbers)}") as made:
        yield made


def credentials(issuer: Issuer, **changed: str) -> Credentials:
    return Credentials("token", parse_oauth2(issuer.options(**changed)))


def test_a_token_is_asked_for_where_discovery_says(issuer: Issuer) -> None:
    given = credentials(issuer, audience="urn:pulsar", scope="a b")
    assert secret(given, PATIENCE_S) == "token-1"
    assert issuer.asked == [DISCOVERY, TOKEN]
    assert issuer.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "audience": "urn:pulsar",
            "scope": "a b",
        }
    ]


def test_a_token_is_kept_for_nine_tenths_of_its_life(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(oauth2, "time", clock)
    issuer.lives_s = 100
    given = credentials(issuer)
    assert secret(given, PATIENCE_S) == "token-1"
    clock.now += 89
    assert secret(given, PATIENCE_S) == "token-1"
    clock.now += 2
    assert secret(given, PATIENCE_S) == "token-2"
    assert secret(given, PATIENCE_S, fresh=True) == "token-3"
    assert secret(given, PATIENCE_S) == "token-3"
    assert secret(credentials(issuer, scope="another"), PATIENCE_S) == "token-4"


def test_a_life_that_is_written_as_a_text_counts(issuer: Issuer) -> None:
    """Azure's first endpoint writes it so."""
    issuer.lives_s = "3600"
    given = credentials(issuer)
    assert [secret(given, PATIENCE_S) for _ in range(2)] == ["token-1", "token-1"]


@pytest.mark.parametrize("lives_s", [None, "an hour", pytest.param(10**400, id="no float")])
def test_a_token_without_a_known_life_is_not_kept(issuer: Issuer, lives_s: int | str | None) -> None:
    issuer.lives_s = lives_s
    given = credentials(issuer)
    assert [secret(given, PATIENCE_S) for _ in range(2)] == ["token-1", "token-2"]


def test_a_key_file_is_read_for_each_token(issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "key.json"
    given = Credentials("token", OAuth2(issuer.url, key_file=str(file)))
    with pytest.raises(NoCredentials, match=f"can't read the key file {file}: No such file"):
        secret(given, PATIENCE_S)
    key = {"type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "issuer_url": "x"}
    file.write_text(json.dumps(key))
    assert secret(given, PATIENCE_S) == "token-1"
    file.write_text(f"{{{CLIENT_SECRET}")
    with pytest.raises(BadCredentials, match=f"the key file {file} is not a JSON object") as told:
        secret(given, PATIENCE_S, fresh=True)
    assert CLIENT_SECRET not in str(told.value)


ELSEWHERE = (302, "", {"Location": "/realm/elsewhere"})


@pytest.mark.parametrize(
    ("path", "answer", "kind", "words"),
    [
        (DISCOVERY, (404, "", {}), BadCredentials, r"openid-configuration answered 404\. Check issuer_url"),
        (DISCOVERY, (503, "", {}), NoCredentials, "openid-configuration answered 503$"),
        (DISCOVERY, (200, "<html>", {}), BadCredentials, r"answered 200\. Check issuer_url"),
        (DISCOVERY, (200, "{}", {}), BadCredentials, "names no token_endpoint. Check issuer_url"),
        (
            DISCOVERY,
            (200, '{"token_endpoint": "https://issuer:port/"}', {}),
            BadCredentials,
            "names no token_endpoint. Check",
        ),
        (TOKEN, (200, "{}", {}), BadCredentials, "token answered without an access_token"),
        (TOKEN, (200, '{"access_token": ""}', {}), BadCredentials, "the issuer http.* gave an empty text"),
        (TOKEN, (400, '{"error": "invalid_scope"}', {}), BadCredentials, r"answered 400 invalid_scope\. Check scope$"),
        (TOKEN, (403, "no", {}), BadCredentials, r"answered 403\. The issuer gives no token"),
        (TOKEN, (429, "", {}), NoCredentials, "answered 429$"),
        (
            TOKEN,
            (400, '{"error": "temporarily_unavailable"}', {}),
            NoCredentials,
            "answered 400 temporarily_unavailable$",
        ),
        (TOKEN, ELSEWHERE, BadCredentials, "token answered 302"),
    ],
)
def test_refusals(
    issuer: Issuer, path: str, answer: tuple[int, str, dict[str, str]], kind: type[Exception], words: str
) -> None:
    issuer.answers[path] = answer
    with pytest.raises(NoCredentials, match=words) as told:
        secret(credentials(issuer), PATIENCE_S)
    assert type(told.value) is kind
    assert "/realm/elsewhere" not in issuer.asked, "the secret goes nowhere else"


def test_a_wrong_secret_is_refused_and_not_repeated(issuer: Issuer) -> None:
    wrong = "wr0ng + s3cr3t"
    with pytest.raises(BadCredentials) as told:
        secret(credentials(issuer, client_secret=wrong), PATIENCE_S)
    assert str(told.value) == (
        f"{issuer.url}/token answered 401 invalid_client: bad secret …. "
        "Check client_id and client_secret, or the key file"
    )
    assert isinstance(told.value, InvalidInput)


def test_discovery_may_lead_on(issuer: Issuer) -> None:
    issuer.answers[DISCOVERY] = ELSEWHERE
    issuer.answers["/realm/elsewhere"] = (200, json.dumps({"token_endpoint": f"{issuer.url}/token"}), {})
    assert secret(credentials(issuer), PATIENCE_S) == "token-1"


_TLS, _PLAIN = "https://issuer.example.com", "http://issuer.example.com"
_WELL_KNOWN = "/.well-known/openid-configuration"
_NAMES_TLS = httpx.Response(200, json={"token_endpoint": f"{_TLS}/token"})
_NAMES_PLAIN = httpx.Response(200, json={"token_endpoint": f"{_PLAIN}/token"})


@pytest.mark.parametrize(
    ("issuer_url", "pages", "words"),
    [
        (_TLS, {f"{_TLS}{_WELL_KNOWN}": _NAMES_PLAIN}, f"{_PLAIN}/token. The secret would travel in the open"),
        ("HTTPS://issuer.example.com", {f"{_TLS}{_WELL_KNOWN}": _NAMES_PLAIN}, "The secret would travel in the open"),
        (
            _TLS,
            {
                f"{_TLS}{_WELL_KNOWN}": httpx.Response(302, headers={"Location": f"{_PLAIN}/d"}),
                f"{_PLAIN}/d": _NAMES_TLS,
            },
            "leads on to an address without TLS",
        ),
        (
            _TLS,
            {
                f"{_TLS}{_WELL_KNOWN}": httpx.Response(302, headers={"Location": f"{_PLAIN}/d"}),
                f"{_PLAIN}/d": httpx.Response(302, headers={"Location": f"{_TLS}/d"}),
                f"{_TLS}/d": _NAMES_TLS,
            },
            "leads on to an address without TLS",
        ),
    ],
)
def test_a_secret_does_not_travel_in_the_open_where_the_issuer_has_tls(
    monkeypatch: pytest.MonkeyPatch, issuer_url: str, pages: dict[str, httpx.Response], words: str
) -> None:
    sent: list[str] = []

    def answered(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        return pages.get(str(request.url), httpx.Response(404))

    monkeypatch.setattr(oauth2, "_http", lambda *_: httpx.Client(transport=httpx.MockTransport(answered)))
    given = parse_oauth2({"issuer_url": issuer_url, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET})
    with pytest.raises(BadCredentials, match=re.escape(words)):
        secret(Credentials("token", given), PATIENCE_S)
    assert "POST" not in sent


def test_an_issuer_out_of_reach_and_one_that_hangs(issuer: Issuer) -> None:
    with free_port() as port:
        gone = Credentials("token", OAuth2(f"http://127.0.0.1:{port}", CLIENT_ID, CLIENT_SECRET))
        with pytest.raises(NoCredentials, match=r"Connection refused\. Check that the issuer is up, and issuer_url"):
            secret(gone, PATIENCE_S)
    issuer.hold.clear()
    with pytest.raises(NoCredentials, match=r"gave no token within|timed out"):
        secret(credentials(issuer), 0.2)


def test_authorities_that_are_not_there_are_named(issuer: Issuer) -> None:
    with pytest.raises(
        BadCredentials, match=r"oauth2: can't read the trusted certificates: there is no file /none\.pem"
    ):
        secret(credentials(issuer, trust_certs="/none.pem"), PATIENCE_S)


# ---- on a connection


def test_a_challenge_is_answered_with_a_token_asked_for_now(broker: FakeBroker, issuer: Issuer) -> None:
    with broker.client(credentials=credentials(issuer)) as client:
        client.partitions("t")
        challenge(broker.sessions[0])
        until(lambda: broker.commands(Type.AUTH_RESPONSE))
    (shown,) = broker.commands(Type.CONNECT)
    (again,) = broker.commands(Type.AUTH_RESPONSE)
    assert (shown.connect.auth_data, again.auth_response.response.auth_data) == (b"token-1", b"token-2")


def test_a_kept_token_that_is_refused_is_asked_for_once_more(broker: FakeBroker, issuer: Issuer) -> None:
    broker.handlers[Type.CONNECT] = first_then_well(refusing(ServerError.AuthenticationError))
    with broker.client(credentials=credentials(issuer)) as client:
        assert client.partitions("t") == 0
        broker.handlers[Type.CONNECT] = refusing(ServerError.AuthenticationError)
        connection = client._pool.service()
        broker.cut_all()
        until(lambda: not connection.alive)
        with pytest.raises(Refused, match="AuthenticationError"):
            client.partitions("t")
    shown = [one.connect.auth_data for one in broker.commands(Type.CONNECT)]
    assert shown == [b"token-1", b"token-2", b"token-2", b"token-3"]


def test_the_admin_api_is_shown_a_fresh_one_once(server: Server, issuer: Issuer) -> None:
    server.answers = {"/admin/v2/brokers/version": (401, {"reason": "expired"})}
    with Admin(server.url, credentials(issuer)) as admin, pytest.raises(Refused, match="401"):
        admin.version()
    assert [shown for *_, shown in server.asked] == ["Bearer token-1", "Bearer token-2"]
