"""For any rows an encrypted frame gives them back to a reader with one of the private keys."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eos.config import COMPRESSIONS, Compression
from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.decoding import COLUMNS, decode
from eos.pulsar.wire.encryption import DataKey, Decryptor
from eos.pulsar.wire.encryption_keys import public_keys
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.txn import TxnId
from tests.encryption import key_pair, pem
from tests.property.test_wire_batch import batches
from tests.wire import stored

PAIRS = {name: key_pair() for name in ("a", "ключ")}
KEY = DataKey(public_keys({name: pair.public for name, pair in PAIRS.items()}))
READERS = {
    name: Decryptor({name: pem.load_pem_private_key(pair.private.encode(), None)}) for name, pair in PAIRS.items()
}


@given(batches(), st.sampled_from(COMPRESSIONS), st.integers(1, 50_000), st.sampled_from(list(READERS)))
def test_rows_come_back(batch: pa.RecordBatch, compression: Compression, target_bytes: int, reader: str) -> None:
    plain: list[Entry] = []
    encrypted: list[Entry] = []
    for place, chunk in enumerate(BatchEncoder(compression, target_bytes=target_bytes).chunks(batch)):
        payload, envelope = KEY.encrypt(chunk.payload)
        for entries, sent in ((plain, chunk), (encrypted, replace(chunk, payload=payload, envelope=envelope))):
            entries.append(stored(sent, place, TxnId(0, 7)))
    for one, other in zip(plain, encrypted, strict=True):
        assert other.metadata.txnid_least_bits == 7, "what an abort hides is found by it"
        assert other.num_messages == one.num_messages
    columns = list(COLUMNS)
    assert decode([READERS[reader](entry) for entry in encrypted], columns).equals(decode(plain, columns))
