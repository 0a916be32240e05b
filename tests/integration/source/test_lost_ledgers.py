"""Ledgers whose data are gone, and which the broker passes over: a read ends, with rows, a loss or what is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from eos.bookkeeper.net.zookeeper import ZooKeeperMetadata
from eos.bookkeeper.wire.metadata import znode
from eos.errors import InvalidInput, Unanswered
from eos.inspect.deletions import published_since
from eos.inspect.rows import TopicRows
from eos.local import LocalPulsar
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.decoding import decode
from eos.source.brokers import PulsarBrokers
from eos.source.options import parse_options
from eos.source.range_reader import read_range
from eos.source.segment_path import SegmentPlan, read_stored
from eos.source.silence import ReadTimeout
from tests.conftest import START_S
from tests.contract.raw import client
from tests.integration.source.lossy_topic import WATCHDOG_S, LossyTopic
from tests.integration.source.queries import Query, read
from tests.integration.source.streams import write
from tests.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

SHORT_S = 10
ROWS = [["a", "b"], ["c", "d"], ["e", "f"]]


@pytest.fixture(scope="module")
def passing_over() -> Iterator[LocalPulsar]:
    with LocalPulsar(start_timeout_s=START_S, settings={"autoSkipNonRecoverableData": True}) as started:
        yield started


def lose(lossy: LossyTopic, *numbers: int) -> None:
    """Take the metadata of ledgers away, as a disaster or a wrong command does."""
    ledgers = lossy.ledgers()
    with lossy.metadata() as zookeeper:
        for number in numbers:
            zookeeper.delete(znode(ledgers[number].id))


@pytest.fixture
def lossy(passing_over: LocalPulsar) -> Iterator[LossyTopic]:
    with client(passing_over.service_url) as ours:
        made = LossyTopic(passing_over, ours, ROWS, request_timeout_s="3")
        yield made
        made.brokers.close()


def fail(what: str) -> None:
    raise InvalidInput(what)


@pytest.mark.parametrize("lost", [[2], [1, 2], [0, 1, 2]], ids=str)
def test_a_lost_end_is_not_known_until_a_newer_message_is_stored_and_then_a_loss(
    lossy: LossyTopic, lost: list[int]
) -> None:
    lose(lossy, *lost)
    words = f"last message of {lossy.topic}: no answer.*ledger is lost.*publish a message to the topic"
    for ask in (lambda: lossy.read(fail), lambda: lossy.brokers.last(lossy.topic)):
        with pytest.raises(Unanswered, match=words):
            ask()
    write(lossy.ours, lossy.topic, "newer")
    with pytest.raises(InvalidInput, match=f"data of {lossy.topic} was lost"):
        lossy.read(fail)
    told: list[str] = []
    left = [row for number, rows in enumerate(ROWS) if number not in lost for row in rows]
    assert lossy.read(told.append) == left
    assert told


def test_a_lost_start_is_a_loss(lossy: LossyTopic) -> None:
    lose(lossy, 0)
    with pytest.raises(InvalidInput, match=f"data of {lossy.topic} was lost"):
        lossy.read(fail)


@pytest.mark.parametrize("lost", [[0], [1], [0, 1]], ids=str)
@pytest.mark.parametrize("replanned", [False, True], ids=["planned before", "planned after"])
def test_a_lost_ledger_that_the_broker_passes_over_is_a_loss(
    lossy: LossyTopic, lost: list[int], replanned: bool
) -> None:
    whole = lossy.ledgers()
    lose(lossy, *lost)
    if replanned:
        lossy.ranges = lossy.planned()
    with pytest.raises(InvalidInput, match=f"data of {lossy.topic} was lost"):
        lossy.read(fail)
    told: list[str] = []
    left = [row for number, rows in enumerate(ROWS) if number not in lost for row in rows]
    assert lossy.read(told.append) == left
    if replanned:
        assert len(told) == len(lost)
        for number, words in zip(lost, told, strict=True):
            assert f"the ledger of the entries {whole[number].id}:0 to {whole[number].id}:1 is gone" in words


@pytest.mark.parametrize("ends", [1, 2])
def test_a_lost_ledger_at_an_end_that_is_named_is_a_loss(lossy: LossyTopic, ends: int) -> None:
    end = f"{lossy.ledgers()[ends].id}:0"
    lose(lossy, 1)
    options = parse_options(lossy.options | {"endingOffsets": f'{{"{lossy.topic}": "{end}"}}'}, "batch")
    lossy.ranges = lossy.planned(options)
    with pytest.raises(InvalidInput, match="is gone, and the broker passes over it"):
        lossy.read(fail)


def test_a_stream_that_comes_to_a_lost_ledger_ends_with_a_loss_or_a_warning(lossy: LossyTopic) -> None:
    given = lossy.options | {"startingOffsets": "earliest", "subscription": "job"}
    query = Query(parse_options(given, "stream"))
    first = query.begins()
    lose(lossy, 1)
    with pytest.raises(InvalidInput, match="is gone, and the broker passes over it"):
        query.behind(first)
    query.brokers.close()
    again = Query(parse_options(given | {"failOnDataLoss": "false"}, "stream"))
    assert again.behind(again.plan.first()) == [*ROWS[0], *ROWS[2]]
    assert [one for one in again.told if "is gone" in one]
    again.brokers.close()


def test_a_stream_that_has_read_nothing_yet_does_not_begin_after_a_lost_ledger_in_silence(
    lossy: LossyTopic, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker acknowledges a lost ledger for each subscription, so that the query's own stands after it."""
    given = lossy.options | {"startingOffsets": "earliest", "subscription": "job"}
    query = Query(parse_options(given, "stream"))
    first = query.begins()
    lose(lossy, 0)
    with pytest.raises(InvalidInput, match="is gone, and the broker passes over it"):
        query.behind(first)
    query.brokers.close()
    with pytest.raises(InvalidInput, match="is gone, and the broker passes over it"):
        Query(parse_options(given, "stream")).begins()
    again = Query(parse_options(given | {"failOnDataLoss": "false"}, "stream"))
    assert again.behind(again.plan.first()) == [*ROWS[1], *ROWS[2]]
    assert "is gone, and the broker passes over it" in caplog.text
    again.brokers.close()


def test_without_an_admin_api_a_warning_says_that_a_loss_cannot_be_known(
    lossy: LossyTopic, caplog: pytest.LogCaptureFixture
) -> None:
    lose(lossy, 1)
    del lossy.options["admin.url"]
    lossy.brokers = PulsarBrokers(parse_options(lossy.options, "batch"))
    assert lossy.read(fail) == [*ROWS[0], *ROWS[2]]
    assert "The source cannot know which" in caplog.text


def test_a_lost_ledger_is_told_by_the_readers_without_spark(
    lossy: LossyTopic, caplog: pytest.LogCaptureFixture
) -> None:
    with lossy.ours.entry_reader(lossy.topic, None) as reader:
        began_ms = int(reader.read(WATCHDOG_S)[0].metadata.publish_time)
    lose(lossy, 1)
    with client(lossy.options["service.url"]) as ours, Admin(lossy.options["admin.url"]) as admin:
        told: list[str] = []
        left = [row.encode() for row in [*ROWS[0], *ROWS[2]]]
        rows = TopicRows(ours.cluster, lossy.topic, "earliest", told.append, kind_of=admin.entry_kind)
        assert [row.value for row in rows.stored()] == left
        assert len(told) == 1
        assert "is gone, and the broker passes over it" in told[0]
        assert [row.value for row in TopicRows(ours.cluster, lossy.topic, "earliest", fail).stored()] == left
        assert "The source cannot know which" in caplog.text
        for asked, words in ((admin, "They are lost"), (None, "or are lost")):
            assert words in published_since(ours.cluster, asked, lossy.topic, began_ms).doubt


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_ledger_is_a_loss_where_the_others_are_read_from_bookies(lossy: LossyTopic, lost: int) -> None:
    with ZooKeeperMetadata(lossy.pulsar.zookeeper) as zookeeper:
        host, port = zookeeper.address("bk0test")
    past = {"read.from": "bookies", "bookie.addresses": f"bk0test={host}:{port}"}
    options = parse_options(lossy.options | past | {"failOnDataLoss": "false"}, "batch")
    lose(lossy, lost)
    told: list[str] = []
    values: list[str] = []
    for part in lossy.planned(options):
        path = SegmentPlan(options).path(part)
        assert path is not None
        stored = read_stored(part, path, options)
        groups = read_range(part, lossy.brokers.open, told.append, stored=stored, kind_of=lossy.brokers.entry_kind)
        values += [
            bytes(value.as_py()).decode() for group in groups for value in decode(group, ["value"]).column("value")
        ]
    assert values == [row for number, rows in enumerate(ROWS) if number != lost for row in rows]
    assert len(told) == 1
    assert "is gone, and the broker passes over it" in told[0]


def test_a_read_waits_at_a_lost_ledger_for_a_while_and_goes_on_once_the_broker_passes_over_it(
    start_pulsar: Callable[..., LocalPulsar], caplog: pytest.LogCaptureFixture
) -> None:
    pulsar = start_pulsar()
    with client(pulsar.service_url) as ours, ThreadPoolExecutor(1) as pool:
        lossy = LossyTopic(pulsar, ours, ROWS, request_timeout_s="3")
        lose(lossy, 1)
        last_read = f"{lossy.ledgers()[0].id}:1"
        with pytest.raises(Unanswered, match=f"read {lossy.topic} after {last_read}: nothing came for .*lost for good"):
            read(lossy.brokers, lossy.ranges, fail, ReadTimeout(SHORT_S))
        no_start = LossyTopic(pulsar, ours, ROWS, request_timeout_s="3")
        lose(no_start, 0)
        no_start.options["read_timeout_s"] = str(SHORT_S)
        options = parse_options(no_start.options, "batch")
        no_start.brokers = PulsarBrokers(options)
        with pytest.raises(Unanswered, match=f"read {no_start.topic} after its start: nothing came"):
            no_start.planned(options)
        rows = pool.submit(read, lossy.brokers, lossy.ranges, fail)
        until(lambda: any("a ledger is lost" in text for text in caplog.messages), "it never says so", 300)
        assert not rows.done()
        setting = f"{pulsar.admin_url}/admin/v2/brokers/configuration/autoSkipNonRecoverableData/true"
        httpx.post(setting, timeout=60).raise_for_status()
        lossy.unload()
        with pytest.raises(InvalidInput, match="is gone, and the broker passes over it"):
            rows.result(300)
