"""Hadoop's calls, on folders of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from statestore.errors import NotFound
from statestore.hadoop.file_systems import Status


class Folders:
    """What is used of `Hadoop`. Attributes: before: called with each file to be copied; written: all that were."""

    def __init__(self, before: Callable[[Path], None] = lambda path: None) -> None:
        self.before = before
        self.written: list[str] = []

    def qualified(self, uri: str) -> str:
        return uri

    def status(self, uri: str) -> Status | None:
        path = Path(uri)
        if not path.exists():
            return None
        return Status(uri, uri, path.name, path.stat().st_size, int(path.stat().st_mtime * 1000), path.is_dir())

    def list(self, uri: str) -> list[Status]:
        found = [self.status(str(path)) for path in sorted(Path(uri).iterdir())] if Path(uri).is_dir() else []
        return [status for status in found if status is not None]

    def read(self, uri: str) -> bytes:
        try:
            return Path(uri).read_bytes()
        except FileNotFoundError as error:
            raise NotFound(uri) from error

    def write(self, uri: str, data: bytes, overwrite: bool = False) -> None:
        assert overwrite or not Path(uri).exists()
        self.replace(uri, data)

    def replace(self, uri: str, data: bytes) -> None:
        self.written.append(uri)
        Path(uri).parent.mkdir(parents=True, exist_ok=True)
        Path(uri).write_bytes(data)

    def copy(self, source: str, target: str) -> int:
        self.before(Path(source))
        data = self.read(source)
        self.write(target, data)
        return len(data)

    def delete(self, uri: str, recursive: bool = False) -> bool:
        if Path(uri).is_dir() and not Path(uri).is_symlink():  # of a link Hadoop deletes the link
            assert recursive
            shutil.rmtree(uri)
        else:
            Path(uri).unlink(missing_ok=True)
        return True
