"""Where the bytes of a savepoint on a topic come from and go to: a checkpoint on any file system."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from statestore.checkpoint import moved_metadata
from statestore.errors import InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop
from statestore.savepoints.manifest import METADATA, restore_order

BLOCK = 1 << 20
_FOLLOWS_S = 30.0
_AT_ONCE = 16 * BLOCK  # larger files go over the local disk, not through memory
_OPERATOR = re.compile(r"state/\d+/_metadata/v2/\d+")


def names_its_place(path: str) -> bool:
    """Whether a file of a checkpoint holds the checkpoint's own address: `moved_metadata` changes it."""
    return _OPERATOR.fullmatch(path) is not None


def await_visible(hadoop: Hadoop, uri: str, length: int) -> None:
    """Wait until the JVM's session sees a file that another session has just made: it may follow behind.

    All that was made before it is visible then too.

    Raises:
        Unavailable: not within half a minute.
    """
    deadline = time.monotonic() + _FOLLOWS_S
    while (status := hadoop.status(uri)) is None or status.length != length:
        if time.monotonic() > deadline:
            raise Unavailable(f"{uri} was made, but the JVM's ZooKeeper server has not seen it for {_FOLLOWS_S:.0f} s")
        time.sleep(0.1)


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
class Folder:
    """A checkpoint in a folder of this machine; `chosen` are the paths of the files to read, None: all."""

    root: Path
    chosen: Sequence[str] | None = field(default=None)

    def files(self) -> Sequence[tuple[str, int]]:
        """Return paths and lengths."""
        every = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        paths = sorted(every if self.chosen is None else self.chosen, key=restore_order)
        return [(path, (self.root / path).stat().st_size) for path in paths]

    def read(self, path: str) -> Iterator[bytes]:
        """Return a file's bytes."""
        with (self.root / path).open("rb") as file:
            while block := file.read(BLOCK):
                yield block

    def begin(self) -> None:
        """Make the folder, with an empty `metadata`."""
        try:
            self.root.mkdir(parents=True)
        except FileExistsError as error:
            raise InvalidInput(f"There is something at {self.root}: a savepoint is restored to a new place") from error
        (self.root / METADATA).touch()

    def write(self, path: str, blocks: Iterable[bytes]) -> None:
        """Write a file under another name, then give it its own."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_name(f".{file.name}.restoring")
        with scratch.open("wb") as out:
            out.writelines(blocks)
        scratch.replace(file)

    def abandon(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root)


@dataclass(frozen=True)
class HadoopFolder:
    """A checkpoint on any file system that Hadoop knows.

    Attributes:
        uri: its address.
        lengths: of the files to read, in bytes, by path.
    """

    hadoop: Hadoop
    uri: str
    lengths: Mapping[str, int] = field(default_factory=dict)

    def files(self) -> Sequence[tuple[str, int]]:
        """Return paths and lengths."""
        return sorted(self.lengths.items(), key=lambda one: restore_order(one[0]))

    def read(self, path: str) -> Iterator[bytes]:
        """Return a file's bytes."""
        if self.lengths[path] <= _AT_ONCE:
            yield self.hadoop.read(self._at(path))
            return
        with tempfile.TemporaryDirectory(prefix="statestore-") as scratch:
            self.hadoop.copy(self._at(path), (Path(scratch) / "file").as_uri())
            yield from Folder(Path(scratch)).read("file")

    def begin(self) -> None:
        """Make the folder, with an empty `metadata`."""
        if self.hadoop.status(self.uri) is not None:
            raise InvalidInput(f"There is something at {self.uri}: a savepoint is restored to a new place")
        self.hadoop.write(self._at(METADATA), b"")

    def write(self, path: str, blocks: Iterable[bytes]) -> None:
        """Write a file; what names the checkpoint's own address gets the new one."""
        left = iter(blocks)
        head = bytearray()
        for block in left:
            head += block
            if len(head) > _AT_ONCE:
                self._write_large(path, bytes(head), left)
                return
        data = bytes(head)
        if names_its_place(path):
            data = moved_metadata(data, self.uri)
        self.hadoop.write(self._at(path), data, overwrite=path == METADATA)

    def abandon(self) -> None:
        """Remove the folder."""
        self.hadoop.delete(self.uri, recursive=True)

    def _write_large(self, path: str, head: bytes, rest: Iterator[bytes]) -> None:
        with tempfile.TemporaryDirectory(prefix="statestore-") as scratch:
            file = Path(scratch) / "file"
            with file.open("wb") as out:
                out.write(head)
                out.writelines(rest)
            self.hadoop.copy(file.as_uri(), self._at(path))

    def _at(self, path: str) -> str:
        return f"{self.uri.rstrip('/')}/{path}"
