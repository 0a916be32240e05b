"""An entry as Pulsar's broker gives it to BookKeeper, or to an offloader.

    [0e02 size:u32 BrokerEntryMetadata] [0e01 crc32c:u32] size:u32 MessageMetadata payload

Both parts in brackets may be missing. The checksum covers what follows it. Source: Pulsar's
Commands.serializeMetadataAndPayload.
"""

from __future__ import annotations

import struct

from google.protobuf.message import DecodeError

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import Buffer, crc32c
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import MessageMetadata

_BROKER_METADATA, _CHECKSUM = b"\x0e\x02", b"\x0e\x01"
_SIZE = struct.Struct(">I")


def verified(stored: Buffer) -> tuple[memoryview, bool]:
    """Return what follows the broker's metadata and the checksum, and whether there was a checksum. It is right then.

    Raises DamagedFrame.
    """
    view = memoryview(stored)
    try:
        if view[:2] == _BROKER_METADATA:
            view = view[6 + _SIZE.unpack_from(view, 2)[0] :]
        if view[:2] != _CHECKSUM:
            return view, False
        (checksum,) = _SIZE.unpack_from(view, 2)
    except struct.error as error:
        raise DamagedFrame(str(error)) from error
    if crc32c([view[6:]]) != checksum:
        raise DamagedFrame("its checksum is wrong")
    return view[6:], True


def entry_of(where: EntryId, stored: Buffer, topic: str) -> Entry:
    """Return the entry that these bytes are. Raises DamagedFrame, naming it. Its checksum is verified if it has one."""
    try:
        view, _ = verified(stored)
        (size,) = _SIZE.unpack_from(view)
        metadata = MessageMetadata.FromString(bytes(view[4 : 4 + size]))
    except (struct.error, DecodeError, DamagedFrame) as error:
        raise DamagedFrame(f"entry {where} of {topic} is damaged ({error})") from error
    if len(view) < 4 + size:
        raise DamagedFrame(f"entry {where} of {topic} is damaged. It ends within its metadata")
    return Entry(where, metadata, view[4 + size :], len(view), topic)
