"""Giving up the rows of a batch, so that a sink goes on after it: its MARKER is committed without any rows.

A sink refuses a batch after one that was begun and is not committed, and after one that the checkpoint notes as failed:
the failed batch would be missing without a word. If its rows are not wanted, or were written in another way, this
command says so to the sink. It takes the sink over as any driver does, and its transaction is like that of any batch.
So a crash at any step leaves the log as a driver would (docs/protocol.md). If Spark hands the batch over later, the
sink refuses it, since its offsets are not those of the MARKER.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eos.commit.attempt import attempt
from eos.commit.control_log import LogView
from eos.commit.control_topic import DEFAULT_NAMESPACE, abort_command
from eos.commit.decision import JOB, Identity
from eos.commit.owner import Owner
from eos.commit.ports import Written
from eos.commit.retry import OwnerSettings
from eos.doctor.abort import refuse_if_owned
from eos.doctor.sinks import SinkState, log_of, sink
from eos.errors import InvalidInput
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.txn import TxnId

RUN: Final = "eos skip"
"""In place of a run's id in the records: eight characters, since `eos sink show` prints so many of one."""

_ALL: Final = 1 << 62
"""Markers to retain: how many the sink retains is for its own driver to say."""


@dataclass(frozen=True, slots=True)
class _Nothing:
    """The content of the batch's marker."""

    rows: dict[str, int]
    bytes: dict[str, int]


class _NoRows:
    """A delivery of nothing."""

    def prepare(self) -> None:
        """See DeliveryPort."""

    def send(self, txn: TxnId) -> Written:
        """See DeliveryPort."""
        return _Nothing({}, {})

    def finish(self) -> None:
        """See DeliveryPort."""

    def abandon(self) -> tuple[str, ...]:
        """See DeliveryPort: nothing was added to the transaction."""
        return ()


def look(
    client: Client, name: str, batch_id: int, namespace: str = DEFAULT_NAMESPACE, admin: Admin | None = None
) -> SinkState:
    """Return a sink that no driver owns, and that may skip this batch.

    Raises:
        OwnerAlive: a driver owns the sink.
        InvalidInput: the sink is not there, it is a job, or the batch is committed, or another one is unfinished.
        DamagedLog, NetworkError: its log can't be read.
    """
    refuse_if_owned(client, name, log_of(client, name, namespace), admin)
    seen = sink(client, name, namespace)
    if seen.problem is not None:
        raise InvalidInput(f'Batch {batch_id} of the sink "{name}" cannot be skipped. {seen.problem}')
    if seen.query_id is None:
        raise InvalidInput(f'The sink "{name}" has no batch in its log, so there is none to skip')
    if seen.query_id.startswith(JOB):
        raise InvalidInput(
            f'"{name}" is a job of eos.write, and a job has no next batch to go on with. Nothing was skipped. The next '
            f"call of eos.write with this job_id writes the job. If its rows are not wanted, do not call it again, and "
            f"end what its last call has left open with `{abort_command(name, namespace)}`"
        )
    if seen.batch_id is not None and batch_id <= seen.batch_id:
        raise InvalidInput(
            f'Batch {batch_id} cannot be skipped. The newest committed batch of the sink "{name}" is {seen.batch_id}'
        )
    begun = seen.unfinished
    if begun is not None and begun.batch_id != batch_id:
        raise InvalidInput(
            f'Batch {batch_id} cannot be skipped. The batch of the sink "{name}" that was begun and is not committed '
            f"is {begun.batch_id}. Skip that one, or let the query write it"
        )
    return seen


def skip(client: Client, seen: SinkState, batch_id: int, namespace: str = DEFAULT_NAMESPACE) -> None:
    """Commit the batch without rows. Args: the cluster; what `look` gave; the batch; where the control topic is.

    Raises what `attempt` raises: after NotCommitted and CommitUnknown call again.
    """
    assert seen.query_id is not None, "look has refused it"
    owner = Owner(client, seen.name, log_of(client, seen.name, namespace), OwnerSettings(markers_retained=_ALL))
    identity = Identity(seen.query_id, RUN, "")
    try:
        owner.take_over(identity.query_id, identity.run_id)
        _refuse_a_moved_log(seen, owner.view)
        attempt(owner, batch_id, identity, _NoRows())
    finally:
        owner.close()


def _refuse_a_moved_log(seen: SinkState, view: LogView) -> None:
    newest = None if view.newest is None else view.newest.batch_id
    if (newest, view.unfinished) != (seen.batch_id, seen.unfinished):
        raise InvalidInput(f'The log of the sink "{seen.name}" has moved on. Look again.')


def what_it_means(one: SinkState, batch_id: int) -> str:
    """Say what skipping the batch does."""
    newest = "It has committed no batch" if one.batch_id is None else f"Its newest committed batch is {one.batch_id}"
    return (
        f'Skipping batch {batch_id} of the sink "{one.name}" commits it without rows. {newest}, of query '
        f"{one.query_id}. The rows of batch {batch_id} are never written, nor are those of an older batch that is not "
        "committed. Readers are not told. The query goes on "
        f"with a later batch. Spark may not hand over batch {batch_id} or an older one any more."
    )
