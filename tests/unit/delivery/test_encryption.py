"""One data key for a process, and for some hours: never in two, and never for ever."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pyspark import cloudpickle

from eos.config import Cluster, EncryptionKeys
from eos.delivery.encryption import LIFETIME_S, Encryptor, encryptor_of
from eos.delivery.row_writer import WriteSettings
from eos.delivery.task import writing_task
from eos.pulsar.net.client import Client
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.encryption_keys import public_keys
from tests.encryption import key_pair

CHUNK = Chunk(messages=1, payload=b"payload", uncompressed_size=7, rows_bytes=7, compression="none")


@pytest.fixture(scope="module")
def keys() -> EncryptionKeys:
    return public_keys({"k": key_pair().public})


def used(encryptor: Encryptor) -> tuple[bytes, bytes]:
    """Return the data key, in its encrypted form, and the nonce of one more chunk."""
    envelope = encryptor.encrypted(CHUNK).envelope
    assert envelope is not None
    return envelope.keys["k"], envelope.nonce


def test_writers_of_a_process_share_a_data_key(keys: EncryptionKeys) -> None:
    (one, first), (other, second) = used(encryptor_of(keys)), used(encryptor_of(keys))
    assert one == other
    assert first != second


def test_only_the_payload_of_a_chunk_changes(keys: EncryptionKeys) -> None:
    chunk = Encryptor(keys).encrypted(CHUNK)
    assert (chunk.messages, chunk.uncompressed_size, chunk.rows_bytes, chunk.compression) == (1, 7, 7, "none")
    assert len(chunk.payload) == 7 + 16


def test_a_new_data_key_is_drawn_after_some_hours(keys: EncryptionKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("eos.delivery.encryption.time.monotonic", lambda: now[0])
    encryptor = Encryptor(keys)
    first = used(encryptor)[0]
    now[0] = LIFETIME_S - 1
    assert used(encryptor)[0] == first
    now[0] = LIFETIME_S
    assert used(encryptor)[0] != first


def test_a_forked_child_draws_a_data_key_of_its_own(keys: EncryptionKeys) -> None:
    """Else it would use nonces that its parent uses too, with the same key."""
    encryptor = Encryptor(keys)
    parents = used(encryptor)[0]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, used(encryptor)[0])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        childs = said.read()
    os.waitpid(child, 0)
    assert len(childs) == len(parents)
    assert childs != parents
    assert used(encryptor)[0] == parents


def test_nothing_shows_a_data_key(keys: EncryptionKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    secret = b"\xaa" * 32
    monkeypatch.setattr(AESGCM, "generate_key", staticmethod(lambda bits: secret))
    encryptor: Any = Encryptor(keys)
    shown = f"{encryptor!r} {vars(encryptor)} {vars(encryptor._current[0])} {encryptor.encrypted(CHUNK)}"
    assert repr(secret)[2:-1] not in shown
    assert secret.hex() not in shown


def test_a_task_travels_with_the_public_keys_alone(keys: EncryptionKeys, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    secret = b"\xbb" * 32
    monkeypatch.setattr(AESGCM, "generate_key", staticmethod(lambda bits: secret))
    encryptor_of.cache_clear()
    used(encryptor_of(keys))
    settings = WriteSettings("t", "murmur3", "none", 1 << 20, encryption_keys=keys)
    shipped = cloudpickle.dumps(writing_task(Client(Cluster("pulsar://h")), settings, "carrier"))  # type: ignore[no-untyped-call]
    assert keys[0][1].encode() in shipped
    assert secret not in shipped
    encryptor_of.cache_clear()
