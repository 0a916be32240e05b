"""The writers of a drill, played by shell scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statestore.drills.chaos import traffic
from statestore.drills.chaos.traffic import Traffic, TrafficWriter
from statestore.drills.judge.copies import Block, CopyOutcome
from statestore.errors import Unavailable
from tests.waiting import until

SAYS = """
echo "a log line of a library"
echo committed 0 500
echo aborted 500 1000
while read -r word; do
  if [ "$word" = pause ]; then echo in-doubt 1000 1500; echo paused; fi
  if [ "$word" = resume ]; then echo committed 1500 2000; fi
done
echo committed 2000 2500
"""
BLOCKS = [
    Block("one", 0, 500, CopyOutcome.COMMITTED),
    Block("one", 500, 1000, CopyOutcome.ABORTED),
    Block("one", 1000, 1500, CopyOutcome.IN_DOUBT),
    Block("one", 1500, 2000, CopyOutcome.COMMITTED),
    Block("one", 2000, 2500, CopyOutcome.COMMITTED),
]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[TrafficWriter]:
    made = TrafficWriter("one", ["sh", "-c", SAYS], tmp_path / "log")
    yield made
    made.kill()


def test_a_writer_says_what_became_of_each_block_and_ends_with_its_input(writer: TrafficWriter) -> None:
    writer.await_rows(1000)
    assert writer.blocks == BLOCKS[:2]
    writer.pause()
    assert writer.blocks == BLOCKS[:3], "what was open is over"
    writer.resume()
    until(lambda: len(writer.blocks) == 4)
    writer.stop()
    assert writer.blocks == BLOCKS


def test_what_is_promised_is_what_is_committed_of_all_writers(writer: TrafficWriter, tmp_path: Path) -> None:
    other = TrafficWriter("two", ["sh", "-c", SAYS], tmp_path / "log")
    both = Traffic([writer, other])
    both.pause()
    both.resume()
    both.stop()
    both.kill()
    assert both.promised == 2 * 1500
    assert sum(block.rows for block in both.blocks) == 2 * 2500


def test_a_writer_that_has_died_is_missed(tmp_path: Path) -> None:
    writer = TrafficWriter("one", ["sh", "-c", "exit 1"], tmp_path / "log")
    with pytest.raises(Unavailable, match="The writer one did not send 500 rows"):
        writer.await_rows(500)
    with pytest.raises(Unavailable, match="did not pause"):
        writer.pause()
    with pytest.raises(Unavailable, match="The writer one has died"):
        writer.stop()
    writer.kill()


def test_a_writer_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "_PATIENCE_S", 0.1)
    writer = TrafficWriter("one", ["sh", "-c", "echo committed 0 500; sleep 600"], tmp_path / "log")
    with pytest.raises(Unavailable, match=r"does not end within 0\.1 s"):
        writer.stop()
    writer.kill()
    assert writer._process.returncode is not None


def test_when_one_can_not_start_none_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[TrafficWriter] = []

    class Sleeping(TrafficWriter):
        def __init__(self, name: str, command: object, log: Path) -> None:
            super().__init__(name, ["sh", "-c", "exit 1" if name == "plain" else "sleep 600"], log)
            started.append(self)

    monkeypatch.setattr(traffic, "TrafficWriter", Sleeping)
    monkeypatch.setattr("eos.local.jars.classpath", lambda: "")
    monkeypatch.setattr("eos.local.checks.java", lambda: Path("java"))
    with pytest.raises(Unavailable, match="The writer plain did not send"):
        Traffic.to("pulsar://h:1", "input", tmp_path / "log", tmp_path)
    assert [writer._process.returncode is None for writer in started] == [False, False]


def test_the_java_writer_has_the_same_blocks_and_keys_as_the_judge() -> None:
    """Its numbers stand in its source: an aborted block is one that the judge must not find."""
    from statestore.drills.chaos.plain_writer import BLOCK
    from statestore.drills.judge.copies import KEYS, PAD

    source = traffic._JAVA.read_text()
    for line in (f"int BLOCK = {BLOCK};", f"int KEYS = {KEYS};", f'PAD = ".".repeat({len(PAD)});'):
        assert line in source
    assert traffic.BACKLOG % BLOCK == 0
