"""A savepoint as messages: how files become chunks, what the last message says, and how both are checked.

    data      0 … d-1      the bytes of all files, one after the other, cut into chunks
    files     d … d+f-1    the list of files, in the order of their bytes: path, length, CRC32C; packed, cut into chunks
    manifest  d+f          what it is, how many messages, bytes and files there are, and their CRC32C

Each message says in its properties which savepoint it belongs to (an id that is new for each writing), its kind, its
number and its CRC32C; so several savepoints can lie on one topic, and an incomplete one is found out before a byte of
it is used. A message that cannot be read is held against its own savepoint, never against the others.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_type_hints

import google_crc32c

from eos.json_reader import read_json
from statestore.errors import Damaged, UnknownVersion, Unreadable
from statestore.json_fields import from_json, key_of, to_json

VERSION: Final = 1
CHUNK: Final = 1 << 20
"""Bytes of a message, at most."""

SAVEPOINT: Final = "eos-savepoint"
"""The property by which a message belongs to a savepoint."""

Kind = Literal["data", "files", "manifest"]
Condition = Literal["ready", "incomplete", "damaged", "unknown version"]
_KINDS: Final[Mapping[str, Kind]] = {"data": "data", "files": "files", "manifest": "manifest"}


@dataclass(frozen=True, slots=True)
class SavepointContent:
    """A file of a savepoint.

    Attributes:
        path: below the checkpoint.
        length: bytes.
        crc32c: over them.
    """

    path: str
    length: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a savepoint on a topic.

    Attributes:
        id: of this writing of it.
        name: unique among those on the topic; where it isn't, the newest counts.
        source, batch_id, query, created_ms: as of `statestore.savepoints.savepoint.Savepoint`.
        files: how many.
        size: bytes of all files.
        crc32c: over all their bytes, in order.
        data, lists: messages with bytes, and with the list of files.
    """

    id: str
    name: str
    source: str
    batch_id: int
    query: str
    created_ms: int
    files: int
    size: int
    crc32c: int
    data: int
    lists: int

    @property
    def messages(self) -> int:
        """How many messages it takes, itself included."""
        return self.data + self.lists + 1

    def encode(self) -> bytes:
        """Return it as JSON."""
        return json.dumps({"v": VERSION, **to_json(self)}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Read it.

        Raises:
            Damaged: not such a text.
            UnknownVersion: a newer statestore wrote it.
        """
        try:
            fields: dict[str, Any] = read_json(data)
            version = fields.pop("v")
            if type(version) is int and version > VERSION:
                raise UnknownVersion(
                    f"its manifest has the version {version}, and this statestore reads version {VERSION}. Use a newer "
                    "statestore"
                )
            made = cls(**from_json(fields))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"its manifest cannot be read: {data[:200]!r}") from error
        kinds = get_type_hints(cls)
        wrong = [key_of(name) for name, kind in kinds.items() if type(getattr(made, name)) is not kind]
        wrong += [name for name in ("files", "size", "data", "lists") if name not in wrong and getattr(made, name) < 0]
        if version != VERSION or wrong:
            raise Damaged(f"its manifest cannot be read, {', '.join(wrong) or 'v'} is wrong: {data[:200]!r}")
        return made


@dataclass(frozen=True, slots=True)
class FilePart:
    """One message.

    Attributes:
        savepoint: id of the savepoint that it belongs to.
        name: that savepoint's.
        number: its place, from 0.
    """

    savepoint: str
    name: str
    kind: Kind
    number: int
    data: bytes

    def properties(self) -> dict[str, str]:
        """Return what goes into the message beside the data."""
        return {
            SAVEPOINT: self.savepoint,
            "name": self.name,
            "kind": self.kind,
            "number": str(self.number),
            "crc32c": f"{google_crc32c.value(self.data):08x}",
        }

    @classmethod
    def of(cls, properties: Mapping[str, str], data: bytes | None) -> FilePart:
        """Read a message that has the property `SAVEPOINT`.

        Raises:
            Damaged: its bytes or properties are not those that were written.
        """
        savepoint = properties[SAVEPOINT]
        try:
            name, number = properties["name"], int(properties["number"])
            kind, crc32c = _KINDS[properties["kind"]], int(properties["crc32c"], 16)
        except (KeyError, ValueError) as error:
            raise Damaged(
                f"message {properties.get('number', 'without a number')} has properties that this library did not "
                "write: "
                f"{ {key: value for key, value in properties.items() if key != SAVEPOINT} }"
            ) from error
        if google_crc32c.value(data or b"") != crc32c:
            raise Damaged(f"message {number} does not have its CRC32C")
        return cls(savepoint, name, kind, number, data or b"")


@dataclass(slots=True)
class Sum:
    """Counts bytes on their way.

    Attributes:
        crc32c: over all bytes so far.
        size: their number.
    """

    crc32c: int = 0
    size: int = 0

    def over(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Give the same blocks, counted."""
        for block in blocks:
            self.crc32c = google_crc32c.extend(self.crc32c, block)
            self.size += len(block)
            yield block


@dataclass(slots=True)
class Cutter:
    """Takes blocks of bytes and gives chunks of one size.

    Attributes:
        chunk: bytes of each but the last.
        sum: over all bytes so far.
    """

    chunk: int = CHUNK
    sum: Sum = field(default_factory=Sum)
    _rest: bytearray = field(default_factory=bytearray)

    def cut(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Take blocks; give the chunks that are full."""
        for block in self.sum.over(blocks):
            self._rest += block
            while len(self._rest) >= self.chunk:
                yield bytes(self._rest[: self.chunk])
                del self._rest[: self.chunk]

    def rest(self) -> Iterator[bytes]:
        """Give the last chunk, if there is one."""
        if self._rest:
            yield bytes(self._rest)
            self._rest.clear()


def pack_list(contents: Iterable[SavepointContent], chunk: int = CHUNK) -> list[bytes]:
    """Write the list of files, as chunks."""
    lines = "\n".join(json.dumps([one.path, one.length, one.crc32c]) for one in contents)
    packed = zlib.compress(lines.encode())
    return [packed[at : at + chunk] for at in range(0, len(packed), chunk)]


def unpack_list(manifest: Manifest, chunks: Iterable[bytes]) -> list[SavepointContent]:
    """Read the list of files.

    Raises:
        Damaged: it is not the one that was written.
    """
    try:
        lines = zlib.decompress(b"".join(chunks)).decode().splitlines()
        contents = [_listed(read_json(line)) for line in lines]
    except (zlib.error, ValueError) as error:
        raise Damaged(f"The list of files of savepoint {manifest.name} cannot be read: {error}") from error
    for one in contents:
        # A writer of the topic must not be able to write outside the target.
        if one.path.startswith("/") or {"", ".", ".."} & set(one.path.split("/")):
            raise Damaged(f"Savepoint {manifest.name} names a file outside its checkpoint: {one.path!r}")
    if len(contents) != manifest.files or sum(one.length for one in contents) != manifest.size:
        raise Damaged(f"The list of files of savepoint {manifest.name} is not the one that its manifest counts")
    return contents


def _listed(line: object) -> SavepointContent:
    """Return the file that a line of the list names. Raises ValueError for what is not such a line."""
    match line:
        case [str(path), int(length), int(crc32c)] if length >= 0 and not isinstance(length, bool):
            return SavepointContent(path, length, crc32c)
    raise ValueError(f"{str(line)[:200]!r} is not a path, a length and a CRC32C")


def files_of(
    manifest: Manifest, contents: Iterable[SavepointContent], data: Iterator[bytes]
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Give each file with its blocks, from the chunks in order. Take all blocks of a file before the next file.

    Raises:
        Damaged: a file, or the whole, does not have its length or its CRC32C.
    """
    whole = Sum()
    left = memoryview(b"")

    def blocks(content: SavepointContent) -> Iterator[bytes]:
        nonlocal left
        missing = content.length
        while missing:
            if not left:
                chunk = next(data, b"")
                left = memoryview(chunk)
            if not left:
                raise Damaged(f"{content.path} of savepoint {manifest.name} ends {missing} bytes too early")
            block, left = bytes(left[:missing]), left[missing:]
            missing -= len(block)
            yield block

    def checked(content: SavepointContent) -> Iterator[bytes]:
        own = Sum()
        yield from own.over(whole.over(blocks(content)))
        if own.crc32c != content.crc32c:
            raise Damaged(f"{content.path} of savepoint {manifest.name} does not have its CRC32C")

    for content in contents:
        yield content.path, checked(content)
    beyond = next(data, b"")
    if left or beyond or whole.crc32c != manifest.crc32c:
        raise Damaged(f"The bytes of savepoint {manifest.name} are not those that its manifest counts")


@dataclass(slots=True)
class Seen:
    """The part seen so far of one savepoint, in the order of the topic.

    A message may be there twice (geo-replication may repeat); each is used once. Two that have one number and differ
    can't both have the CRC32C that the whole must have. One that can't be read is not used: where the same message
    follows once more and whole, nothing is lacking.

    Attributes:
        name: the savepoint's, or its id until a message has its name.
        next: the number that must come next.
        gap: the first number that is missing, or None.
        manifest: once it has come.
        lists: chunks of the list of files.
        unread: why messages could not be read, the first of them first.
    """

    name: str
    next: int = 0
    gap: int | None = None
    manifest: Manifest | None = None
    lists: list[bytes] = field(default_factory=list)
    unread: list[Unreadable] = field(default_factory=list)

    def look(self, properties: Mapping[str, str], data: bytes | None) -> FilePart | None:
        """Take the next message as the broker gives it; None for one that was there before, or can't be read."""
        try:
            part = FilePart.of(properties, data)
            self.name = part.name
            return part if self.take(part) else None
        except Unreadable as error:
            self.unread.append(error)
            if not self.next:
                self.name = properties.get("name", self.name)
            return None

    def take(self, part: FilePart) -> bool:
        """Take the next message; False for one that was there before.

        Raises:
            Unreadable: it is a manifest that can't be read.
        """
        if part.number < self.next:
            return False
        if part.kind == "manifest":
            self.manifest = Manifest.decode(part.data)
        elif part.kind == "files":
            self.lists.append(part.data)
        if part.number > self.next and self.gap is None:
            self.gap = self.next
        self.next = part.number + 1
        return True

    @property
    def condition(self) -> Condition:
        """Whether it can be restored, and if not, of what kind the reason is."""
        if not self._missing():
            return "ready"
        newer = any(isinstance(error, UnknownVersion) for error in self.unread)
        return "unknown version" if newer else "damaged" if self.unread else "incomplete"

    def lacks(self) -> str:
        """Say what is missing of it, or can't be read; "" when it is whole."""
        missing = self._missing()
        newer = [str(error) for error in self.unread if isinstance(error, UnknownVersion)]
        reasons = newer or [str(error) for error in self.unread]
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        return f"{reasons[0]}{more}" if missing and reasons else missing

    def _missing(self) -> str:
        if self.manifest is None:
            return f"its manifest, the last of its messages, is missing, and {self.next} messages came before"
        if self.gap is not None or self.next != self.manifest.messages:
            missing = self.next if self.gap is None else self.gap
            return f"of its {self.manifest.messages} messages number {missing} is missing"
        return ""
