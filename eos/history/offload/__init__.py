"""Ledgers that a broker has offloaded, read from secondary storage: both of Pulsar's formats, by `pyarrow.fs`.

Its errors are of a ledger that can't be read. Their axis is what the storage said.

OffloadError
├── OffloadMissing       the storage answered that it has no such object
├── OffloadDamaged       the object is there, and its bytes are wrong: names object, place and entry
├── OffloadUnavailable   the storage did not answer, or refuses this client: nothing is proved
└── OffloadUnknown       the object has a form that this library does not read
"""

from __future__ import annotations

from eos.errors import EosError


class OffloadError(EosError):
    """Base of what reading an offloaded ledger raises. It says nothing of the data: a broker may still read them."""


class OffloadMissing(OffloadError):
    """No object of this name is in the storage. The location may be wrong, or the ledger was deleted."""


class OffloadDamaged(OffloadError):
    """The bytes of an object are not what an offloader writes, or an entry's checksum is wrong."""


class OffloadUnavailable(OffloadError):
    """The storage can't be reached, or refuses the credentials."""


class OffloadUnknown(OffloadError):
    """The object was written in a form that this library does not read, such as by another codec."""
