"""Frames of a bookie's protocol, version 2, as far as reading needs them.

    request       size:u32  head:u32  ledger:i64  entry:i64
    batch read    size:u32  head:u32  ledger:i64  first:i64  request:i64  count:i32  bytes:i64
    answer        size:u32  head:u32  code:i32  ledger:i64  entry:i64  [stored entry]
    batch answer  size:u32  head:u32  code:i32  ledger:i64  first:i64  request:i64  [size:u32  stored entry]*
    auth          size:u32  head:u32  AuthMessage (protobuf), both ways

The head is version << 24 | operation << 16 | flags. Flag 1 on a read fences the ledger against its writer, so the flags
are 0 here, always. A bookie takes each first frame of a connection for version 3 (protobuf) and, where it is not, the
connection for version 2 for good. START_TLS exists in version 3 alone, and version 2 may follow it.
Sources: BookKeeper's BookieProtoEncoding, BookieProtocol, and BP-62 for batch reads (bookies of 4.17 and newer).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from google.protobuf.message import DecodeError

from eos.bookkeeper.errors import BookieUnauthorized, BookieUnavailable
from eos.bookkeeper.wire.bookkeeper_pb2 import AuthMessage, BKPacketHeader, Request, Response, StartTLSRequest

_VERSION = 2
_SIZE = struct.Struct(">I")
_READ = struct.Struct(">IIqq")
_BATCH_READ = struct.Struct(">IIqqqiq")
_ANSWER = struct.Struct(">Iiqq")
_REQUEST_ID = struct.Struct(">q")
_START_TLS = 9  # OperationType of version 3


class Operation(IntEnum):
    """The request or answer of a frame."""

    READ = 2
    AUTH = 3
    BATCH_READ = 7


class Code(IntEnum):
    """The answers of a bookie. BookieProtocol has more, which no read is answered with."""

    OK = 0
    NO_LEDGER = 1
    NO_ENTRY = 2
    BAD_REQUEST = 100
    IO_ERROR = 101
    UNAUTHORIZED = 102
    BAD_VERSION = 103
    TOO_MANY_REQUESTS = 106


@dataclass(frozen=True, slots=True)
class BookieAnswer:
    """The answer to a read or a batch read.

    Attributes:
        code: a `Code`, or a number that is none.
        ledger, entry: what was asked for; of a batch, its first entry.
        stored: the entries as they are stored, from `entry` on.
    """

    code: int
    ledger: int
    entry: int
    stored: tuple[bytes, ...]


def read_request(ledger: int, entry: int) -> bytes:
    """Return the frame that asks for one entry."""
    return _READ.pack(_READ.size - _SIZE.size, _head(Operation.READ), ledger, entry)


def batch_read_request(ledger: int, first: int, request_id: int, count: int, max_bytes: int) -> bytes:
    """Return the frame that asks for up to `count` entries from `first` on.

    The bookie answers with at least one entry where it has the first, and with no more than `max_bytes` of them.
    """
    size = _BATCH_READ.size - _SIZE.size
    return _BATCH_READ.pack(size, _head(Operation.BATCH_READ), ledger, first, request_id, count, max_bytes)


def auth_request(plugin: str, payload: bytes) -> bytes:
    """Return the frame that carries a step of an authentication plug-in."""
    message = AuthMessage(authPluginName=plugin, payload=payload).SerializeToString()
    return _SIZE.pack(4 + len(message)) + _SIZE.pack(_head(Operation.AUTH)) + message


def start_tls_request() -> bytes:
    """Return the frame of version 3 after which TLS begins, once the bookie has said yes."""
    header = BKPacketHeader(version=3, operation=_START_TLS, txnId=1)
    message = Request(header=header, startTLSRequest=StartTLSRequest()).SerializeToString()
    return _SIZE.pack(len(message)) + message


def start_tls_status(frame: bytes) -> int:
    """Return what the bookie says of START_TLS: 0 is yes. Raises BookieUnavailable for other bytes."""
    try:
        return Response.FromString(frame).status
    except DecodeError as error:
        raise BookieUnavailable(f"the bookie's answer to START_TLS can't be read: {error}") from error


def auth_payload(frame: bytes) -> bytes:
    """Return what a bookie's plug-in says. Raises BookieUnavailable for another frame."""
    if len(frame) < _SIZE.size or _operation(_SIZE.unpack_from(frame)[0]) != Operation.AUTH:
        raise BookieUnavailable("the bookie answered authentication with another frame")
    try:
        return AuthMessage.FromString(frame[_SIZE.size :]).payload
    except DecodeError as error:
        raise BookieUnavailable(f"the bookie's answer to authentication can't be read: {error}") from error


def answer_of(frame: bytes) -> BookieAnswer:
    """Take an answer apart.

    Raises BookieUnavailable for bytes that are not a frame. Then the connection can't be used any longer. Raises
    BookieUnauthorized for a second answer to START_TLS: with it a bookie refuses a certificate that has no role which
    it lets in.
    """
    if len(frame) < _ANSWER.size:
        with suppress(DecodeError):
            refusal = Response.FromString(frame)
            if refusal.header.operation == _START_TLS and refusal.status != Code.OK:
                raise BookieUnauthorized(f"it has no role for this client's certificate, status {refusal.status}")
        raise BookieUnavailable(f"the bookie sent a frame of {len(frame)} bytes, shorter than any answer")
    head, code, ledger, entry = _ANSWER.unpack_from(frame)
    operation = _operation(head)
    rest = frame[_ANSWER.size :]
    if operation == Operation.READ:
        return BookieAnswer(code, ledger, entry, (rest,) if code == Code.OK else ())
    if operation != Operation.BATCH_READ:
        raise BookieUnavailable(f"the bookie sent an answer of operation {operation}, which was not asked for")
    return BookieAnswer(code, ledger, entry, _batch(rest[_REQUEST_ID.size :]) if code == Code.OK else ())


class BookieFrames:
    """Cuts a stream of bytes into frames, however the bytes arrive."""

    def __init__(self, max_bytes: int) -> None:
        """Args: the size of a frame that is refused, so that a damaged size does not fill the memory."""
        self._max_bytes = max_bytes
        self._held = bytearray()

    @property
    def unfinished(self) -> bool:
        """Whether a frame has begun to arrive."""
        return bool(self._held)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are complete. Raises BookieUnavailable for a frame that is too large."""
        self._held += data
        begin = 0
        while len(self._held) - begin >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._held, begin)
            if size > self._max_bytes:
                raise BookieUnavailable(f"the bookie announced a frame of {size} bytes; {self._max_bytes} are the most")
            end = begin + _SIZE.size + size
            if end > len(self._held):
                break
            yield bytes(memoryview(self._held)[begin + _SIZE.size : end])
            begin = end
        del self._held[:begin]


def _head(operation: Operation) -> int:
    return _VERSION << 24 | operation << 16


def _operation(head: int) -> int:
    return head >> 16 & 0xFF


def _batch(data: bytes) -> tuple[bytes, ...]:
    entries = []
    at = 0
    while at < len(data):
        if at + _SIZE.size > len(data):
            raise BookieUnavailable("the bookie's batch ends within the size of an entry")
        end = at + _SIZE.size + _SIZE.unpack_from(data, at)[0]
        if end > len(data):
            raise BookieUnavailable("the bookie's batch ends within an entry")
        entries.append(data[at + _SIZE.size : end])
        at = end
    return tuple(entries)
