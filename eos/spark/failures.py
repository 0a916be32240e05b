"""Which failures of Spark no further try can change: of a job by the class of its SQLSTATE, of a call by its kind.

The classes are those of Spark's error conditions (error-conditions.json of Spark 4.3). A failure that is not here may
pass: a lost executor, a full disk, an error in a function of the user's own, which may ask some other server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAttributeError,
    PySparkException,
    PySparkNotImplementedError,
    PySparkTypeError,
    PySparkValueError,
    UnsupportedOperationException,
)

PERMANENT: Final[Mapping[str, str]] = {
    "21": "cardinality violation, such as a subquery with more than one row",
    "22": "data exception, such as an overflow, a division by zero or a text that is not a number",
    "42": "a plan that does not fit its input, such as a column that is not there",
}
"""{class: what it is}. The rows of a batch are the same in each try, and so is what comes of them."""

_PERMANENT_CALLS = (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAttributeError,
    PySparkNotImplementedError,
    PySparkTypeError,
    PySparkValueError,
    UnsupportedOperationException,
)

PERMANENT_IN_JAVA: Final = (
    "java.lang.ClassNotFoundException",
    "java.lang.IllegalArgumentException",
    "java.lang.NoClassDefFoundError",
    "java.lang.NoSuchMethodError",
    "java.lang.UnsupportedOperationException",
    "java.nio.file.AccessDeniedException",
    "org.apache.hadoop.fs.UnsupportedFileSystemException",
    "org.apache.hadoop.security.AccessControlException",
)
"""Java's exceptions that stay as long as the configuration, the jars and the rights do."""


def is_permanent(error: BaseException) -> bool:
    """Tell whether the same rows make the same plan fail again."""
    if not isinstance(error, PySparkException):
        return False
    state = error.getSqlState()
    return state is not None and state[:2] in PERMANENT


def is_permanent_call(error: BaseException) -> bool:
    """Tell whether a call into Spark's JVM, other than a job, fails again until somebody changes something."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.toString()).startswith(PERMANENT_IN_JAVA)
    if type(error) is Py4JError:  # of a gateway whose Spark has another API
        return "does not exist" in str(error)
    return isinstance(error, _PERMANENT_CALLS) or is_permanent(error)
