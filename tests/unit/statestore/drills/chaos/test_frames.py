from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eos.pulsar.wire import frames as wire
from eos.pulsar.wire.pulsar_pb2 import BaseCommand
from statestore.drills.chaos.frames import END_TXN, NEW_TXN, OF_DRIVER, FrameBoundary, FrameStream

KINDS = [BaseCommand.CONNECT, BaseCommand.PING, BaseCommand.NEW_TXN, BaseCommand.END_TXN, BaseCommand.PONG]


def frame(kind: int) -> bytes:
    command = BaseCommand(type=kind)  # type: ignore[arg-type]
    if kind == BaseCommand.CONNECT:
        command.connect.client_version, command.connect.protocol_version = "x" * 300, 19
    else:
        field = {BaseCommand.PING: "ping", BaseCommand.PONG: "pong", NEW_TXN: "new_txn", END_TXN: "end_txn"}
        getattr(command, field[kind]).SetInParent()
    return wire.encode(command)


@given(st.lists(st.sampled_from(KINDS), max_size=6), st.lists(st.integers(1, 40)))
def test_frames_are_known_by_kind_however_their_bytes_arrive(kinds: Sequence[int], cuts: list[int]) -> None:
    data = b"".join(frame(kind) for kind in kinds)
    frames, passed, at = FrameStream(), b"", 0
    found: list[int] = []
    for size in [*cuts, len(data)]:
        for kind, piece in frames.split(data[at : at + size]):
            if kind is not None:
                assert passed == b"".join(frame(one) for one in kinds[: len(found)]), "a piece begins with its frame"
                found.append(kind)
            passed += piece
        at += size
    assert found == list(kinds)
    assert passed == data


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_comes_before_a_boundary_passes_and_nothing_after_it(number: int) -> None:
    boundary = FrameBoundary(OF_DRIVER, number)
    told = [boundary.passes(kind) for kind in (18, NEW_TXN, None, NEW_TXN + 1, 19, END_TXN, None, 18)]
    where = [1, 3, 5][number - 1]
    assert told == [True] * where + [False] * (8 - where)
    assert boundary.reached.is_set()
    assert boundary.frame == (NEW_TXN, NEW_TXN + 1, END_TXN)[number - 1]


def test_a_boundary_that_is_not_met_is_not_reached() -> None:
    boundary = FrameBoundary(OF_DRIVER, 2)
    assert all(boundary.passes(kind) for kind in (END_TXN, 18, None))
    assert not boundary.reached.is_set()
