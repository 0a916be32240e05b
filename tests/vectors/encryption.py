"""A batch to be encrypted, and one that the Java client has encrypted."""

from __future__ import annotations

import json
from typing import Any

from eos.pulsar.wire.batch import BatchEncoder
from eos.pulsar.wire.compression import TYPES
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata
from tests.vectors.broker_classes import ask
from tests.vectors.frames import ROWS, rows


def encrypted_by_java() -> dict[str, Any]:
    """Return the keys, and what the class of the Java client makes of the rows of `frames`."""
    from tests.encryption import key_pair  # the other vectors need no library for it

    (chunk,) = BatchEncoder("zstd").chunks(rows(*ROWS))
    metadata = MessageMetadata(
        producer_name="p-1",
        sequence_id=40,
        publish_time=1_790_000_000_123,
        compression=TYPES[chunk.compression],
        uncompressed_size=chunk.uncompressed_size,
        num_messages_in_batch=chunk.messages,
    )
    pairs = {name: key_pair() for name in ("first", "second")}
    asked = {
        "keys": {name: pair.public for name, pair in pairs.items()},
        "metadata": metadata.SerializeToString().hex(),
        "payload": bytes(chunk.payload).hex(),
    }
    (written,) = ask("encrypt", [json.dumps(asked)])
    return {"private_keys": {name: pair.private for name, pair in pairs.items()}, **written}
