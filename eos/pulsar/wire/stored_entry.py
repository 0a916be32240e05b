"""An entry as Pulsar's broker gives it to BookKeeper, to an offloader, and, after a MESSAGE command, to a consumer.

    [0e02 size:u32 BrokerEntryMetadata] [0e01 crc32c:u32] size:u32 MessageMetadata payload

All numbers are big-endian. Both parts in brackets may be missing. The checksum covers what follows it (Pulsar's
Commands.serializeMetadataAndPayload and Commands.parseMessageMetadata).
"""

from __future__ import annotations

import struct
from typing import Literal

from google.protobuf.message import DecodeError

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import Buffer, crc32c
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

MAGIC_CHECKSUM = 0x0E01
_MAGIC_BROKER_METADATA = 0x0E02
CHECKSUM = struct.Struct(">HI")
"""The magic number, and the checksum; or the other magic number, and the size of the broker's metadata."""

_SIZE = struct.Struct(">I")
_REQUIRED: tuple[Literal["producer_name", "sequence_id", "publish_time"], ...] = (
    "producer_name",
    "sequence_id",
    "publish_time",
)
"""The fields that each producer must write (`required` in Pulsar's own description). Without a checksum only they show
damage."""


def body_of(data: Buffer, at: int, end: int) -> tuple[Buffer, bool]:
    """Return what follows the broker's metadata and the checksum, and whether there was a checksum. It is right then.

    Args: the bytes; where the entry lies in them. What lies after it may be looked at, and is not believed.

    Raises DamagedFrame.
    """
    try:
        magic, number = CHECKSUM.unpack_from(data, at)
        if magic == _MAGIC_BROKER_METADATA:
            at += CHECKSUM.size + number
            magic, number = CHECKSUM.unpack_from(data, at)
    except struct.error as error:
        raise DamagedFrame(str(error)) from error
    if magic != MAGIC_CHECKSUM:
        return data[at:end], False
    body = data[at + CHECKSUM.size : end]
    if (actual := crc32c([body])) != number:
        raise DamagedFrame(f"its checksum is wrong. It says {number:#010x}, and its bytes have {actual:#010x}")
    return body, True


def entry_of(where: EntryId, data: Buffer, at: int, end: int, topic: str = "") -> Entry:
    """Return the entry that these bytes are. Args: where it is stored; the bytes, as of `body_of`; the topic, if known.

    Raises DamagedFrame.
    """
    body, _ = body_of(data, at, end)
    try:
        payload = _SIZE.size + _SIZE.unpack_from(body)[0]
        metadata = MessageMetadata.FromString(bytes(body[_SIZE.size : payload]))
    except (struct.error, DecodeError) as error:
        raise DamagedFrame(str(error)) from error
    if payload > len(body):
        raise DamagedFrame(f"its metadata ends {payload - len(body)} bytes beyond it")
    if not all(map(metadata.HasField, _REQUIRED)):  # each entry comes by here
        raise DamagedFrame(f"its metadata has no {next(name for name in _REQUIRED if not metadata.HasField(name))}")
    return Entry(where, metadata, body[payload:], CHECKSUM.size + len(body), topic)
