"""Do a drill with a journal beside it, and give the journal an end, however the drill ends.

The journal's first line says where the drill runs: the versions of what takes part, and how fast the machine is.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import psutil

from eos.errors import EosError
from eos.local.jars import PULSAR_VERSION
from eos.spark import capabilities
from eos.version import own_version
from statestore.drills.journal import Began, CheckEvent, DrillKind, Ended, Journal, PlannedFault
from statestore.drills.processes import terminable
from statestore.errors import Damaged, InvalidInput

JOURNAL = "journal.jsonl"
"""The journal's name in a drill's folder."""


def record(began: Began, folder: Path, drill: Callable[[Journal], str]) -> Path:
    """Do a drill and return the path of its journal. SIGINT and SIGTERM end it early.

    Data that turn out to be damaged make it fail. Any other fault ends it, and its verdict is UNKNOWN.

    Args:
        began: the journal's first line.
        folder: where the journal goes; it must have none.
        drill: does it, and returns why it ended before its plan did; "" if it didn't.

    Raises:
        InvalidInput: there is a journal in the folder already, or what the drill was asked for can't be done.
    """
    path = folder / JOURNAL
    with Journal.create(path, began) as journal, terminable():
        ended = Ended(interrupted=True, reason="the drill died")
        try:
            ended = Ended(reason=drill(journal))
        except Damaged as error:
            journal.write(CheckEvent("what is stored is what was written", False, str(error)))
            ended = Ended(reason=str(error))
        except InvalidInput as error:
            ended = Ended(reason=str(error))
            raise
        except EosError as error:
            ended = Ended(reason=str(error))
        except BaseException as error:
            stopped = _is_interrupt(error)
            ended = Ended(interrupted=True, reason="it was told to stop" if stopped else repr(error))
            if not stopped:
                raise
        finally:
            journal.write(ended)
    return path


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error: py4j, for one, fails in other ways when a call is interrupted."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def began(drill: DrillKind, rerun: str, seed: int | None = None, plan: Sequence[PlannedFault] = ()) -> Began:
    """Return the first line of a drill's journal; see `Began`."""
    return Began(
        drill=drill,
        at=datetime.now().astimezone().isoformat(timespec="seconds"),
        rerun=rerun,
        seed=seed,
        versions={
            "spark-pulsar-eos": own_version(),
            "Pulsar": PULSAR_VERSION,
            "PySpark": capabilities.installed() or "unknown",
            "Python": platform.python_version(),
        },
        machine={
            "cores": os.cpu_count() or 0,
            "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
            "system": platform.platform(terse=True),
        },
        plan=tuple(plan),
    )
