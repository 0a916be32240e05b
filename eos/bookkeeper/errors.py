"""The errors of an entry that a bookie did not give. Their axis is what the replicas said.

LedgerReadError
├── EntryMissing         every replica answered that it lacks the entry: the entry is lost
├── EntryDamaged         a replica has the entry, and no replica has it undamaged
├── BookieUnavailable    a replica did not answer, and no other one has the entry: nothing is proved
│   └── BookieClosed         it closed the connection in place of an answer
├── BookieUnauthorized   a bookie refuses this client, and no other one has the entry
│   └── BookieUntrusted      this client refuses the bookie: it does not trust its certificate
└── MetadataUnreadable   the metadata of a ledger can't be read, or don't name the entry
"""

from __future__ import annotations

from eos.errors import EosError


class LedgerReadError(EosError):
    """Base of what reading a ledger raises."""


class EntryMissing(LedgerReadError):
    """Every bookie of the entry's write set answered that it lacks the entry or the ledger."""


class EntryDamaged(LedgerReadError):
    """No bookie of the write set has the entry with a right digest, and at least one has it with a wrong one."""


class BookieUnavailable(LedgerReadError):
    """A bookie can't be reached, or did not answer in time. The entry may well exist: read again later."""


class BookieClosed(BookieUnavailable):
    """The bookie closed the connection in place of an answer. Bookies before 4.17 do so at a batch read."""


class BookieUnauthorized(LedgerReadError):
    """A bookie refuses this client's credentials, or wants some."""


class BookieUntrusted(BookieUnauthorized):
    """A bookie's certificate is signed by no authority that this client trusts, or made for another host."""


class MetadataUnreadable(LedgerReadError):
    """The metadata of a ledger have another form than this library knows, or don't cover an entry."""
