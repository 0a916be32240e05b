"""Reads ledgers of Apache BookKeeper in plain Python: no JVM, no ZooKeeper, no write, no fencing.

    from eos.bookkeeper import Bookies, LedgerReader, parse_znode

    with Bookies() as bookies:
        for entries in LedgerReader(bookies, parse_znode(7, data)).read(0, 99):
            for number, payload in entries: ...

Of use without Pulsar and Spark. It speaks version 2 of the bookies' protocol, with batch reads where a bookie has them
(4.17 and newer), checks each entry's digest, and asks each replica before it says that an entry is lost.
"""

from eos.bookkeeper.errors import (
    BookieUnauthorized,
    BookieUnavailable,
    BookieUntrusted,
    EntryDamaged,
    EntryMissing,
    LedgerReadError,
    MetadataUnreadable,
)
from eos.bookkeeper.net.bookies import Bookies, by_id, by_map
from eos.bookkeeper.net.connection import Authentication
from eos.bookkeeper.net.ledger_reader import LedgerReader
from eos.bookkeeper.wire.digest import Digest
from eos.bookkeeper.wire.metadata import LedgerMetadata, LedgerState, parse_printed, parse_znode, znode

__all__ = [
    "Authentication",
    "BookieUnauthorized",
    "BookieUnavailable",
    "BookieUntrusted",
    "Bookies",
    "Digest",
    "EntryDamaged",
    "EntryMissing",
    "LedgerMetadata",
    "LedgerReadError",
    "LedgerReader",
    "LedgerState",
    "MetadataUnreadable",
    "by_id",
    "by_map",
    "parse_printed",
    "parse_znode",
    "znode",
]
