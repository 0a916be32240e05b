"""The frames that send messages: SEND, with the metadata and the payload of one entry."""

from __future__ import annotations

from collections.abc import Mapping

from eos.config import Compression
from eos.pulsar.wire.batch import Chunk
from eos.pulsar.wire.checksum import Buffer
from eos.pulsar.wire.compression import TYPES
from eos.pulsar.wire.frames import encode_message
from eos.pulsar.wire.large_messages import Piece
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, CommandSend, KeyValue, MessageMetadata
from eos.pulsar.wire.txn import TxnId

_NOWHERE = "__local__"
"""In place of a cluster's name: a message that no replicator sends on (TypedMessageBuilder.disableReplication)."""


def send_frame(
    chunk: Chunk,
    *,
    producer_id: int,
    producer_name: str,
    sequence_id: int,
    publish_time_ms: int,
    txn: TxnId | None,
    schema_version: bytes = b"",
) -> list[Buffer]:
    """Return the frame that sends a chunk, or a piece of a message, as buffers to be sent one after the other.

    The chunk's messages have the sequence ids from `sequence_id` on, so the next frame of this producer
    starts at `sequence_id + chunk.messages`; the receipt carries `sequence_id`. `schema_version` is that of the
    schema by which the values were written; empty where they have none.
    """
    metadata = MessageMetadata(producer_name=producer_name, sequence_id=sequence_id, publish_time=publish_time_ms)
    if chunk.piece is not None:
        _describe_piece(metadata, chunk.piece)
    else:
        metadata.highest_sequence_id = sequence_id + chunk.messages - 1
        metadata.num_messages_in_batch = chunk.messages
    if chunk.compression != "none":
        metadata.compression = TYPES[chunk.compression]
        metadata.uncompressed_size = chunk.uncompressed_size
    if (sticky := chunk.sticky) is not None:
        if sticky.ordering_key is not None:
            metadata.ordering_key = sticky.ordering_key
        if sticky.key is not None:
            metadata.partition_key = sticky.key
            metadata.partition_key_b64_encoded = sticky.encoded
    if chunk.deliver_at_ms is not None:
        metadata.deliver_at_time = chunk.deliver_at_ms
    if schema_version:
        metadata.schema_version = schema_version
    if chunk.envelope is not None:
        chunk.envelope.describe(metadata)
    return _send(producer_id, metadata, chunk.payload, txn)


def _describe_piece(metadata: MessageMetadata, piece: Piece) -> None:
    metadata.MergeFrom(piece.described)
    if piece.count > 1:
        metadata.uuid = f"{metadata.producer_name}-{metadata.sequence_id}"
        metadata.chunk_id = piece.number
        metadata.num_chunks_from_msg = piece.count
        metadata.total_chunk_msg_size = piece.total_bytes


def single_message_frame(
    payload: Buffer,
    *,
    producer_id: int,
    producer_name: str,
    sequence_id: int,
    publish_time_ms: int,
    txn: TxnId | None,
    key: str | None = None,
    properties: Mapping[str, str] | None = None,
    local: bool = False,
    compression: Compression = "none",
    uncompressed_size: int = 0,
) -> list[Buffer]:
    """Return the frame that sends one message of its own, not in a batch.

    Args:
        payload: its bytes, compressed.
        compression, uncompressed_size: what they are compressed with, and their size before. Default: they are not.
        local: whether it stays in its cluster where the namespace is replicated to others. Default False.
    """
    metadata = MessageMetadata(
        producer_name=producer_name,
        sequence_id=sequence_id,
        publish_time=publish_time_ms,
        properties=[KeyValue(key=name, value=text) for name, text in (properties or {}).items()],
    )
    if key is not None:
        metadata.partition_key = key.encode()
    if compression != "none":
        metadata.compression = TYPES[compression]
        metadata.uncompressed_size = uncompressed_size
    if local:
        metadata.replicate_to.append(_NOWHERE)
    return _send(producer_id, metadata, payload, txn)


def _send(producer_id: int, metadata: MessageMetadata, payload: Buffer, txn: TxnId | None) -> list[Buffer]:
    send = CommandSend(
        producer_id=producer_id, sequence_id=metadata.sequence_id, num_messages=metadata.num_messages_in_batch
    )
    if metadata.HasField("highest_sequence_id"):
        send.highest_sequence_id = metadata.highest_sequence_id
    if metadata.HasField("num_chunks_from_msg"):
        # Else deduplication drops each chunk after the first, since all have one sequence id.
        send.is_chunk = True
    if txn is not None:
        # In the metadata too: what an abort hides is found by the ids there.
        for described in (send, metadata):
            described.txnid_most_bits = txn.most
            described.txnid_least_bits = txn.least
    return encode_message(BaseCommand(type=BaseCommand.SEND, send=send), metadata, [payload])
