"""The metadata of a ledger: which bookies store its entries. Pure.

They are printed by Pulsar's admin API (`internalStats?metadata=true`; no password in it), and stand in ZooKeeper in
three forms: lines of text (1), protobuf as text (2), protobuf with its size before it (3). Each begins with a line that
has the form's number. Source: BookKeeper's LedgerMetadataSerDe and LedgerMetadataImpl.toSafeString.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from types import MappingProxyType

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from eos.bookkeeper.errors import MetadataUnreadable
from eos.bookkeeper.wire.bookkeeper_pb2 import LedgerMetadataFormat
from eos.bookkeeper.wire.digest import Digest
from eos.pickling import PickledByName

_BEGINNING = b"BookieMetadataFormatVersion\t"
_IN_RECOVERY = -102  # in place of the last entry, in the first form
_LAST_OF_SHORT_IDS = 2**31 - 1
_ENDLESS = 2**63 - 1


class LedgerState(Enum):
    """Whether entries can still be added."""

    OPEN = "OPEN"
    IN_RECOVERY = "IN_RECOVERY"
    CLOSED = "CLOSED"


@dataclass(frozen=True, slots=True)
class LedgerMetadata(PickledByName):
    """Where the entries of a ledger are.

    Attributes:
        ledger: its id.
        state: of the ledger. Only a closed one has a last entry and a length.
        ensemble_size, write_quorum, ack_quorum: over how many bookies entries are spread, how many store each, and how
            many of those must say so before the writer counts the entry as added.
        ensembles: the first entry and the ids of the bookies, of each ensemble in turn. An id is "host:port" unless the
            bookie was given another.
        digest: how its entries are protected.
        last_entry: the last entry's number; -1 where the ledger is empty or not closed.
        length: bytes of its payloads; 0 where it is not closed.
        password: its password, which only HMAC needs; never printed by the admin API.
        custom: what the writer noted with it.
    """

    ledger: int
    state: LedgerState
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    ensembles: tuple[tuple[int, tuple[str, ...]], ...]
    digest: Digest = Digest.CRC32C
    last_entry: int = -1
    length: int = 0
    password: bytes = field(default=b"", repr=False)
    custom: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        sizes_fit = 0 < self.ack_quorum <= self.write_quorum <= self.ensemble_size
        whole = all(len(bookies) == self.ensemble_size for _, bookies in self.ensembles)
        firsts = [first for first, _ in self.ensembles]
        if not (sizes_fit and whole and firsts[:1] == [0] and all(a < b for a, b in pairwise(firsts))):
            raise MetadataUnreadable(
                f"the metadata of ledger {self.ledger} contradict themselves (ensemble {self.ensemble_size}, quorums "
                f"{self.write_quorum} and {self.ack_quorum}, ensembles {self.ensembles})"
            )

    @property
    def striped(self) -> bool:
        """Whether neighbouring entries lie on different bookies."""
        return self.ensemble_size > self.write_quorum

    def replicas(self, entry: int) -> tuple[str, ...]:
        """Return the ids of the bookies that were to store an entry, in the order of its write set."""
        bookies = self._ensemble(entry)[1]
        return tuple(bookies[(entry + copy) % self.ensemble_size] for copy in range(self.write_quorum))

    def end_of_ensemble(self, entry: int) -> int:
        """Return the first entry after this one that another ensemble stores."""
        first = self._ensemble(entry)[0]
        return next((later for later, _ in self.ensembles if later > first), _ENDLESS)

    def _ensemble(self, entry: int) -> tuple[int, tuple[str, ...]]:
        if entry < 0:
            raise MetadataUnreadable(f"ledger {self.ledger} has no entry {entry}. Entries are numbered from 0")
        return next(one for one in reversed(self.ensembles) if one[0] <= entry)


def parse_znode(ledger: int, data: bytes) -> LedgerMetadata:
    """Read the metadata of a ledger as they stand in ZooKeeper. Raises MetadataUnreadable."""
    first, _, body = data.partition(b"\n")
    version = first.removeprefix(_BEGINNING)
    try:
        if first.startswith(_BEGINNING) and version == b"1":
            return _of_lines(ledger, body.decode())
        if first.startswith(_BEGINNING) and version == b"2":
            return _of_format(ledger, text_format.Parse(body, LedgerMetadataFormat(), allow_unknown_field=True))
        if first.startswith(_BEGINNING) and version == b"3":
            return _of_format(ledger, LedgerMetadataFormat.FromString(_delimited(body)))
    except (ValueError, IndexError, DecodeError, text_format.ParseError) as error:
        raise MetadataUnreadable(f"the metadata of ledger {ledger} can't be read ({error})") from error
    raise MetadataUnreadable(
        f"the metadata of ledger {ledger} begin with {first[:40]!r}. This library reads the forms 1, 2 and 3"
    )


def parse_printed(ledger: int, text: str) -> LedgerMetadata:
    """Read the metadata of a ledger as Pulsar's admin API prints them. Raises MetadataUnreadable."""
    fields = dict(re.findall(r"(\w+)=([^,{}\[\]]+)[,}]", text))
    ensembles = re.findall(r"(\d+)=\[([^\]]*)\]", text)
    custom = re.search(r"customMetadata=\{([^}]*)\}", text)
    try:
        return LedgerMetadata(
            ledger=ledger,
            state=LedgerState(fields["state"]),
            ensemble_size=int(fields["ensembleSize"]),
            write_quorum=int(fields["writeQuorumSize"]),
            ack_quorum=int(fields["ackQuorumSize"]),
            ensembles=tuple(
                (int(first), tuple(one.strip() for one in bookies.split(","))) for first, bookies in ensembles
            ),
            digest=_digest(fields.get("digestType", "MAC")),  # printed only of a ledger with a password
            last_entry=int(fields.get("lastEntryId", -1)) if fields["state"] == LedgerState.CLOSED.value else -1,
            length=int(fields.get("length", 0)),
            custom=_custom(custom[1] if custom else ""),
        )
    except (KeyError, ValueError, binascii.Error) as error:
        raise MetadataUnreadable(
            f"the metadata of ledger {ledger} can't be read ({error!r}). The text is {text!r}"
        ) from error


def znode(ledger: int, root: str = "/ledgers", *, layout: str = "hierarchical") -> str:
    """Return the path of a ledger's metadata in ZooKeeper.

    Args:
        root: the cluster's root of ledgers.
        layout: "hierarchical" (short ids by 2-4-4 digits, longer ones by 3-4-4-4-4), "long" (all by 3-4-4-4-4),
            "legacy" (all by 2-4-4), or "flat".
    """
    if layout == "flat":
        return f"{root}/L{ledger:010d}"
    if layout == "legacy" or (layout == "hierarchical" and ledger < _LAST_OF_SHORT_IDS):
        digits = f"{ledger:010d}"
        return f"{root}/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"
    digits = f"{ledger:019d}"
    return f"{root}/{digits[:3]}/{digits[3:7]}/{digits[7:11]}/{digits[11:15]}/L{digits[15:]}"


def _of_lines(ledger: int, text: str) -> LedgerMetadata:
    write_quorum, ensemble_size, length, *rest = text.splitlines()
    state, last_entry = LedgerState.OPEN, -1
    ensembles = []
    for line in rest:
        first, *bookies = line.split("\t")
        if bookies == [LedgerState.CLOSED.value]:
            recovers = int(first) == _IN_RECOVERY
            state, last_entry = (LedgerState.IN_RECOVERY, -1) if recovers else (LedgerState.CLOSED, int(first))
        else:
            ensembles.append((int(first), tuple(bookies)))
    quorum = int(write_quorum)
    return LedgerMetadata(
        ledger=ledger,
        state=state,
        ensemble_size=int(ensemble_size),
        write_quorum=quorum,
        ack_quorum=quorum,
        ensembles=tuple(ensembles),
        digest=Digest.HMAC,
        last_entry=last_entry,
        length=int(length) if state is LedgerState.CLOSED else 0,
    )


def _of_format(ledger: int, found: LedgerMetadataFormat) -> LedgerMetadata:
    state = LedgerState(LedgerMetadataFormat.State.Name(found.state))
    closed = state is LedgerState.CLOSED
    kind = LedgerMetadataFormat.DigestType.Name(found.digestType) if found.HasField("digestType") else "HMAC"
    return LedgerMetadata(
        ledger=ledger,
        state=state,
        ensemble_size=found.ensembleSize,
        write_quorum=found.quorumSize,
        ack_quorum=found.ackQuorumSize or found.quorumSize,
        ensembles=tuple((segment.firstEntryId, tuple(segment.ensembleMember)) for segment in found.segment),
        digest=Digest[kind],
        last_entry=found.lastEntryId if closed else -1,
        length=found.length if closed else 0,
        password=found.password,
        custom=MappingProxyType({one.key: one.value for one in found.customMetadata}),
    )


def _digest(name: str) -> Digest:
    return Digest.HMAC if name == "MAC" else Digest[name]


def _delimited(data: bytes) -> bytes:
    size = shift = at = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if len(data) < at + size:
        raise ValueError(f"{size} bytes were announced, and {len(data) - at} are there")
    return data[at : at + size]


def _custom(text: str) -> Mapping[str, bytes]:
    found = re.findall(r"([^,=\s]+)=base64:([^,}]*)", text)
    return MappingProxyType({key: base64.b64decode(value + "=" * (-len(value) % 4)) for key, value in found})
