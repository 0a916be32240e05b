"""How much CPU the benchmarks count for processes that come and go."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.benchmarks import client_cpu

USES_S = 0.2
PARENT = f"""
import os, signal, sys, time
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = os.fork()
if not worker:
    while time.process_time() < {USES_S}:
        pass
    print("worked", flush=True)
    sys.stdin.readline()
    os._exit(0)
sys.stdin = None
try:
    os.waitpid(worker, 0)
except ChildProcessError:  # its end is ignored
    pass
print("ended", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("end", ["ignores", "awaits"])
def test_a_worker_that_has_ended_still_counts_once(end: str) -> None:
    """Spark's daemon ignores the end of its workers: a turn in which one ended had negative CPU."""
    command = [sys.executable, "-c", PARENT, end]
    with subprocess.Popen(
        [*command, *([client_cpu.DAEMON] if end == "ignores" else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        meter = client_cpu.of_process(parent.pid)
        assert parent.stdout.readline() == "worked\n"
        before = meter()
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "ended\n"
        after = meter()
        parent.kill()
    assert abs(after - before) < USES_S / 2, f"{before:g} s while the worker was there, and {after:g} s since"
