"""A sink that starts over, on a real broker: its log goes, its rows stay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eos.cli.app import typer_app
from eos.commit.control_topic import control_topic
from eos.commit.owner import Owner
from eos.commit.registration import Registration
from eos.config import Cluster
from eos.doctor import reset as resetting
from eos.doctor.sinks import sink as state_of
from eos.errors import DamagedLog, IdentityMismatch, InvalidInput
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.integration.sparkless import Sink, eos
from tests.integration.sparkless import sink as sink
from tests.reading import values_of
from tests.waiting import until


@pytest.fixture
def client(pulsar: Any) -> Iterator[Client]:
    with Client(Cluster(pulsar.service_url)) as opened:
        yield opened


def owner(client: Client, sink: Sink) -> Owner:
    """Another driver of the sink's name, which takes no time to find out that the log is another query's."""
    log = control_topic(sink.name, sink.topic)
    client.ensure_topic(log)
    return Owner(client, sink.name, log)


def test_a_query_with_a_new_checkpoint_begins_under_the_old_name(pulsar: Any, sink: Sink, client: Client) -> None:
    sink.write(0)
    last = sink.owner.registration
    txn = sink.die_in_the_middle(1)
    with pytest.raises(IdentityMismatch):
        owner(client, sink).take_over("new query", "run")
    alive = eos(pulsar, "sink", "reset", sink.name, "--yes")
    assert "A driver owns the sink" in str(alive.exception)
    assert state_of(client, sink.name, "public/default").batch_id == 0
    sink.client.close()
    answers: list[Result] = []

    def done() -> bool:
        answers.append(eos(pulsar, "sink", "reset", sink.name, "--yes"))
        return answers[-1].exit_code == 0

    until(done, lambda: answers[-1].exception)  # the broker may not have noticed yet that the driver is gone
    assert "Its newest committed batch is 0, of query query" in answers[-1].stderr
    with Admin(pulsar.admin_url) as admin:
        assert admin.transaction(txn) is None
    with pytest.raises(DamagedLog, match="is empty, and this query has seen its record"):
        owner(client, sink).take_over("query", "run", Registration.parse(last.text))
    new = owner(client, sink)
    new.take_over("new query", "run")
    assert new.view.newest is None
    new.close()
    assert values_of(pulsar.service_url, sink.topic) == ["row of batch 0"]


def test_nothing_is_done_unasked(pulsar: Any, sink: Sink, client: Client) -> None:
    sink.write(0)
    assert "A driver owns the sink" in str(eos(pulsar, "sink", "reset", sink.name, "--yes").exception)
    sink.client.close()
    declined = CliRunner().invoke(
        typer_app,
        ["sink", "reset", sink.name, "--service-url", pulsar.service_url, "--admin-url", pulsar.admin_url],
        input="n\n",
    )
    assert declined.exit_code == 1
    assert "Rows that it reads again are in the topics twice" in declined.stderr
    unreachable = eos(pulsar, "sink", "reset", sink.name, "--yes", admin=False)
    assert "Name it with --admin-url" in str(unreachable.exception)
    seen = state_of(client, sink.name, "public/default")
    again = owner(client, sink)
    again.take_over("query", "run")
    sink.client, sink.owner = client, again
    sink.write(1)
    again.close()
    with Admin(pulsar.admin_url) as admin, pytest.raises(InvalidInput, match="has moved on"):
        resetting.reset(client, admin, seen)
    assert state_of(client, sink.name, "public/default").batch_id == 1
