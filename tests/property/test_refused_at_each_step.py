"""Each answer by which a broker refuses, at each request of a takeover and of a batch, from then on for ever.

A sink says what is known of the batch, and what to do about an answer that does not pass by itself. After its commit
was asked for, an InvalidInput of the client's own, once or from then on, never says that a batch is not visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from eos.commit.attempt import attempt
from eos.commit.decision import Identity
from eos.commit.owner import Owner
from eos.commit.retry import OwnerSettings
from eos.delivery.row_writer import WriteReport
from eos.errors import CommitUnknown, ConnectionLost, EosError, InvalidInput, LimitReached, NotCommitted, RefusedForGood
from eos.pulsar.protocol.refusals import ANSWERS, Answer, refused
from eos.steps import Phase, Step
from tests.simulation.broker import Broker
from tests.simulation.client import Client, CoordinatorClient
from tests.simulation.job import CONTROL, DATA, NAME, InTurn, Sends, WriteData, rows_of
from tests.simulation.world import Alone

CONNECT = "CONNECT coordinator"

SETTINGS = OwnerSettings(ttl_s=600, patience_s=5, markers_retained=1)
BATCH = 1
_LIFT = "pulsar-admin topicPolicies set-backlog-quota --policy producer_request_hold"
_OF_CONTROL_TOPIC = (
    f"Exempt the topic, from a quota by age with {_LIFT}",
    "The sink's own control topic was terminated",
)
ROWS = {topic: rows_of(BATCH, topic) for topic in DATA}


class Connecting(Client):
    """A client that may have to connect to a coordinator again each time that it uses one."""

    def coordinator(self, index: int) -> CoordinatorClient:
        """See ClientPort."""
        self._world.request(CONNECT, lambda: None)
        return super().coordinator(index)


def owner_on(world: Alone, client: type[Client] = Client) -> Owner:
    def observer(step: Step, phase: Phase, batch_id: int | None) -> None:
        if (step, phase) == (Step.END_SENT, "after") and world.failing.get("END_TXN commit"):
            world.failing["SEND"] = [(ConnectionLost("the control topic is gone"), False)]

    return Owner(
        *(client(world), NAME, CONTROL, SETTINGS),
        observer=observer,
        sleep=world.sleep,
        clock=world.clock,
        at_once=InTurn(second_first=True),
    )


def run(world: Alone, run_id: str, client: type[Client] = Client) -> None:
    """Start a query on a sink, and write a batch."""
    owner = owner_on(world, client)
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


def with_a_batch() -> Alone:
    """A sink that has committed the batch before: the MARKER of that one is no longer retained after the next."""
    world = unused()
    owner = owner_on(world)
    owner.take_over("query", "run-0")
    attempt(owner, BATCH - 1, Identity("query", "run-0", "offsets"), Sends(lambda txn: WriteReport({}, {})))
    world.log.clear()
    return world


def unsure(carried_out: bool) -> Alone:
    """A sink whose commit has no answer, and whose producer is lost, too."""
    world = with_a_batch()
    world.failing["END_TXN commit"] = [(ConnectionLost("the coordinator is gone"), carried_out)]
    return world


def requests_of(world: Alone, client: type[Client] = Client) -> list[str]:
    run(world, "run-1", client)
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
        wrong = what_is_wrong(error, answer, commit_sent(world))
        if committed(world) and isinstance(error, (InvalidInput, NotCommitted)):
            wrong.append("the rows are visible")
        return f"{asked} ({number}): {type(error).__name__}: {error} <- {'; '.join(wrong)}" if wrong else None
    assert committed(world)
    return None


def commit_sent(world: Alone) -> bool:
    """Tell whether the batch's commit was asked for, which follows its MARKER, and not that of an empty transaction."""
    requests = [label for label in world.log if label != CONNECT]
    return ("SEND in transaction", "END_TXN commit") in pairwise(requests)


def what_is_wrong(error: EosError, answer: Answer, sent: bool) -> list[str]:
    wrong, text = [], str(error)
    if not isinstance(error, (InvalidInput, NotCommitted, CommitUnknown)):
        wrong.append("another kind of error")
    # "There is no such transaction" is an answer, and no refusal: the log then says how it ended.
    if answer.code not in text and answer.code != "TransactionNotFound":
        wrong.append("the answer is not named")
    if not any(advice in text for advice in (answer.advice, *_OF_CONTROL_TOPIC)):
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


def invalid(world: Alone, number: int, *, whatever: bool, once: bool) -> str | None:
    """Raise InvalidInput in place of the request after so many, as for a certificate that is replaced just then.

    Args: whether later requests of other kinds fail, too; whether no later one does. Returns what is wrong.
    """

    def refusal(label: str) -> InvalidInput:
        world.refusing = None if once else world.refusing
        return InvalidInput(f"{label}: a PEM file cannot be read")

    world.refusing = number, whatever, refusal
    try:
        run(world, "run-1", Connecting)
    except EosError as error:
        known = not isinstance(error, CommitUnknown)
        sent = commit_sent(world)
        visible = committed(world)
        if known and (sent or visible):
            return f"{world.log[number]} ({number}): {type(error).__name__}: {error} <- {visible=}"
    else:
        assert committed(world)
    return None


WORLDS = {
    "unused": unused,
    "left in the batch": left_in_the_batch,
    "with a batch": with_a_batch,
    "committed, answer lost": lambda: unsure(True),
    "commit lost": lambda: unsure(False),
}


@pytest.mark.parametrize("world_of", WORLDS.values(), ids=WORLDS)
def test_what_the_client_itself_refuses_never_hides_that_a_commit_was_asked_for(world_of: Callable[[], Alone]) -> None:
    faults = [
        found
        for number in range(len(requests_of(world_of(), Connecting)))
        for whatever, once in ((False, False), (True, False), (True, True))
        if (found := invalid(world_of(), number, whatever=whatever, once=once))
    ]
    assert faults == [], "\n".join(faults)
