"""An entry filter that is installed in a broker, by its settings or by a policy: what a read warns of, and gives."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from pyspark.sql.types import StructType

from eos.errors import EosError
from eos.local import LocalPulsar, jars
from eos.local.settings import Setting
from eos.source.batch import PulsarReader
from eos.source.batch_plan import batch_ranges
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from eos.source.stream import PulsarStreamReader
from tests.conftest import START_S, VERSION, create_topic
from tests.contract.raw import client
from tests.contract.test_policy_commands import Said, run
from tests.integration.source.queries import Query, read
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

NAME: Final = "by-property"
"""Of the filter."""
DEFINITION: Final = f"name: {NAME}\ndescription: rejects by a property\nentryFilterClass: RejectingFilter\n"
WARNING: Final = f"The brokers apply the entry filters {NAME} to "
UNKNOWN: Final = "The source cannot know what they are without the admin API"


def filter_folder(folder: Path) -> Path:
    """Make the NAR of the filter, and return its folder: the class in a jar of its own, and what names the class."""
    javac = shutil.which("javac")
    assert javac is not None, "No javac on the PATH: the test compiles a filter"
    source = Path(__file__).with_name("RejectingFilter.java")
    subprocess.run([javac, "-d", str(folder), "-cp", jars.classpath(version=VERSION), str(source)], check=True)
    jar = folder / "filter.jar"
    with zipfile.ZipFile(jar, "w") as opened:
        opened.write(folder / "RejectingFilter.class", "RejectingFilter.class")
    found = folder / "filters"
    found.mkdir()
    with zipfile.ZipFile(found / "filter.nar", "w") as opened:
        opened.writestr("META-INF/services/entry_filter.yml", DEFINITION)
        opened.write(jar, "META-INF/bundled-dependencies/filter.jar")
    return found


class Filtered:
    """A topic of a broker that applies the filter to it."""

    def __init__(self, pulsar: LocalPulsar, policy: str) -> None:
        """Args: the broker; where a policy names the filter: "namespace", "topic", or "" for the broker's settings."""
        self.pulsar = pulsar
        self.topic = create_topic(pulsar.admin_url, "filtered")
        admin, path = f"{pulsar.admin_url}/admin/v2", self.topic.replace("://", "/")
        place = {"namespace": "namespaces/public/default", "topic": path}.get(policy)
        if place is not None:
            body = {"entryFilterNames": NAME}
            httpx.post(f"{admin}/{place}/entryFilters", json=body, timeout=30).raise_for_status()
        applied = f"{admin}/{path}/entryFilters?applied=true"
        until(lambda: NAME in httpx.get(applied, timeout=30).text)

    def write(self, *rows: str) -> None:
        """Write a message for each row; those that begin with "rejected" do not pass the filter."""
        with client(self.pulsar.service_url) as ours, ours.producer(self.topic) as producer:
            for row in rows:
                properties = {"reject": "yes"} if row.startswith("rejected") else {}
                producer.send_record(row.encode(), None, properties)

    def given(self, *, admin: bool, **options: str) -> dict[str, str]:
        told = {"admin.url": self.pulsar.admin_url} if admin else {}
        return {"service.url": self.pulsar.service_url, "topic": self.topic, **told, **options}

    def table(self, *, admin: bool) -> list[str]:
        options = parse_options(self.given(admin=admin), "batch")
        PulsarReader(options, StructType()).partitions()
        brokers = PulsarBrokers(options)
        return read(brokers, batch_ranges(brokers, options.start, options.end))

    def stream(self, *, admin: bool) -> list[str]:
        given = self.given(admin=admin, subscription=f"job-{admin}", startingOffsets="earliest")
        options = parse_options(given, "stream")
        reader = PulsarStreamReader(options, StructType())
        reader.initialOffset()
        reader.stop()
        query = Query(options)
        return query.behind(query.plan.first())

    def command(self, *line: str) -> Said:
        return run([*line, "--json", "--service-url", self.pulsar.service_url, "--admin-url", self.pulsar.admin_url])


@pytest.fixture(scope="module", params=["broker.conf", "policies"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalPulsar, bool]]:
    """A broker with the filter installed, and whether its settings name it for all topics."""
    folder, named = tmp_path_factory.mktemp("filter"), request.param == "broker.conf"
    settings: dict[str, Setting] = {
        "entryFiltersDirectory": str(filter_folder(folder)),
        "narExtractionDirectory": str(folder / "nar"),
        **({"entryFilterNames": NAME} if named else {"allowOverrideEntryFilters": True}),
    }
    with LocalPulsar(start_timeout_s=START_S, version=VERSION, settings=settings) as started:
        yield started, named


@pytest.fixture
def topics(broker: tuple[LocalPulsar, bool]) -> list[Filtered]:
    """Topics to which a broker applies the filter, one for each way to say so."""
    pulsar, named = broker
    return [Filtered(pulsar, policy) for policy in (("",) if named else ("topic", "namespace"))]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what was logged since the last call: which warning each text is, or the text."""

    def told() -> list[str]:
        found = [
            "filter" if text.startswith(WARNING) else "unknown" if UNKNOWN in text else text for text in caplog.messages
        ]
        caplog.clear()
        return found

    return told


def test_a_read_warns_of_a_filter_and_leaves_out_what_it_rejects(
    topics: list[Filtered], warnings: Callable[[], list[str]]
) -> None:
    for filtered in topics:
        filtered.write("a", "rejected 1", "b", "rejected 2", "rejected 3", "c")
        for act in (filtered.table, filtered.stream):
            for admin in (False, True):
                assert act(admin=admin) == ["a", "b", "c"]
                assert warnings() == ["filter" if admin else "unknown"], (act, admin)
        filtered.write("rejected 4")  # a range that ends with it does not come to its end
        for act in (filtered.table, filtered.stream):
            for admin in (False, True):
                with pytest.raises(EosError, match=r"data of .* was lost.*an entry filter of the broker hides them"):
                    act(admin=admin)
                assert warnings() == ["filter"] * admin, (act, admin)


def test_a_command_warns_of_a_filter(topics: list[Filtered]) -> None:
    for filtered in topics:
        with client(filtered.pulsar.service_url) as ours:
            ours.subscription(filtered.topic, "job", initial="earliest").close()
        filtered.write("a", "rejected 1", "b", "rejected 2")
        peeked = filtered.command("peek", filtered.topic)
        assert [json.loads(line)["value"] for line in peeked.out.splitlines()] == ["a", "b"]
        assert WARNING in peeked.err
        with client(filtered.pulsar.service_url) as ours:
            ours.subscription(filtered.topic, "late", initial="latest").close()
        filtered.write("rejected 3", "rejected 4")
        lag: list[dict[str, Any]] = json.loads(filtered.command("lag", filtered.topic).out)
        assert {one["subscription"]: one["messages"] for one in lag} == {"job": 2, "late": 0}
        assert WARNING in filtered.command("doctor", "--preflight", filtered.topic).out
