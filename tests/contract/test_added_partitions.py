"""The admin API tells which topics an open transaction has: a sink seals them before it aborts a batch."""

from __future__ import annotations

import pytest

from eos.errors import Unreachable
from eos.preflight.retention import written_partitions
from eos.pulsar.net.client import Client
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Running
from tests.waiting import PATIENCE_S


def test_the_topics_of_an_open_transaction_are_told_without_the_control_topic(
    pulsar: Running, ours: Client, make_topic: MakeTopic
) -> None:
    topic, other, control = make_topic("rows", 2), make_topic("rows"), make_topic("control")
    given = (pulsar.admin_url, ours.cluster, control, PATIENCE_S)
    txn = transaction(ours, control)
    assert written_partitions(*given, txn) == set()
    ours.coordinator(txn.coordinator).add_partitions(txn, [f"{topic}-partition-1", other])
    assert written_partitions(*given, txn) == {f"{topic}-partition-1", other}
    end(ours, txn, commit=False)
    assert written_partitions(*given, txn) is None
    with pytest.raises(Unreachable):
        written_partitions("http://localhost:1", *given[1:], txn)
