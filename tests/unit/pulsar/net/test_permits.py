"""Bytes that may wait, as messages that may be sent."""

from __future__ import annotations

from eos.pulsar.net.permits import FIRST, OVERSHOOT_BYTES, Permits


def arrived(permits: Permits, size: int, messages: int = 1) -> None:
    permits.spend(size, messages)
    assert permits.hold(size)


def test_what_is_asked_for_first_does_not_know_the_messages() -> None:
    assert Permits(100_000, 10**9).grant() == FIRST
    assert Permits(7, 10**9).grant() == 7


def test_then_it_goes_by_the_messages_seen() -> None:
    permits = Permits(100_000, 100_000)
    assert permits.grant() == FIRST
    arrived(permits, 1000, 100)
    permits.release()
    assert permits.grant() == 10_000


def test_what_waits_takes_room() -> None:
    permits = Permits(100_000, 100_000)
    permits.grant()
    arrived(permits, 60_000, 100)
    assert permits.grant() == 66
    arrived(permits, 40_000, 66)
    assert permits.grant() == 0
    permits.release()
    assert permits.grant() > 0


def test_permits_are_given_when_half_of_them_are_used() -> None:
    permits = Permits(100, 100_000)
    permits.grant()
    arrived(permits, 49, 49)
    permits.release()
    assert permits.grant() == 0
    arrived(permits, 1, 1)
    permits.release()
    assert permits.grant() == 50


def test_a_batch_may_take_more_permits_than_there_were() -> None:
    permits = Permits(10, 100_000)
    assert permits.grant() == 10
    arrived(permits, 1000, 1000)
    permits.release()
    assert permits.grant() == 1000  # 990 that were taken too many, and 10


def test_a_message_larger_than_all_that_may_wait_comes_when_nothing_waits() -> None:
    permits = Permits(100_000, 1000)
    permits.grant()
    arrived(permits, 5000, FIRST)
    arrived(permits, 5000)
    assert permits.grant() == 0
    permits.release()
    assert permits.grant() > 0


def test_the_average_follows_what_comes_now() -> None:
    permits = Permits(100_000, 100_000)
    permits.grant()
    arrived(permits, 100, 10_000)
    permits.release()
    for _ in range(20):
        arrived(permits, 50_000, 1)
        permits.release()
    permits.start(slowly=False)
    assert permits.grant() < 100


def test_far_more_than_was_asked_for_is_not_held() -> None:
    permits = Permits(10, 1000)
    arrived(permits, OVERSHOOT_BYTES)
    arrived(permits, 2000)
    permits.spend(1, 1)
    assert not permits.hold(1)
    assert permits.overdrawn
    permits.release()
    assert permits.grant() == 0
    permits.start(slowly=False)
    assert permits.hold(1)
    permits.release()
    assert permits.grant() > 0


def test_one_entry_is_held_whatever_its_size() -> None:
    permits = Permits(10, 1000)
    arrived(permits, 10 * OVERSHOOT_BYTES)
