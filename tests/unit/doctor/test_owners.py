"""What `eos doctor` says of who owns a sink."""

from __future__ import annotations

import time
from typing import cast

import pytest

from eos.commit.control_log import Intent
from eos.doctor.check import CheckVerdict
from eos.doctor.owners import owner, owners
from eos.doctor.sinks import SinkState, SinkStatus
from eos.errors import Refused
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.txn import TxnId

HERE = ("10.0.0.1:5",)
BEGUN = Intent(9, "query", "run", 4, 1, TxnId(3, 7), None)
LONG_AGO_MS = round(time.time() * 1000) - 60_000
OWNED = SinkState("rows", SinkStatus.COMMITTED, "query", "new", 3, 1)
FORMER = SinkState("rows", SinkStatus.COMMITTED, "query", "new", 3, 1, owned_ms=LONG_AGO_MS, former_run_id="old")
OPEN = SinkState("rows", SinkStatus.UNFINISHED, "query", "run", 3, 1, BEGUN, open=True)
ENDED = SinkState("rows", SinkStatus.UNFINISHED, "query", "run", 3, 1, BEGUN, open=False)
NOT_TOLD = SinkState("rows", SinkStatus.UNFINISHED, "query", "run", 3, 1, BEGUN)
DAMAGED = SinkState("rows", SinkStatus.UNREADABLE, problem="did not write")


def taken(times: int) -> SinkState:
    return SinkState("rows", SinkStatus.NEW, "query", "run", takeovers=times)


class FakeAdmin:
    """Who is connected; None for who may not ask."""

    def __init__(self, connected: tuple[str, ...] | None) -> None:
        self._connected = connected

    def connected(self, topic: str, subscription: str) -> tuple[str, ...]:
        assert (topic, subscription) == ("persistent://public/default/__eos-rows", "__eos-hold")
        if self._connected is None:
            raise Refused("GET", "401", "no permission")
        return self._connected


def test_the_command_that_is_told_names_the_namespace() -> None:
    told = owner("owner of rows", OPEN, (), "public/etl").said
    assert told.endswith("free the readers with eos sink abort rows --namespace public/etl")


@pytest.mark.parametrize(
    ("one", "connected", "verdict", "said"),
    [
        (OWNED, HERE, CheckVerdict.GOOD, "Run new owns it, connected from 10.0.0.1:5."),
        (FORMER, HERE, CheckVerdict.GOOD, "took over from run old, "),
        (FORMER, HERE, CheckVerdict.GOOD, "fails with Fenced, and at most makes the owner try a batch again"),
        (OPEN, HERE, CheckVerdict.GOOD, "Run run owns it"),
        (OPEN, (), CheckVerdict.CARE, "eos sink abort rows"),
        (ENDED, (), CheckVerdict.GOOD, "writes it again"),
        (NOT_TOLD, (), CheckVerdict.UNKNOWN, "still open, or committed, is not known"),
        (OWNED, (), CheckVerdict.GOOD, "goes on when its query starts"),
        (
            SinkState("rows", SinkStatus.NEW, "query", "run", takeovers=5),
            HERE,
            CheckVerdict.CARE,
            "second driver of query query",
        ),
        (SinkState("rows", SinkStatus.NEW, "query", "run", takeovers=4), HERE, CheckVerdict.GOOD, "owns it"),
        (DAMAGED, HERE, CheckVerdict.CARE, "did not write"),
        (OWNED, None, CheckVerdict.UNKNOWN, "no permission"),
    ],
)
def test_the_owner_is_told_and_what_is_next(
    one: SinkState, connected: tuple[str, ...] | None, verdict: CheckVerdict, said: str
) -> None:
    (found,) = owners(cast(Admin, FakeAdmin(connected)), [one], "public/default")
    assert (found.about, found.verdict, said in found.said) == ("owner of rows", verdict, True), found
