"""Options before the environment before a client.conf; the way to authenticate as one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from eos.cli.layers import Layer, merged, of_environment
from eos.errors import InvalidInput

CERTIFICATE = {"tls_certificate": "c.pem", "tls_key": "k.pem"}
EACH: dict[str, Any] = {one.name: one.name for one in fields(Layer)} | {"tls_verify_hostname": False}


@pytest.mark.parametrize("name", ["service_url", "admin_url", "tls_trust_certs", "tls_verify_hostname"])
def test_the_first_that_says_counts(name: str) -> None:
    other: dict[str, Any] = {name: True if name == "tls_verify_hostname" else "other"}
    first, second = Layer(**{name: EACH[name]}), Layer(**other)
    for layers in ([first, second], [first, Layer()], [Layer(), first, second]):
        assert merged(layers) == first
    assert merged([second, first]) == second


@pytest.mark.parametrize(
    ("layers", "wanted"),
    [
        ([{"token": "a"}, {"basic": "b"}], {"token": "a"}),
        ([{"oauth2": "a"}, {"token": "b"}], {"oauth2": "a"}),
        ([{}, {"basic": "b"}, {"token": "c"}], {"basic": "b"}),
        ([CERTIFICATE, {"token": "b"}], CERTIFICATE),
        ([{"token": "a"}, CERTIFICATE], {"token": "a", **CERTIFICATE}),
        ([{"token": "a", **CERTIFICATE}], {"token": "a", **CERTIFICATE}),
        (
            [{"token": "a"}, {"tls_certificate": "d", "tls_key": "e"}, CERTIFICATE],
            {"token": "a", "tls_certificate": "d", "tls_key": "e"},
        ),
        ([{"token": "a", "basic": "b"}], {"token": "a", "basic": "b"}),
        ([], {}),
    ],
)
def test_the_way_to_authenticate_counts_as_one(layers: list[dict[str, str]], wanted: dict[str, str]) -> None:
    assert merged([Layer(**one) for one in layers]) == Layer(**wanted)  # type: ignore[arg-type]


def test_the_environment_names_each() -> None:
    environment = {f"EOS_{name.upper()}": str(value) for name, value in EACH.items()}
    assert of_environment(environment | {"EOS_OTHER": "x"}) == Layer(**EACH)
    assert of_environment({name: "" for name in environment}) == Layer()
    with pytest.raises(InvalidInput, match=r"EOS_TLS_VERIFY_HOSTNAME is 'no'. It must be true or false"):
        of_environment({"EOS_TLS_VERIFY_HOSTNAME": "no"})


def test_secrets_are_in_no_repr() -> None:
    assert "s3cr3t" not in repr(Layer(token="s3cr3t", basic="s3cr3t", oauth2="s3cr3t"))
