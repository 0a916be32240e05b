"""What `make soak-growth` calls growth, and how it reads a heap."""

from __future__ import annotations

import pytest

from tests.soak.growth.readings import heap, least
from tests.soak.growth.verdict import LIMITS, Limit, judge, slope

LIMIT = {"heap": Limit(5)}
MINUTES = 120


def readings(*values: float) -> list[dict[str, float]]:
    """One each ten minutes."""
    return [{"minute": 10.0 * number, "heap": value} for number, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "grows"),
    [
        ([50, 90, *[100] * 11], False),  # it fills in the warm-up, and stays
        ([100 + 10 * number / 6 for number in range(13)], True),  # ten an hour
        ([100 + 4 * number / 6 for number in range(13)], False),  # four an hour
        ([100, 100, 100, 100, 100, 900, 100, 100, 100, 100, 100, 100, 100], False),  # one reading alone
        ([100 - number for number in range(13)], False),
    ],
)
def test_what_grows_after_the_warm_up_is_told(values: list[float], grows: bool) -> None:
    (verdict,) = judge(readings(*values), MINUTES, LIMIT)
    assert verdict.grows is grows


def test_a_limit_may_be_a_share_of_the_figure() -> None:
    steps = readings(*[1_000 + 100 * number / 6 for number in range(13)])
    for share, grows in ((0.05, True), (0.2, False)):
        (verdict,) = judge(steps, MINUTES, {"heap": Limit(share, share=True)})
        assert verdict.grows is grows
        assert verdict.an_hour == pytest.approx(100)


def test_what_is_not_judged_is_shown() -> None:
    (verdict,) = judge(readings(*range(13)), MINUTES, {})
    assert (verdict.limit, verdict.grows) == (None, False)


def test_a_run_that_says_too_little_is_no_success() -> None:
    with pytest.raises(ValueError, match="2 readings"):
        judge(readings(1, 1, 1, 1), MINUTES, LIMIT)
    with pytest.raises(ValueError, match="no figure"):
        judge(readings(*[1] * 13), MINUTES, LIMITS)


def test_no_two_points_no_slope() -> None:
    assert slope([(1.0, 5.0)]) == 0.0


def test_each_figure_is_the_least_of_several_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.soak.growth.readings._BETWEEN_S", 0.0)
    looks = iter([{"heap": 5.0 + look % 3, "nodes": 9.0 - look % 4} for look in range(100)])
    assert least(lambda: next(looks)) == {"heap": 5.0, "nodes": 6.0}


def test_a_heap_is_what_lives_in_its_spaces() -> None:
    told = " S0C S1C S0U S1U EC EU OC OU MC MU\n 8.0 8.0 0.0 1024.0 9.0 2048.0 9.0 3072.0 9.0 5120.0\n"
    assert heap(told) == {"heap_mib": 6.0, "classes_mib": 5.0}
