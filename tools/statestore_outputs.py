"""The type of what each command of `statestore` prints with --json, where that is not a dataclass of the code.

`tools/output_schemas.py` makes schemas of them. Without `annotations` from `__future__`, since a TypedDict does not see
NotRequired in a text.
"""

from typing import Literal, NotRequired, TypedDict

from statestore.checkpoint.verification import Answer
from statestore.savepoints.stream import Condition, Manifest


class SnapshotsInAll(TypedDict):
    """Of a checkpoint altogether.

    Attributes:
        bytes: of all state.
        loadable: the committed batches whose state is there in each store, lowest first.
    """

    bytes: int
    loadable: list[int]


class Verdict(TypedDict):
    """The answer.

    Attributes:
        ok: whether Spark can resume for certain.
        answer: whether Spark can resume.
    """

    ok: bool
    answer: Answer


class DifferingStore(TypedDict):
    """A store with differences.

    Attributes:
        name: what Spark calls the operator.
        changes: how many there are of each kind: "only in A", "only in B", "changed".
    """

    operator: int
    name: str
    store: str
    changes: dict[str, int]


class DifferingKey(TypedDict):
    """A key whose state differs.

    Attributes:
        key: as JSON, and likewise the values.
        a: its value in A; null where it has none.
        b: its value in B; null where it has none.
    """

    operator: int
    operator_name: str
    store: str
    key: str
    change: Literal["only in A", "only in B", "changed"]
    a: str | None
    b: str | None


class Difference(TypedDict):
    """The difference of two states.

    Attributes:
        differences: how many there are.
        shown: up to --limit of them.
    """

    same: bool
    differences: int
    stores: list[DifferingStore]
    shown: list[DifferingKey]


class File(TypedDict):
    """A file or a directory.

    Attributes:
        path: without scheme and authority.
        name: the last part of the path.
        length: bytes; 0 for a directory.
        mtime_ms: of the last change, in milliseconds since 1970.
    """

    path: str
    name: str
    length: int
    mtime_ms: int
    is_directory: bool


class FileFacts(TypedDict):
    """A file or a directory. The keys from `crc32c` on are of a file on bk://.

    Those from `first_entry` on are of a file that is not empty.

    Attributes:
        length: bytes of a file.
        names: of a directory on bk://, how many names it has.
        mtime_ms: of the last change, in milliseconds since 1970.
        crc32c: over all bytes, in hexadecimal.
        write: the name of the bytes, which a rename keeps.
        generation: how often the file was renamed.
        ledger: the ledger with its bytes; null for an empty file.
        ledger_sealed: whether the ledger gets no further entries.
        ledger_files: how many files have bytes in the ledger.
        ledger_savepoints: the savepoints that hold the ledger.
        ledger_quorum: its ensemble, write quorum and ack quorum.
        ledger_length: its bytes; null while it is open.
    """

    path: str
    type: Literal["file", "directory"]
    length: NotRequired[int]
    names: NotRequired[int]
    mtime_ms: int
    crc32c: NotRequired[str]
    write: NotRequired[str]
    generation: NotRequired[int]
    ledger: NotRequired[int | None]
    first_entry: NotRequired[int]
    last_entry: NotRequired[int]
    entry_size: NotRequired[int]
    ledger_sealed: NotRequired[bool]
    ledger_files: NotRequired[int]
    ledger_savepoints: NotRequired[list[str]]
    ledger_quorum: NotRequired[str]
    ledger_length: NotRequired[int | None]
    ledger_bookies: NotRequired[list[str]]


class NamedSum(TypedDict):
    """The files of a name directly below the address."""

    files: int
    bytes: int


class Usage(TypedDict):
    """The files below an address. The keys of ledgers are of bk:// only.

    Attributes:
        ledgers: how many have bytes of these files.
        open_ledgers: how many of them are open. Only the bookies know their length.
        sealed_ledgers_hold_bytes: of the others.
        of_that_below_this_address_bytes: bytes of these files in them.
        with_copies_bytes: bytes of all copies of them.
        names: by the name directly below the address.
    """

    files: int
    bytes: int
    ledgers: NotRequired[int]
    open_ledgers: NotRequired[int]
    sealed_ledgers_hold_bytes: NotRequired[int]
    of_that_below_this_address_bytes: NotRequired[int]
    with_copies_bytes: NotRequired[int]
    names: dict[str, NamedSum]


class Sweep(TypedDict):
    """The work of a round.

    Attributes:
        freed: ledgers that were deleted.
        removed: what killed commands had left.
        left_alone: by name what could not be read or deleted, and why.
    """

    freed: list[int]
    removed: list[str]
    left_alone: dict[str, str]


class Orphans(TypedDict):
    """Things that nobody needs.

    Attributes:
        orphans: unregistered ledgers of dead processes.
        readings: savepoints that a killed command read or copied.
        left_alone: by name the ledgers that could not be read, and why.
    """

    orphans: list[int]
    readings: list[str]
    left_alone: dict[str, str]


class ListedOnTopic(TypedDict):
    """A savepoint on a topic.

    Attributes:
        condition: only one that is "ready" can be restored.
        lacks: what is missing or cannot be read, in words.
        manifest: null where it is missing or cannot be read.
    """

    name: str
    condition: Condition
    lacks: str
    manifest: Manifest | None


class CopiedFiles(TypedDict):
    """A finished copy of what is not a query's checkpoint."""

    files: int
    bytes: int
