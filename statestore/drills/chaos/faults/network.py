"""Faults to the links between the jobs and what they need. The proxies are in the way of the jobs alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.proxy import Proxy

Links = Callable[[FaultTargets], tuple[str, Sequence[Proxy]]]
"""The other end, in words, and the proxies on the way."""


def broker_links(stage: FaultTargets) -> tuple[str, Sequence[Proxy]]:
    """Between the sinks and both brokers."""
    return "both brokers", stage.broker_links


def state_link(stage: FaultTargets) -> tuple[str, Sequence[Proxy]]:
    """Between bk:// and ZooKeeper."""
    return "ZooKeeper", [stage.state_link]


def delay(links: Links) -> Callable[[FaultTargets, random.Random], None]:
    """Let packets arrive late for a while."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        to, proxies = links(stage)
        late_s, for_s = chance.uniform(0.1, 0.4), chance.uniform(3, 6)
        stage.let_pass(chance.uniform(0, 1))
        _wait_for_connection(stage, to, proxies)
        for proxy in proxies:
            proxy.delay(late_s)
        try:
            stage.done(f"packets to and from {to} {late_s:.2f} s late for {for_s:.1f} s")
            stage.let_pass(for_s)
        finally:
            _heal(proxies)

    return fault


def cut(links: Links) -> Callable[[FaultTargets, random.Random], None]:
    """Reset all connections."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        to, proxies = links(stage)
        stage.let_pass(chance.uniform(0, 2))
        _wait_for_connection(stage, to, proxies)
        count = sum(proxy.connections for proxy in proxies)
        for proxy in proxies:
            proxy.cut()
        stage.done(f"{count} connections to {to} reset")

    return fault


def half_open(links: Links) -> Callable[[FaultTargets, random.Random], None]:
    """Swallow all packets for a while, with no word to either side; then reset the connections."""

    def fault(stage: FaultTargets, chance: random.Random) -> None:
        to, proxies = links(stage)
        for_s = chance.uniform(3, 6)
        stage.let_pass(chance.uniform(0, 1))
        _wait_for_connection(stage, to, proxies)
        for proxy in proxies:
            proxy.swallow()
        try:
            stage.done(f"nothing passes to or from {to} for {for_s:.1f} s, then connections are reset")
            stage.let_pass(for_s)
        finally:
            _heal(proxies)

    return fault


def _wait_for_connection(stage: FaultTargets, to: str, proxies: Sequence[Proxy]) -> None:
    """Wait until there is one: a fault that hits nothing would count as one that was got over."""
    stage.supervisor.wait(lambda: any(proxy.connections for proxy in proxies), f"a connection to {to}")


def _heal(proxies: Sequence[Proxy]) -> None:
    for proxy in proxies:
        proxy.heal()
