from __future__ import annotations

import json
from pathlib import Path

import pytest

from statestore.drills.judge import rows
from statestore.drills.judge.accounting import OutputRow

BATCHES, SIZE = 4, 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for batch in range(BATCHES):
        rows.write_input(tmp_path, batch, SIZE, at_ms=1_700_000_000_000 + batch)
    return tmp_path


def test_input_has_one_file_a_batch_each_younger_than_the_one_before(folder: Path) -> None:
    files = sorted(folder.iterdir())
    assert files == [rows.input_file(folder, batch) for batch in range(BATCHES)]
    times = [path.stat().st_mtime for path in files]
    assert sorted(set(times)) == times


def test_each_partition_of_the_input_is_numbered_without_a_gap(folder: Path) -> None:
    inputs = rows.read_input(folder)
    assert len(inputs) == BATCHES * SIZE
    assert inputs["batch"].value_counts().to_dict() == dict.fromkeys(range(BATCHES), SIZE)
    for _, numbers in inputs.groupby("p")["s"]:
        assert numbers.tolist() == list(range(len(numbers)))
    assert set(inputs["at"]) == {1_700_000_000_000 + batch for batch in range(BATCHES)}


def test_the_stateless_job_writes_each_row_of_the_input(folder: Path) -> None:
    expected = rows.stateless(rows.read_input(folder), committed=[0, 2])
    assert len(expected.attempted) == BATCHES * SIZE
    assert len(expected.due) == 2 * SIZE
    assert OutputRow(1, "p2", 7) in expected.attempted  # row number 30 = the first of batch 1 is p2, s7
    assert not expected.stateful


def test_the_stateful_job_writes_what_counting_one_by_one_gives(folder: Path) -> None:
    counted: dict[str, tuple[int, int]] = {}
    wanted = set()
    for batch in range(BATCHES):
        changed = set()
        for line in rows.input_file(folder, batch).read_text().splitlines():
            _, _, key, amount, _ = line.split(",")
            count, total = counted.get(key, (0, 0))
            counted[key] = (count + 1, total + int(amount))
            changed.add(key)
        wanted |= {OutputRow(batch, key, counted[key][0], f"sum={counted[key][1]}") for key in changed}
    expected = rows.stateful(rows.read_input(folder), committed=range(BATCHES))
    assert expected.attempted == wanted == expected.due
    assert expected.stateful
    assert rows.state(rows.read_input(folder), range(BATCHES)) == counted


def test_the_state_is_that_of_the_committed_batches(folder: Path) -> None:
    inputs = rows.read_input(folder)
    counts = rows.state(inputs, committed=[0])
    assert sum(count for count, _ in counts.values()) == SIZE


def test_no_input_asks_for_nothing(tmp_path: Path) -> None:
    inputs = rows.read_input(tmp_path)
    assert not rows.stateless(inputs, []).attempted
    assert not rows.stateful(inputs, []).attempted
    assert rows.state(inputs, []) == {}


@pytest.mark.parametrize(
    ("key", "value", "row"),
    [
        ("p1", {"p": 1, "s": 17, "batch": 4}, OutputRow(4, "p1", 17)),
        ("k3", {"key": "k3", "count": 12, "sum": 340, "batch": 4}, OutputRow(4, "k3", 12, "sum=340")),
    ],
)
def test_messages_of_the_jobs_are_read(key: str, value: dict[str, object], row: OutputRow) -> None:
    assert rows.parse(key, json.dumps(value).encode()) == row


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("p2", b'{"p": 1, "s": 17, "batch": 4}'),
        ("k1", b'{"key": "k3", "count": 12, "sum": 340, "batch": 4}'),
        ("p1", b'{"p": 1, "s": 17}'),
        ("p1", b'{"p": 1, "s": 17, "batch": 4, "more": 1}'),
        ("p1", b'{"p": 1, "s": 17, "batch": [4]}'),
        ("p1", b"[1, 2]"),
        ("p1", b'{"p": 1, "s": 17, "ba'),
        ("", b"\xff"),
    ],
)
def test_anything_else_is_a_row_that_no_batch_has(key: str, data: bytes) -> None:
    row = rows.parse(key, data)
    assert (row.batch, row.key) == (-1, "")
    assert str(row).endswith(f"with key {key!r}")
