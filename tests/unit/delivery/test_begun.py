from __future__ import annotations

import pytest

from eos.delivery.begun import Begun, Planned
from eos.errors import DamagedLog, InvalidInput, StaleBatch
from eos.pulsar.wire.message_id import EntryId

TOPIC = "persistent://public/default/t"
BEGUN = Begun(
    "flights",
    7,
    (Planned(TOPIC, 2, None), Planned("u", 0, 1_000)),
    {f"{TOPIC}-partition-0": EntryId(5, 3), f"{TOPIC}-partition-1": EntryId(6, -1)},
    {"key_hash": "java", "spark.master": "local[2]"},
    40,
)


@pytest.mark.parametrize("begun", [BEGUN, Begun("flights", 0, ())])
def test_it_survives_its_file(begun: Begun) -> None:
    assert Begun.parse(begun.text) == begun


@pytest.mark.parametrize("text", ["cut", "[]", "{}", BEGUN.text.replace("5:3", "5"), BEGUN.text.replace("rows", "row")])
def test_a_damaged_one_is_refused(text: str) -> None:
    with pytest.raises(DamagedLog, match=r"eos-deduplicated\.json in the query's checkpoint can't be read"):
        Begun.parse(text)


def test_a_checkpoint_of_another_sink_is_refused() -> None:
    BEGUN.fits("flights")
    with pytest.raises(InvalidInput, match='belongs to the sink "flights", and the sink in use is "others"'):
        BEGUN.fits("others")


def test_an_older_batch_than_the_one_that_was_begun_is_refused() -> None:
    BEGUN.refuse_older(7)
    with pytest.raises(StaleBatch, match="batch 6, and the checkpoint says that batch 7 was begun"):
        BEGUN.refuse_older(6)


def test_a_batch_in_doubt_is_not_written_exactly_once() -> None:
    BEGUN.refuse_in_doubt(8)
    for batch_id in (6, 7):
        with pytest.raises(InvalidInput, match=f'batch {batch_id} was begun with guarantee="deduplicated"'):
            BEGUN.refuse_in_doubt(batch_id)


@pytest.mark.parametrize("topics", [[TOPIC], ["u", TOPIC], [TOPIC, "u", "u"]])
def test_a_replay_writes_where_the_batch_was_begun(topics: list[str]) -> None:
    BEGUN.refuse_other_writes([TOPIC, "u"])
    with pytest.raises(InvalidInput, match=f"begun with writes to {TOPIC}, u, and is now"):
        BEGUN.refuse_other_writes(topics)


def test_what_was_changed_since_is_named() -> None:
    assert BEGUN.changed(BEGUN.settings) == ""
    told = "key_hash was java and is boost, spark.master was local[2] and is yarn"
    assert BEGUN.changed({"key_hash": "boost", "spark.master": "yarn", "of a newer version": "1"}) == told
