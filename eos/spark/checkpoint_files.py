"""Small files in a query's checkpoint folder, read and written by Spark's own CheckpointFileManager.

Whichever file system Spark can keep a checkpoint on, the sink can keep its notes there: Spark goes by Hadoop's
FileContext where the file system has an AbstractFileSystem, by its FileSystem where it has none, and by another
class where spark.sql.streaming.checkpointFileManagerClass names one.

Nothing relies on a point that Hadoop's contract leaves open. A file that is missing may be found out only while it is
read. A rename may leave an older file where it was: Spark overwrites "if possible", and says nothing where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError

from eos.errors import NotCommitted

Jvm = Any  # py4j objects have no types

_OVERWRITES = "FileContextBasedCheckpointFileManager"  # by Rename.OVERWRITE, which Hadoop's contract defines
_NEXT = ".next"


@dataclass(frozen=True)
class CheckpointFiles:
    """The files of one checkpoint folder.

    Attributes:
        manager: Spark's CheckpointFileManager of the query.
        root: the folder, a Hadoop path.
        path_class: Hadoop's Path, looked up once: each dot of a Java class's name is a call into the JVM.
    """

    manager: Jvm
    root: Jvm
    path_class: Jvm

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None where there is none."""
        text = self._read(name)
        return self._read(f"{name}{_NEXT}") if text is None else text

    def exists(self, name: str) -> bool:
        """Tell whether there is a file, or a folder, of this name."""
        return bool(self.manager.exists(self._path(name)))

    def write(self, name: str, text: str) -> None:
        """Write a file whole; a reader sees the old text or the new, also after a crash. Raises NotCommitted."""
        self._write(name, text)
        if str(self.manager.getClass().getSimpleName()) == _OVERWRITES or self._read(name) == text:
            return
        after = f"{name}{_NEXT}"
        self._delete(after)
        self._write(after, text)  # found by `read` while the file itself is not there
        self._delete(name)
        self._write(name, text)
        if self._read(name) != text:
            raise NotCommitted(
                f"{name} was written to the checkpoint {self.root.toString()}, and the file system shows other text in "
                "it. Nothing of the batch is written. Start the query again; if it happens each time, keep the "
                "checkpoint on another file system."
            )
        self._delete(after)

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""
        self._delete(f"{name}{_NEXT}")  # first, since `read` would find it in the place of the file
        self._delete(name)

    def _read(self, name: str, *, again: bool = True) -> str | None:
        try:
            return self._text(name)
        except Py4JJavaError:
            # The exception does not tell. A file system may have one of its own for a missing file, and Java's
            # FileNotFoundException also stands for a local file that may not be read, or for too many open files.
            if not self.exists(name):
                return None
            if not again:
                raise
        # It may have come meanwhile: Spark notes a batch while the sink waits for that note.
        return self._read(name, again=False)

    def _text(self, name: str) -> str:
        stream = self.manager.open(self._path(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _write(self, name: str, text: str) -> None:
        stream = self.manager.createAtomic(self._path(name), True)
        try:
            stream.write(text.encode())
        except BaseException:
            stream.cancel()
            raise
        stream.close()

    def _delete(self, name: str) -> None:
        self.manager.delete(self._path(name))

    def _path(self, name: str) -> Jvm:
        return self.path_class(self.root, name)
