"""Start again what Spark has given up since a Python process came too late.

The process that plans a Python data source has ten seconds to connect to Spark, and no option gives it more. On a busy
machine that may not be enough: the query fails, and its user starts it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from _pytest.runner import runtestprotocol

Result = TypeVar("Result")

_LATE = "Python worker failed to connect back"
_TRIES = 5


def is_late(error: str) -> bool:
    """Whether this is what Spark says of such a process."""
    return _LATE in error


def again_while_late(run: Callable[[], Result]) -> Result:
    """Run, and run again as long as that is what fails, up to five times. Raises whatever else `run` does."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except (Exception, SystemExit) as error:
            if not is_late(str(error)):
                raise
    return run()


def run_test_while_late(test: pytest.Function, next_test: pytest.Item | None) -> None:
    """Run a test, and run it again with fresh fixtures as long as that is what fails, up to five times."""
    test.ihook.pytest_runtest_logstart(nodeid=test.nodeid, location=test.location)
    for last in (*[False] * (_TRIES - 1), True):
        reports = runtestprotocol(test, log=False, nextitem=next_test)
        if last or not any(report.failed and is_late(report.longreprtext) for report in reports):
            break
        test.warn(pytest.PytestWarning(f"{test.nodeid} is run again: {_LATE}"))
        test._initrequest()
    for report in reports:
        test.ihook.pytest_runtest_logreport(report=report)
    test.ihook.pytest_runtest_logfinish(nodeid=test.nodeid, location=test.location)
