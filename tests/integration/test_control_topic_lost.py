"""The control log was lost while the job was down: nothing may be written, and the error says what to do."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pulsar as official
import pytest
from pyspark.sql import SparkSession

import eos
from eos.commit.control_topic import HOLD
from tests.crash.job import Job, prepare_input, run_here
from tests.crash.process import account_for
from tests.waiting import until

ROWS = 20
WAYS_OUT = r"Find out which rows readers have. Then either give the sink a new name .* or restore the control topic"


class Admin:
    """The broker's admin API, for one namespace of the test's own."""

    def __init__(self, admin_url: str) -> None:
        self._url = f"{admin_url}/admin/v2"
        self.namespace = f"public/lost-{uuid.uuid4().hex[:10]}"

    def do(self, method: str, path: str, body: object = None) -> Any:
        answer = httpx.request(method, f"{self._url}/{path}", json=body, timeout=60)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def make_topic(self) -> str:
        """Create a topic in a namespace that keeps only what a subscription still needs, as Pulsar does by default."""
        self.do("PUT", f"namespaces/{self.namespace}", {"replication_clusters": ["standalone"]})
        keep_nothing = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
        self.do("POST", f"namespaces/{self.namespace}/retention", keep_nothing)
        self.do("PUT", f"persistent/{self.namespace}/rows/partitions", 2)
        for number in range(2):
            self.do("PUT", f"persistent/{self.namespace}/rows-partition-{number}/subscription/keep", "earliest")
        return f"persistent://{self.namespace}/rows"

    def control(self, path: str, method: str = "POST", **params: str) -> Any:
        return self.do(method, f"persistent/{self.namespace}/__eos-lost{path}")


def delete(admin: Admin) -> None:
    admin.control("?force=true", "DELETE")


def expire(admin: Admin) -> None:
    """Do what a message TTL of one second does, then drop what no subscription needs any more."""

    def expired() -> bool:
        with suppress(httpx.HTTPStatusError):  # it is refused while it is under way
            admin.control(f"/subscription/{HOLD}/expireMessages/1")
        return bool(admin.control("/stats", "GET")["subscriptions"][HOLD]["msgBacklog"] == 0)

    until(expired, "the records are younger than a second", pause_s=0.5)
    trim(admin)


def skip_all(admin: Admin) -> None:
    admin.control(f"/subscription/{HOLD}/skip_all")
    trim(admin)


def trim(admin: Admin) -> None:
    """Close the ledger by unloading the topic, and let the broker delete it."""
    admin.control("/unload", "PUT")

    def gone() -> bool:
        admin.control("/trim")
        return bool(admin.control("/internalStats", "GET")["numberOfEntries"] == 0)

    until(gone, "the ledger is still there")


def job_in(admin: Admin, pulsar: Any, folder: Path) -> Job:
    prepare_input(folder / "input", 2, ROWS)
    return Job(pulsar.service_url, admin.make_topic(), "lost", str(folder))


def more_input(job: Job) -> None:
    whole = Path(job.folder, "more")
    prepare_input(whole, 3, ROWS)
    shutil.copy2(whole / "0002.csv", job.input / "0002.csv")


@pytest.mark.parametrize("lose", [delete, expire, skip_all])
def test_a_registered_sink_without_its_log_is_refused(
    spark: SparkSession, pulsar: Any, tmp_path: Path, lose: Callable[[Admin], None]
) -> None:
    admin = Admin(pulsar.admin_url)
    job = job_in(admin, pulsar, tmp_path)
    assert run_here(spark, job).metrics.committed == 2
    registered = json.loads((job.checkpoint / "eos-sink.json").read_text())
    assert registered["stateful"] is False
    assert registered["control_topic"] == f"persistent://{admin.namespace}/__eos-lost"

    more_input(job)
    lose(admin)
    with pytest.raises(eos.DamagedLog, match=WAYS_OUT):
        run_here(spark, job)
    with pytest.raises(eos.DamagedLog, match=WAYS_OUT):
        run_here(spark, job)
    assert account_for(pulsar.service_url, job.topic, 2, ROWS).is_exact()
    assert json.loads((job.checkpoint / "eos-sink.json").read_text()) == registered


def test_a_log_that_is_no_longer_retained_is_told_of_while_it_is_still_there(
    spark: SparkSession, pulsar: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    admin = Admin(pulsar.admin_url)
    job = job_in(admin, pulsar, tmp_path)
    told = "no longer retains the newest MARKER"
    run_here(spark, job)
    run_here(spark, job)
    assert not any(told in line for line in caplog.messages)
    admin.control(f"/subscription/{HOLD}/skip_all")
    more_input(job)
    assert run_here(spark, job).metrics.committed == 1
    assert sum(told in line for line in caplog.messages) == 1
    assert account_for(pulsar.service_url, job.topic, 3, ROWS).is_exact()


def test_a_new_name_is_the_way_out(spark: SparkSession, pulsar: Any, tmp_path: Path) -> None:
    """After looking what readers have got: the registration goes, and the sink gets a new name."""
    admin = Admin(pulsar.admin_url)
    job = job_in(admin, pulsar, tmp_path)
    run_here(spark, job)
    more_input(job)
    delete(admin)
    renamed = Job(job.service_url, job.topic, "lost-2", job.folder)
    with pytest.raises(eos.InvalidInput, match='belongs to the sink "lost"'):
        run_here(spark, renamed)
    (job.checkpoint / "eos-sink.json").unlink()
    assert run_here(spark, renamed).metrics.committed == 1
    assert account_for(pulsar.service_url, job.topic, 3, ROWS).is_exact()


def test_records_of_others_are_refused(
    spark: SparkSession, pulsar: Any, theirs: official.Client, tmp_path: Path
) -> None:
    """A topic that holds anything but the sink's records is not a control log."""
    admin = Admin(pulsar.admin_url)
    job = job_in(admin, pulsar, tmp_path)
    theirs.create_producer(f"persistent://{admin.namespace}/__eos-lost").send(b"hello")
    with pytest.raises(eos.DamagedLog, match="did not write: b'hello'"):
        run_here(spark, job)
    assert account_for(pulsar.service_url, job.topic, 0, ROWS).is_exact()
