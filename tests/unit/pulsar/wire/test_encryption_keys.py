"""Keys that callers give: each wrong one is named, with what would be right, and nothing of it is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.encryption_keys import key_files, public_keys
from tests.encryption import KeyPair, curve_pair, key_pair, locked

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def pair() -> KeyPair:
    return key_pair()


@pytest.fixture(scope="module")
def small() -> KeyPair:
    return key_pair(1024)


def test_public_keys_are_taken_as_text_and_from_files(pair: KeyPair, tmp_path: Path) -> None:
    public, _ = pair.write(tmp_path, "k")
    assert public_keys({"b": pair.public, "a": f"file:{public}"}) == (("a", pair.public), ("b", pair.public))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "-----BEGIN PUBLIC KEY-----",
            "encryption_keys= is str. It must be a dict with a public key at least, such as",
        ),
        ({}, "encryption_keys= is empty. It must be a dict with a public key at least"),
        ({"": "file:x"}, "'' can't name a key"),
        ({7: "file:x"}, "7 can't name a key"),
        ({"k": "/etc/key.pem"}, r"encryption_keys\['k'\] must be \"file:PATH\" of a PEM file, or PEM text"),
        ({"k": b"bytes"}, r"encryption_keys\['k'\] must be \"file:PATH\""),
        ({"k": "file:/no/such/key"}, r"encryption_keys\['k'\]: /no/such/key can't be read: No such file or directory"),
        ({"k": "-----BEGIN PUBLIC KEY-----\ns3cr3t"}, r"encryption_keys\['k'\] is not a public key in PEM"),
        ({"k": CERTIFICATE}, "is a certificate. Take the public key out of it: openssl x509"),
        ({"k": "private"}, "is a private key. A writer needs the public half alone, .*: openssl pkey -in"),
        ({"k": "curve"}, "is a key of another kind than RSA. Of the official clients only the Java client"),
        ({"k": "small"}, "has 1024 bits, and is too easily broken. It must have 2048 or more"),
    ],
)
def test_a_wrong_public_key_is_refused(given: Any, words: str, pair: KeyPair, small: KeyPair) -> None:
    texts = {"private": pair.private, "curve": curve_pair().public, "small": small.public}
    if isinstance(given, dict):
        given = {name: texts.get(key, key) if isinstance(key, str) else key for name, key in given.items()}
    with pytest.raises(InvalidInput, match=words) as caught:
        public_keys(given)
    assert "s3cr3t" not in str(caught.value)
    assert pair.private.splitlines()[1] not in str(caught.value)


def test_private_keys_are_files(pair: KeyPair, tmp_path: Path) -> None:
    _, private = pair.write(tmp_path, "k")
    assert key_files(json.dumps({"k": f"file:{private}"})) == (("k", str(private)),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("curve", "is a key of another kind than RSA. This library cannot read what the Java client encrypted by an"),
        ("locked", "is locked by a passphrase. Write it without one, .*: openssl pkey"),
        ("public", "holds no private key but a public one. It can encrypt, and not decrypt"),
        (CERTIFICATE, "holds no private key but a public one"),
        ("s3cr3t", "is not a private key in PEM, such as begins with -----BEGIN PRIVATE KEY-----"),
    ],
)
def test_a_wrong_private_key_is_refused(text: str, words: str, pair: KeyPair, tmp_path: Path) -> None:
    texts = {"curve": curve_pair().private, "locked": locked(pair), "public": pair.public}
    (tmp_path / "k.pem").write_text(texts.get(text, text))
    with pytest.raises(InvalidInput, match=rf"decryption_keys\['k'\], {tmp_path}/k.pem {words}") as caught:
        key_files(json.dumps({"k": f"file:{tmp_path}/k.pem"}))
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None, "a cause may show what the key holds"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("-----BEGIN PRIVATE KEY----- s3cr3t", "must be a JSON object of names and files"),
        ("{}", "must be a JSON object of names and files"),
        ('["file:s3cr3t"]', "must be a JSON object of names and files"),
        ('{"": "file:x"}', "'' can't name a key"),
        ('{"k": "-----BEGIN PRIVATE KEY----- s3cr3t"}', r"\['k'\] must be \"file:PATH\", of a file on every machine"),
        ('{"k": 7}', r"\['k'\] must be \"file:PATH\""),
        ('{"k": "file:/no/such/key"}', r"decryption_keys\['k'\]: /no/such/key can't be read: No such file"),
    ],
)
def test_a_private_key_that_is_no_file_is_refused(given: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        key_files(given)
    assert "s3cr3t" not in str(caught.value)


def test_a_missing_library_is_said_with_what_brings_it(pair: KeyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    words = r'pip install "spark-pulsar-eos\[encryption\]"'
    with pytest.raises(InvalidInput, match=words):
        public_keys({"k": pair.public})
    with pytest.raises(InvalidInput, match=words):
        key_files('{"k": "file:/k.pem"}')
