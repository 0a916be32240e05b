"""Drivers on a simulated broker, one step at a time, in an order and with faults that a test chooses.

Each driver runs the real takeover and micro-batch code in a thread of its own, but only one thread ever
runs: every request to the broker hands control back to the scheduler. A run is therefore a function of its
`Plan`, and Hypothesis can shrink it.

A crash is a BaseException raised at a request: nothing of the driver runs after it, as after `kill -9`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from eos.errors import ConnectionLost, Unanswered
from tests.simulation.broker import Broker

T = TypeVar("T")


class Crash(BaseException):
    """The driver's process is gone."""


class Fault(Enum):
    """What goes wrong with one request."""

    CRASH_BEFORE = "the driver dies before the request leaves"
    CRASH_LATE = "the driver dies, and the request arrives later"
    CRASH_AFTER = "the driver dies when the request was carried out"
    LOST = "the connection breaks, and the request never arrives"
    LATE = "no answer, and the request arrives later"
    LOST_ANSWER = "the request is carried out, and the connection breaks before the answer"
    STALLED = "the driver stands still for 30 s, and then sends the request"
    STALLED_LONG = "the driver stands still for 200 s, longer than a transaction lives, and then sends the request"
    SLOW_ANSWER = "the request is carried out, and the driver stands still for 30 s"
    COORDINATOR_CRASH = "the coordinators crash, and the request is lost"
    UNLOADED = "the topics move to another broker, and the request is lost"


STALLS = {Fault.STALLED: 30.0, Fault.STALLED_LONG: 200.0}
NEVER_SENT = (Fault.CRASH_BEFORE, Fault.LOST, Fault.COORDINATOR_CRASH, Fault.UNLOADED)


@dataclass(frozen=True)
class Plan:
    """One run: which driver goes when, and what goes wrong.

    Attributes:
        schedule: (choice, how many steps to stay with it), first come; then all drivers in turn.
        faults: by driver, kind of request, and how many of that kind came before.
    """

    schedule: tuple[tuple[int, int], ...] = ()
    faults: dict[tuple[int, str, int], Fault] = field(default_factory=dict)


REQUESTS = (
    "SUBSCRIBE durable",
    "SUBSCRIBE",
    "GET_LAST_MESSAGE_ID",
    "PARTITIONS",
    "PRODUCER exclusive-with-fencing",
    "PRODUCER shared",
    "NEW_TXN",
    "ADD_PARTITION",
    "SEND",
    "SEND in transaction",
    "CLOSE_PRODUCER",
    "END_TXN abort",
    "END_TXN commit",
)
"""Every kind of request that a driver makes."""


class Scheduler:
    """Runs drivers as threads, one at a time."""

    def __init__(self, broker: Broker, plan: Plan) -> None:
        self.broker, self.plan = broker, plan
        self.requests: dict[tuple[int, str], int] = {}
        self.log: list[tuple[int, str]] = []
        self._schedule = iter(plan.schedule)
        self._baton = threading.Semaphore(0)
        self._go: dict[int, threading.Semaphore] = {}
        self._wake: dict[int, float] = {}
        self._current = -1
        self._alive: dict[int, None] = {}
        self._over = False
        self._errors: list[BaseException] = []

    # ---- called by drivers, in their threads

    def pause(self) -> None:
        """Let the others have a turn."""
        me = self._current
        self._baton.release()
        self._go[me].acquire()
        if self._over:
            raise Crash

    def sleep(self, seconds: float) -> None:
        """Sleep on the broker's clock."""
        self._wake[self._current] = self.broker.now + seconds
        self.pause()

    def clock(self) -> float:
        """Seconds on the broker's clock."""
        return self.broker.now

    def request(self, label: str, action: Callable[[], T], sent: Callable[[], None] | None = None) -> T:
        """Carry one request out, with the fault that the plan has for it."""
        me = self._current
        number = self.requests[me, label] = self.requests.get((me, label), -1) + 1
        fault = self.plan.faults.get((me, label, number))
        if fault in STALLS:
            self.sleep(STALLS[fault])
        self.pause()
        self.log.append((me, label))
        if sent is not None and fault not in NEVER_SENT:
            sent()
        match fault:
            case None | Fault.STALLED | Fault.STALLED_LONG:
                return action()
            case Fault.SLOW_ANSWER:
                answer = action()
                self.sleep(30)
                return answer
            case Fault.CRASH_BEFORE:
                raise Crash
            case Fault.CRASH_LATE:
                self.broker.late.append(action)
                raise Crash
            case Fault.CRASH_AFTER:
                action()
                raise Crash
            case Fault.LOST:
                raise ConnectionLost(f"{label}: planned")
            case Fault.LATE:
                self.broker.late.append(action)
                raise Unanswered(f"{label}: planned")
            case Fault.LOST_ANSWER:
                action()
                raise ConnectionLost(f"{label}: planned, after it was carried out")
            case Fault.COORDINATOR_CRASH:
                for coordinator in self.broker.coordinators:
                    self.broker.crash_coordinator(coordinator.index)
                raise ConnectionLost(f"{label}: planned, the coordinators crashed")
            case Fault.UNLOADED:
                for topic in self.broker.topics:
                    self.broker.unload(topic)
                raise ConnectionLost(f"{label}: planned, the topics were unloaded")

    # ---- called by the test

    def run(self, drivers: Sequence[Callable[[], None]], first: int = 0, steps: int = 20_000) -> None:
        """Run drivers, numbered from `first`, until all are done. Raises what a driver did not expect."""
        self._alive = dict.fromkeys(range(first, first + len(drivers)))
        threads = []
        for number, driver in enumerate(drivers, first):
            self._go[number] = threading.Semaphore(0)
            threads.append(threading.Thread(target=self._drive, args=(number, driver), daemon=True))
            threads[-1].start()
        stay, left, turn = "", 0, 0
        try:
            while self._alive and not self._errors:
                steps -= 1
                if steps < 0:
                    raise AssertionError("the drivers do not come to an end")
                options = self._options()
                if left <= 0 or stay not in options:
                    # Without a plan each driver has a turn, and time passes only when all wait for it.
                    default = (turn % max(1, len(options) - options.count("clock")), 1)
                    choice, left = next(self._schedule, default)
                    stay = options[choice % len(options)]
                    turn += 1
                left -= 1
                self._step(stay)
        finally:
            self._over = True
            for number in list(self._alive):
                self._turn(number)
            for thread in threads:
                thread.join()
            self._over = False
        if self._errors:
            raise self._errors[0]

    def _turn(self, number: int) -> None:
        self._current = number
        self._go[number].release()
        self._baton.acquire()

    def _options(self) -> list[str]:
        now = self.broker.now
        options = [f"driver {n}" for n in self._alive if self._wake.get(n, 0.0) <= now]
        if any(t.state != "open" for c in self.broker.coordinators if c.loaded for t in c.open.values()):
            options.append("work")
        options += [f"late {n}" for n in range(len(self.broker.late))]
        if any(self._wake.get(n, 0.0) > now for n in self._alive):
            options.append("clock")
        return options

    def _step(self, what: str) -> None:
        kind, _, number = what.partition(" ")
        match kind:
            case "driver":
                self._turn(int(number))
            case "work":
                self.broker.work()
            case "late":
                self.broker.deliver(int(number))
            case "clock":
                now = self.broker.now
                self.broker.pass_time(min(w for n in self._alive if (w := self._wake.get(n, 0.0)) > now) - now)

    def _drive(self, number: int, driver: Callable[[], None]) -> None:
        self._go[number].acquire()
        try:
            if not self._over:
                driver()
        except Crash:
            pass
        except BaseException as why:
            self._errors.append(why)
        del self._alive[number]
        self._baton.release()


class Alone:
    """No scheduler: one caller, and the broker does its own work while that waits.

    Attributes:
        failing: by kind of request, what its next ones end with, and whether they are carried out all the same.
        refusing: after how many requests the next one is refused, and each later one of its kind; whether those of
            other kinds are too; and by what.
        log: the requests made.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.failing: dict[str, list[tuple[BaseException, bool]]] = {}
        self.refusing: tuple[int, bool, Callable[[str], BaseException]] | None = None
        self.log: list[str] = []

    def pause(self) -> None:
        """Let the broker finish something."""
        self.broker.work()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.broker.pass_time(seconds)
        while self.broker.work():
            pass

    def clock(self) -> float:
        """Seconds on the broker's clock."""
        return self.broker.now

    def request(self, label: str, action: Callable[[], T], sent: Callable[[], None] | None = None) -> T:
        """Carry it out, unless it is to fail."""
        self.log.append(label)
        if sent is not None:
            sent()
        if self.refusing is not None:
            number, whatever, refusal = self.refusing
            if len(self.log) > number and (whatever or self.log[number] == label):
                raise refusal(label)
        planned = self.failing.get(label)
        if not planned:
            return action()
        error, carried_out = planned.pop(0)
        if carried_out:
            action()
        raise error
