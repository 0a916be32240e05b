"""A place where a new checkpoint is being written: commits late, metadata last.

Until it is whole its `metadata` is empty, and Spark starts no query on it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from statestore.checkpoint.cut import names_its_place
from statestore.checkpoint.files import HadoopFiles
from statestore.checkpoint.logs import METADATA, is_begun, is_checkpoint, read_query_id
from statestore.checkpoint.needs import committed
from statestore.checkpoint.operators import moved_metadata
from statestore.errors import InvalidInput, NotFound, StateStoreError
from statestore.hadoop.file_systems import Hadoop, Status

HISTORY = "history"
"""The folder of a place that was begun where bootstrapping reads the history, by a checkpoint that no query has."""


def check_free(hadoop: Hadoop, uri: str, source: str | None = None) -> None:
    """Refuse a place for a new checkpoint where something is, and say what it is.

    Args:
        source: the checkpoint that the new one is made of.

    Raises:
        InvalidInput: there is something, or the place is inside the source or another checkpoint.
    """
    if source is not None and uri.startswith(f"{hadoop.qualified(source).rstrip('/')}/"):
        raise InvalidInput(f"{uri} is inside the checkpoint {source}. Name a place beside it")
    if (outer := _checkpoint_above(hadoop, uri)) is not None:
        raise InvalidInput(
            f"{uri} is inside the checkpoint {outer}. A copy of that one leaves it out, and deleting that one deletes "
            "it unseen. Name a place beside it"
        )
    status = hadoop.status(uri)
    if status is None:
        return
    files = HadoopFiles(hadoop, uri)
    names = files.list("") if status.is_directory else {}
    if METADATA in names and is_begun(files):
        raise InvalidInput(
            f"A checkpoint was begun at {uri} and is not whole. Its {METADATA} is empty, and Spark starts no query on "
            f"it. If no copy, restore, rescaling or bootstrap is at work there, one was killed. Delete it (statestore "
            f"rm -r {uri}), and do the same again"
        )
    if is_checkpoint(names):
        try:
            known = f" (query {read_query_id(files)}, batch {max(committed(files), default=-1)})"
        except StateStoreError:
            known = ""
        raise InvalidInput(
            f"There is a checkpoint at {uri} already{known}. Start the query on it if it is the one that you want, "
            "else name a new place"
        )
    what = "something" if names or not status.is_directory else "an empty folder"
    raise InvalidInput(f"There is {what} at {uri}: a checkpoint is written to a new place")


def _checkpoint_above(hadoop: Hadoop, uri: str) -> str | None:
    """The checkpoint that an address lies in, as far as this user may look. A root is none."""
    above = uri.rstrip("/").rpartition("/")[0]
    while above.count("/") > (2 if "://" in above else 0):
        with contextlib.suppress(StateStoreError):
            if hadoop.status(f"{above}/{METADATA}") is not None and (
                is_begun(files := HadoopFiles(hadoop, above)) or is_checkpoint(files.list(""))
            ):
                return above
        above = above.rpartition("/")[0]
    return None


def find_checkpoints(hadoop: Hadoop, uri: str, *, through_links: bool = True) -> Iterator[HadoopFiles]:
    """Yield each checkpoint at a folder's address or below it, whole or begun. Not a cut, as `Hadoop.walk`.

    The one by which bootstrapping reads the history is part of the place that it has begun. No query has it.

    Args:
        through_links: also those behind symbolic links of this machine, which a copy follows and a deletion does not.

    Raises:
        InvalidInput: a link leads to a folder that it lies in.
    """
    top = hadoop.status(uri)
    if top is not None and top.is_directory and (through_links or not _is_link(top)):
        yield from _below(hadoop, uri, through_links, (_real(top),))


def _below(hadoop: Hadoop, uri: str, through_links: bool, above: tuple[str, ...]) -> Iterator[HadoopFiles]:
    found: list[Status] = []
    with contextlib.suppress(NotFound):  # deleted meanwhile
        found = hadoop.list(uri)
    names, files = {one.name for one in found}, HadoopFiles(hadoop, uri)
    if is_checkpoint(names):
        yield files
        return
    begun = METADATA in names and is_begun(files)
    for one in found:
        if not one.is_directory or (_is_link(one) and not through_links) or (begun and one.name == HISTORY):
            continue
        if _is_link(one) and _real(one) in above:
            raise InvalidInput(f"{one.uri} is a symbolic link to a folder that it lies in. Delete the link")
        yield from _below(hadoop, one.uri, through_links, (*above, _real(one)))


def _is_link(status: Status) -> bool:
    """Whether it is a symbolic link. Hadoop shows its target in place of it. Only folders of a machine have links."""
    return status.uri.startswith(("file:", "/")) and os.path.islink(status.path)


def _real(status: Status) -> str:
    return os.path.realpath(status.path) if status.uri.startswith(("file:", "/")) else status.uri


def remove(hadoop: Hadoop, uri: str) -> None:
    """Remove a checkpoint, its `metadata` last: without it, Spark would go on from the logs of one half removed.

    Of a symbolic link only the link goes. Hadoop deletes the links below in the same way.
    """
    status = hadoop.status(uri)
    if status is None:
        return
    if not _is_link(status):
        with contextlib.suppress(NotFound):
            for one in hadoop.list(uri):
                if one.name != METADATA:
                    hadoop.delete(one.uri, recursive=True)
    hadoop.delete(uri, recursive=True)


@dataclass(frozen=True)
class NewCheckpoint:
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
            StateStoreError: of another kind: nothing can be written there.
        """
        check_free(self.hadoop, self.uri)
        try:
            self.hadoop.write(self.at(METADATA), b"")
        except StateStoreError as error:
            raise type(error)(
                f"No checkpoint can be begun at {self.uri}: may this user write there, is all above it a folder, and "
                f"is there room? {error}"
            ) from error

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
        remove(self.hadoop, self.uri)

    def at(self, path: str) -> str:
        """The address of a path."""
        return f"{self.uri.rstrip('/')}/{path}"
