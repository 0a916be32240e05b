"""Frames: a command, and with a message its entry.

    simple   total:u32  size:u32  command
    message  total:u32  size:u32  command  entry

All numbers are big-endian; `total` counts what follows it (Commands.serializeCommandSendWithSize of pulsar-common).
`eos.pulsar.wire.stored_entry` says what an entry is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from eos.errors import DamagedFrame
from eos.pulsar.wire.checksum import Buffer, crc32c
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frame_template import AlikeMessages, FrameTemplate
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.pulsar_pb2 import BaseCommand, MessageMetadata, ServerError
from eos.pulsar.wire.stored_entry import CHECKSUM, MAGIC_CHECKSUM, entry_of

DEFAULT_MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Bytes; what a broker uses when its CONNECTED names no other limit."""

FRAME_PADDING = 10 * 1024
"""Bytes by which a frame may exceed the maximum message size (Commands.MESSAGE_SIZE_FRAME_PADDING)."""

_MESSAGE = BaseCommand.Type.MESSAGE
_SIZE = struct.Struct(">I")
_SIZES = struct.Struct(">II")
_NOWHERE = EntryId(-1, -1)  # a message on its way to a broker is not stored yet
_TLS_RECORDS = (0x15, 0x16)  # alert, handshake (RFC 8446, 5.1)
_TLS_MAJOR = 0x03


@dataclass(slots=True)
class Frame:
    """One received frame, or several that carry messages for one consumer and came right after one another.

    Attributes:
        command: its command, or the first one's; `command.type` may be a number this module has no name for.
        entries: what they carry; none where no message came. One that a consumer gets says where it is stored, and, if
            its bytes are damaged, that.
    """

    command: BaseCommand
    entries: list[Entry] = field(default_factory=list)


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
    tail = CHECKSUM.pack(MAGIC_CHECKSUM, checksum) + sized
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
        self._parts: list[bytes] = []  # received, and not yet a frame
        self._received = 0
        self._wanted = _SIZE.size  # bytes that must be there for the next frame, as far as is known
        self._form: FrameTemplate | None = None  # that messages had

    def feed(self, data: Buffer) -> list[Frame]:
        """Take the next received bytes; return the frames that they complete, in order.

        Raises DamagedFrame for the first of them; frames before a damaged one are returned, and the next call
        raises. The decoder is of no use after that.
        """
        self._parts.append(bytes(data))
        self._received += len(data)
        if self._received < self._wanted:
            return []
        received = b"".join(self._parts)  # once for a large frame, however many parts it comes in
        frames, start = self._frames(received)
        self._parts = [received[start:]]
        self._received -= start
        return frames

    def _frames(self, received: bytes) -> tuple[list[Frame], int]:
        """Return the frames, and where the last one ends. Raises DamagedFrame where the first one is damaged."""
        bounds, damage = self._bounds(received)
        frames: list[Frame] = []
        last: BaseCommand | None = None  # of a message, to whose frame the next one may belong
        alike = AlikeMessages(received, bounds, self._form)
        for place in range(len(bounds) - 1):  # each message comes by here
            entry = alike.entries.get(place)
            if entry is not None:
                command = alike.commands[place]
            else:
                try:
                    frame = _frame(received, bounds[place] + _SIZE.size, bounds[place + 1])
                except DamagedFrame as error:
                    bounds, damage = bounds[: place + 1], error
                    break
                command = frame.command
                if command.type != _MESSAGE:
                    frames.append(frame)
                    last = None
                    continue
                (entry,) = frame.entries
                alike.learn(place, command, entry)
            if last is not None and (command is last or command.message.consumer_id == last.message.consumer_id):
                frames[-1].entries.append(entry)
            else:
                frames.append(Frame(command, [entry]))
            last = command
        if damage is not None and not frames:
            raise damage
        self._form = alike.form
        return frames, bounds[-1]

    def _bounds(self, received: bytes) -> tuple[list[int], DamagedFrame | None]:
        """Return where the first frame begins and where each one ends, and what is wrong with what follows them."""
        bounds = [0]
        start, self._wanted = 0, _SIZE.size
        while len(received) - start >= _SIZE.size:  # each message comes by here
            (total,) = _SIZE.unpack_from(received, start)
            if total > self.max_frame_size:
                return bounds, DamagedFrame(_foreign(received[start : start + 4]) or self._too_large(total))
            end = start + _SIZE.size + total
            if end > len(received):
                self._wanted = end - start
                break
            bounds.append(end)
            start = end
        return bounds, None

    def _too_large(self, total: int) -> str:
        return f"a frame of {total} bytes. The limit is {self.max_frame_size}"


def _foreign(begin: bytes) -> str | None:
    """Say which other protocol speaks, by its first four bytes; None where that is not known."""
    if begin == b"HTTP":
        return "it answers in HTTP. This is the port of the admin API, or of a web server, not the broker's"
    if begin[0] in _TLS_RECORDS and begin[1] == _TLS_MAJOR:
        return "it answers in TLS. Use pulsar+ssl:// and the TLS port"
    return None


def _frame(received: bytes, start: int, end: int) -> Frame:
    """Return the frame that lies, after its total, between these places. Raises DamagedFrame."""
    try:
        (size,) = _SIZE.unpack_from(received, start)
        rest = start + _SIZE.size + size
        if rest > end:
            raise DamagedFrame(f"its command of {size} bytes ends {rest - end} bytes beyond it")
        command = BaseCommand.FromString(received[start + _SIZE.size : rest])
        if command.type != _MESSAGE:
            return Frame(command, [] if rest == end else [entry_of(_NOWHERE, received, rest, end)])
    except (struct.error, DecodeError, DamagedFrame) as error:
        raise DamagedFrame(f"a frame of {end - start} bytes can't be read: {error}") from error
    where = EntryId.read(command.message.message_id)
    try:
        if rest == end:
            raise DamagedFrame("it came without a message")
        return Frame(command, [entry_of(where, received, rest, end)])
    except DamagedFrame as damage:  # which message it is stands in the command
        return Frame(command, [Entry(where, MessageMetadata(), b"", end - rest, damage=str(damage))])
