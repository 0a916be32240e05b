"""The writers of a drill and the judge of its job from topic to topic, on a real broker without Spark or faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pulsar as official
import pytest

from eos.local import LocalPulsar
from statestore.drills.chaos import traffic
from statestore.drills.chaos.traffic import Traffic
from statestore.drills.judge import copies, oracle
from statestore.drills.judge.copies import CopyOutcome, PackedRows
from statestore.drills.judge.findings import Account, Verdict
from statestore.drills.judge.oracle import LiveReaders
from statestore.drills.later_transactions import end_later_transactions
from tests.clients import official_client
from tests.conftest import MakeTopic, RunningPulsar
from tests.waiting import until

BACKLOG = 2_000
PARTITIONS = 2
Messages = Iterable[official.Message]


def one_too_few(messages: Messages) -> Messages:
    return (message for number, message in enumerate(messages) if number != 7)


def one_twice(messages: Messages) -> Iterator[official.Message]:
    for number, message in enumerate(messages):
        yield from [message] * (1 + (number == 7))


def copy(url: str, messages: Messages, to: str) -> None:
    """Send messages to another topic, in their order."""
    with official_client(url) as client:
        producer = client.create_producer(to, block_if_queue_full=True)
        for message in messages:
            producer.send_async(message.data(), None, partition_key=message.partition_key())
        producer.flush()


@pytest.mark.timeout(300)
def test_what_the_writers_send_is_judged_rightly(
    pulsar: LocalPulsar | RunningPulsar, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "BACKLOG", BACKLOG)
    url, source = pulsar.service_url, make_topic("traffic", PARTITIONS)
    with LiveReaders(url, source, 1, copies.parse, PackedRows) as live:
        writers = Traffic.to(url, source, tmp_path / "log", tmp_path)
        try:
            writers.pause()
            paused = writers.blocks
            writers.resume()
            until(lambda: len(writers.blocks) >= len(paused) + 4)
            writers.stop()
        finally:
            writers.kill()
        blocks = writers.blocks
        end_later_transactions(url, source)
        sent = list(oracle.messages_of(url, source))
        (given,) = live.finish()
    assert {block.writer for block in blocks} == {"plain", "transactional"}
    aborted = sum(block.rows for block in blocks if block.outcome is CopyOutcome.ABORTED)
    assert aborted >= BACKLOG // 4, (tmp_path / "log").read_text()
    assert writers.promised == len(sent) == sum(block.rows for block in blocks) - aborted
    assert all(message.event_timestamp() for message in sent)

    def judged(change: Callable[[Messages], Messages]) -> Account:
        output = make_topic("copies", PARTITIONS)
        copy(url, change(sent), output)
        found = oracle.read_all(url, output, copies.parse, kept=PackedRows)
        return copies.account("copies", given, found, blocks)

    right, lost, doubled = judged(list), judged(one_too_few), judged(one_twice)
    assert (right.verdict, right.found) == (Verdict.PASS, len(sent)), right.reason
    assert (lost.verdict, lost.lost, lost.duplicated, lost.found) == (Verdict.FAIL, 1, 0, len(sent) - 1)
    assert (doubled.verdict, doubled.lost, doubled.duplicated) == (Verdict.FAIL, 0, 1)
    assert lost.offenders["lost"] == doubled.offenders["duplicated"]
