from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.bookkeeper.errors import MetadataUnreadable
from eos.bookkeeper.wire.digest import Digest
from eos.bookkeeper.wire.metadata import LedgerMetadata, LedgerState, parse_printed, parse_znode, znode
from tests.vectors.ledgers import LEDGER, METADATA, PASSWORD

ENSEMBLES = ((0, ("a:3181", "b:3181", "c:3181")), (17, ("a:3181", "bookie-7", "c:3181")))


def expected(vector: dict[str, Any]) -> LedgerMetadata:
    closed = vector["state"] == "CLOSED"
    oldest = vector["format"] == 1
    return LedgerMetadata(
        LEDGER,
        LedgerState(vector["state"]),
        3,
        2,
        2 if oldest else 1,
        ENSEMBLES,
        Digest["HMAC" if vector["digest"] == "MAC" else vector["digest"]],
        41 if closed else -1,
        4200 if closed else 0,
        b"" if oldest else PASSWORD,
        {} if oldest else {"application": b"pulsar"},
    )


@pytest.mark.parametrize("vector", METADATA, ids=lambda one: f"{one['format']}-{one['state']}-{one['digest']}")
def test_metadata_are_read_as_bookkeeper_wrote_and_printed_them(vector: dict[str, Any]) -> None:
    assert parse_znode(LEDGER, vector["znode"]) == expected(vector)
    printed = parse_printed(LEDGER, vector["printed"])
    wanted = expected(vector)
    assert printed.password == b""
    assert (printed.state, printed.ensembles, printed.digest, printed.last_entry, printed.length, printed.custom) == (
        wanted.state,
        wanted.ensembles,
        wanted.digest,
        wanted.last_entry,
        wanted.length,
        wanted.custom,
    )


@pytest.mark.parametrize("vector", METADATA, ids=lambda one: f"{one['format']}-{one['state']}-{one['digest']}")
def test_cut_metadata_are_unreadable_or_hold_an_ensemble(vector: dict[str, Any]) -> None:
    for size in range(len(vector["znode"])):
        try:
            found = parse_znode(LEDGER, vector["znode"][:size])
        except MetadataUnreadable:
            continue
        assert vector["format"] < 3  # text has no end of its own
        assert found.ensembles[0][0] == 0


@given(st.binary(max_size=80))
def test_other_bytes_are_unreadable(data: bytes) -> None:
    for beginning in (
        b"",
        b"BookieMetadataFormatVersion\t",
        *(b"BookieMetadataFormatVersion\t%d\n" % n for n in (1, 2, 3)),
    ):
        with pytest.raises(MetadataUnreadable):
            parse_znode(LEDGER, beginning + data)


def test_a_form_that_is_unknown_is_named() -> None:
    with pytest.raises(MetadataUnreadable, match=r"begin with .*4'.*forms 1, 2 and 3"):
        parse_znode(LEDGER, b"BookieMetadataFormatVersion\t4\nwhatever")
    with pytest.raises(MetadataUnreadable, match="ledger 4711"):
        parse_printed(LEDGER, "LedgerMetadata{}")


def test_an_entry_lies_on_the_bookies_of_its_write_set() -> None:
    metadata = LedgerMetadata(LEDGER, LedgerState.OPEN, 3, 2, 2, ENSEMBLES)
    assert metadata.striped
    assert [metadata.replicas(entry) for entry in (0, 1, 2, 3, 17)] == [
        ("a:3181", "b:3181"),
        ("b:3181", "c:3181"),
        ("c:3181", "a:3181"),
        ("a:3181", "b:3181"),
        ("c:3181", "a:3181"),
    ]
    assert metadata.replicas(19) == ("bookie-7", "c:3181")
    assert (metadata.end_of_ensemble(16), metadata.end_of_ensemble(17)) == (17, 2**63 - 1)
    with pytest.raises(MetadataUnreadable, match="entry -1"):
        metadata.replicas(-1)


@pytest.mark.parametrize(
    "wrong", [(3, 4, 2, ENSEMBLES), (3, 2, 3, ENSEMBLES), (3, 2, 2, ()), (3, 2, 2, ENSEMBLES[1:]), (2, 2, 2, ENSEMBLES)]
)
def test_metadata_that_contradict_themselves_are_refused(wrong: Any) -> None:
    with pytest.raises(MetadataUnreadable, match="contradict"):
        LedgerMetadata(LEDGER, LedgerState.OPEN, *wrong)


def test_a_ledger_stands_where_bookkeeper_keeps_it() -> None:
    assert znode(4711) == "/ledgers/00/0000/L4711"
    assert znode(2**31 - 1) == "/ledgers/000/0000/0021/4748/L3647"
    assert znode(4711, layout="long") == "/ledgers/000/0000/0000/0000/L4711"
    assert znode(4711, "/x", layout="legacy") == "/x/00/0000/L4711"
    assert znode(4711, layout="flat") == "/ledgers/L0000004711"
