"""Frames: a command, and for messages its metadata and payload.

    simple   total:u32  size:u32  command
    message  total:u32  size:u32  command  [0x0e02  size:u32  broker entry metadata]
             0x0e01  crc32c:u32  size:u32  metadata  payload

All numbers are big-endian; `total` counts what follows it. The checksum covers the
metadata's size, the metadata and the payload (Commands.serializeCommandSendWithSize and
Commands.parseMessageMetadata of pulsar-common).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from google.protobuf.message import DecodeError

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import Buffer, crc32c
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, MessageMetadata, ServerError

DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Bytes; what a broker uses when its CONNECTED names no other limit."""

FRAME_PADDING = 10 * 1024
"""Bytes by which a frame may exceed the maximum message size (Commands.MESSAGE_SIZE_FRAME_PADDING)."""

_MAGIC_CHECKSUM = 0x0E01
_MAGIC_BROKER_ENTRY = 0x0E02
_REQUIRED: tuple[Literal["producer_name", "sequence_id", "publish_time"], ...] = (
    "producer_name",
    "sequence_id",
    "publish_time",
)
"""The fields that each producer must write (`required` in Pulsar's own description). Without a checksum only they show
damage."""

_SIZE = struct.Struct(">I")
_SIZES = struct.Struct(">II")
_MAGIC = struct.Struct(">H")
_CHECKSUM_HEADER = struct.Struct(">HI")
_TLS_RECORDS = (0x15, 0x16)  # alert, handshake (RFC 8446, 5.1)
_TLS_MAJOR = 0x03


@dataclass(slots=True)  # not frozen: that makes each one several times as dear
class Frame:
    """One received frame.

    Attributes:
        command: its command; `command.type` may be a number this module has no name for.
        metadata: a message's metadata; None unless the frame carries a message.
        payload: a message's bytes, still compressed; None unless the frame carries a message.
        damage: what is wrong with the message that a MESSAGE frame should carry; "" where nothing is.
    """

    command: BaseCommand
    metadata: MessageMetadata | None = None
    payload: Buffer | None = None
    damage: str = ""


def encode(command: BaseCommand) -> bytes:
    """Return the frame of a command that carries no message."""
    body = command.SerializeToString()
    return _SIZES.pack(len(body) + 4, len(body)) + body


def encode_message(command: BaseCommand, metadata: MessageMetadata, payload: Sequence[Buffer]) -> list[Buffer]:
    """Return the frame of a message as buffers to be sent one after the other.

    The payload is not copied: it is the tail of the returned list.
    """
    body = command.SerializeToString()
    described = metadata.SerializeToString()
    sized = _SIZE.pack(len(described)) + described
    checksum = crc32c([sized, *payload])
    tail = _CHECKSUM_HEADER.pack(_MAGIC_CHECKSUM, checksum) + sized
    total = 4 + len(body) + len(tail) + sum(len(part) for part in payload)
    return [_SIZES.pack(total, len(body)) + body + tail, *payload]


def error_name(code: int) -> str:
    """Return the name of a ServerError, or "ServerError 99" for a number of a newer broker."""
    known = ServerError.DESCRIPTOR.values_by_number.get(code)
    return f"ServerError {code}" if known is None else known.name


class FrameDecoder:
    """Turns received bytes, cut anywhere, into frames.

    Attributes:
        max_frame_size: bytes; a longer frame is refused before it is kept in memory. Set it to the broker's maximum
            message size plus FRAME_PADDING once CONNECTED has shown that size.
    """

    def __init__(self, max_frame_size: int = DEFAULT_MAX_MESSAGE_SIZE + FRAME_PADDING) -> None:
        self.max_frame_size = max_frame_size
        self._pending = bytearray()

    def feed(self, data: Buffer) -> list[Frame]:
        """Take the next received bytes; return the frames that they complete, in order.

        Raises DamagedFrame for the first of them; frames before a damaged one are returned, and the next call
        raises. The decoder is of no use after that.
        """
        self._pending += data
        frames: list[Frame] = []
        start = 0
        with memoryview(self._pending) as view:
            while len(view) - start >= 4:
                end = start + 4 + _SIZE.unpack_from(view, start)[0]
                try:
                    frame = self._frame(view, start, end)
                except DamagedFrame:
                    if not frames:
                        raise
                    break
                if frame is None:
                    break
                frames.append(frame)
                start = end
        del self._pending[:start]
        return frames

    def _frame(self, view: memoryview, start: int, end: int) -> Frame | None:
        """Return the frame that begins at `start`, None while it is not all there. Raises DamagedFrame."""
        total = end - start - 4
        if total > self.max_frame_size:
            raise DamagedFrame(_foreign(bytes(view[start : start + 4])) or self._too_large(total))
        if end > len(view):
            return None
        with view[start + 4 : end] as body:
            return _decode(body)

    def _too_large(self, total: int) -> str:
        return f"a frame of {total} bytes. The limit is {self.max_frame_size}"


def _foreign(begin: bytes) -> str | None:
    """Say which other protocol speaks, by its first four bytes; None where that is not known."""
    if begin == b"HTTP":
        return "it answers in HTTP. This is the port of the admin API, or of a web server, not the broker's"
    if begin[0] in _TLS_RECORDS and begin[1] == _TLS_MAJOR:
        return "it answers in TLS. Use pulsar+ssl:// and the TLS port"
    return None


def _decode(body: memoryview) -> Frame:
    try:
        rest = _end(body, 0)
        command = BaseCommand.FromString(bytes(body[4:rest]))
    except (struct.error, DecodeError) as error:
        raise DamagedFrame(f"a frame of {len(body)} bytes can't be read: {error}") from error
    if rest == len(body):
        return Frame(command)
    try:
        return _message(command, body, rest)
    except (struct.error, DecodeError, DamagedFrame) as error:
        if command.type == BaseCommand.Type.MESSAGE:  # which message it is stands in the command
            return Frame(command, damage=str(error))
        raise DamagedFrame(f"a frame of {len(body)} bytes can't be read: {error}") from error


def _message(command: BaseCommand, body: memoryview, rest: int) -> Frame:
    (magic,) = _MAGIC.unpack_from(body, rest)
    if magic == _MAGIC_BROKER_ENTRY:
        rest = _end(body, rest + 2)
        (magic,) = _MAGIC.unpack_from(body, rest)
    expected = None
    if magic == _MAGIC_CHECKSUM:
        _, expected = _CHECKSUM_HEADER.unpack_from(body, rest)
        rest += _CHECKSUM_HEADER.size
    covered = bytes(body[rest:])
    if expected is not None and (actual := crc32c([covered])) != expected:
        raise DamagedFrame(f"checksum {actual:#010x} of a received message. Its frame says {expected:#010x}")
    end = _end(covered, 0)
    metadata = MessageMetadata.FromString(covered[4:end])
    if missing := [name for name in _REQUIRED if not metadata.HasField(name)]:
        raise DamagedFrame(f"its metadata has no {missing[0]}")
    return Frame(command, metadata, memoryview(covered)[end:])


def _end(body: Buffer, at: int) -> int:
    """Return where a part ends that begins, at `at`, with its size."""
    (size,) = _SIZE.unpack_from(body, at)
    end: int = at + 4 + size
    if end > len(body):
        raise DamagedFrame(f"a part of {size} bytes at {at} exceeds its frame of {len(body)} bytes")
    return end
