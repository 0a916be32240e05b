"""A process is known by pid and start time; a group ends whole, also when its parent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from eos.local import process
from eos.local.checks import LocalError
from eos.local.process import ProcessId, Started
from eos.local.pulsar import LocalPulsar
from eos.local.settings import ENVIRONMENT, Ports, broker_conf, command
from tests.waiting import PATIENCE_S, until

FAMILY = ["sh", "-c", "sleep 300 & echo $! > child; wait"]


def child_of(folder: Path) -> int:
    until(lambda: (folder / "child").exists() and (folder / "child").read_text().strip())
    return int((folder / "child").read_text())


def gone(pid: int) -> bool:
    return ProcessId.of(pid) is None


def test_a_pid_in_use_again_is_not_the_same_process() -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    assert me.alive()
    assert not ProcessId(os.getpid(), "another time").alive()


def test_a_dead_process_that_its_parent_has_not_reaped_is_dead() -> None:
    child = subprocess.Popen(["sh", "-c", "exit 0"])
    until(lambda: gone(child.pid))
    child.wait()
    assert ProcessId.of(child.pid) is None


LEADERLESS = """
import ctypes, socket, sys, threading
port = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=sys.stdin.read).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="ps does not count threads everywhere")
def test_a_process_whose_leader_is_dead_and_whose_other_threads_are_not_runs_on_and_holds_its_ports() -> None:
    with subprocess.Popen([sys.executable, "-c", LEADERLESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        assert not gone(child.pid)
        child.kill()
        until(lambda: gone(child.pid))


@pytest.mark.parametrize("scratch", [False, True])
def test_end_ends_the_whole_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch: bool) -> None:
    monkeypatch.chdir(tmp_path)
    watched = tmp_path / "scratch"
    watched.mkdir()
    started = process.start(FAMILY, {}, tmp_path / "log", watched if scratch else None)
    child = child_of(tmp_path)
    started.end()
    until(lambda: gone(child))
    assert started.exit_code() is not None
    assert watched.exists(), "only the parent's death removes the folder"


def test_end_with_grace_lets_it_end_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    polite = ["sh", "-c", "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"]
    started = process.start(polite, {}, tmp_path / "log", None)
    until(lambda: "up" in (tmp_path / "log").read_text())
    started.end(grace_s=PATIENCE_S)
    assert started.exit_code() == 7
    assert "bye" in (tmp_path / "log").read_text()


def test_a_group_dies_with_its_parent_even_by_sigkill(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "file").write_text("x")
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; from eos.local import process\n"
            f"process.start({FAMILY!r}, {{}}, Path('log'), Path('scratch'))\ntime.sleep(300)",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    child = child_of(tmp_path)
    leader = psutil.Process(child).ppid()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: gone(leader))
    until(lambda: gone(child))
    assert not scratch.exists()


def test_another_process_group_is_ended_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started = process.start(FAMILY, {}, tmp_path / "log", None)
    child = child_of(tmp_path)
    known = ProcessId.of(started.leader.pid)
    assert known is not None
    process.end_other(known, grace_s=0)
    until(lambda: gone(child))
    process.end_other(known, grace_s=1)
    started.end()


@pytest.mark.parametrize("kill", [process.kill_group, lambda leader: Started(leader).end()], ids=["kill", "end"])
def test_a_group_that_is_gone_is_not_killed_by_a_number_that_is_anothers_now(
    kill: Callable[[subprocess.Popen[bytes]], None],
) -> None:
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as other:
        gone = subprocess.Popen(["true"], start_new_session=True)
        gone.wait()
        gone.pid = other.pid  # as the kernel does when all numbers were given out once
        kill(gone)
        assert other.poll() is None
        process.kill_group(other)


def test_what_a_dead_leader_has_left_of_its_group_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    started = process.start(FAMILY, {}, tmp_path / "log", None)
    child = child_of(tmp_path)
    started.leader.kill()
    started.leader.wait()
    assert not gone(child)
    started.end()
    until(lambda: gone(child))


def test_settings_win_over_the_defaults() -> None:
    text = broker_conf(Ports(1, 2, 3, 4), {"defaultRetentionTimeInMinutes": 5, "brokerDeduplicationEnabled": True})
    lines = text.splitlines()
    assert "brokerServicePort=1" in lines
    assert "webServicePort=2" in lines
    assert "transactionCoordinatorEnabled=true" in lines
    assert "brokerDeduplicationEnabled=true" in lines
    assert "defaultRetentionTimeInMinutes=5" in lines
    assert "defaultRetentionTimeInMinutes=-1" not in lines


def test_the_command_line_runs_a_standalone_with_a_real_zookeeper(tmp_path: Path) -> None:
    line = command(Path("java"), "lib/*", tmp_path, Ports(1, 2, 3, 4), "512m", ("-XX:+UseSerialGC",))
    assert line[0] == "java"
    assert {"-Xmx512m", "-XX:MaxDirectMemorySize=512m", "--no-functions-worker"} <= set(line)
    assert line[line.index("--zookeeper-port") + 1] == "3"
    assert line[line.index("--bookkeeper-port") + 1] == "4"
    assert line[line.index("-cp") + 1] == "lib/*"
    assert ENVIRONMENT == {"PULSAR_STANDALONE_USE_ZOOKEEPER": "1"}
    without = command(Path("java"), "lib/*", tmp_path, Ports(1, 2, 3, 4), "512m", (), bookie_port=False)
    assert "--bookkeeper-port" not in without


def test_data_of_another_version_of_pulsar_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"broker": 1, "http": 2, "zookeeper": 3, "bookkeeper": 4}')
    (tmp_path / "pulsar-version").write_text("5.0.0-M1")
    with pytest.raises(LocalError, match=r"by Pulsar 5\.0\.0-M1, and may be unreadable for 4\.2\.4. Use --version"):
        LocalPulsar(data=tmp_path)._make_home()
    LocalPulsar(data=tmp_path, version="5.0.0-M1")._make_home()
