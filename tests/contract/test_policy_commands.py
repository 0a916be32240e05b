"""Each policy of a namespace or a topic, one at a time: a command works under it, or names it and the way out."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from multiprocessing import get_context
from typing import Any, Final

import pytest

from eos.cli import app, console
from tests.contract.conftest import Running
from tests.contract.policies import WORKS, Policy
from tests.contract.policy_place import ALL, AT_ONCE, JOB, NEW, OLD, Level, Place, add_what_policies_name

LIMIT_S: Final = 150.0
"""Seconds after which a command hangs."""


@dataclass(frozen=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


def name_python() -> None:
    """Name the Python of workers, which the commands look at."""
    os.environ["PYSPARK_PYTHON"] = sys.executable


def run(arguments: list[str]) -> Said:
    """Run a command in this process. No other thread of it prints."""
    out, err, code = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            console.run(lambda: app.typer_app(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def _topics(told: Any, place: Place) -> bool:
    return [one["topic"] for one in told] == [place.topic]


def _sinks(told: Any, place: Place) -> bool:
    return [(one["name"], one["status"], one["batch_id"], one["rows"]) for one in told] == [
        ("sink", "committed", 1, len(NEW))
    ]


def _records(told: Any, place: Place) -> bool:
    return [one["batch_id"] for one in told if one["kind"] == "marker"] == [0, 1]


def _audit(told: Any, place: Place) -> bool:
    return (told["batches"], told["rows"], told["problem"], told["discrepancies"]) == (
        2,
        len(place.committed),
        None,
        [],
    )


def _segments(told: Any, place: Place) -> bool:
    return bool(sum(one["entries"] for one in told) >= len(OLD + place.committed))


def _lag(told: Any, place: Place) -> bool:
    return (JOB, len(OLD + place.committed)) in [(one["subscription"], one["messages"]) for one in told]


def _checks(told: Any, place: Place) -> bool:
    return not told["held_up"] and not [one for one in told["checks"] if one["verdict"] != "good"]


def _rows(told: str, place: Place) -> bool:
    return sorted(json.loads(line)["value"] for line in told.splitlines()) == sorted(OLD + place.committed)


@dataclass(frozen=True)
class Command:
    """A command, and whether what it prints is right where no policy is set."""

    line: str
    right: Callable[[Any, Place], bool]


COMMANDS: Final[Mapping[str, Command]] = {
    "topics": Command("topics --namespace NAMESPACE", _topics),
    "peek": Command("peek TOPIC --limit 100", _rows),
    "list": Command("sink list --namespace NAMESPACE", _sinks),
    "show": Command("sink show sink --namespace NAMESPACE", _records),
    "verify": Command("sink verify sink --namespace NAMESPACE", _audit),
    "plan": Command("plan TOPIC", _segments),
    "lag": Command("lag TOPIC", _lag),
    "doctor": Command("doctor --namespace NAMESPACE", _checks),
    "readers": Command("doctor --namespace NAMESPACE --readers", _checks),
    "preflight": Command("doctor --preflight --sink sink --namespace NAMESPACE TOPIC", _checks),
}

_READS: Final = ("peek", "lag", "list", "show", "verify", "doctor", "preflight")
"""Commands that subscribe."""
_LOOKS: Final = ("doctor", "preflight")
_TYPES: Final = dict.fromkeys(_READS, r"doesn't support Exclusive sub type.*set-subscription-types-enabled")
_UNRECOVERED: Final = r"\"unrecovered\".*allows only subscriptions of the type.*set-subscription-types-enabled"
"""Readers of a topic wait as long as its broker cannot recover it."""
_QUOTA: Final = dict.fromkeys(_LOOKS, r"backlog quota is in force.*set-backlog-quota")

EXPECTED: Final[Mapping[str, Mapping[str, str]]] = {
    "message TTL": dict.fromkeys(_LOOKS, r"message TTL of 3600 s is in force.*set-message-ttl"),
    "backlog quota, producer_request_hold": _QUOTA,
    "backlog quota, producer_exception": _QUOTA,
    "backlog quota, consumer_backlog_eviction": _QUOTA,
    "max consumers 1": dict.fromkeys(_LOOKS, r"1 consumer at a time.*set-max-consumers"),
    "max subscriptions 1": dict.fromkeys(_READS, r"maximum number of subscriptions.*set-max-subscriptions-per-topic"),
    "subscription types Failover": _TYPES,
    "subscription types Failover (namespace)": _TYPES | {"readers": _UNRECOVERED},
    "subscription types Shared": _TYPES,
    "subscription types Shared (namespace)": _TYPES | {"readers": _UNRECOVERED},
    "automatic topics with partitions": dict.fromkeys(_LOOKS, r"makes new topics partitioned.*topics create"),
    "max topics 1": dict.fromkeys(_LOOKS, r"2 of at most 1 topics.*set-max-topics-per-namespace"),
    "encryption required": {"preflight": r"Encryption is required.*set-encryption-required"},
    "persistence, more bookies than there are": dict.fromkeys(
        (*_READS, "plan"), r"Not enough non-faulty bookies.*set-persistence"
    ),
    "offload policies (topic)": dict.fromkeys((*_READS, "plan"), r"No offloader found.*remove-offload-policies"),
}
"""{policy, or policy (level): {command: a pattern that what it says must match}}. The others work."""

ALONE: Final = ("subscription types Failover (namespace)", "subscription types Shared (namespace)")
"""Policies under which brokers cannot recover the topics of the namespace. A broker that recovers in one thread tries
each topic for 30 s, and topics of the other policies would wait."""

_NO_ANSWER: Final = re.compile(r"Traceback|CommitUnknown|can't be known|unknown")


def wrong(command: Command, said: Said, expected: str, place: Place) -> str | None:
    """Say how a command answered otherwise than expected; None: it did not."""
    whole = f"{said.out}{said.err}"
    if expected != WORKS:
        right = said.code != 0 and re.search(expected, whole, re.DOTALL) and not _NO_ANSWER.search(whole)
    else:
        told: Any = said.out
        if command.right is not _rows:
            told = json.loads(said.out) if said.out else None
        right = said.code == 0 and command.right(told, place)
    return None if right else f"exit code {said.code}: {whole.strip()}"


def named(policy: Policy, level: Level) -> str:
    return f"{policy.name} ({level})"


def tried(pulsar: Running, commands: ProcessPoolExecutor, policy: Policy, level: Level) -> list[str]:
    """Return what was otherwise than expected."""
    try:
        place = Place(pulsar, policy, level, written=True)
    except AssertionError as error:
        return [f"{named(policy, level)}: not set: {error}"]
    found = []
    expected = EXPECTED.get(named(policy, level)) or EXPECTED.get(policy.name, {})
    for name, command in COMMANDS.items():
        line = command.line.replace("NAMESPACE", place.namespace).replace("TOPIC", place.topic)
        reached = ["--json", "--service-url", pulsar.service_url, "--admin-url", pulsar.admin_url]
        said = commands.submit(run, [*line.split(), *reached]).result(LIMIT_S)
        if how := wrong(command, said, expected.get(name, WORKS), place):
            found.append(f"{named(policy, level)}, {name}: {how}")
    return found


@pytest.mark.soak
@pytest.mark.timeout(2_400)
def test_a_command_works_under_every_policy_or_names_it(pulsar: Running) -> None:
    add_what_policies_name(pulsar)
    with (
        ProcessPoolExecutor(AT_ONCE, get_context("spawn"), name_python) as commands,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        found: list[str] = []

        def one(case: tuple[Policy, Level]) -> None:
            texts = tried(pulsar, commands, *case)
            print(named(*case), *texts, sep="\n  ", flush=True)
            found.extend(texts)

        together = [case for case in ALL if named(*case) not in ALONE]
        list(pool.map(one, together))
        for case in ALL:
            if case not in together:
                one(case)
    assert found == []
