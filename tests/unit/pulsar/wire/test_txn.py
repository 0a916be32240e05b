from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.pulsar.wire.txn import TxnId


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
