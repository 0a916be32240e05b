"""A master and workers that only pretend: a script in the place of `spark-class`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from eos.local import LocalError
from statestore.drills import standalone
from statestore.drills.processes import below, kill_all, lives, named, send
from statestore.drills.standalone import StandaloneCluster
from tests.waiting import until

# A worker is alive as long as its pid, which it leaves beside the script, is. It starts an "executor".
_SPARK_CLASS = """#!{python}
import http.server, json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
name = words[0].rpartition(".")[2]
(here / f"{{name}}-{{os.getpid()}}.json").write_text(json.dumps({{"words": words, "environment": dict(os.environ)}}))
if (here / "broken").exists():
    sys.exit("no such class")
if name == "Worker":
    (here / f"pid-{{os.getpid()}}").touch()
    subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", "CoarseGrainedExecutorBackend"])
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        alive = [path for path in here.glob("pid-*") if pathlib.Path("/proc", path.name[4:]).exists()]
        self.send_response(200)
        self.end_headers()
        workers = [{{"state": "ALIVE"}} for _ in alive] + [{{"state": "DEAD"}}]
        self.wfile.write(json.dumps({{"workers": workers}}).encode())
http.server.HTTPServer(("127.0.0.1", int(words[words.index("--webui-port") + 1])), Page).serve_forever()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    script = tmp_path / "spark" / "bin" / "spark-class"
    script.parent.mkdir(parents=True)
    script.write_text(_SPARK_CLASS.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr(standalone, "spark_home", lambda: tmp_path / "spark")
    return script.parent


def test_workers_come_go_and_come_again_and_nothing_is_left(home: Path, tmp_path: Path) -> None:
    before = psutil.Process().children(recursive=True)  # of other tests in this process, such as brokers
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        until(lambda: len(cluster.executors()) == 2)
        started = psutil.Process().children(recursive=True)
        first, second = cluster.executors()
        cluster.kill_worker(0)
        assert sorted(map(lives, (first, second))) == [False, True]
        assert len(cluster.executors()) == 1
        cluster.start_worker(0)
        cluster.wait_for_workers()
        until(lambda: len(cluster.executors()) == 2)
        started += psutil.Process().children(recursive=True)
    until(lambda: not [one for one in started if one not in before and lives(one)])
    cluster.close()


def test_a_worker_knows_nothing_of_this_process(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "mine")
    with StandaloneCluster(tmp_path / "cluster", workers=1, timeout_s=5, environment={"A": "b"}) as cluster:
        (seen,) = (json.loads(path.read_text()) for path in home.glob("Worker-*.json"))
    environment = seen["environment"]
    assert {"PYTHONPATH", "SPARK_DIST_CLASSPATH"}.isdisjoint(environment)
    assert environment["A"] == "b"
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "-Dspark.worker.timeout=5" in environment["SPARK_DAEMON_JAVA_OPTS"]
    assert seen["words"][-1] == cluster.master


def test_what_does_not_come_up_says_why_and_leaves_nothing(home: Path, tmp_path: Path) -> None:
    (home / "broken").touch()
    with (
        pytest.raises(LocalError, match=r"(?s)Spark's master is not up\..*no such class"),
        StandaloneCluster(tmp_path / "c"),
    ):
        pass


# ---- processes


def test_a_process_that_is_gone_is_no_error() -> None:
    gone = psutil.Popen([sys.executable, "-c", ""])
    gone.wait()
    kill_all([gone])
    send([gone], signal.SIGTERM)
    with pytest.raises(ProcessLookupError):
        os.kill(gone.pid, 0)
    assert (named(gone, "python"), named(None, "python"), lives(gone)) == (False, False, False)


def test_nothing_comes_from_a_process_that_is_gone_also_where_its_pid_is_anothers_now() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert below(gone) == []
    gone.pid = os.getppid()  # as the kernel does when all numbers were given out once
    assert below(gone) == []
