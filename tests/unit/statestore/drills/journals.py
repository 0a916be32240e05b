"""Journals of drills that never ran, as long and as irregular as real ones, for tests of what is derived from them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from statestore.drills.chaos.plan import Family, make_plan
from statestore.drills.journal import (
    AccountEvent,
    Began,
    CaughtUp,
    CheckEvent,
    Detected,
    Ended,
    Event,
    Fault,
    FencedEvent,
    JobEvent,
    NotTested,
    ReadersEvent,
    Recovered,
    Sample,
    StateEvent,
    StepEvent,
    Targets,
    TransactionsEvent,
)
from statestore.drills.judge.findings import Verdict

JOBS = ("flights", "delays")
SECONDS_EACH = 22.0


def began(faults: int = 150) -> Began:
    return Began(
        drill="chaos",
        at="2026-11-21T20:00:00+00:00",
        rerun="statestore drill --kills 150 --seed 7",
        seed=7,
        versions={"spark-pulsar-eos": "0.1.0", "Spark": "4.3.0", "Pulsar": "4.2.1", "BookKeeper": "4.17.3"},
        machine={"cores": 2, "memory_gb": 23.5, "system": "Linux 6.1"},
        targets=Targets(recover_s=30.0, data_at_risk_rows=20_000),
        plan=make_plan(faults, 7, end_to_end=True),
    )


def account(job: str, attempted: int) -> AccountEvent:
    return AccountEvent(
        job=job,
        attempted=attempted,
        committed=attempted,
        found=attempted,
        lost=0,
        duplicated=0,
        unexpected=0,
        out_of_order=0,
        torn=0,
        state_equal=True if job == "delays" else None,
        offenders={},
        verdict=Verdict.PASS,
        reason="Every committed row was found once, in order, and no reader saw a torn batch.",
    )


def chaos(faults: int = 150) -> list[Event]:
    """A drill that passed: `faults` faults, one every 22 seconds, of every kind, on two jobs."""
    chance = random.Random(11)
    first = began(faults)
    events: list[Event] = [first]
    events += [
        JobEvent(
            t=0.4, job="flights", stateful=False, topic="persistent://drill/7/flights", checkpoint="bk://drill/flights"
        ),
        JobEvent(
            t=0.5, job="delays", stateful=True, topic="persistent://drill/7/delays", checkpoint="bk://drill/delays"
        ),
    ]
    away: list[tuple[float, float]] = []
    for planned in first.plan:
        start = 12 + (planned.n - 1) * SECONDS_EACH + chance.uniform(0, 5)
        times = [start]
        for longest in (1.5, 3.0, 16.0 if planned.family == Family.TTL else 9.0, 3.0):
            times.append(times[-1] + chance.uniform(0.1, longest))
        away.append((times[0], times[3]))
        events += [
            Fault(
                t=times[0], n=planned.n, kind=planned.kind, family=planned.family, detail=f"on {JOBS[planned.n % 2]}"
            ),
            Detected(t=times[1], n=planned.n, detail="the query's exception"),
            Recovered(t=times[3], n=planned.n, detail=f"batch {planned.n * 3}"),
            CaughtUp(t=times[4], n=planned.n),
        ]
        if planned.family in (Family.DRIVER, Family.EXECUTOR, Family.TTL):
            events.append(FencedEvent(t=times[2], n=planned.n, detail=f"epoch {planned.n + 1}"))
    end = 12 + faults * SECONDS_EACH + 20
    for job in JOBS:
        events += _samples(job, end, away, chance)
        total = int(end) * 400
        events += [
            StateEvent(t=end - 9, job=job, batch=faults * 3, versions=100, restore_mb_s=41.7)
            if job == "delays"
            else TransactionsEvent(
                t=end - 9,
                job=job,
                opened=480,
                committed=452,
                aborted=28,
                unknown_resolved=9,
                replayed=31,
                handed_again=40,
            ),
            ReadersEvent(t=end - 5, job=job, readers=3, torn=0),
            replace(account(job, total), t=end - 4),
        ]
    events += [
        TransactionsEvent(
            t=end - 8, job="delays", opened=455, committed=430, aborted=25, unknown_resolved=6, replayed=28
        ),
        CheckEvent(t=end - 3, name="a damaged checkpoint is refused", passed=True, detail="35 of 35"),
        CheckEvent(t=end - 3, name="no process is left", passed=True),
        NotTested(t=end - 2, what="power loss of a whole machine", why="All parts run on one machine."),
        NotTested(t=end - 2, what="Kubernetes", why="The executors are processes of Spark's local cluster."),
        Ended(t=end),
    ]
    return sorted(events, key=lambda event: event.t)


def failed() -> list[Event]:
    """A drill that lost two rows and doubled one; one check failed."""
    offenders = {"lost": ("flights 0:1187", "flights 2:40311"), "duplicated": ("flights 1:1188",)}
    events: list[Event] = []
    for event in chaos(30):
        if isinstance(event, AccountEvent) and event.job == "flights":
            event = replace(
                event, lost=2, duplicated=1, offenders=offenders, verdict=Verdict.FAIL, reason="2 rows lost, 1 doubled."
            )
        if isinstance(event, CheckEvent) and event.name == "no process is left":
            event = replace(event, passed=False, detail="broker 4711 was still there")
        events.append(event)
    return events


def unknown() -> list[Event]:
    """A drill whose oracle could not read one job's output to its end."""
    why = "The output could not be read to its end: a transaction of the last batch was still open."
    return [
        replace(event, verdict=Verdict.UNKNOWN, reason=why)
        if isinstance(event, AccountEvent) and event.job == "delays"
        else event
        for event in chaos(30)
    ]


def interrupted() -> list[Event]:
    """What Ctrl-C after some hundred seconds leaves: the journal says so."""
    events = [event for event in chaos(30) if event.t < 110]
    return [*events, Ended(t=111.0, interrupted=True, reason="Ctrl-C")]


def endless(word: str = "w" * 300) -> list[Event]:
    """A drill that failed, in whose journal each free text has a word of 300 letters; of many jobs."""
    kept = {"event", "drill", "verdict", "at"}

    def longer(event: Event) -> Event:
        texts = {each.name: str(getattr(event, each.name)) for each in fields(event) if each.name not in kept}
        changed: dict[str, Any] = {
            name: text + word for name, text in texts.items() if isinstance(getattr(event, name), str)
        }
        return replace(event, **changed)

    events = [longer(event) for event in failed()]
    assert isinstance(events[0], Began)
    events[0] = replace(events[0], versions={word: word}, machine={word: word})
    jobs = [JobEvent(t=1, job=f"{n}{word}", stateful=True, topic=word, checkpoint=word) for n in range(12)]
    return [events[0], *jobs, *events[1:]]


def rehearsal() -> list[Event]:
    """A rehearsal on a live job: steps with times, and checks."""
    return [
        Began(
            drill="rehearsal",
            at="2026-11-21T09:30:00+00:00",
            rerun="statestore drill rehearse bk://prod/queries/delays",
            versions={"spark-pulsar-eos": "0.1.0"},
        ),
        JobEvent(
            t=0.1, job="delays", stateful=True, topic="persistent://prod/air/delays", checkpoint="bk://prod/delays"
        ),
        StepEvent(t=4.2, name="find the newest savepoint", seconds=0.31, detail="before-upgrade, batch 81442"),
        StepEvent(t=41.0, name="restore into a scratch location", seconds=36.8, detail="1.9 GB"),
        StateEvent(t=41.5, job="delays", batch=81442, versions=100, restore_mb_s=51.6),
        StepEvent(t=66.9, name="open the state", seconds=25.4, detail="4 operators, 200 partitions"),
        StepEvent(t=80.0, name="compare with the live state", seconds=13.0, detail="8,114,207 rows"),
        CheckEvent(t=80.1, name="row counts are equal", passed=True, detail="8,114,207"),
        CheckEvent(t=80.1, name="content hashes are equal", passed=True),
        CheckEvent(
            t=80.2, name="the sink's last marker matches the checkpoint's offsets", passed=True, detail="batch 81442"
        ),
        NotTested(t=80.3, what="faults", why="A rehearsal changes nothing of a live job."),
        Ended(t=81.0),
    ]


_ANY: TypeAdapter[Event] = TypeAdapter(Event)


def to_plain(event: Event) -> dict[str, object]:
    """Return an event as the JSON object that stands in the journal."""
    plain: dict[str, object] = _ANY.dump_python(event, mode="json")
    return plain


def lines(events: Iterable[Event]) -> str:
    return "".join(json.dumps(to_plain(event)) + "\n" for event in events)


def write(path: Path, events: Sequence[Event]) -> Path:
    """Write a journal with the times that the events have."""
    path.write_text(lines(events))
    return path


def _samples(job: str, end: float, away: Sequence[tuple[float, float]], chance: random.Random) -> list[Sample]:
    """Once a second: 400 rows a second come in; none go out while a fault is at work, and what waited follows."""
    found = []
    rows_out, arrived = 0, 1.0
    for second in range(1, int(end)):
        rows_in = 400 * second
        if not any(start <= second < stop for start, stop in away):
            rows_out = min(rows_in - chance.randint(50, 400), rows_out + 1400)
            arrived = rows_out / 400
        latency = (second - arrived) * 1000 if second > 2 else None
        found.append(Sample(t=float(second), job=job, rows_in=rows_in, rows_out=max(rows_out, 0), latency_ms=latency))
    return found
