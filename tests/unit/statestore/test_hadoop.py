"""The jar of bk://, and a JVM of one's own that has it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import py4j.java_gateway
import pytest
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway
from py4j.protocol import EMPTY_RESPONSE, ERROR, Py4JJavaError, Py4JNetworkError

from eos.spark.jar import NAME
from statestore import JarMissing, Unavailable
from statestore.hadoop import file_systems, own_jvm
from statestore.hadoop.file_systems import Hadoop
from statestore.hadoop.jar import jar_path
from statestore.hadoop.own_jvm import end_jvm

# ---- the jar


# As a process that has the modules from a zip: what it prints is where the copy was, and what is in it.
_IN_A_ZIP = """
import sys, zipfile
from importlib import resources
from eos.spark import jar
from statestore.hadoop.jar import jar_path
from statestore.hadoop.own_jvm import end_jvm
jar.resources.files = lambda package: zipfile.Path(sys.argv[1], package + "/")
assert jar_path() == jar_path()
print(jar_path(), jar_path().read_text())
"""


def test_the_jar_in_a_zip_of_modules_is_copied_for_as_long_as_the_process_lives(tmp_path: Path) -> None:
    modules = tmp_path / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        written.writestr(f"statestore/jars/{NAME}", "classes")
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_ZIP, modules],
        capture_output=True,
        text=True,
        check=True,
        env={"TMPDIR": str(tmp_path)},
    )
    copy, content = done.stdout.split()
    assert content == "classes"
    assert copy.endswith(".jar")
    assert not Path(copy).exists()
    assert list(tmp_path.iterdir()) == [modules]


# A child that ends as gunicorn's and Airflow's do, by sys.exit, before its parent does.
_FORKED = """
import os, sys
child = os.fork()
if child == 0:
    CHILD
    sys.exit()
os.waitpid(child, 0)
"""


def test_a_forked_child_leaves_the_copy_to_its_parent(tmp_path: Path) -> None:
    modules = tmp_path / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        written.writestr(f"statestore/jars/{NAME}", "classes")
    child = _FORKED.replace("CHILD", "print(jar_path(), jar_path().read_text(), flush=True)")
    done = subprocess.run(
        [sys.executable, "-c", f"{_IN_A_ZIP}sys.stdout.flush(){child}print(jar_path().read_text())", modules],
        capture_output=True,
        text=True,
        check=True,
        env={"TMPDIR": str(tmp_path)},
    )
    (parents, *contents), (childs, *of_child), last = (line.split() for line in done.stdout.splitlines())
    assert [contents, of_child, last] == [["classes"]] * 3
    assert parents != childs
    assert list(tmp_path.iterdir()) == [modules]


def test_a_zip_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = tmp_path / "eos.zip"
    with zipfile.ZipFile(modules, "w") as written:
        written.writestr("statestore/__init__.py", "")
    monkeypatch.setattr(resources, "files", lambda package: zipfile.Path(modules, f"{package}/"))
    with pytest.raises(JarMissing, match=r"eos-bk\.jar is not in this installation"):
        jar_path()


_SOURCES = Path(__file__).parents[3] / "statestore" / "java" / "src" / "main" / "java"
_TELL_THE_TIME = {"BkOutputStream", "Packs", "Savepoints"}
"""They note when a file was written, or a savepoint begun. `Patience` counts waits, and ZooKeeper's times tell ages."""


@pytest.mark.parametrize("file", sorted(_SOURCES.rglob("*.java")), ids=lambda file: str(file.stem))
def test_nothing_in_it_waits_or_decides_by_the_clock_of_the_machine(file: Path) -> None:
    """It jumps when NTP or an operator sets it."""
    assert file.read_text().count("currentTimeMillis") == (file.stem in _TELL_THE_TIME)


# ---- a JVM of one's own


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the JVM answers, in order."""
    said: list[Any] = []
    monkeypatch.setattr(GatewayClient, "send_command", lambda *_: said.pop(0))
    return said


@pytest.fixture
def client() -> Any:
    """The client of a gateway that has not connected yet."""
    parameters = GatewayParameters()
    client = own_jvm._client(parameters)
    JavaGateway(gateway_parameters=parameters).set_gateway_client(client)
    return client


def test_pyspark_is_not_asked_about_an_exception_of_our_own_jvm(
    client: Any, answers: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark would look for the object in Spark's JVM: what has this number there is another object."""
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", lambda *_: pytest.fail("PySpark was asked"))
    answers += ["yv", "xro5"]
    assert client.send_command("a call that returns nothing") == "yv"
    with pytest.raises(Py4JJavaError) as caught:
        client.send_command("a call that throws")
    assert caught.value.java_exception._target_id == "o5"
    assert caught.value.java_exception._gateway_client is client


def test_what_is_no_exception_of_java_is_left_to_py4j(client: Any, answers: list[Any]) -> None:
    connection = object()
    answers += ["xsno such method", ("xro5", connection)]
    assert client.send_command("a call of nothing") == "xsno such method"
    assert client.send_command("a stream", binary=True) == ("xro5", connection)


def test_a_call_without_an_answer_is_not_made_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been carried out: what is read, written or renamed would be so twice."""
    calls: list[str] = []

    class Dropped:
        def send_command(self, command: str) -> str:
            calls.append(command)
            raise Py4JNetworkError("Answer from Java side is empty", when=EMPTY_RESPONSE)

        def close(self, reset: bool) -> None:
            pass

    monkeypatch.setattr(client, "_get_connection", Dropped)
    assert client.send_command("a call") == ERROR
    assert calls == ["a call"]


@pytest.mark.jvm  # needs the jar
def test_a_jvm_that_has_died_is_named_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_jvm, "_own", None)  # another test's
    (tmp_path / "x").write_text("x")
    before = Hadoop.of(own_jvm=True)
    assert before.read(f"file://{tmp_path}/x") == b"x"
    died = own_jvm._own.java_process
    died.kill()
    calls: list[Callable[[], object]] = [lambda: before.read(f"file://{tmp_path}/x"), lambda: before.options]
    for call in calls:
        with pytest.raises(Unavailable, match="the JVM does not answer"):
            call()
    died.wait()
    assert Hadoop.of(own_jvm=True).read(f"file://{tmp_path}/x") == b"x"
    end_jvm(own_jvm._own, own_jvm._own.java_process)


_READ_BY_A_PARENT = """
import sys
from statestore.hadoop import own_jvm
from statestore.hadoop.file_systems import Hadoop
file, ours = sys.argv[1], Hadoop.of(own_jvm=True)
print(own_jvm._own.java_process.pid, ours.read(file), flush=True)
"""
_READ_BY_A_CHILD = {
    "it reads nothing": "pass",
    "it reads": "print(Hadoop.of(own_jvm=True).read(file), own_jvm._own.java_process.pid, flush=True)",
    "it drops what its parent uses": "del ours",
    "it reads by what its parent uses": """
    try:
        ours.read(file)
    except Exception as error:
        print(type(error).__name__, flush=True)
""",
}


@pytest.mark.jvm  # needs the jar
@pytest.mark.parametrize(
    ("child", "says"),
    [
        ("it reads nothing", ""),
        ("it reads", "b'x'"),
        ("it drops what its parent uses", ""),
        ("it reads by what its parent uses", "Unavailable"),
    ],
)
def test_a_forked_child_leaves_the_jvm_to_its_parent(child: str, says: str, tmp_path: Path) -> None:
    """It waited for the JVM at its end and killed it after 20 s, and asked by the connection of its parent."""
    (tmp_path / "x").write_text("x")
    forked = _FORKED.replace("CHILD", _READ_BY_A_CHILD[child])
    done = subprocess.run(
        [sys.executable, "-c", f"{_READ_BY_A_PARENT}{forked}print(ours.read(file))", f"file://{tmp_path}/x"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    (pid, first), *of_child, (last,) = (line.split() for line in done.stdout.splitlines())
    assert (first, last, [line[0] for line in of_child]) == ("b'x'", "b'x'", [says] if says else []), done.stderr
    assert pid not in [word for line in of_child for word in line]
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.jvm  # needs the jar
def test_a_file_may_be_larger_than_the_memory_of_the_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was read in one answer. Without the memory for one py4j asked again, and the stream was at its end: b""."""
    monkeypatch.setattr(own_jvm, "_own", None)  # another test's
    monkeypatch.setattr(own_jvm, "_JAVA_OPTIONS", ("-Xmx64m", *own_jvm._JAVA_OPTIONS[1:]))
    data = bytes(range(256)) * (65 << 12) + b"the end"
    ours = Hadoop.of(own_jvm=True)
    ours.write(f"file://{tmp_path}/x", data)
    # Not compared by pytest, which would print both.
    assert (ours.read(f"file://{tmp_path}/x") == data) is True
    assert ((tmp_path / "x").read_bytes() == data) is True
    end_jvm(own_jvm._own, own_jvm._own.java_process)


class Gone:
    """A JVM that ends when it is asked for anything."""

    def __getattr__(self, name: str) -> Any:
        raise Py4JNetworkError("An error occurred while trying to connect to the Java server")


def test_a_jvm_that_dies_as_it_is_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_systems, "jvm_of_our_own", Gone)
    with pytest.raises(Unavailable, match="the JVM does not answer"):
        Hadoop.of(own_jvm=True)
