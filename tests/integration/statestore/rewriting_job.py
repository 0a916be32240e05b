"""A driver that rescales or bootstraps a checkpoint, and is killed at a moment of its work.

    python -m tests.integration.statestore.rewriting_job '{"work": "rescale", …}'      (the fields of `Work`)

A moment is before or after each change that the driver makes to a file system, named by the call and the path below the
target, and numbered where it comes again; and, where executors write, the moment at which a path is there. Prints each
as it comes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from statestore import bootstrap, rescale
from statestore.errors import Damaged
from statestore.hadoop.file_systems import Hadoop
from statestore.hadoop.session import session
from statestore.rewriting import rescaling
from tests.soak.queries import SESSION

_CHANGES = {"write": 0, "replace": 0, "copy": 1, "delete": 0}  # which argument is the place that is changed
_RANDOM = re.compile(r"\.[0-9a-f]{12}\.tmp$")
_POLL_S = 0.002


@dataclass(frozen=True)
class Work:
    """The task of the driver.

    Attributes:
        work: "rescale" a source, or "bootstrap" from the rows of a history.
        target: its address.
        die: the moment to die at; "": at none.
        die_when: a file of this machine at whose appearance it is to die; "": none.
        fails: whether what was rewritten is said to be damaged, so that it is removed.
    """

    work: str
    target: str
    source: str = ""
    die: str = ""
    die_when: str = ""
    fails: bool = False


def sums(rows: DataFrame) -> DataFrame:
    """The query that is bootstrapped."""
    return rows.groupBy((F.col("value") % 7).alias("k")).agg(F.sum("value").alias("total"))


def _kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _watch(path: Path) -> None:
    while not path.exists():
        time.sleep(_POLL_S)
    print(f"there is {path}", flush=True)
    _kill()


def _tell(work: Work) -> None:
    """Make each change of a file system two moments."""
    below, lock = work.target.partition("://")[2].lstrip("/"), threading.Lock()
    seen: Counter[str] = Counter()

    def moment(phase: str, call: str, uri: str) -> None:
        path = _RANDOM.sub(".tmp", uri.partition(below)[2].lstrip("/")) or "."
        name = f"{phase} {call} {path}"
        with lock:
            seen[name] += 1
            name = name if seen[name] == 1 else f"{name} {seen[name]}"
            print(name, flush=True)
            if work.die and name == work.die:
                _kill()

    def telling(call: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def told(self: Hadoop, *arguments: Any, **more: Any) -> Any:
            uri = arguments[_CHANGES[call]]
            moment("before", call, uri)
            done = change(self, *arguments, **more)
            moment("after", call, uri)
            return done

        return told

    for call in _CHANGES:
        setattr(Hadoop, call, telling(call, getattr(Hadoop, call)))


def main(work: Work) -> None:
    """Do it."""
    settings = SESSION | {"spark.master": "local[2]", "spark.log.level": "OFF"}
    with session({}, settings) as spark:
        _tell(work)
        if work.die_when:
            threading.Thread(target=_watch, args=(Path(work.die_when),), daemon=True).start()
        if work.fails:

            def differs(*_: object) -> None:
                raise Damaged("not the same")

            rescaling._compare = differs  # type: ignore[assignment]
        if work.work == "rescale":
            rescale(work.source, work.target, 3, spark=spark)
        else:
            bootstrap(sums, spark.range(100).select(F.col("id").alias("value")), work.target)


if __name__ == "__main__":
    main(Work(**json.loads(sys.argv[1])))
