"""Where the bytes of a savepoint on a topic come from and go to: a checkpoint on any file system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from statestore.errors import InvalidInput
from statestore.savepoints.manifest import METADATA, restore_order

BLOCK = 1 << 20


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
