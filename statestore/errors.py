"""The errors of `statestore`, ordered by what is known about the request.

    StateStoreError                (an `eos.errors.EosError`)
    ├── InvalidInput               the caller must change something; nothing was done
    │   └── NotFound                   nothing is at that address
    ├── Unreadable                 what is there cannot be read here
    │   ├── Damaged                    the bytes or records that are there are not what was written
    │   └── UnknownVersion             it has a version that this statestore does not read; nothing is known to be wrong
    ├── Unavailable                what is needed is not there now; nothing is known to be wrong with the data
    │   └── JarMissing                 the jar of the file system was not built
    └── CutFailed                  a checkpoint changed faster than it could be copied; the target is not usable

Spark's, Java's and ZooKeeper's own errors never reach a caller unexplained. They are the cause of one of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import eos.errors


class StateStoreError(eos.errors.EosError):
    """Base of every error that `statestore` raises on purpose."""


class InvalidInput(StateStoreError, eos.errors.InvalidInput):
    """An address, option or argument is wrong. Nothing was done."""


class NotFound(InvalidInput):
    """There is nothing at the address that was given."""


class Unreadable(StateStoreError):
    """The stored data cannot be read here. They are damaged, or of an unknown version."""


class UnknownVersion(Unreadable):
    """The stored data have a version that this statestore does not read. Nothing is known to be wrong with them."""


class Damaged(Unreadable):
    """The stored data are not those that were written. A checksum, a record or a format is wrong."""


class Unavailable(StateStoreError):
    """ZooKeeper, a bookie, a JVM or a file system does not answer. Asking again later may work."""


class JarMissing(Unavailable):
    """The jar with the file system `bk://` is not in this installation."""


class CutFailed(StateStoreError):
    """No consistent cut of a running query's checkpoint could be copied. The unfinished copy has been removed."""


@contextmanager
def own_errors() -> Iterator[None]:
    """Turn the wrong input that `eos` finds in this block into an error of `statestore`."""
    try:
        yield
    except eos.errors.InvalidInput as error:
        raise InvalidInput(str(error)) from error
