from __future__ import annotations

import pytest

from statestore.bk.records import (
    FileRecord,
    LedgerRecord,
    decode_name,
    encode_path,
    reference_text,
    referenced_path,
)
from statestore.errors import Damaged

# As the jar's FileEntry writes them: a packed file, an empty one, and a large one that a compaction has copied.
GOLDEN_FILES = {
    b"v=1 w=0b1c2d3e4f5a6b7c-17 g=1 ledger=42 first=7 last=8 entry=1048576 length=1048600 crc32c=e3069283"
    b" mtime=1763740800000": FileRecord(
        "0b1c2d3e4f5a6b7c-17", 1, 42, 7, 8, 1048576, 1048600, 0xE3069283, 1763740800000
    ),
    b"v=1 w=0b1c2d3e4f5a6b7c-18 g=0 ledger=-1 first=0 last=-1 entry=1048576 length=0 crc32c=0 mtime=1": FileRecord(
        "0b1c2d3e4f5a6b7c-18", 0, -1, 0, -1, 1048576, 0, 0, 1
    ),
    b"v=1 w=ffffffffffffffff-9~ g=0 ledger=9007199254740993 first=0 last=255 entry=1048576 length=268435456"
    b" crc32c=a mtime=1763740800001": FileRecord(
        "ffffffffffffffff-9~", 0, 9007199254740993, 0, 255, 1048576, 268435456, 10, 1763740800001
    ),
}


@pytest.mark.parametrize(("text", "record"), GOLDEN_FILES.items())
def test_file_records_are_the_text_that_the_jar_writes(text: bytes, record: FileRecord) -> None:
    assert FileRecord.decode("/a", text) == record
    assert record.encode() == text


def test_a_file_hangs_on_its_ledger_and_an_empty_one_on_empty() -> None:
    packed, empty, copied = GOLDEN_FILES.values()
    assert (packed.ledger_name, empty.ledger_name) == ("42", "empty")
    assert copied.origin == "ffffffffffffffff-9"
    assert packed.origin == packed.write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"v=2 w=a-1 g=0", "/a/b has a version this statestore does not know"),
        (b"", "/a/b has a version"),
        (b"v=1 w=a-1 g=0 ledger=1", "/a/b cannot be read"),
        (b"v=1 w=a-1 g=x ledger=1 first=0 last=0 entry=1 length=1 crc32c=0 mtime=0", "cannot be read"),
        (b"v=1 w=a-1 g=0 ledger=1 first=0 last=0 entry=1 length=1 crc32c=xyz mtime=0", "cannot be read"),
        (b"\xff\xfe", "has a version"),
    ],
)
def test_a_damaged_record_names_its_file(text: bytes, message: str) -> None:
    with pytest.raises(Damaged, match=message):
        FileRecord.decode("/a/b", text)


def test_ledger_records_are_the_text_that_the_jar_writes() -> None:
    record = LedgerRecord.decode(7, b"sealed 2f1e-aa 1763740800000 5", ("0b1c-1", "s-before-upgrade"))
    assert record == LedgerRecord(7, "2f1e-aa", True, 1763740800000, ("0b1c-1", "s-before-upgrade"))
    assert record.savepoints == ("before-upgrade",)
    assert not LedgerRecord.decode(7, b"open 2f1e-aa 0 -1", ()).sealed


@pytest.mark.parametrize("text", [b"", b"open", b"closed x 0 -1", b"open x y -1"])
def test_a_damaged_ledger_record_names_the_ledger(text: bytes) -> None:
    with pytest.raises(Damaged, match="ledger 7"):
        LedgerRecord.decode(7, text, ())


@pytest.mark.parametrize(
    ("path", "coded"),
    [
        ("/state/0/1.delta", "/state/0/1.delta"),
        ("/a b/ü/漢", "/a b/ü/漢"),
        ("/100%", "/100%25"),
        ("/a/./..", "/a/%2E/%2E%2E"),
        ("/a/.1.delta.tmp/...", "/a/.1.delta.tmp/..."),
        ("/\x00\x1f\x20\x7e\x7f\x9f\xa0", "/%00%1F\x20\x7e%7F%C2%9F\xa0"),
        ("/\ue000\uf8ff\uf900", "/%EE%80%80%EF%A3%BF\uf900"),
        ("/\uffef\ufff0\U0001f600", "/\uffef%EF%BF%B0%F0%9F%98%80"),
    ],
)
def test_names_are_coded_as_the_jar_does(path: str, coded: str) -> None:
    assert encode_path(path) == coded
    assert "/".join(decode_name(name) for name in coded.split("/")) == path


def test_references_say_generation_and_path() -> None:
    assert reference_text(3, "/a b/c") == b"3 /a b/c"
    assert referenced_path(b"3 /a b/c") == "/a b/c"
