"""Faults to topics, with an admin API that answers what a broker would, and jobs that only pretend to be held."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from statestore.drills.chaos.driver_events import held_by
from statestore.drills.chaos.fault_targets import FaultTargets
from statestore.drills.chaos.faults import FAULTS, topics
from statestore.drills.chaos.faults.commit import At
from statestore.drills.chaos.job import JobSpec

TOPIC = "persistent://public/default/rows"


class Admin:
    """Two brokers; `moves` is whether a bundle goes where it is told to, after so many times that are forgotten."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.partitions, self.owner, self.moves, self.forgotten = 3, 0, True, 0

    def __call__(self, method: str, url: str, json: int | None) -> httpx.Response:
        path = url.removeprefix("http://h:8080")
        if method != "GET":
            self.lines.append(f"{method} {path}" + ("" if json is None else f" {json}"))
        answer: Any = None
        if path.endswith("/bundle"):
            return httpx.Response(200, text="0x0_0x4", request=httpx.Request(method, url))
        if path == "/admin/v2/brokers":
            answer = ["machine:8080", "machine:8081"]
        elif path.startswith("/lookup"):
            answer = {"brokerUrl": f"pulsar://h:{self.owner}"}
        elif path.endswith("/partitions"):
            answer, self.partitions = {"partitions": self.partitions}, json or self.partitions
        elif "destinationBroker" in path and self.moves:
            self.owner = self.owner if self.forgotten else 1 - self.owner
            self.forgotten = max(0, self.forgotten - 1)
        return httpx.Response(200, json=answer, request=httpx.Request(method, url))


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    made = Admin()
    monkeypatch.setattr(httpx.Client, "request", lambda _, method, url, json: made(method, url, json))
    return made


@pytest.fixture
def stage(admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def held(stage: FaultTargets, running: Any, at: At) -> Iterator[int]:
        admin.lines.append(f"held {at[1]} {at[0]}")
        yield 7
        admin.lines.append("goes on")

    def wait(true: Any, what: str) -> None:
        (hold,) = tmp_path.iterdir()
        hold.rename(held_by(hold))
        assert true()
        admin.lines.append(f"held: {what}")

    monkeypatch.setattr(topics, "held", held)
    monkeypatch.setattr(topics, "await_word", lambda *_: admin.lines.append("sent"))
    running = SimpleNamespace(spec=JobSpec("rows", False, TOPIC, "s", "c"), newest=7)
    return SimpleNamespace(
        by_tasks="rows",
        hold=tmp_path,
        repartitioned=set(),
        supervisor=SimpleNamespace(jobs={"rows": running}, count=lambda *_: 0, wait=wait),
        cluster=SimpleNamespace(
            admin_url="http://h:8080",
            admin_urls=("http://h:8080", "http://h:8081"),
            broker_urls=("pulsar://h:0", "pulsar://h:1"),
        ),
        done=lambda detail: admin.lines.append(f"FAULT {detail}"),
        check=lambda what, passed, detail: admin.lines.append(f"{what}: {passed}"),
    )


def lines(stage: Any, admin: Admin, kind: str) -> list[str]:
    FAULTS[kind](stage, random.Random(1))
    assert not list(stage.hold.iterdir()), "the batch goes on"
    return admin.lines


def test_a_topic_is_unloaded_while_a_task_stands_still(stage: Any, admin: Admin) -> None:
    assert lines(stage, admin, "topic-unload") == [
        "held: a task to send",
        "PUT /admin/v2/persistent/public/default/rows/unload",
        f"FAULT {TOPIC} unloaded in the middle of batch 7",
    ]


def test_both_topics_of_a_commit_are_unloaded_when_it_was_sent(stage: Any, admin: Admin) -> None:
    done = lines(stage, admin, "topic-unload-in-commit")
    assert done[:3] == ["held before end-sent", "goes on", "sent"]
    assert done[3:5] == [
        "PUT /admin/v2/persistent/public/default/rows/unload",
        "PUT /admin/v2/persistent/public/default/__eos-s/unload",
    ]
    assert done[5].startswith("FAULT")


def test_a_bundle_goes_to_the_other_broker(stage: Any, admin: Admin) -> None:
    assert lines(stage, admin, "topic-move") == [
        "held: a task to send",
        "PUT /admin/v2/namespaces/public/default/0x0_0x4/unload?destinationBroker=machine:8081",
        "FAULT bundle 0x0_0x4 moves from broker-0 to broker-1 in the middle of batch 7",
        "the topic has moved: True",
    ]


def test_brokers_that_forget_a_move_are_asked_again(stage: Any, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    """apache/pulsar#24884: under load every second move is forgotten, and at times several in a row."""
    monkeypatch.setattr(topics, "_ASK_S", 0.0)
    admin.forgotten = 5
    done = lines(stage, admin, "topic-move")
    assert sum("destinationBroker" in line for line in done) == 6
    assert done[-1] == "the topic has moved: True"


def test_a_bundle_that_stays_is_found(stage: Any, admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_ASK_S", 0.0)
    admin.moves = False
    assert lines(stage, admin, "topic-move")[-1] == "the topic has moved: False"


def test_a_topic_gets_one_partition_more(stage: Any, admin: Admin) -> None:
    done = lines(stage, admin, "partitions-added")
    assert done[1:] == [
        "POST /admin/v2/persistent/public/default/rows/partitions 4",
        f"FAULT {TOPIC} has 4 partitions since the middle of batch 7",
        "goes on",
    ]
    assert stage.repartitioned == {"rows"}
