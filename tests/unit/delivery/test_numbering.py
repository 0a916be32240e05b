from __future__ import annotations

import pytest

from eos.delivery.numbering import Numbering, batch_of, first_number, prefix, writer_named


def test_the_numbers_of_a_batch_lie_above_those_of_the_batches_before() -> None:
    assert first_number(0) == 0
    assert first_number(8) - first_number(7) == 1 << 32
    assert [batch_of(first_number(7)), batch_of(first_number(8) - 1), batch_of(first_number(8))] == [7, 7, 8]
    assert first_number(2**31 - 1) + (1 << 32) - 1 < 2**63, "a sequence id is a Java long"
    assert batch_of(-1) == -1, "of a name that the broker does not know"


@pytest.mark.parametrize(("write", "place"), [(0, "driver"), (12, "0"), (1, "37")])
@pytest.mark.parametrize("sink", ["flights", "flights.1", "a-b_c"])
def test_a_writer_is_known_by_its_name(sink: str, write: int, place: str) -> None:
    name = Numbering(sink, 3, write).name(place)
    assert writer_named(sink, name) == (write, place)


@pytest.mark.parametrize(
    "name",
    [
        "standalone-0-12",
        prefix("flights"),
        f"{prefix('flights')}0.other",
        f"{prefix('flights')}x.1",
        Numbering("flights.1", 3, 0).name("5"),
        Numbering("flight", 3, 0).name("5"),
    ],
)
def test_no_other_name_is_taken_for_one_of_the_sink(name: str) -> None:
    assert writer_named("flights", name) is None
