"""A client.conf of Pulsar: what it says, and what of it is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eos.cli.client_conf import read_client_conf
from eos.cli.layers import Layer
from eos.credentials import SecretUnreadable
from eos.errors import InvalidInput

SECRET = "s3cr3t"
AUTH = "org.apache.pulsar.client.impl.auth."
AS_SHIPPED = """
# URL for Pulsar REST API
webServiceUrl=http://localhost:8080/
brokerServiceUrl=pulsar://localhost:6650/
authPlugin=
authParams=
tlsAllowInsecureConnection=false
tlsEnableHostnameVerification=false
tlsTrustCertsFilePath=
useKeyStoreTls=false
tlsTrustStoreType=JKS
webserviceTlsProvider=
"""


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "client.conf"


def test_the_one_that_is_shipped(conf: Path) -> None:
    conf.write_text(AS_SHIPPED)
    urls = {"service_url": "pulsar://localhost:6650/", "admin_url": "http://localhost:8080/"}
    assert read_client_conf(conf) == Layer(**urls, tls_verify_hostname=False)


def test_properties_are_read_as_java_does(conf: Path) -> None:
    conf.write_text("! no\n#brokerServiceUrl=x\n  brokerServiceUrl : pulsar\\://h\\:1  \nwebServiceUrl http://h:2\n\n")
    assert read_client_conf(conf) == Layer(service_url="pulsar://h:1", admin_url="http://h:2")


@pytest.mark.parametrize(
    ("plugin", "params", "wanted"),
    [
        (f"{AUTH}AuthenticationToken", f"token:{SECRET}", {"token": SECRET}),
        (f"{AUTH}AuthenticationToken", SECRET, {"token": SECRET}),
        (f"{AUTH}AuthenticationToken", f"data:{SECRET}", {"token": SECRET}),
        (f"{AUTH}AuthenticationToken", f'{{"token": "{SECRET}"}}', {"token": SECRET}),
        ("token", "file:///run/token", {"token": "file:///run/token"}),
        (f"{AUTH}AuthenticationBasic", '{"userId": "u", "password": "p:1"}', {"basic": "u:p:1"}),
        ("basic", "userId:u,password:p:1", {"basic": "u:p:1"}),
        (
            f"{AUTH}AuthenticationTls",
            "tlsCertFile:/c.pem,tlsKeyFile:/k.pem",
            {"tls_certificate": "/c.pem", "tls_key": "/k.pem"},
        ),
        (f"{AUTH}oauth2.AuthenticationOAuth2", '{"issuerUrl": "https://i"}', {"oauth2": '{"issuerUrl": "https://i"}'}),
        (f"{AUTH}AuthenticationDisabled", "", {}),
    ],
)
def test_plugins(conf: Path, plugin: str, params: str, wanted: dict[str, Any]) -> None:
    conf.write_text(f"authPlugin={plugin}\nauthParams={params}\n")
    assert read_client_conf(conf) == Layer(**wanted)
    assert read_client_conf(conf, credentials=False) == Layer()


def test_tls(conf: Path) -> None:
    conf.write_text(
        "tlsTrustCertsFilePath=ca.pem\ntlsEnableHostnameVerification=true\n"
        "tlsCertificateFilePath=c.pem\ntlsKeyFilePath=k.pem\n"
    )
    assert read_client_conf(conf) == Layer(
        tls_trust_certs="ca.pem", tls_verify_hostname=True, tls_certificate="c.pem", tls_key="k.pem"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"authPlugin=org.example.Kerberos\nauthParams={SECRET}",
            rf"authPlugin=org\.example\.Kerberos, which is not understood\. Understood are {AUTH}AuthenticationToken, "
            rf"{AUTH}AuthenticationBasic, {AUTH}AuthenticationTls, {AUTH}oauth2\.AuthenticationOAuth2, ",
        ),
        (f"authPlugin={AUTH}AuthenticationTokn", f"Did you mean '{AUTH}AuthenticationToken'"),
        ("authPlugin=token", "authParams in .* lacks token:TOKEN or file:///PATH"),
        ("authPlugin=token\nauthParams=env:PULSAR_TOKEN", "takes a token from env:PULSAR_TOKEN. Set EOS_TOKEN"),
        (f"authPlugin=basic\nauthParams={SECRET}", "lacks userId and password"),
        (f"authPlugin=basic\nauthParams={{{SECRET}", "lacks a JSON object"),
        ("authPlugin=tls\nauthParams=tlsCertFile:c.pem", "lacks tlsCertFile and tlsKeyFile"),
        ("authPlugin=oauth2", "lacks a JSON object with issuerUrl and privateKey"),
        ("useKeyStoreTls=true", "has useKeyStoreTls=true, and key stores of Java are not read. Give PEM"),
        ("tlsAllowInsecureConnection=true", "has tlsAllowInsecureConnection=true, and certificates are always checked"),
        ("tlsEnableHostnameVerification=yes", "tlsEnableHostnameVerification in .* is 'yes'. It must be true or false"),
    ],
)
def test_what_can_not_be_followed_is_refused_by_name(conf: Path, text: str, words: str) -> None:
    conf.write_text(text)
    with pytest.raises(InvalidInput, match=words) as told:
        read_client_conf(conf)
    assert str(conf) in str(told.value)
    assert SECRET not in str(told.value)


def test_a_plugin_that_does_not_count_is_not_refused(conf: Path) -> None:
    conf.write_text("authPlugin=org.example.Kerberos")
    assert read_client_conf(conf, credentials=False) == Layer()


def test_a_file_that_can_not_be_read_is_named(conf: Path) -> None:
    with pytest.raises(InvalidInput, match=f"can't read {conf}: No such file or directory"):
        read_client_conf(conf)
    conf.write_bytes(SECRET.encode() + b"\xff")
    with pytest.raises(InvalidInput, match=f"can't read {conf}: it is not UTF-8") as told:
        read_client_conf(conf)
    known = told.value.__context__
    assert isinstance(known, SecretUnreadable)
    assert known.__context__ is None, "the text of what it came from shows the bytes"
