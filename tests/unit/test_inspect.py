"""Parts of eos.inspect that need few tests each: an audit, topics and views."""

from __future__ import annotations

import time
from collections import Counter
from importlib.util import find_spec
from typing import Any

import pytest

import eos
from eos.commit.control_log import Marker
from eos.errors import InvalidInput, TopicMissing
from eos.inspect.audit import AuditVerdict, _compared, _First, _Log, _Stored
from eos.inspect.tables import TopicTable, tables
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.txn import TxnId

# ---- audit


TOPIC = "persistent://public/default/rows"
TXNS = [TxnId(0, number) for number in range(3)]
STRANGER = TxnId(7, 7)


def verdict(*begins: _First | None) -> AuditVerdict:
    """What is said of batch 1 of three, of which a row is not found. Batch 0 was published at 1,000 ms."""
    log = _Log({txn: Marker(0, "q", "r", batch, 1, txn, None, {TOPIC: 1}, {}, "") for batch, txn in enumerate(TXNS)})
    newest_ms = dict(zip(TXNS, (1_000, 0, 3_000), strict=True))
    stored = _Stored(Counter({TXNS[0]: 1, TXNS[2]: 1}), newest_ms, list(begins))
    (found,) = _compared(log, {}, {TOPIC: stored})
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


def test_thousands_of_topics_are_compared_at_once() -> None:
    """Each batch looked at each topic for each topic: 200 topics took half a minute, and 2,000 an hour."""
    count, txns = 2_000, [TxnId(0, number) for number in range(100)]
    topics = [f"{TOPIC}-{number}" for number in range(count)]
    rows = dict.fromkeys(topics, 1)
    log = _Log({txn: Marker(0, "q", "r", batch, 1, txn, None, rows, {}, "") for batch, txn in enumerate(txns)})
    newest_ms = {txn: 1_000 + batch for batch, txn in enumerate(txns)}
    stored = {one: _Stored(Counter(txns), newest_ms, [_First(0, None)]) for one in topics}
    stored[topics[-1]] = _Stored(Counter(txns[1:]), newest_ms, [_First(0, None)])
    began = time.process_time()
    (found,) = _compared(log, {}, stored)
    assert (found.verdict, found.batch_id, found.topic) == (AuditVerdict.MISSING, 0, topics[-1])
    assert time.process_time() - began < 5


# ---- topics


BASE = "persistent://public/default"


class Listing:
    def __init__(self, *names: str) -> None:
        self._names = [f"{BASE}/{name}" for name in names]

    def topics(self, namespace: str) -> list[str]:
        assert namespace == "public/default"
        return self._names

    def partitions(self, topic: str) -> int:
        """One has more than are listed, since brokers have removed them, and one was deleted just now."""
        name = topic.rpartition("/")[2]
        if name.startswith("gone") or name == "left":
            raise TopicMissing(topic)
        return {"b": 4, "left-partition-3": 0}[name]

    def schema(self, topic: str) -> Registered | None:
        return Registered(topic, bytes(8), "INT32", b"", {}) if topic.endswith("/c") else None


def test_partitions_are_one_topic_and_hidden_topics_are_left_out() -> None:
    client: Any = Listing(
        "b-partition-1", "c", "b-partition-0", "__eos-sink", "a-partition-x", "gone-partition-7", "left-partition-3"
    )
    assert tables(client, "public/default") == [
        TopicTable(f"{BASE}/a-partition-x", 0, None),
        TopicTable(f"{BASE}/b", 4, None),
        TopicTable(f"{BASE}/c", 0, "INT32"),
        TopicTable(f"{BASE}/left-partition-3", 0, None),
    ]


@pytest.mark.parametrize("name", ["public", "public/default/", "a b/c", "persistent://public/default", ""])
def test_a_malformed_namespace_is_refused_before_anything_is_asked(name: str) -> None:
    client: Any = None
    with pytest.raises(InvalidInput, match=r"not a namespace. Write tenant/namespace"):
        tables(client, name)


# ---- views


@pytest.mark.parametrize("name", [name for name in eos.__all__ if not name.startswith("__")])
def test_no_room_has_the_name_of_something_public(name: str) -> None:
    """Importing a package would put the package in its place."""
    assert find_spec(f"eos.{name}") is None
