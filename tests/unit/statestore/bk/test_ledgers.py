"""Ledger metadata as BookKeeper 4.17 writes them, made by hand from its .proto."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from statestore import Damaged
from statestore.bk.ledgers import decode, ledger_path

HEADER = b"BookieMetadataFormatVersion\t3\n"


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(fields: Iterable[tuple[int, int | bytes]]) -> bytes:
    out = b""
    for field, value in fields:
        if isinstance(value, int):
            out += varint(field << 3) + varint(value)
        else:
            out += varint(field << 3 | 2) + varint(len(value)) + value
    return out


def segment(first: int, *bookies: str) -> tuple[int, bytes]:
    return 6, message([*((1, bookie.encode()) for bookie in bookies), (2, first)])


def metadata(*fields: tuple[int, int | bytes]) -> bytes:
    body = message(fields)
    return HEADER + varint(len(body)) + body


def test_a_closed_ledger() -> None:
    data = metadata(
        *((1, 3), (2, 5), (3, 1 << 40), (4, 999), (5, 3)),
        *(segment(0, "a:1", "b:1"), segment(500, "a:1", "c:1")),
        *((7, 3), (8, b"secret"), (9, 2), (11, message([(1, b"eos.root"), (2, b"x")]))),
    )
    known = decode(7, data)
    assert (known.ensemble, known.write_quorum, known.ack_quorum) == (5, 3, 2)
    assert (known.closed, known.length, known.last) == (True, 1 << 40, 999)
    assert known.bookies == {0: ("a:1", "b:1"), 500: ("a:1", "c:1")}
    assert "secret" not in repr(known)


def test_an_open_one_does_not_say_how_long_it_is() -> None:
    known = decode(7, metadata((1, 2), (2, 2), (3, 0), (5, 1), segment(0, "a:1", "b:1")))
    assert (known.closed, known.length, known.last, known.ack_quorum) == (False, 0, -1, 2)


def test_a_closed_empty_one() -> None:
    assert decode(7, metadata((1, 1), (2, 1), (3, 0), (4, -1), (5, 3))).last == -1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BookieMetadataFormatVersion\t2\nquorumSize: 1",
        HEADER + b"\x02\x08",
        metadata((1, 1), (2, 1)),
        HEADER + b"\x01\x0d",
    ],
)
def test_what_is_no_such_metadata_is_damaged(data: bytes) -> None:
    with pytest.raises(Damaged, match="ledger 7 can't be read"):
        decode(7, data)


def test_paths() -> None:
    assert ledger_path("/ledgers", 12) == "/ledgers/00/0000/L0012"
    assert ledger_path("/x/ledgers", 2**31 - 1) == "/x/ledgers/21/4748/L3647"
    assert ledger_path("/ledgers", 2**31) == "/ledgers/000/0000/0021/4748/L3648"
