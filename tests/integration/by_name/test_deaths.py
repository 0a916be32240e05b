"""Tasks and drivers die while they write by name: nothing is lost, and what is there twice was sent before."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from eos.local import LocalPulsar
from eos.spark.capabilities import TABLE, Capability
from tests.child_process import ChildProcess, python
from tests.integration.by_name import job
from tests.integration.by_name.conftest import MakeTopic, ReadAll
from tests.spark_session import quick_start

pytestmark = pytest.mark.slow


def run(kind: str, broker: LocalPulsar, topic: str, folder: Path, dies: str, at: int = -1) -> tuple[int, str]:
    """Run a driver; return how it ended, and what it logged."""
    options = {"service.url": broker.service_url, "topic": topic, "guarantee": "at-least-once"}
    given = {"options": {**options, "max_in_flight_bytes": "1048576"}, "folder": str(folder), "dies": dies, "at": at}
    driver = ChildProcess(python("tests.integration.by_name.job", kind, given), folder / "driver.log", quick_start())
    return driver.wait(), driver.logged


def found(messages: list[object]) -> Counter[int]:
    return Counter(int(message.data().decode().lstrip(".")) for message in messages)  # type: ignore[attr-defined]


def test_a_task_that_spark_runs_again_writes_its_rows_again(
    plain: LocalPulsar, make_plain: MakeTopic, read_all: ReadAll, tmp_path: Path
) -> None:
    topic, at = make_plain("again", partitions=2), job.ROWS // job.PARTITIONS - 100
    code, said = run("save", plain, topic, tmp_path, "task", at)
    assert code == 0, said
    assert (tmp_path / "died").exists()
    numbers = found(read_all(topic))
    assert set(numbers) == set(range(job.ROWS)), "rows are lost"
    twice = {number for number, copies in numbers.items() if copies > 1}
    assert twice, "nothing was sent before the death, so it shows nothing"
    assert max(twice) < at
    assert max(numbers.values()) == 2


def test_a_save_fails_whose_shuffle_was_lost_and_is_another_one_now(
    plain: LocalPulsar, make_plain: MakeTopic, read_all: ReadAll, tmp_path: Path
) -> None:
    """Spark would run the other partitions only, and rows that lie in none of them now would be lost."""
    topic = make_plain("shuffle", partitions=2)
    code, said = run("shuffle", plain, topic, tmp_path, "")
    assert (tmp_path / "died").exists(), said
    assert code == 1
    assert "cannot rollback the ResultStage" in said
    assert "the save failed. Rows of this DataFrame may be visible" in said
    assert set(found(read_all(topic))) < set(range(job.ROWS))


@pytest.mark.crash
@pytest.mark.needs(TABLE[Capability.COMPARES_SHUFFLES])
def test_a_stream_that_is_killed_in_the_middle_of_a_batch_goes_on_without_a_loss(
    plain: LocalPulsar, make_plain: MakeTopic, read_all: ReadAll, tmp_path: Path
) -> None:
    topic = make_plain("killed", partitions=2)
    (tmp_path / "input").mkdir()
    for number in range(3):
        path = tmp_path / "input" / f"{number}.csv"
        path.write_text("".join(f"{row}\n" for row in range(number * job.ROWS, (number + 1) * job.ROWS)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    code, said = run("stream", plain, topic, tmp_path, "driver", at=2 * job.ROWS - 100)  # of the second batch
    assert code == -signal.SIGKILL, said
    visible = found(read_all(topic))
    assert set(range(job.ROWS)) < set(visible) < set(range(2 * job.ROWS)), "it did not die within the batch"
    code, said = run("stream", plain, topic, tmp_path, "")
    assert code == 0, said
    numbers = found(read_all(topic))
    assert set(numbers) == set(range(3 * job.ROWS)), "rows are lost"
    twice = {number for number, copies in numbers.items() if copies > 1}
    assert twice == set(visible) - set(range(job.ROWS)), "only the batch that was begun is written again"
