"""The errors of `statestore`. Their axis is what is known about what was asked for.

    StateStoreError                (an `eos.errors.EosError`)
    ├── InvalidInput               the caller must change something; nothing was done
    │   └── NotFound                   nothing is at that address
    ├── Unreadable                 what is there cannot be read here
    │   ├── Damaged                    the bytes or records that are there are not what was written
    │   └── UnknownVersion             it has a version that this statestore does not read; nothing is known to be wrong
    ├── Unavailable                what is needed is not there now; nothing is known to be wrong with the data
    │   └── JarMissing                 the jar of the file system was not built
    └── CutFailed                  a checkpoint changed faster than it could be copied; the target is not usable

Errors of Spark's, Java's or ZooKeeper's own never reach a caller unexplained: they are the cause of one of these.
"""

from __future__ import annotations

import eos.errors


class StateStoreError(eos.errors.EosError):
    """Every error that `statestore` raises on purpose."""


class InvalidInput(StateStoreError, eos.errors.InvalidInput):
    """An address, option or argument is wrong. Nothing was done."""


class NotFound(InvalidInput):
    """There is nothing at the address that was given."""


class Unreadable(StateStoreError):
    """What is stored cannot be read here: it is damaged, or of an unknown version."""


class UnknownVersion(Unreadable):
    """What is stored has a version that this statestore does not read. Nothing is known to be wrong with the data."""


class Damaged(Unreadable):
    """What is stored is not what was written: a checksum, a record or a format is wrong."""


class Unavailable(StateStoreError):
    """ZooKeeper, a bookie, a JVM or a file system does not answer. Asking again later may work."""


class JarMissing(Unavailable):
    """The jar with the file system `bk://` is not in this installation."""


class CutFailed(StateStoreError):
    """No consistent cut of a running query's checkpoint could be copied. What was begun has been removed."""
