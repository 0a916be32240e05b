"""Access to Hadoop where there is no Spark, no Java, or a session without `bk://`: what is said.

And what a copy of a file leaves that fails: nothing of its own, and all that is another's.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from statestore import InvalidInput, Unavailable
from statestore.hadoop import file_systems as hadoop
from statestore.hadoop import own_jvm
from statestore.hadoop.file_systems import Hadoop
from tests.unit.statestore.hadoop.test_session import Jvm


class Session:
    """A Spark session whose JVM has not loaded the jar."""

    def __init__(self) -> None:
        self.sparkContext = self
        self._jvm = Jvm(has_jar=False)


def test_a_session_without_the_file_system_is_refused() -> None:
    session: Any = Session()
    with pytest.raises(InvalidInput, match="configure_spark"):
        Hadoop.of(session)


def test_a_session_that_was_stopped_is_refused() -> None:
    session: Any = Session()
    session._jvm, session._jsc = Jvm(has_jar=True), None
    with pytest.raises(InvalidInput, match=r"was stopped\. Give one that runs, or none"):
        Hadoop.of(session)


def test_a_session_of_connect_is_refused() -> None:
    from pyspark.errors import PySparkAttributeError

    class OfConnect:
        @property
        def sparkContext(self) -> Any:  # noqa: N802
            raise PySparkAttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] Attribute `sparkContext` is not supported")

    for session in (OfConnect(), "bk://zk:2181/q"):
        with pytest.raises(InvalidInput, match=r"not a session of Spark in classic mode \(not Spark Connect\)"):
            Hadoop.of(session)  # type: ignore[arg-type]


def test_without_spark_it_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(Unavailable, match="pip install"):
        Hadoop.of()


@pytest.mark.jvm  # needs the jar
def test_without_java_it_says_which_one_it_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(own_jvm, "_own", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)  # another test's
    with pytest.raises(Unavailable, match=r"/nowhere/bin/java.* JAVA_HOME names it"):
        Hadoop.of()


def test_a_wrong_option_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadoop, "jvm_of_our_own", lambda: pytest.fail("a JVM was started"))
    with pytest.raises(InvalidInput, match="Did you mean"):
        Hadoop.of(options={"fs.bk.rot": "/x"})


class Options(dict[str, str]):
    """Hadoop's Configuration."""

    def getPropsWithPrefix(self, prefix: str) -> dict[str, str]:  # noqa: N802
        return {name.removeprefix(prefix): value for name, value in self.items()}


class Connecting:
    """A JVM with the jar, whose ZooKeeper takes its time."""

    def __init__(self, takes_s: float) -> None:
        self._takes_s = takes_s
        self.asked: list[tuple[str, int]] = []
        self.made = 0
        self.org = self.apache = self.hadoop = self.fs = self.FileSystem = self.eos = self.bk = self.Maintenance = self

    def Path(self, uri: str) -> Any:  # noqa: N802
        where = SimpleNamespace(getScheme=lambda: uri.partition(":")[0], getAuthority=lambda: uri.split("/")[2])
        return SimpleNamespace(toUri=lambda: where)

    def get(self, where: Any, conf: Any) -> str:
        return f"{where.getScheme()} of {where.getAuthority()}"

    def newInstance(self, where: Any, conf: Any) -> str:  # noqa: N802
        self.made += 1
        return self.get(where, conf)

    def connect(self, file_system: str, hopeless_ms: int) -> None:
        self.asked.append((file_system, hopeless_ms))
        time.sleep(self._takes_s)


@pytest.mark.parametrize(("takes_s", "told"), [(0.0, False), (0.5, True)])
def test_who_waits_for_a_zookeeper_is_told_so(
    takes_s: float, told: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hadoop, "_SILENT_S", 0.1)
    jvm = Connecting(takes_s)
    ours = Hadoop(jvm, Options({"fs.bk.patience.ms": "30000"}), own_instances=True, for_tools=True)
    for uri in ("bk://zk:2181/a", "file://x/y", "bk://zk:2181/b"):
        ours.file_system(uri)
    assert jvm.asked == [("bk of zk:2181", 3_000)], "once for each tree"
    said = "bk://zk:2181/a: its ZooKeeper does not answer yet; waiting for up to 30 s"
    assert caplog.messages == ([said] if told else [])


def test_a_jvm_has_one_file_system_for_a_tree_and_its_options() -> None:
    """Hadoop never forgets one: who makes savepoints again and again would fill the JVM with them."""
    jvm, another = Connecting(0), Connecting(0)
    first, second = Options({"fs.bk.root": "/a"}), Options({"fs.bk.root": "/b"})
    for _ in range(3):
        for given in (first, second, Options(first)):
            for uri in ("bk://zk:2181/a", "bk://zk:2181/b", "bk://other:2181/", "file://x/y"):
                Hadoop(jvm, given, own_instances=True, for_tools=False).file_system(uri)
    assert jvm.made == 4, "two trees, each with two sets of options"
    Hadoop(another, first, own_instances=True, for_tools=False).file_system("bk://zk:2181/a")
    assert (jvm.made, another.made) == (4, 1)


def test_in_a_session_of_spark_only_a_command_asks_for_the_connection() -> None:
    jvm = Connecting(0)
    ours = Hadoop(jvm, SimpleNamespace(get=lambda name, default: default), own_instances=False, for_tools=False)
    ours.file_system("bk://zk:2181/a")
    assert not jvm.asked
    ours.connect("bk://zk:2181/a")
    assert jvm.asked == [("bk of zk:2181", 3_000)]


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


class LosesAnAnswer(FileSystems):
    """A JVM whose answer to one call about a stream is lost, so that py4j makes the call twice. Attributes: file."""

    def __init__(self, file: bytes, lost: int) -> None:
        super().__init__(atomic=True, anothers="", fails="")
        self.file, self._lost, self._stands = file, lost, 0

    def open(self, path: Any) -> Any:
        return self

    def close(self) -> None:
        pass

    def getPos(self) -> int:  # noqa: N802
        return self._stands

    def readNBytes(self, count: int) -> bytes:  # noqa: N802
        read = self.file[self._stands : self._stands + count]
        self._stands += len(read)
        self._lost -= 1
        return self.readNBytes(count) if self._lost == 0 else read

    def write(self, block: bytes) -> None:
        self.file += block
        self._stands += len(block)
        self._lost -= 1
        if self._lost == 0:
            self.write(block)


@pytest.mark.parametrize("length", [1, hadoop._BLOCK - 1, hadoop._BLOCK, hadoop._BLOCK + 1, 3 * hadoop._BLOCK])
@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_call_that_is_made_twice_is_found_out(length: int, lost: int) -> None:
    """In Spark's own JVM py4j makes a call again whose answer was lost: bytes would be missing, or doubled."""
    data = (bytes(range(251)) * (length // 251 + 1))[:length]
    reading: Any = LosesAnAnswer(data, lost)
    writing: Any = LosesAnAnswer(b"", lost)
    to_read, to_write = (Hadoop(one, None, own_instances=False, for_tools=False) for one in (reading, writing))
    if not 0 < lost <= -(-length // hadoop._BLOCK):
        assert to_read.read(SOURCE) == data
        to_write.write(TARGET, data)
        assert writing.file == data
        return
    with pytest.raises(Unavailable, match="an answer of the JVM got lost"):
        to_read.read(SOURCE)
    with pytest.raises(Unavailable, match="an answer of the JVM got lost"):
        to_write.write(TARGET, data)
    assert writing.aborted, "nothing of it becomes visible"


@pytest.mark.jvm  # needs the jar
@pytest.mark.parametrize("target", ["from/back", "from/a/b/back", "from/../from/back"])
def test_a_folder_is_not_copied_into_itself(target: str, tmp_path: Path) -> None:
    (tmp_path / "from" / "a").mkdir(parents=True)
    (tmp_path / "from" / "x").write_text("x")
    ours = Hadoop.of(own_jvm=True)
    with pytest.raises(InvalidInput, match=r"is inside file:.*/from\. Name a target outside it"):
        ours.copy(f"file://{tmp_path}/from", f"{tmp_path}/{target}")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "from", "x"]
    assert ours.copy(f"file://{tmp_path}/from", f"{tmp_path}/from-2") == 1, "its name begins so, and it is beside it"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("bk://zk:2181", "bk://zk:2181/"),
        ("bk://prod", "bk://prod/"),
        ("bk://zk:2181/", "bk://zk:2181/"),
        ("bk://zk:2181/q", "bk://zk:2181/q"),
        ("file:///q", "file:///q"),
        ("q", "q"),
    ],
)
def test_an_address_without_a_path_is_that_of_the_root(uri: str, path: str) -> None:
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(Path=str))))
    )
    assert Hadoop(jvm, None, own_instances=False, for_tools=True)._path(uri) == path
