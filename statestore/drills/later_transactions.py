"""End later transactions on a topic: what was left open, or was sent too late, shows its harm only then."""

from __future__ import annotations

from collections.abc import Sequence

from eos.backoff import retried
from eos.commit.retry import Retry
from eos.commit.transaction import TransactionEnd, end, open_transaction
from eos.config import Cluster
from eos.errors import ConnectionLost, Unanswered
from eos.pulsar.net.client import Client
from eos.pulsar.protocol.topics import partition_name
from eos.pulsar.wire.txn import TxnId

_TTL_S = 120
_PATIENCE_S = 110  # less than the transaction lives


def end_later_transactions(service_url: str, topic: str, coordinators: int | None = None) -> None:
    """End one empty transaction of each coordinator on each partition of a topic.

    The end carries the coordinator's low watermark, below which the broker aborts what it finds open. A broker that
    is slow to answer is asked again, for up to two minutes. `coordinators`: how many there are; default: asked for.
    Raises an `EosError` when one doesn't answer.
    """
    with Client(Cluster(service_url)) as client:
        names = [partition_name(topic, number) for number in range(client.partitions(topic))] or [topic]
        for index in range(client.coordinators() if coordinators is None else coordinators):
            answer = end(client, _open(client, index, names), commit=True, patience=_patience())
            if answer.ending is TransactionEnd.NOT_YET and answer.error is not None:
                raise answer.error


@retried(lambda error: isinstance(error, (Unanswered, ConnectionLost)), _PATIENCE_S, first_s=1, longest_s=1)
def _open(client: Client, index: int, names: Sequence[str]) -> TxnId:
    with open_transaction(client, index, names, _TTL_S, _patience) as txn:
        return txn


def _patience() -> Retry:
    return Retry(_PATIENCE_S)
