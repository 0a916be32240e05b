"""Encrypted entries: as the Java client makes them, and what must never come out of one."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.batch import BatchEncoder, Chunk
from eos.pulsar.wire.chunks import ChunkAssembler
from eos.pulsar.wire.decoding import COLUMNS, Column, decode
from eos.pulsar.wire.encryption import DataKey, decryptor_of
from eos.pulsar.wire.encryption_keys import public_keys
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.encryption import KeyPair, key_pair
from tests.vectors.frames import ROWS, rows
from tests.wire import frame_of

VECTOR = Path(__file__).parents[3] / "vectors" / "encryption.json"
ALL = list(COLUMNS)


@pytest.fixture(scope="module")
def pairs() -> dict[str, KeyPair]:
    return {"first": key_pair(), "second": key_pair()}


@pytest.fixture
def data_key(pairs: dict[str, KeyPair]) -> DataKey:
    return DataKey(public_keys({name: pair.public for name, pair in pairs.items()}))


def whole(compression: Any = "none") -> Chunk:
    (chunk,) = BatchEncoder(compression).chunks(rows(*ROWS))
    return chunk


def stored(chunk: Chunk) -> Entry:
    (sent,) = frame_of(chunk).entries
    return Entry(EntryId(3, 4), sent.metadata, sent.packed, 0, "t")


def encrypted(data_key: DataKey, chunk: Chunk) -> Entry:
    payload, envelope = data_key.encrypt(chunk.payload)
    return stored(replace(chunk, payload=payload, envelope=envelope))


def files(folder: Path, **texts: str) -> tuple[tuple[str, str], ...]:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return tuple((name, str(folder / name)) for name in texts)


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_the_java_client_has_encrypted_is_read_with_either_key(name: str, tmp_path: Path) -> None:
    vector = json.loads(VECTOR.read_text())
    metadata = MessageMetadata.FromString(bytes.fromhex(vector["metadata"]))
    entry = Entry(EntryId(3, 4), metadata, bytes.fromhex(vector["payload"]), 0, "t")
    decrypt = decryptor_of(files(tmp_path, **{name: vector["private_keys"][name]}))
    columns: list[Column] = ["value", "key", "ordering_key", "event_time", "properties"]
    assert decode([decrypt(entry)], columns).equals(decode([stored(whole())], columns))


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_an_entry_comes_back_as_it_was(
    data_key: DataKey, pairs: dict[str, KeyPair], compression: str, tmp_path: Path
) -> None:
    entry = encrypted(data_key, whole(compression))
    assert bytes(entry.packed) != bytes(whole(compression).payload)
    plain = decryptor_of(files(tmp_path, second=pairs["second"].private))(entry)
    assert decode([plain], ALL).equals(decode([stored(whole(compression))], ALL))
    assert entry.metadata.encryption_keys, "what is stored says that it is encrypted, however often it is read"


def test_an_entry_in_the_clear_is_left_alone(pairs: dict[str, KeyPair], tmp_path: Path) -> None:
    entry = stored(whole())
    assert decryptor_of(files(tmp_path, first=pairs["first"].private))(entry) is entry


def test_no_nonce_comes_twice_with_a_data_key(data_key: DataKey) -> None:
    with ThreadPoolExecutor(8) as pool:
        nonces = list(pool.map(lambda _: data_key.encrypt(b"x")[1].nonce, range(4_000)))
    assert len(set(nonces)) == 4_000
    assert {len(nonce) for nonce in nonces} == {12}


def test_the_same_payload_is_never_encrypted_to_the_same_bytes(data_key: DataKey, pairs: dict[str, KeyPair]) -> None:
    other = DataKey(public_keys({"first": pairs["first"].public}))
    texts = {data_key.encrypt(b"payload")[0], data_key.encrypt(b"payload")[0], other.encrypt(b"payload")[0]}
    assert len(texts) == 3, "two data keys are never the same"


def test_a_piece_of_a_large_row_is_encrypted_where_arrow_holds_it(
    data_key: DataKey, pairs: dict[str, KeyPair], tmp_path: Path
) -> None:
    batch = pa.RecordBatch.from_pydict({"value": [b"large " * 3_000], "key": [b"k"]})
    pieces = [chunk for chunk in BatchEncoder(max_message_size=8_192, cut_above=4_000).chunks(batch)]
    assert len(pieces) > 1
    assembler = ChunkAssembler(decrypt=decryptor_of(files(tmp_path, first=pairs["first"].private)))
    *others, message = [assembler.take(encrypted(data_key, piece)) for piece in pieces]
    assert others == [None] * len(others)
    assert message is not None
    assert decode([message], ["value", "key"]).to_pylist() == batch.to_pylist()


def test_a_data_key_stays_in_its_process(data_key: DataKey) -> None:
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(data_key)


def test_the_overhead_is_what_an_encrypted_frame_has_more(data_key: DataKey) -> None:
    plain, entry = stored(whole()), encrypted(data_key, whole())
    grown = entry.metadata.ByteSize() + len(entry.packed) - plain.metadata.ByteSize() - len(plain.packed)
    assert grown == data_key.overhead


def test_an_entry_for_other_keys_is_refused_with_their_names(
    data_key: DataKey, pairs: dict[str, KeyPair], tmp_path: Path
) -> None:
    entry = encrypted(data_key, whole())
    with pytest.raises(
        InvalidInput,
        match=r"entry 3:4 of t is encrypted for the keys 'first', 'second'; decryption_keys has 'third'\. Give the",
    ):
        decryptor_of(files(tmp_path, third=pairs["first"].private))(entry)


def test_a_private_key_under_a_wrong_name_is_refused(
    data_key: DataKey, pairs: dict[str, KeyPair], tmp_path: Path
) -> None:
    entry = encrypted(data_key, whole())
    with pytest.raises(InvalidInput, match=r"the private key that decryption_keys has for 'first' does not fit"):
        decryptor_of(files(tmp_path, first=pairs["second"].private))(entry)
    mixed = files(tmp_path, first=pairs["second"].private, second=pairs["second"].private)
    assert decryptor_of(mixed)(entry).metadata.encryption_keys == [], "the other one fits"


@pytest.mark.parametrize("what", ["payload", "tag", "nonce", "cut", "empty"])
def test_changed_bytes_are_damage_and_never_rows(
    data_key: DataKey, pairs: dict[str, KeyPair], what: str, tmp_path: Path
) -> None:
    entry = encrypted(data_key, whole())
    changed = bytearray(entry.packed)
    if what == "nonce":
        entry.metadata.encryption_param = bytes(12)[:11] + b"\7"
    elif what in ("payload", "tag"):
        changed[0 if what == "payload" else -1] ^= 1
    else:
        changed = changed[:-1] if what == "cut" else bytearray()
    entry.packed = bytes(changed)
    with pytest.raises(DamagedFrame, match="entry 3:4 of t can't be read: what is stored is not what its writer has"):
        decryptor_of(files(tmp_path, first=pairs["first"].private))(entry)


def test_a_data_key_is_decrypted_once(
    data_key: DataKey, pairs: dict[str, KeyPair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decrypt = decryptor_of(files(tmp_path, first=pairs["first"].private))
    asked: list[bytes] = []
    decrypted = decrypt._decrypted

    def watched(private_key: Any, value: bytes) -> Any:
        asked.append(value)
        return decrypted(private_key, value)

    monkeypatch.setattr(decrypt, "_decrypted", watched)
    for _ in range(3):
        decrypt(encrypted(data_key, whole()))
    assert len(asked) == 1


def chunks_of(data_key: DataKey, message: bytes) -> list[Entry]:
    """Return a message in two chunks, each of them encrypted, as the official clients send it."""
    entries = []
    for number, part in enumerate((message[:4], message[4:])):
        metadata = MessageMetadata(
            uuid="u", chunk_id=number, num_chunks_from_msg=2, total_chunk_msg_size=len(message), sequence_id=7
        )
        payload, envelope = data_key.encrypt(part)
        envelope.describe(metadata)
        entries.append(Entry(EntryId(3, number), metadata, payload, 40, "t"))
    return entries


def test_a_message_in_chunks_is_decrypted_chunk_by_chunk(
    data_key: DataKey, pairs: dict[str, KeyPair], tmp_path: Path
) -> None:
    assembler = ChunkAssembler(decrypt=decryptor_of(files(tmp_path, first=pairs["first"].private)))
    first, second = chunks_of(data_key, b"a long value")
    assert assembler.take(first) is None
    message = assembler.take(second)
    assert message is not None
    assert decode([message], ["value"]).column("value").to_pylist() == [b"a long value"]


def test_a_message_in_chunks_is_whole_though_nobody_can_decrypt_it(data_key: DataKey) -> None:
    """Whoever counts messages needs no key; whoever decodes them is refused."""
    assembler = ChunkAssembler()
    first, second = chunks_of(data_key, b"a long value")
    assert assembler.take(first) is None
    message = assembler.take(second)
    assert message is not None
    assert message.num_messages == 1
    with pytest.raises(
        InvalidInput, match="entry 3:1 of t is encrypted for the keys 'first', 'second', and no private"
    ):
        decode([message], ["value"])
