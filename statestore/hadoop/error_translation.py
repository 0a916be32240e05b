"""What Java's exceptions say of an address, as the errors of `statestore`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statestore.errors import CutFailed, Damaged, InvalidInput, NotFound, StateStoreError, Unavailable

_NOT_FOUND = ("java.io.FileNotFoundException", "org.apache.hadoop.fs.PathNotFoundException")
# Java says FileNotFoundException of each file that it could not open: in parentheses the words of the operating system.
_NOT_OPENED: Mapping[str, type[StateStoreError]] = {
    "(Permission denied)": InvalidInput,
    "(Operation not permitted)": InvalidInput,
    "(Read-only file system)": InvalidInput,
    "(Too many open files)": Unavailable,
    "(Too many open files in system)": Unavailable,
    "(Cannot allocate memory)": Unavailable,
    "(Input/output error)": Unavailable,
    "(No space left on device)": Unavailable,
    "(Stale file handle)": Unavailable,
}
_JARS_OF_SCHEMES = "s3a: hadoop-aws; abfs: hadoop-azure; gs: gcs-connector"
# The meaning of the jar's `Failed`.
_FAILED: Mapping[str, type[StateStoreError]] = {
    error.__name__: error for error in (CutFailed, Damaged, InvalidInput, NotFound, Unavailable)
}
_REFUSED = (
    "org.apache.hadoop.fs.FileAlreadyExistsException",
    "org.apache.hadoop.fs.ParentNotDirectoryException",
    "org.apache.hadoop.fs.PathExistsException",
    "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
    "org.apache.hadoop.fs.UnsupportedFileSystemException",
    "org.apache.hadoop.security.AccessControlException",
    "java.lang.IllegalArgumentException",
    "java.nio.file.AccessDeniedException",
)


def explain(uri: str, exception: Any) -> StateStoreError:
    """Return the error that an exception of Java's means."""
    kind, message = exception.getClass().getName(), str(exception.getMessage())
    if kind == "eos.bk.Failed":
        return _FAILED[exception.kind()](message)
    for words, error in _NOT_OPENED.items():
        if kind in _NOT_FOUND and message.endswith(words):
            return error(f"{uri}: {message}")
    if kind in _NOT_FOUND:
        return NotFound(f"{uri}: {message}")
    if kind == "org.apache.hadoop.fs.ChecksumException":
        return Damaged(f"{uri}: {message}")
    if "ClassNotFoundException" in message:
        return Unavailable(
            f"{uri}: Hadoop's file system for this scheme is not in Spark's jars: {message}. Put its jar, with those "
            f"that it needs, into Spark's folder jars, or name it in spark.jars of your session ({_JARS_OF_SCHEMES})"
        )
    if kind in _REFUSED:
        return InvalidInput(f"{uri}: {message} ({kind})")
    return Unavailable(f"{uri}: {message}")
