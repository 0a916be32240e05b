"""A batch of a shadow that fails: the job's fault only if the cluster answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from eos.errors import Unreachable
from statestore.drills.acts import shadow
from statestore.drills.acts.rehearsal import Live
from statestore.drills.acts.shadow import Shadow
from statestore.errors import Unavailable


@pytest.mark.parametrize(
    ("outcomes", "answers", "error"),
    [
        ([None], False, None),
        ([Unavailable("a broker went away"), None], True, None),
        ([Unavailable("the new code fails"), Unavailable("it fails again")], True, Unavailable),
        ([Unavailable("a broker went away")], False, Unreachable),
    ],
)
def test_a_batch_that_fails_is_run_again_if_the_cluster_answers(
    outcomes: list[Unavailable | None], answers: bool, error: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: Iterator[Unavailable | None] = iter(outcomes)

    def run_once(*_: object) -> None:
        if failure := next(left):
            raise failure

    def log(_: Live) -> None:
        if not answers:
            raise Unreachable("no broker answers")

    monkeypatch.setattr(shadow, "run_once", run_once)
    monkeypatch.setattr(Live, "log", log)
    nothing = cast(Any, None)
    failed: type[Exception] | None = None
    try:
        shadow._run(Live("bk://z:1/q", nothing), Shadow(nothing), "scratch", nothing, 7)
    except (Unavailable, Unreachable) as raised:
        failed = type(raised)
    assert (failed, list(left)) == (error, [])
