"""Segments that Pulsar's own offloaders moved, by a real broker: read through it and directly, from a folder and S3."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import DataFrame

from eos.history.segments import segments_of
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.wire.entry import Entry
from eos.source.offsets import BEGINNING
from eos.source.options import parse_options
from eos.source.ranges import Range
from eos.source.segment_path import SegmentPlan, read_stored
from tests.contract.test_history import described
from tests.integration.source.test_segments import rows_of
from tests.integration.source.test_segments import table as table
from tests.integration.source.test_segments import topic as topic
from tests.integration.sparkless import eos
from tests.object_store import object_store
from tests.topic_commands import trim
from tests.vectors.offloads import offloaders
from tests.waiting import PATIENCE_S, until

pytestmark = [pytest.mark.soak, pytest.mark.slow]

KEYS = {"access_key": "key", "secret_key": "secret"}
BLOCK_BYTES = 5 * 1024 * 1024  # the least that the offloader takes


@dataclass(frozen=True)
class Storage:
    """Where the broker offloads to.

    Attributes:
        settings: of the broker.
        url, credentials: of the source.
        requests: a file with a line for each request of S3.
    """

    settings: dict[str, Any]
    url: str
    credentials: str = "{}"
    requests: Path | None = None


@pytest.fixture(scope="module", params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    if request.param == "folder":
        url = tmp_path_factory.mktemp("offloads").as_uri()
        yield Storage({"managedLedgerOffloadDriver": "filesystem", "fileSystemURI": url}, url)
        return
    with object_store(tmp_path_factory.mktemp("s3")) as server:
        server.make_bucket("history")
        settings = {
            # Not "aws-s3", which asks Amazon's own endpoint for the region of the bucket, a hundred times.
            "managedLedgerOffloadDriver": "S3",
            "managedLedgerOffloadBucket": "history",
            "managedLedgerOffloadServiceEndpoint": f"http://{server.address}",
            "managedLedgerOffloadRegion": "us-east-1",
            "managedLedgerOffloadMaxBlockSizeInBytes": BLOCK_BYTES,
        }
        url = f"s3://history?endpoint_override={server.address}&scheme=http&region=us-east-1"
        yield Storage(settings, url, json.dumps(KEYS), server.log)


@pytest.fixture(scope="module")
def pulsar(storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPulsar]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ACCESS_KEY_ID", KEYS["access_key"])
        environment.setenv("ACCESS_KEY_SECRET", KEYS["secret_key"])
        yield from running(storage, tmp_path_factory)


def running(storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPulsar]:
    nars = offloaders(tmp_path_factory.mktemp("nars"))
    common: dict[str, Any] = {"offloadersDirectory": str(nars), "managedLedgerOffloadDeletionLagMs": 0}
    with LocalPulsar(settings={**common, **storage.settings}, start_timeout_s=300) as started:
        yield started


def only_there(admin: Admin, admin_url: str, topic: str) -> bool:
    """Have the broker delete the copies of closed ledgers that bookies have; return whether it has deleted all."""
    trim(admin_url, topic)
    *closed, _ = segments_of(admin, topic).segments
    return bool(closed) and all(one.offloaded and one.metadata is None for one in closed)


@pytest.fixture
def cold(pulsar: LocalPulsar, storage: Storage, ours: Client, topic: str) -> str:
    """A topic whose closed ledgers the secondary storage has; one of them has several blocks.

    S3 alone has them: brokers delete the bookies' copies of these, and not of what lies in a folder (4.2.4).
    """
    with ours.producer(topic) as producer:
        for number in range(12):
            producer.send_record(number.to_bytes(4) * 250_000, None)
    where = f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}"
    httpx.put(f"{where}/unload", timeout=30).raise_for_status()
    with ours.producer(topic) as producer:
        producer.send_record(b"the open segment", None)
    last = httpx.get(f"{where}/lastMessageId", timeout=30).json()
    httpx.put(f"{where}/offload", json=last, timeout=30).raise_for_status()

    def offloaded() -> bool:
        told = httpx.get(f"{where}/offload", timeout=30).json()
        assert told["status"] != "ERROR", told
        return bool(told["status"] == "SUCCESS")

    until(offloaded)
    if storage.requests is not None:
        with Admin(pulsar.admin_url) as admin:
            until(partial(only_there, admin, pulsar.admin_url, topic), "the bookies still store what was offloaded")
    return topic


def options(pulsar: LocalPulsar, storage: Storage, topic: str) -> dict[str, str]:
    return {
        "service.url": pulsar.service_url,
        "admin.url": pulsar.admin_url,
        "topic": topic,
        "read.from": "auto",
        "offload.url": storage.url,
        "offload.credentials": storage.credentials,
    }


def test_offloaded_segments_are_the_same_through_the_broker_and_directly(
    pulsar: LocalPulsar,
    storage: Storage,
    ours: Client,
    cold: str,
    table: Callable[..., DataFrame],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    secrets = tmp_path / "credentials.json"
    secrets.write_text(storage.credentials)
    given = ["--offload-url", storage.url, "--offload-credentials", f"file:{secrets}"]
    plan = eos(pulsar, "plan", cold, "--json", *given)
    assert plan.exit_code == 0, plan.output
    *closed, written_to = json.loads(plan.stdout)
    assert len(closed) >= 5
    assert {one["reader"] for one in closed} == {"secondary storage"}, closed
    assert written_to["reader"] == "brokers"
    assert {one["reader"] for one in json.loads(eos(pulsar, "plan", cold, "--json").stdout)} <= {"brokers", "bookies"}

    with ours.entry_reader(cold, None) as reader:
        end, _ = reader.last_message_id()
        assert end is not None
        through: list[Entry] = []
        while not through or through[-1].id < end:
            through += reader.read(PATIENCE_S)
    checked = parse_options(options(pulsar, storage, cold), "batch")
    part = Range(cold, BEGINNING, end)
    path = SegmentPlan(checked).path(part)
    assert path is not None
    before = 0 if storage.requests is None else len(storage.requests.read_text().splitlines())
    caplog.clear()
    with caplog.at_level(logging.INFO):
        directly = list(read_stored(part, path, checked))
    assert not [one for one in caplog.messages if "is read through its brokers" in one]
    assert described(directly) == described([one for one in through if one.id <= path.end])
    assert len(directly) == len(through) - 1, "all but the open segment"
    if storage.requests is not None:
        requests = storage.requests.read_text().splitlines()[before:]
        ranged = [one for one in requests if "GET /history/" in one and '" 206 ' in one]
        assert len(ranged) > len(closed), "a request with a range for each index, and more for each data object"

    rows = rows_of(table())
    for more in ({}, {"minPartitions": "7"}):
        given_to_spark = options(pulsar, storage, cold) | more
        del given_to_spark["topic"], given_to_spark["service.url"], given_to_spark["admin.url"]
        assert rows_of(table(**given_to_spark)) == rows
    elsewhere = {"read.from": "auto", "offload.url": "file:///nowhere/at/all"}
    assert rows_of(table(**elsewhere)) == rows, "the brokers have the rows where the location is wrong"
