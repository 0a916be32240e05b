"""Parts of the bytes that need few tests each: columns, keys, places of messages, transaction ids."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.errors import InvalidInput
from eos.pulsar.wire.columns import row_name
from eos.pulsar.wire.keys import first_not_base64, undo_base64, wire_keys
from eos.pulsar.wire.message_id import EntryId
from eos.pulsar.wire.txn import TxnId

# ---- columns


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"value": ["a", "b"]}, "row 6"),
        ({"value": ["a", "b"], "row": [100, 101]}, "row 101"),
        ({"key": ["k", "flight-7"], "row": [0, 1]}, 'row 1 (key "flight-7")'),
        ({"key": [b"k", b"\xff7"]}, 'row 6 (key "\\xff7")'),
        ({"key": ["k", None]}, "row 6"),
        ({"key": ["k", "x" * 1000]}, f'row 6 (key "{"x" * 40}…")'),
    ],
)
def test_a_row_is_named_by_its_number_and_its_key(columns: dict[str, list[object]], name: str) -> None:
    assert row_name(pa.RecordBatch.from_pydict(columns), 1, first_row=5) == name


# ---- keys


@given(st.lists(st.none() | st.binary(max_size=20)), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_what_was_made_base64_comes_back(keys: list[bytes | None], kind: pa.DataType) -> None:
    wire = wire_keys(pa.array(keys, kind))
    if wire.encoded is None:
        return
    encoded = wire.text.filter(wire.encoded)
    plain = undo_base64(encoded)
    assert plain is not None
    assert plain.type == encoded.type
    assert plain.to_pylist() == pa.array(keys, kind).filter(wire.encoded).to_pylist()


NO_BASE64 = [b"YQ", b"YQ=", b"=YQ=", b"YQ==YQ==", b"Y===", b"YQ=a", b"Y*==", b"YWI_", b"YWJj=", b"YQ==="]


@pytest.mark.parametrize("wrong", NO_BASE64)
def test_what_is_no_base64_is_refused(wrong: bytes) -> None:
    column = pa.array([b"YQ==", None, wrong, b"YWI=", wrong])
    assert undo_base64(column) is None
    assert first_not_base64(column) == 2
    assert first_not_base64(column.slice(0, 2)) is None


def test_empty_rows_between_others() -> None:
    plain = undo_base64(pa.array([b"", b"YQ==", b"", None, b"YWJj", b""]))
    assert plain is not None
    assert plain.to_pylist() == [b"", b"a", b"", b"", b"abc", b""]


# ---- places of messages


@pytest.mark.parametrize(("entry", "text"), [(EntryId(5, 3), "5:3"), (EntryId(0, 0), "0:0"), (EntryId(7, -1), "7:-1")])
def test_the_text_of_an_entry_id_and_back(entry: EntryId, text: str) -> None:
    assert str(entry) == text
    assert EntryId.parse(text) == entry


@pytest.mark.parametrize(
    "text", ["", "5", "5:", ":3", "5:3:0", "5:-2", "-1:3", " 5:3", "5:3\n", "a:b", "५:३", f"{2**63}:3", f"5:{2**63}"]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an entry id"):
        EntryId.parse(text)


def test_ids_are_ordered_as_the_entries_are() -> None:
    assert sorted([EntryId(6, 0), EntryId(5, 9), EntryId(5, -1)]) == [EntryId(5, -1), EntryId(5, 9), EntryId(6, 0)]


def test_an_id_goes_over_the_wire_and_back() -> None:
    assert EntryId.read(EntryId(5, 3).written()) == EntryId(5, 3)
    assert not EntryId(5, 3).written().HasField("batch_index")


# ---- transaction ids


def test_it_is_printed_and_read_as_pulsar_prints_it() -> None:
    txn = TxnId(5, 77)
    assert str(txn) == "(5,77)"
    assert TxnId.parse(str(txn)) == txn


def test_the_first_number_is_the_coordinators_index() -> None:
    assert TxnId(15, 1).coordinator == 15
    assert TxnId(0, 1).coordinator == 0


def test_ids_are_ordered_by_coordinator_then_number() -> None:
    assert sorted([TxnId(1, 0), TxnId(0, 9), TxnId(0, 2)]) == [TxnId(0, 2), TxnId(0, 9), TxnId(1, 0)]


@pytest.mark.parametrize("text", ["", "0,1", "(0,1", "(0, 1)", "(a,1)", "(0,1) ", "(-1,0)"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a transaction id"):
        TxnId.parse(text)
