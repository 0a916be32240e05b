"""`eos sink list`, `show` and `verify`: what a sink's log says, and whether a fresh reader finds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eos.cli.app import typer_app
from eos.commit.control_topic import control_topic
from eos.errors import DamagedLog
from tests.contract.raw import RawProducer
from tests.integration.sparkless import Sink, eos, truncate
from tests.integration.sparkless import sink as sink
from tests.unit.inspect.test_checkpoints import checkpoint


def verified(pulsar: Any, sink: Sink) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of `eos sink verify`, and what it found."""
    answer = eos(pulsar, "sink", "verify", sink.name, "--json", admin=False)
    return answer.exit_code, json.loads(answer.stdout)["discrepancies"]


def listed(pulsar: Any, sink: Sink) -> dict[str, Any]:
    answer = eos(pulsar, "sink", "list", "--json")
    (one,) = [one for one in json.loads(answer.stdout) if one["name"] == sink.name]
    return dict(one)


def test_readers_find_what_the_markers_promise(pulsar: Any, sink: Sink) -> None:
    for batch_id in range(3):
        sink.write(batch_id)
    with sink.client.producer(sink.topic) as producer:
        producer.send_record(b"somebody else's", None)
    assert verified(pulsar, sink) == (0, [])
    assert (
        "3 committed batches, 3 rows, 1 topic: as promised"
        in eos(pulsar, "sink", "verify", sink.name, admin=False).output
    )


@pytest.mark.parametrize(("promised", "verdict"), [(0, "too many"), (2, "missing")])
def test_rows_too_many_and_rows_missing_are_named(promised: int, verdict: str, pulsar: Any, sink: Sink) -> None:
    sink.write(0)
    txn = sink.write(1, promised)
    sink.write(2)
    code, (found,) = verified(pulsar, sink)
    assert code == 1
    assert found == {
        "verdict": verdict,
        "batch_id": 1,
        "topic": sink.topic,
        "transaction": str(txn),
        "promised": promised,
        "found": 1,
    }


def test_rows_that_retention_may_have_deleted_are_not_called_missing(pulsar: Any, sink: Sink) -> None:
    """Nothing of the topic is older than the batch: what was before it may have been deleted, and its rows with it."""
    sink.write(0, 2)
    sink.write(1)
    code, (found,) = verified(pulsar, sink)
    assert (code, found["verdict"], found["batch_id"]) == (3, "not known", 0)


def test_a_log_whose_records_are_deleted_is_not_one_of_a_new_sink(pulsar: Any, sink: Sink, tmp_path: Path) -> None:
    sink.write(0)
    registered = sink.owner.registration
    sink.owner.close()
    truncate(pulsar, control_topic(sink.name, sink.topic))
    assert listed(pulsar, sink)["status"] == "empty"
    answer = eos(pulsar, "sink", "verify", sink.name)
    assert (answer.exit_code, "as promised" in answer.output) == (3, False)
    old = str(checkpoint(tmp_path, 0, 0))
    answer = eos(pulsar, "sink", "adopt", old, "--topic", sink.topic, "--sink", sink.name, "--json")
    (name,) = [one for one in json.loads(answer.stdout)["findings"] if one["about"] == "name"]
    assert (answer.exit_code, name["verdict"]) == (3, "can't be known")
    with pytest.raises(DamagedLog, match="is empty, and this query has seen its record"):
        sink.owner.take_over("query", "another run", registered)


def test_rows_of_a_transaction_without_a_marker_are_aborted_ones_that_readers_see(pulsar: Any, sink: Sink) -> None:
    """As after a broker that forgets its aborted transactions: here the transaction is committed without the sink."""
    sink.write(0)
    txn = sink.die_in_the_middle(1)
    sink.client.coordinator(txn.coordinator).end(txn, commit=True)
    assert verified(pulsar, sink) == (0, []), "the last batch may just be being committed"
    sink.write(1)
    code, (found,) = verified(pulsar, sink)
    assert (code, found["verdict"], found["transaction"]) == (1, "aborted, but readable", str(txn))


def test_rows_of_a_batch_hidden_by_a_late_frame_and_its_healing_are_missing(pulsar: Any, sink: Sink) -> None:
    zombie = RawProducer(pulsar.service_url, sink.topic)
    sink.write(0)
    txn = sink.write(1)
    zombie.send(b"late", txn, 1)
    zombie.event()
    assert eos(pulsar, "doctor", sink.topic, "--heal", "--accept-loss").exit_code == 0
    code, (found,) = verified(pulsar, sink)
    assert (code, found["verdict"], found["found"]) == (1, "missing", 0)
    zombie.connection.close()


def test_a_sink_is_listed_with_what_it_committed_and_what_it_left(pulsar: Any, sink: Sink) -> None:
    one = listed(pulsar, sink)
    assert (one["status"], one["batch_id"], one["query_id"], one["run_id"]) == ("new", None, "query", "run")
    sink.write(0)
    one = listed(pulsar, sink)
    assert (one["status"], one["batch_id"], one["rows"], one["unfinished"]) == ("committed", 0, 1, None)
    txn = sink.die_in_the_middle(1)
    one = listed(pulsar, sink)
    assert (one["status"], one["batch_id"]) == ("unfinished", 0)
    assert one["unfinished"] == {"batch_id": 1, "attempt": 1, "transaction": str(txn), "open": True}
    sink.client.coordinator(txn.coordinator).end(txn, commit=False)
    assert listed(pulsar, sink)["unfinished"]["open"] is False
    table = eos(pulsar, "sink", "list").stdout
    assert f"batch 1, attempt 1, transaction {txn}, ended" in table


def test_a_log_that_cant_be_read_is_told_among_the_others(pulsar: Any, sink: Sink) -> None:
    other = f"{sink.name}-damaged"
    topic = control_topic(other, sink.topic)
    sink.client.ensure_topic(topic)
    with sink.client.producer(topic) as producer:
        producer.send_record(b"written by another program", None)
    answer = eos(pulsar, "sink", "list", "--json")
    found = {one["name"]: one for one in json.loads(answer.stdout)}
    assert (found[sink.name]["status"], found[other]["status"]) == ("new", "unreadable")
    assert "did not write" in found[other]["problem"]
    assert answer.exit_code == 1


def test_the_records_of_a_log_are_shown(pulsar: Any, sink: Sink) -> None:
    txn = sink.write(0)
    answer = eos(pulsar, "sink", "show", sink.name, "--json", admin=False)
    owner, intent, marker = json.loads(answer.stdout)
    assert (owner["kind"], intent["kind"], marker["kind"]) == ("owner", "intent", "marker")
    assert intent["transaction"] == marker["transaction"] == str(txn)
    assert (marker["batch_id"], marker["rows"]) == (0, {sink.topic: 1})
    (last,) = json.loads(eos(pulsar, "sink", "show", sink.name, "--last", "1", "--json", admin=False).stdout)
    assert last == marker
    assert f"{sink.topic.rpartition('/')[2]} 1" in eos(pulsar, "sink", "show", sink.name, admin=False).stdout


@pytest.mark.parametrize("command", ["show", "verify", "abort", "reset"])
def test_a_sink_that_is_not_there_is_told_so(command: str, pulsar: Any) -> None:
    error = (
        CliRunner()
        .invoke(
            typer_app, ["sink", command, "nosuch", "--service-url", pulsar.service_url, "--admin-url", pulsar.admin_url]
        )
        .exception
    )
    assert 'There is no sink "nosuch" in public/default' in str(error)
