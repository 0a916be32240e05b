"""Which failures of a Spark job no further try can change, by the class of their SQLSTATE.

The classes are those of Spark's error conditions (error-conditions.json of Spark 4.3). A class that is not here may
pass: a lost executor, a full disk, an error in a function of the user's own, which may ask some other server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.errors import PySparkException

PERMANENT: Final[Mapping[str, str]] = {
    "21": "cardinality violation, such as a subquery with more than one row",
    "22": "data exception, such as an overflow, a division by zero or a text that is no number",
    "42": "a plan that does not fit its input, such as a column that is not there",
}
"""{class: what it is}. The rows of a batch are the same in each try, and so is what comes of them."""


def is_permanent(error: BaseException) -> bool:
    """Tell whether the same rows make the same plan fail again."""
    if not isinstance(error, PySparkException):
        return False
    state = error.getSqlState()
    return state is not None and state[:2] in PERMANENT
