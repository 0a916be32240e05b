"""Which producers may send: exclusive producers, fencing, and the epoch of a topic (PIP-68)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eos.errors import ConnectionLost, Fenced, Refused
from eos.pulsar.net.client import Access, Client
from eos.pulsar.wire.message_id import MessageId
from tests.clients import end, transaction
from tests.conftest import MakeTopic
from tests.contract.conftest import Produce, Running
from tests.contract.official import read_until
from tests.contract.test_transactions import last_word
from tests.waiting import PATIENCE_S

FENCING: Access = "exclusive-with-fencing"
# The result for a producer that was thrown out, at its next send: the end of its connection or, while the broker still
# lists it as closed, "Producer is closed" (Producer.checkAndStartPublish). Neither stores the message.
THROWN_OUT = (ConnectionLost, Refused)


def test_each_fencing_moves_the_epoch_and_coming_back_with_it_does_not(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-epoch")
    first = ours.producer(topic, access=FENCING)
    assert first.topic_epoch == 0
    second = ours.producer(topic, access=FENCING)
    assert second.topic_epoch == 1
    again = ours.producer(topic, access=FENCING, topic_epoch=1)
    assert again.topic_epoch == 1
    assert isinstance(again.send_record(b"mine", None), MessageId)


def test_coming_back_with_an_epoch_that_has_moved_is_fenced_but_cuts_off_the_owner_who_can_come_back(
    make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    topic = make_topic("p-moved")
    former, owner = make_client(), make_client()
    lost = former.producer(topic, access=FENCING)
    kept = owner.producer(topic, access=FENCING)
    with pytest.raises(Fenced, match="Topic epoch has already moved"):
        former.producer(topic, access=FENCING, topic_epoch=lost.topic_epoch)
    with pytest.raises(THROWN_OUT):  # the broker throws producers out before it looks at the epoch
        kept.send_record(b"thrown out", None)
    again = owner.producer(topic, access=FENCING, topic_epoch=kept.topic_epoch)
    assert again.topic_epoch == kept.topic_epoch
    assert isinstance(again.send_record(b"still mine", None), MessageId)
    message = owner.reader(topic).read(PATIENCE_S)
    assert message is not None
    assert message.data == b"still mine"


def test_a_fenced_owner_is_cut_off_at_its_next_send(
    pulsar: Running, make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    topic = make_topic("p-cut-off")
    former, owner = make_client(), make_client()
    zombie = former.producer(topic, access=FENCING)
    zombie.send_record(b"first", None)
    txn = transaction(owner, topic)
    kept = owner.producer(topic, access=FENCING)
    with pytest.raises(THROWN_OUT):
        zombie.send_record(b"late", txn)
    kept.send_record(b"second", txn)
    end(owner, txn, commit=True)
    kept.close()
    assert read_until(pulsar.service_url, topic, last_word(owner, topic)) == [b"first", b"second", b"last"]


def test_fencing_does_not_stop_the_former_owner_from_ending_its_transaction(
    make_client: Callable[[], Client], make_topic: MakeTopic
) -> None:
    topic = make_topic("p-fenced-end")
    former, owner = make_client(), make_client()
    zombie = former.producer(topic, access=FENCING)
    txn = transaction(former, topic)
    zombie.send_record(b"committed after being fenced", txn)
    owner.producer(topic, access=FENCING)
    end(former, txn, commit=True)
    message = owner.reader(topic).read(PATIENCE_S)
    assert message is not None
    assert message.txn == txn


@pytest.mark.parametrize(
    ("access", "code"), [("exclusive", "ProducerFenced"), ("shared", "ProducerBusy")], ids=["exclusive", "shared"]
)
def test_a_plain_open_beside_an_exclusive_producer_is_a_conflict_and_not_fenced(
    make_client: Callable[[], Client], make_topic: MakeTopic, produce: Produce, access: str, code: str
) -> None:
    topic = make_topic("p-conflict")
    owner = make_client().producer(topic, access=FENCING)
    with pytest.raises(Refused, match="existing exclusive producer") as caught:
        produce(topic, access=access)
    assert caught.value.code == code
    assert isinstance(owner.send_record(b"mine", None), MessageId)


def test_an_exclusive_open_is_refused_by_our_own_half_open_connection(
    make_client: Callable[[], Client], make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic("p-half-open")
    produce(topic, access="exclusive")
    with pytest.raises(Refused, match="existing exclusive producer"):
        make_client().producer(topic, access="exclusive")
    assert make_client().producer(topic, access=FENCING).topic_epoch == 1


def test_a_fresh_name_for_each_producer(ours: Client, make_topic: MakeTopic) -> None:
    topic = make_topic("p-names")
    assert len({ours.producer(topic).name for _ in range(3)}) == 3
