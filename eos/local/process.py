"""Start a process group, know it again from another process, and end it whole."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_S = 0.05

# The pipe on the script's standard input is held by the parent alone, so its end means that the parent has died, by
# whatever signal. The watcher is a member of the group it kills: while it lives, no other group can get that number.
_DIE_WITH_PARENT = """
home=$1; shift
exec 3<&0 </dev/null
(
  read -r nothing <&3
  kill -9 $$
  turns=0
  while kill -0 $$ && [ $turns -lt 50 ]; do sleep 0.1; turns=$((turns + 1)); done
  rm -rf -- "$home"
  kill -9 0
) >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that stays the same one when its pid is used again: the pid and when it started."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """The process that has this pid now; None when there is none, or it is dead and only not reaped."""
        state, started = _look(pid)
        return None if state in ("", "Z", "X") else cls(pid, started)

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return ProcessId.of(self.pid) == self

    def paused(self) -> bool:
        """Whether this very process was stopped by a signal, and may go on."""
        return _look(self.pid) == ("T", self.started)


def _look(pid: int) -> tuple[str, str]:
    """A process's state as `ps` abbreviates it, and when it started; two empty strings when there is none.

    A leader that is dead is a zombie while its other threads end. Until the last one has ended, the process holds its
    ports: so long it is said to run.
    """
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return "", ""
        return "R" if fields[0] == "Z" and int(fields[17]) > 1 else fields[0], fields[19]
    answer = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, started = answer.stdout.strip().partition(" ")
    return state[:1], started.strip()


@dataclass(frozen=True, slots=True)
class Started:
    """A process group that this process has started; its leader's pid is the group's number."""

    leader: subprocess.Popen[bytes]

    def exit_code(self) -> int | None:
        """The leader's exit code, None while it runs."""
        return self.leader.poll()

    def end(self, grace_s: float = 0.0) -> None:
        """End the group, at once or after waiting `grace_s` seconds for it to end by itself, and reap its leader."""
        if grace_s and self.leader.poll() is None:
            self.leader.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.leader.wait(grace_s)
        kill_group(self.leader)
        self.leader.wait()
        if self.leader.stdin is not None:
            self.leader.stdin.close()


def start(command: Sequence[str], environment: Mapping[str, str], log: Path, scratch: Path | None) -> Started:
    """Start a command in a group of its own, its output appended to `log`.

    With `scratch` the group is killed, and that folder removed, when this process dies, even by SIGKILL. Without, it
    lives on.
    """
    wrapped = list(command) if scratch is None else ["sh", "-c", _DIE_WITH_PARENT, "sh", str(scratch), *command]
    with log.open("ab") as output:
        leader = subprocess.Popen(
            wrapped,
            stdin=subprocess.DEVNULL if scratch is None else subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    return Started(leader)


def kill_group(leader: subprocess.Popen[Any]) -> None:
    """SIGKILL every process of the group of a process that was started with `start_new_session`.

    Nothing happens when nothing of the group is left. Then its number may be another's by now: a pid is free when its
    process was reaped and no group has that number. So where the leader was reaped and there is such a process, the
    group is gone, and the process is none of ours.
    """
    if leader.poll() is None or _look(leader.pid) == ("", ""):
        _kill_group(leader.pid)


def _kill_group(number: int) -> None:
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:  # macOS answers so for a group with only a zombie left
        return


def end_other(process: ProcessId, grace_s: float) -> None:
    """End the group of a process that another process has started; wait until its leader is gone."""
    if process.alive() and grace_s:
        os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while process.alive() and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    if process.alive():
        _kill_group(process.pid)
        while process.alive():
            time.sleep(_POLL_S)
