"""A process that dies by SIGKILL just before or after one of its multis: `python savepoint_steps.py '{…}'`.

It makes, deletes or restores a savepoint as the command line does, without a JVM: it takes all files of the checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence

from statestore import Address
from statestore.bk import zookeeper
from statestore.bk.names import Names
from statestore.bk.zookeeper import Operation, ZooKeeper
from statestore.savepoints import creating, deleting, restoring
from statestore.savepoints.manifest import Cut


class Dying(ZooKeeper):
    """Attributes: at: the number of the multi; moment: "before" or "after" it; -1: it lives, and says how many."""

    at = -1
    moment = ""
    writes = 0

    def write(self, operations: Sequence[Operation], happened: Callable[[], bool]) -> None:
        number, self.writes = self.writes, self.writes + 1
        if (number, self.moment) == (self.at, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(operations, happened)
        if (number, self.moment) == (self.at, "after"):
            os.kill(os.getpid(), signal.SIGKILL)


def main(verb: str, name: str, uri: str, options: dict[str, str], at: int, moment: str) -> None:
    zookeeper.MULTI_BYTES = 1  # each group of operations is a multi of its own
    Dying.at, Dying.moment = at, moment
    address = Address.parse(uri, options)
    session = Dying.connect(address)
    assert isinstance(session, Dying)
    names = Names(session, address.root)
    if verb == "create":
        files = {path.removeprefix(address.path + "/"): record for path, record in names.walk(address.path)}
        creating.create(names, name, uri, lambda: Cut(0, "q", files))
    elif verb == "delete":
        deleting.delete(names, name)
    else:
        restoring.restore(names, name, address.path)
    names.close()
    print(session.writes)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
