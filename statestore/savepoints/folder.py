"""Where the bytes of a savepoint on a topic come from and go to: a checkpoint on any file system."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from statestore.checkpoint.cut import write_order
from statestore.checkpoint.place import NewCheckpoint
from statestore.errors import CutFailed

BLOCK = 1 << 20
_AT_ONCE = 16 * BLOCK  # larger files go over the local disk, not through memory


class Source(Protocol):
    """A checkpoint that does not change while it is read."""

    def files(self) -> Sequence[tuple[str, int]]:
        """Return paths below the checkpoint and lengths in bytes, in the order in which they are to be restored."""
        ...

    def read(self, path: str) -> Iterator[bytes]:
        """Return the bytes of a file, in blocks."""
        ...


class Target(Protocol):
    """A place where a checkpoint is to be."""

    def begin(self) -> None:
        """Take the place: with an empty `metadata`, so that Spark starts no query on what is half restored.

        Raises:
            InvalidInput: there is something.
        """
        ...

    def write(self, path: str, blocks: Iterable[bytes]) -> None:
        """Write a file, and the directories above it; `metadata` is replaced, and comes last."""
        ...

    def abandon(self) -> None:
        """Remove what was begun."""
        ...


@dataclass(frozen=True)
class HadoopFolder:
    """A checkpoint on any file system that Hadoop knows.

    Attributes:
        lengths: of the files to read, in bytes, by path.
        written_ms: of those that must not have been replaced since their cut, when each was written: as of `Cut`.
    """

    place: NewCheckpoint
    lengths: Mapping[str, int] = field(default_factory=dict)
    written_ms: Mapping[str, int] = field(default_factory=dict)

    def files(self) -> Sequence[tuple[str, int]]:
        """Return paths and lengths."""
        return sorted(self.lengths.items(), key=lambda one: write_order(one[0]))

    def read(self, path: str) -> Iterator[bytes]:
        """Return a file's bytes.

        Raises:
            CutFailed: it was replaced since the cut was taken.
        """
        if self.lengths[path] <= _AT_ONCE:
            data = self.place.hadoop.read(self.place.at(path))
            self._refuse_replaced(path)
            yield data
            return
        with tempfile.TemporaryDirectory(prefix="statestore-") as scratch:
            local = Path(scratch) / "file"
            self.place.hadoop.copy(self.place.at(path), local.as_uri())
            self._refuse_replaced(path)
            with local.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block

    def _refuse_replaced(self, path: str) -> None:
        """Look after reading: one that is as old as it was in the cut was not replaced before that."""
        if path not in self.written_ms:
            return
        status = self.place.hadoop.status(self.place.at(path))
        if status is None or not _same_time(status.mtime_ms, self.written_ms[path]):
            raise CutFailed(f"{path} was replaced while the savepoint was being made")

    def begin(self) -> None:
        """Take the place."""
        self.place.begin()

    def write(self, path: str, blocks: Iterable[bytes]) -> None:
        """Write a file; what names the checkpoint's own address gets the new one."""
        left = iter(blocks)
        head = bytearray()
        for block in left:
            head += block
            if len(head) > _AT_ONCE:
                self._write_large(path, bytes(head), left)
                return
        self.place.write(path, bytes(head))

    def abandon(self) -> None:
        """Remove the folder."""
        self.place.abandon()

    def _write_large(self, path: str, head: bytes, rest: Iterator[bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="statestore-") as scratch:
            file = Path(scratch) / "file"
            with file.open("wb") as out:
                out.write(head)
                out.writelines(rest)
            self.place.copy(file.as_uri(), path)


def _same_time(one_ms: int, other_ms: int) -> bool:
    """Whether two times of a file may be the same: a store may list it to the millisecond, and say alone the second.

    So does one whose answers have the time in a header of HTTP: `ListObjectsV2` and `HeadObject` of S3's protocol.
    """
    whole = one_ms % 1_000 == 0 or other_ms % 1_000 == 0
    return one_ms // 1_000 == other_ms // 1_000 if whole else one_ms == other_ms
