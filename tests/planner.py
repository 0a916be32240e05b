"""Start again what Spark has given up since a Python process came too late.

The process that plans a Python data source has ten seconds to connect to Spark, and no option gives it more. On a busy
machine that may not be enough: the query fails, and its user starts it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_LATE = "Python worker failed to connect back"
_TRIES = 5


def again_while_late(run: Callable[[], Result]) -> Result:
    """Run, and run again as long as that is what fails, up to five times. Raises whatever else `run` does."""
    for _ in range(_TRIES - 1):
        try:
            return run()
        except (Exception, SystemExit) as error:
            if _LATE not in str(error):
                raise
    return run()
