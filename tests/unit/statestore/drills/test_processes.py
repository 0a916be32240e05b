"""Processes that are there, and those that are gone."""

from __future__ import annotations

import os
import signal
import sys

import psutil
import pytest

from statestore.drills.processes import below, kill_all, lives, named, send


def test_a_process_that_is_gone_is_no_error() -> None:
    gone = psutil.Popen([sys.executable, "-c", ""])
    gone.wait()
    kill_all([gone])
    send([gone], signal.SIGTERM)
    with pytest.raises(ProcessLookupError):
        os.kill(gone.pid, 0)
    assert (below(gone.pid), named(gone, "python"), named(None, "python"), lives(gone)) == ([], False, False, False)
