"""What the znodes of a tree hold, as typed records and back. The jar reads and writes the same text.

The tree is drawn in `names`; the jar's side is `FileEntry`, `LedgerState` and `Names.encode`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from statestore.errors import Damaged

NO_LEDGER = -1
EMPTY = "empty"  # the znode under /L that the references of empty files hang on
SAVEPOINT = "s-"  # what the name of a savepoint's reference begins with
_FIELDS = ("w", "g", "ledger", "first", "last", "entry", "length", "crc32c", "mtime")
_CODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file: which bytes it has, and where they are.

    Attributes:
        write: names the bytes: made once, never used again. A compaction appends "~".
        generation: how often the file was renamed; (write, generation) is one file at one place for ever.
        ledger: where its bytes are; -1 for an empty file.
        first, last: its entries there, both inclusive; 0 and -1 for an empty file.
        entry_size: bytes of each entry but the last.
        length: bytes.
        crc32c: over all bytes, unsigned.
        mtime_ms: when it was closed, milliseconds since the epoch.
    """

    write: str
    generation: int
    ledger: int
    first: int
    last: int
    entry_size: int
    length: int
    crc32c: int
    mtime_ms: int

    def encode(self) -> bytes:
        """Return the text of the file's znode."""
        return (
            f"v=1 w={self.write} g={self.generation} ledger={self.ledger} first={self.first} last={self.last}"
            f" entry={self.entry_size} length={self.length} crc32c={self.crc32c:x} mtime={self.mtime_ms}"
        ).encode()

    @classmethod
    def decode(cls, path: str, data: bytes) -> FileRecord:
        """Read the text of a file's znode; `path` is for the message.

        Raises:
            Damaged: not such a text, or of a version that is not known here.
        """
        text = data.decode(errors="replace")
        fields = dict(word.partition("=")[::2] for word in text.split(" "))
        if fields.get("v") != "1":
            raise Damaged(f"The record of {path} has a version this statestore does not know: {text!r}")
        try:
            write, generation, ledger, first, last, entry, length, crc, mtime = (fields[name] for name in _FIELDS)
            place = int(generation), int(ledger), int(first), int(last), int(entry)
            return cls(write, *place, int(length), int(crc, 16), int(mtime))
        except (KeyError, ValueError) as error:
            raise Damaged(f"The record of {path} cannot be read: {text!r}") from error

    @property
    def ledger_name(self) -> str:
        """The znode under /L that the file's reference hangs on."""
        return EMPTY if self.ledger == NO_LEDGER else str(self.ledger)

    @property
    def origin(self) -> str:
        """What a compaction does not change: equal for equal bytes of one write."""
        return self.write.partition("~")[0]


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory. Attributes: mtime_ms: when it was made, milliseconds since the epoch."""

    mtime_ms: int


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A registered ledger.

    Attributes:
        id: its number in BookKeeper.
        owner: the writer process that made it.
        sealed: whether it gets no more entries.
        idle_since_ms: since when a sweeper has seen it without references; 0: it has not.
        references: the names of its children: a file's `write`, or "s-" and the name of a savepoint.
    """

    id: int
    owner: str
    sealed: bool
    idle_since_ms: int
    references: tuple[str, ...]

    @classmethod
    def decode(cls, ledger: int, data: bytes, references: tuple[str, ...]) -> LedgerRecord:
        """Read the text of a ledger's znode.

        Raises:
            Damaged: not such a text.
        """
        words = data.decode(errors="replace").split(" ")
        try:
            state, owner, since, _ = words
            if state not in ("open", "sealed"):
                raise ValueError(state)
            return cls(ledger, owner, state == "sealed", int(since), references)
        except ValueError as error:
            raise Damaged(f"The record of ledger {ledger} cannot be read: {' '.join(words)!r}") from error

    @property
    def savepoints(self) -> tuple[str, ...]:
        """The names of the savepoints that hold it."""
        return tuple(name.removeprefix(SAVEPOINT) for name in self.references if name.startswith(SAVEPOINT))


def reference_text(generation: int, path: str) -> bytes:
    """Return the text of a file's reference."""
    return f"{generation} {path}".encode()


def referenced_path(data: bytes) -> str:
    """Return the path that a reference's text names."""
    return data.decode(errors="replace").partition(" ")[2]


def encode_path(path: str) -> str:
    """Percent-encode what ZooKeeper forbids: control characters, surrogates, private use, specials, "." and ".."."""
    return "/".join(_encode_name(name) for name in path.split("/"))


def decode_name(name: str) -> str:
    """Undo the percent-encoding of one name."""
    return _CODED.sub(lambda coded: bytes.fromhex(coded[0].replace("%", "")).decode(errors="replace"), name)


def _encode_name(name: str) -> str:
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return "".join(_encode_character(character) for character in name)


def _encode_character(character: str) -> str:
    code = ord(character)
    if character == "%" or code < 0x20 or 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xF8FF or code >= 0xFFF0:
        return "".join(f"%{byte:02X}" for byte in character.encode(errors="replace"))
    return character
