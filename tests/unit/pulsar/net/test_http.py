"""Proxies that the environment names: this machine is asked without one, and errors name them."""

from __future__ import annotations

import pytest

from eos.config import Credentials, OAuth2
from eos.errors import BadCredentials, InvalidInput, Unreachable
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.authentication import secret
from tests.unit.pulsar.net.fake_broker import free_port
from tests.unit.pulsar.net.test_admin import Server
from tests.unit.pulsar.net.test_admin import server as server

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
UNUSABLE = [
    ("all_proxy", "socks5://localhost:1", "pip install httpx"),
    ("http_proxy", "ftp://localhost:1", "Unknown scheme for proxy URL"),
    ("no_proxy", "localhost,[::1", "Invalid port"),
]


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(("variable", "value", "told"), UNUSABLE)
def test_a_proxy_that_cannot_be_used_is_told_in_words(
    variable: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    said = rf"The environment names a proxy \(HTTP_PROXY.* cannot be used for http://broker:8080: .*{told}.* or unset"
    with pytest.raises(InvalidInput, match=said):
        Admin("http://broker:8080")
    issuer = OAuth2("http://issuer", "id", "a secret")
    with pytest.raises(BadCredentials, match=r"oauth2: The environment names a proxy"):
        secret(Credentials("token", issuer), 1.0)


@pytest.mark.parametrize(("variable", "value"), [("http_proxy", "http://localhost:1"), *(one[:2] for one in UNUSABLE)])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_this_machine_is_asked_without_a_proxy(
    variable: str, value: str, host: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local Pulsar would never be ready otherwise, where the environment names a proxy."""
    server.answers["/admin/v2/brokers/version"] = (200, b"4.2.4")
    monkeypatch.setenv(variable, value)
    with Admin(server.url.replace("127.0.0.1", host)) as admin:
        assert admin.version() == "4.2.4"


def test_a_proxy_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker may be up, and the admin URL right."""

    def told() -> str:
        with Admin("http://broker.invalid:8080", timeout_s=5.0) as admin, pytest.raises(Unreachable) as error:
            admin.version()
        return str(error.value)

    assert "proxy" not in told()
    with free_port() as port:
        monkeypatch.setenv("http_proxy", f"http://localhost:{port}")
        assert "It was asked by the proxy that the environment names" in told()
        assert told().endswith("Where it can be reached without, add broker.invalid to NO_PROXY")
        monkeypatch.setenv("no_proxy", "broker.invalid")
        assert "proxy" not in told()
