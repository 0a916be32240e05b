"""A checkpoint in a folder of this machine, as the source and the target of savepoints on topics."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from statestore.checkpoint.cut import write_order
from statestore.checkpoint.logs import METADATA
from statestore.errors import InvalidInput
from statestore.savepoints.folder import BLOCK


@dataclass(frozen=True)
class LocalFolder:
    root: Path

    def files(self) -> Sequence[tuple[str, int]]:
        every = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        return [(path, (self.root / path).stat().st_size) for path in sorted(every, key=write_order)]

    def read(self, path: str) -> Iterator[bytes]:
        with (self.root / path).open("rb") as file:
            while block := file.read(BLOCK):
                yield block

    def begin(self) -> None:
        try:
            self.root.mkdir(parents=True)
        except FileExistsError as error:
            raise InvalidInput(f"There is something at {self.root}. A savepoint is restored to a new place") from error
        (self.root / METADATA).touch()

    def write(self, path: str, blocks: Iterable[bytes]) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            out.writelines(blocks)

    def abandon(self) -> None:
        shutil.rmtree(self.root)
