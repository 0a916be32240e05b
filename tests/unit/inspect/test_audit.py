"""When rows that readers do not find are missing, and when that can't be known: by what a partition begins with."""

from __future__ import annotations

from collections import Counter

import pytest

from eos.commit.control_log import Marker
from eos.inspect.audit import AuditVerdict, _compared, _First, _Log, _Stored
from eos.pulsar.wire.txn import TxnId

TOPIC = "persistent://public/default/rows"
TXNS = [TxnId(0, number) for number in range(3)]
STRANGER = TxnId(7, 7)


def verdict(*begins: _First | None) -> AuditVerdict:
    """What is said of batch 1 of three, of which a row is not found. Batch 0 was published at 1,000 ms."""
    log = _Log({txn: Marker(0, "q", "r", batch, 1, txn, None, {TOPIC: 1}, {}, "") for batch, txn in enumerate(TXNS)})
    newest_ms = dict(zip(TXNS, (1_000, 0, 3_000), strict=True))
    stored = _Stored(Counter({TXNS[0]: 1, TXNS[2]: 1}), newest_ms, list(begins))
    (found,) = _compared(TOPIC, log, {}, {TOPIC: stored})
    assert found.batch_id == 1
    return found.verdict


@pytest.mark.parametrize("at_ms", [0, 1_000, 9_000])
def test_of_the_sinks_own_batches_the_order_counts_and_not_the_clocks(at_ms: int) -> None:
    older, same, later = (_First(at_ms, txn) for txn in TXNS)
    assert verdict(older) is AuditVerdict.MISSING
    assert verdict(same) is verdict(later) is AuditVerdict.UNKNOWN, "what was before may have been deleted"
    assert verdict(older, later) is AuditVerdict.UNKNOWN, "each partition counts"


@pytest.mark.parametrize("txn", [None, STRANGER])
def test_of_what_others_wrote_the_time_counts(txn: TxnId | None) -> None:
    assert verdict(_First(1_000, txn)) is AuditVerdict.MISSING
    assert verdict(_First(1_001, txn)) is AuditVerdict.UNKNOWN


def test_a_partition_that_holds_nothing_proves_nothing() -> None:
    assert verdict(_First(0, TXNS[0]), None) is AuditVerdict.UNKNOWN
