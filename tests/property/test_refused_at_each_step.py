"""Each answer by which a broker refuses, at each request of a takeover and of a batch, from then on for ever.

A sink says what is known of the batch, and what to do about an answer that does not pass by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from eos.commit.attempt import attempt
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.errors import CommitUnknown, EosError, InvalidInput, LimitReached, NotCommitted, RefusedForGood
from eos.pulsar.protocol.refusals import ANSWERS, Answer, refused
from tests.simulation.broker import Broker
from tests.simulation.client import Client
from tests.simulation.job import CONTROL, DATA, NAME, InTurn, WriteData, rows_of
from tests.simulation.world import Alone

SETTINGS = OwnerSettings(ttl_s=600, patience_s=5)
BATCH = 1
_LIFT = "pulsar-admin topicPolicies set-backlog-quota --policy producer_request_hold"
ROWS = {topic: rows_of(BATCH, topic) for topic in DATA}


def owner_on(world: Alone) -> Owner:
    at_once = InTurn(second_first=True)
    return Owner(Client(world), NAME, CONTROL, SETTINGS, sleep=world.sleep, clock=world.clock, at_once=at_once)


def run(world: Alone, run_id: str) -> None:
    """Start a query on a sink, and write a batch."""
    owner = owner_on(world)
    owner.make_log()
    owner.take_over("query", run_id)
    write(world, owner, run_id)


def write(world: Alone, owner: Owner, run_id: str) -> None:
    attempt(owner, BATCH, Identity("query", run_id, "offsets"), WriteData(Client(world), BATCH))


def unused() -> Alone:
    return Alone(Broker())


def left_in_the_batch() -> Alone:
    """A sink whose driver died when it had sent a batch's rows: its transaction is open."""
    world = unused()
    owner = owner_on(world)
    owner.take_over("query", "run-0")

    class Dies(WriteData):
        def finish(self) -> None:
            raise SystemExit

    with pytest.raises(SystemExit):
        attempt(owner, BATCH, Identity("query", "run-0", "offsets"), Dies(Client(world), BATCH))
    world.log.clear()
    return world


def requests_of(world: Alone) -> list[str]:
    run(world, "run-1")
    return world.log


def committed(world: Alone) -> bool:
    """Tell whether the rows are visible, once nothing is under way any more."""
    world.refusing = None
    world.sleep(SETTINGS.ttl_s + 1)
    found = {topic: [entry.data for entry in world.broker.topic(topic).readable()] for topic in DATA}
    assert found in (ROWS, {topic: [] for topic in DATA}), "a reader sees a part of a batch"
    return found == ROWS


def fault(world: Alone, number: int, answer: Answer, *, whatever: bool) -> str | None:
    """Refuse the request after so many, and each later one of its kind, or `whatever` is asked.

    Returns what is wrong with how that ends.
    """
    world.refusing = number, whatever, lambda label: refused(label, answer.code, f"so {answer.words} it is")
    try:
        run(world, "run-1")
    except EosError as error:
        asked = world.log[number]
        sent = "END_TXN commit" in world.log[:-1] and any(
            before == "SEND in transaction" and label == "END_TXN commit"
            for before, label in zip(world.log, world.log[1:], strict=False)
        )
        wrong = what_is_wrong(error, answer, sent)
        visible = committed(world)
        if visible and isinstance(error, (InvalidInput, NotCommitted)):
            wrong.append("the rows are visible")
        return f"{asked} ({number}): {type(error).__name__}: {error} <- {'; '.join(wrong)}" if wrong else None
    assert committed(world)
    return None


def what_is_wrong(error: EosError, answer: Answer, sent: bool) -> list[str]:
    wrong, text = [], str(error)
    if not isinstance(error, (InvalidInput, NotCommitted, CommitUnknown)):
        wrong.append("another kind of error")
    # "There is no such transaction" is an answer, and no refusal: the log then says how it ended.
    if answer.code not in text and answer.code != "TransactionNotFound":
        wrong.append("the answer is not named")
    if answer.advice not in text and f"Exempt the topic, from a quota by age with {_LIFT}" not in text:
        wrong.append("what helps is not named")
    if issubclass(answer.kind, RefusedForGood) and not sent and isinstance(error, CommitUnknown):
        wrong.append("not known, though nothing can be committed")
    lasts = issubclass(answer.kind, (LimitReached, RefusedForGood)) or answer.advice
    if lasts and re.search("starting again is safe(?!, and helps once that has changed)", text):
        wrong.append("starting again does not help")
    return wrong


@pytest.mark.parametrize("world_of", [unused, left_in_the_batch])
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: f"{answer.code} {answer.words}")
def test_an_answer_that_stays_so(answer: Answer, world_of: Callable[[], Alone]) -> None:
    count = len(requests_of(world_of()))
    assert count > 20
    faults = [
        found
        for number in range(count)
        for whatever in (False, True)
        if (found := fault(world_of(), number, answer, whatever=whatever))
    ]
    assert faults == [], "\n".join(faults)
