"""A checkpoint on any file system that Hadoop knows, as `Files`."""

from __future__ import annotations

from collections.abc import Mapping

from statestore.checkpoint.files import FileEntry
from statestore.errors import NotFound
from statestore.hadoop.file_systems import Hadoop


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
