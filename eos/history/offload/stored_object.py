"""One object of secondary storage, read by ranges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from eos.history.offload import OffloadDamaged, OffloadMissing, OffloadUnavailable

CHUNK_BYTES = 4 * 1024 * 1024
"""How many bytes one request asks for, unless an entry is larger. Each costs a round trip, and so much memory."""


class StoredObject:
    """An object that is open for reading, as a context manager.

    Attributes:
        path: its bucket and key, or its path.
        size: bytes.
    """

    def __init__(self, files: Any, path: str) -> None:
        """Open it. Args: a `pyarrow.fs.FileSystem`; the path there.

        Raises OffloadMissing, and OffloadUnavailable.
        """
        self.path = path
        with storage_errors(path):
            self._file = files.open_input_file(path)
            self.size = int(self._file.size())

    def read(self, offset: int, count: int) -> bytes:
        """Return `count` bytes from a place on. Raises OffloadDamaged where it ends before, OffloadUnavailable."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise OffloadDamaged(f"{self.path} ends after {self.size} bytes, before byte {offset + count}")
        with storage_errors(self.path):
            found: bytes = self._file.read_at(count, offset)
        if len(found) != count:
            raise OffloadUnavailable(f"{self.path} gave {len(found)} of {count} bytes from byte {offset} on")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


class Window:
    """The bytes of a part of an object, from its beginning on. Used bytes are freed.

    Attributes:
        at: the place in the object that comes next.
        end: where the part ends.
    """

    def __init__(self, source: StoredObject, begin: int, end: int, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Args: the object; where the part begins and ends; bytes of a request."""
        self.at, self.end = begin, end
        self._source, self._chunk_bytes = source, chunk_bytes
        self._held, self._begin = b"", begin

    def peek(self, count: int) -> memoryview:
        """Return the next `count` bytes, or those up to the end of the part, without using them."""
        here = self.at - self._begin
        missing = min(count, self.end - self.at) - (len(self._held) - here)
        if missing > 0:
            read_to = self._begin + len(self._held)
            more = self._source.read(read_to, min(max(missing, self._chunk_bytes), self.end - read_to))
            self._held, self._begin, here = self._held[here:] + more, self.at, 0
        return memoryview(self._held)[here : here + min(count, self.end - self.at)]

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes. Raises OffloadDamaged where the part ends before."""
        found = self.peek(count)
        if len(found) < count:
            raise OffloadDamaged(f"{self._source.path} has no {count} bytes between byte {self.at} and byte {self.end}")
        self.at += count
        return found


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Turn what a file system raises into errors of this package that name the object."""
    try:
        yield
    except FileNotFoundError as error:
        raise OffloadMissing(f"{path} does not exist in secondary storage") from error
    except (OSError, ValueError, ImportError) as error:  # ArrowInvalid is a ValueError; pyarrow may lack a file system
        raise OffloadUnavailable(f"{path} can't be read from secondary storage ({error})") from error
