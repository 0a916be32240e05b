"""A place where a new checkpoint is being written: commits late, metadata last.

Until it is whole its `metadata` is empty, and Spark starts no query on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from statestore.checkpoint.cut import names_its_place
from statestore.checkpoint.logs import METADATA
from statestore.checkpoint.operators import moved_metadata
from statestore.errors import InvalidInput
from statestore.hadoop.file_systems import Hadoop


@dataclass(frozen=True)
class Place:
    """A folder on any file system that Hadoop knows.

    Attributes:
        uri: its address, qualified: some files of a checkpoint name it.
    """

    hadoop: Hadoop
    uri: str

    def begin(self) -> None:
        """Take the place: with an empty `metadata`.

        Raises:
            InvalidInput: there is something.
        """
        if self.hadoop.status(self.uri) is not None:
            raise InvalidInput(f"There is something at {self.uri}: a checkpoint is written to a new place")
        self.hadoop.write(self.at(METADATA), b"")

    def write(self, path: str, data: bytes) -> int:
        """Write a file, with this place's address where it names the checkpoint's own; return its length."""
        if names_its_place(path):
            data = moved_metadata(data, self.uri)
        self.hadoop.write(self.at(path), data, overwrite=path == METADATA)
        return len(data)

    def copy(self, source: str, path: str) -> int:
        """Copy a file from an address, and return its length."""
        if names_its_place(path):
            return self.write(path, self.hadoop.read(source))
        return self.hadoop.copy(source, self.at(path))

    def abandon(self) -> None:
        """Remove what was begun."""
        self.hadoop.delete(self.uri, recursive=True)

    def at(self, path: str) -> str:
        """The address of a path."""
        return f"{self.uri.rstrip('/')}/{path}"
