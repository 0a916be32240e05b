"""All commands that connect take one set of options, and come to the same by them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app
from eos.cli.connection import ConnectionOptions, Namespace, connecting
from eos.cli.layers import Layer, variable
from eos.config import Cluster, Credentials, OAuth2, Tls
from eos.errors import InvalidInput
from tools.command_pages import verbs

OF_SINKS = ("list", "show", "verify", "abort", "skip", "reset", "adopt")
CONNECTING = ("topics", "topics create", "peek", "plan", "lag", "doctor", *(f"sink {verb}" for verb in OF_SINKS))
OAUTH2 = {"issuer_url": "https://i", "client_id": "c", "client_secret": "s3cr3t"}


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ConnectionOptions]:
    """What commands came to, in surroundings that say nothing."""
    for one in fields(Layer):
        monkeypatch.delenv(variable(one.name), raising=False)
    monkeypatch.delenv("PULSAR_CLIENT_CONF", raising=False)
    return []


def run(reached: list[ConnectionOptions], *words: str) -> Result:
    def one(to: ConnectionOptions, namespace: Namespace = "public/default") -> None:
        """Reach it."""
        reached.append(to)

    app = typer.Typer()
    app.command()(connecting(one))
    return CliRunner().invoke(app, words)


def parameters(command: str) -> dict[str, Any]:
    found: Any = typer.main.get_command(typer_app)
    for verb in command.split():
        found = found.commands[verb]
    return {one.name: one for one in found.params}


def test_every_command_that_connects_takes_the_same_set() -> None:
    wanted = {name for name, one in parameters("topics").items() if one.rich_help_panel == "Connection"}
    assert {"service_url", "admin_url", "token", "basic", "oauth2", "tls_trust_certs", "client_conf"} < wanted
    for command in CONNECTING:
        mine = {
            name for name, one in parameters(command).items() if getattr(one, "rich_help_panel", "") == "Connection"
        }
        assert mine == wanted
        assert "to" not in parameters(command)
    others = {verb for verb, _ in verbs("eos") if not verb.startswith("eos local ")}
    assert others == {f"eos {command}" for command in CONNECTING}


def test_nothing_said_is_this_machine_by_nobody(reached: list[ConnectionOptions]) -> None:
    assert run(reached).exit_code == 0
    assert reached == [ConnectionOptions(Cluster("pulsar://localhost:6650"), None)]


def test_options_come_before_the_environment_and_that_before_a_client_conf(
    reached: list[ConnectionOptions], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = tmp_path / "client.conf"
    conf.write_text(
        "brokerServiceUrl=pulsar://conf:1\nwebServiceUrl=http://conf:2\nauthPlugin=token\nauthParams=token:conf\n"
        "tlsEnableHostnameVerification=false\ntlsTrustCertsFilePath=conf.pem\n"
    )
    assert run(reached, "--client-conf", str(conf)).exit_code == 0
    monkeypatch.setenv("PULSAR_CLIENT_CONF", str(conf))
    assert run(reached).exit_code == 0
    by_conf = Cluster("pulsar://conf:1", Credentials("token", "conf"), Tls("conf.pem", False))
    assert reached == [ConnectionOptions(by_conf, "http://conf:2")] * 2

    monkeypatch.setenv("EOS_BASIC", "u:env")
    monkeypatch.setenv("EOS_SERVICE_URL", "pulsar://env:1")
    conf.write_text("authPlugin=org.example.Kerberos\nwebServiceUrl=http://conf:2\n")
    assert run(reached).exit_code == 0, "a plugin that does not count"
    assert run(reached, "--oauth2", json.dumps(OAUTH2), "--admin-url", "http://option:2").exit_code == 0
    by_environment, by_option = reached[2:]
    assert by_environment == ConnectionOptions(
        Cluster("pulsar://env:1", Credentials("basic", "u:env")), "http://conf:2"
    )
    issuer = OAuth2("https://i", "c", "s3cr3t")
    assert by_option == ConnectionOptions(Cluster("pulsar://env:1", Credentials("token", issuer)), "http://option:2")


def test_flags_and_certificates(reached: list[ConnectionOptions]) -> None:
    words = ("--tls-certificate", "c.pem", "--tls-key", "k.pem", "--no-tls-verify-hostname")
    assert run(reached, "--service-url", "pulsar+ssl://h", *words).exit_code == 0
    wanted = Cluster("pulsar+ssl://h", Credentials("tls"), Tls(None, False, "c.pem", "k.pem"))
    assert reached == [ConnectionOptions(wanted, None)]
    assert reached[0].cluster.tls.key == "k.pem"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--token", "t", "--basic", "u:p"), "token and basic are 2 ways"),
        (("--tls-key", "k.pem"), "tls_certificate and tls_key belong together"),
        (("--oauth2", "{}"), "oauth2 needs issuer_url"),
        (("--client-conf", "/none"), "can't read /none"),
        (("--tls-trust-certs", "ca.pem"), "tls_trust_certs= is an option of TLS, and pulsar://localhost:6650 asks for"),
        (("--no-tls-verify-hostname", "--service-url", "pulsar://h:1"), "tls_verify_hostname= is an option of TLS"),
        (("--tls-trust-certs", "ca.pem", "--service-url", "pulsar://me:s3cret@h:1"), "takes no user and no password"),
        (("--admin-url", "http://me:s3cret@h:1"), "takes no user and no password"),
        (("--service-url", ""), "--service-url is empty"),
        (("--admin-url", ""), "--admin-url is empty"),
        (("--token", ""), "--token is empty"),
    ],
)
def test_wrong_options_are_bad_input(reached: list[ConnectionOptions], words: tuple[str, ...], told: str) -> None:
    error = run(reached, *words).exception
    assert isinstance(error, InvalidInput)
    assert told in str(error)
    assert reached == []


@pytest.mark.parametrize(
    ("admin_url", "reaches"),
    [
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080/", True),
        ("http://[::1]:8080", True),
        ("http://localhost:18080", False),
        ("https://localhost:8080", False),
        ("http://prod:8080", False),
        ("http://localhost", False),
        ("http://localhost:http", False),
    ],
)
def test_the_default_brokers_are_those_of_the_default_admin_api_alone(
    reached: list[ConnectionOptions], admin_url: str, reaches: bool
) -> None:
    """Else a command would read the logs of one cluster and delete those of another."""
    done = run(reached, "--admin-url", admin_url)
    assert (done.exit_code == 0, len(reached)) == (reaches, int(reaches))
    if not reaches:
        assert f"The admin API is {admin_url}, and the address of its brokers is not given" in str(done.exception)
    assert run(reached, "--admin-url", admin_url, "--service-url", "pulsar://b").exit_code == 0


@pytest.mark.parametrize(
    ("service_url", "reaches"),
    [
        ("pulsar://localhost:6650", True),
        ("pulsar://127.0.0.1", True),
        ("pulsar://[::1]:6650/", True),
        ("pulsar://localhost:16650", False),
        ("pulsar+ssl://localhost", False),
        ("pulsar://localhost:6650,localhost:6651", False),
        ("pulsar://prod:6650", False),
    ],
)
def test_the_default_admin_api_is_that_of_the_default_brokers_alone(service_url: str, reaches: bool) -> None:
    """Else a doctor would call one cluster well after a look at another."""
    named = ConnectionOptions(Cluster(service_url), "http://a:1")
    assert named.needed_admin_url == "http://a:1"
    unnamed = ConnectionOptions(Cluster(service_url), None)
    if reaches:
        assert unnamed.needed_admin_url == "http://localhost:8080"
    else:
        with pytest.raises(InvalidInput, match=r"needs the admin API of .* Give --admin-url"):
            _ = unnamed.needed_admin_url


def test_tls_of_the_environment_is_refused_where_nothing_asks_for_it(
    reached: list[ConnectionOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EOS_TLS_TRUST_CERTS", "ca.pem")
    assert "tls_trust_certs= is an option of TLS" in str(run(reached).exception)
    assert run(reached, "--service-url", "pulsar://h", "--admin-url", "https://h:8443").exit_code == 0
    assert run(reached, "--service-url", "pulsar+ssl://h").exit_code == 0


def test_tls_of_a_client_conf_is_passed_over_as_pulsars_own_commands_do(
    reached: list[ConnectionOptions], tmp_path: Path
) -> None:
    """The file that Pulsar ships has pulsar:// and says of TLS that host names are not verified."""
    conf = tmp_path / "client.conf"
    conf.write_text("brokerServiceUrl=pulsar://conf:1\ntlsEnableHostnameVerification=false\n")
    assert run(reached, "--client-conf", str(conf)).exit_code == 0
