"""The two calls of a file system that the readers of a checkpoint need: a local folder's, and Hadoop's.

Paths are relative to the checkpoint; "" is the checkpoint itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from statestore.errors import InvalidInput, NotFound, Unavailable
from statestore.hadoop.file_systems import Hadoop


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One name in a directory.

    Attributes:
        length: bytes; 0 for a directory.
        mtime_ms: milliseconds since the epoch.
    """

    name: str
    length: int
    mtime_ms: int
    is_directory: bool = False


class Files(Protocol):
    """A folder with a checkpoint, wherever it is."""

    def list(self, path: str) -> Mapping[str, FileEntry]:
        """Return what is in a directory, by name. Empty where there is no directory."""
        ...

    def read(self, path: str) -> bytes:
        """Return a whole file.

        Raises:
            NotFound: there is no such file.
            InvalidInput: this user may not read it.
            Unavailable: it can't be read now.
            Damaged: the file system's own checksum says that the bytes are not those that were written.
        """
        ...


class ListedOnce:
    """A checkpoint as it was when each directory was first listed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._listed: dict[str, Mapping[str, FileEntry]] = {}

    def list(self, path: str) -> Mapping[str, FileEntry]:
        """Return what was in a directory, by name. Empty where there was no directory."""
        if path not in self._listed:
            self._listed[path] = self._files.list(path)
        return self._listed[path]

    def read(self, path: str) -> bytes:
        """Return a whole file, as it is now. Raises what `Files.read` does."""
        return self._files.read(path)


class LocalFiles:
    """A checkpoint in a folder of this machine, read without Hadoop: the bytes are not checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def list(self, path: str) -> Mapping[str, FileEntry]:
        """Return what is in a directory, without hidden names (Hadoop's checksums)."""
        folder = self.folder / path
        found = {}
        with _explained(folder):
            for file in folder.iterdir() if folder.is_dir() else ():
                if not file.name.startswith("."):
                    status = file.stat()
                    length = 0 if file.is_dir() else status.st_size
                    found[file.name] = FileEntry(file.name, length, int(status.st_mtime * 1000), file.is_dir())
        return found

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        with _explained(self.folder / path):
            return (self.folder / path).read_bytes()


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the operating system says into the errors of `Hadoop`. None of them says that the bytes are wrong."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFound(f"{path} does not exist") from error
    except PermissionError as error:
        raise InvalidInput(f"{path} can't be read: {error}") from error
    except OSError as error:
        raise Unavailable(f"{path} can't be read: {error}") from error


def join(*parts: str) -> str:
    """Join relative paths; empty parts are left out."""
    return "/".join(part for part in parts if part)


class HadoopFiles:
    """The folder at an address. Hadoop checks the bytes of bk:// and of local files as it reads them."""

    def __init__(self, hadoop: Hadoop, uri: str) -> None:
        self._hadoop = hadoop
        self._uri = uri.rstrip("/")

    def list(self, path: str) -> Mapping[str, FileEntry]:
        """Return what is in a directory, by name. Empty where there is no directory."""
        try:
            found = self._hadoop.list(self.uri(path))
        except NotFound:
            return {}
        return {one.name: FileEntry(one.name, one.length, one.mtime_ms, one.is_directory) for one in found}

    def read(self, path: str) -> bytes:
        """Return a whole file."""
        return self._hadoop.read(self.uri(path))

    def uri(self, path: str) -> str:
        """The address of a path."""
        return f"{self._uri}/{path}" if path else self._uri or "/"
