"""What a copy of a file leaves that fails: nothing of its own, and all that is another's. Hadoop is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from statestore import InvalidInput, Unavailable
from statestore.hadoop.file_systems import Hadoop

SOURCE, TARGET = "file:///in", "bk://zk:2181/out"


def java(name: str) -> Py4JJavaError:
    said: Any = SimpleNamespace(
        _target_id="o1", _gateway_client=None, getClass=lambda: SimpleNamespace(getName=lambda: name), getMessage=str
    )
    return Py4JJavaError("An error occurred", said)


EXISTS, BROKEN = "org.apache.hadoop.fs.FileAlreadyExistsException", "java.io.IOException"


class FileSystems:
    """A file system with the file "in". Attributes: at: what lies where.

    Files are visible when they are closed (`atomic`), as on bk://, or when they are created. Another process makes the
    target while `anothers` happens, and `fails` fails.
    """

    def __init__(self, atomic: bool, anothers: str, fails: str) -> None:
        self.atomic, self.anothers, self.fails = atomic, anothers, fails
        self.at = {SOURCE: "bytes"}
        self.org = self.apache = self.hadoop = self.fs = self.FileSystem = self.io = self.IOUtils = self
        self.aborted = False

    def Path(self, uri: str) -> Any:  # noqa: N802
        where = SimpleNamespace(getScheme=lambda: uri.partition(":")[0], getAuthority=lambda: "")
        return SimpleNamespace(toUri=lambda: where, toString=lambda: uri)

    def get(self, *_: object) -> FileSystems:
        return self

    def _meanwhile(self, call: str) -> None:
        if call == self.anothers:
            self.at[TARGET] = "another's"
        if call == self.fails:
            raise java(BROKEN)

    def open(self, path: Any) -> Any:
        return SimpleNamespace(close=lambda: None)

    def create(self, path: Any, overwrite: bool) -> FileSystems:
        self._meanwhile("create")
        if TARGET in self.at:
            raise java(EXISTS)
        if not self.atomic:
            self.at[TARGET] = ""
        return self

    def copyBytes(self, given: Any, made: FileSystems, conf: Any, close: bool) -> None:  # noqa: N802
        assert not close
        self._meanwhile("copyBytes")

    def close(self) -> None:
        self._meanwhile("close")
        if self.atomic and not self.aborted and TARGET in self.at:
            raise java(EXISTS)
        if not self.aborted:
            self.at[TARGET] = self.at[SOURCE]

    def abort(self) -> None:
        self.aborted = True

    def hasPathCapability(self, path: Any, capability: str) -> bool:  # noqa: N802
        return self.atomic and capability == "fs.capability.outputstream.abortable"

    def delete(self, path: Any, recursive: bool) -> None:
        self.at.pop(path.toString(), None)

    def getFileStatus(self, path: Any) -> Any:  # noqa: N802
        uri = path.toString()
        if uri not in self.at:
            raise java("java.io.FileNotFoundException")
        return SimpleNamespace(
            getPath=lambda: SimpleNamespace(
                toString=lambda: uri, getName=lambda: "in", toUri=lambda: SimpleNamespace(getPath=lambda: uri)
            ),
            getLen=lambda: 5,
            getModificationTime=lambda: 0,
            isDirectory=lambda: False,
        )


@pytest.mark.parametrize(
    ("atomic", "anothers", "fails", "error", "left"),
    [
        (True, "", "", None, "bytes"),
        (True, "", "copyBytes", Unavailable, None),
        (True, "", "close", Unavailable, None),
        (True, "create", "", InvalidInput, "another's"),
        (True, "copyBytes", "", InvalidInput, "another's"),
        (True, "copyBytes", "copyBytes", Unavailable, "another's"),
        (True, "close", "close", Unavailable, "another's"),
        (False, "", "", None, "bytes"),
        (False, "", "copyBytes", Unavailable, None),
        (False, "", "close", Unavailable, None),
        (False, "create", "", InvalidInput, "another's"),
    ],
)
def test_a_copy_that_fails_leaves_nothing_and_what_another_has_made(
    atomic: bool, anothers: str, fails: str, error: type[Exception] | None, left: str | None
) -> None:
    played: Any = FileSystems(atomic, anothers, fails)
    hadoop = Hadoop(played, None, own_instances=False, for_tools=False)
    if error is None:
        assert hadoop.copy(SOURCE, TARGET) == 5
    else:
        with pytest.raises(error):
            hadoop.copy(SOURCE, TARGET)
    assert played.at.get(TARGET) == left
