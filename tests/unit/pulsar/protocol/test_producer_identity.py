"""How producers introduce themselves."""

from __future__ import annotations

from eos.pulsar.protocol.producer_identity import ProducerIdentity


def test_a_part_adds_its_role_and_what_is_known_of_it() -> None:
    whole = ProducerIdentity("flights", {"eos.sink": "flights"}, encrypted=True)
    part = whole.part("batch-8-task-3", **{"eos.task": "3"})
    assert part.fresh_name().startswith("flights:batch-8-task-3:")
    assert part.properties == {"eos.sink": "flights", "eos.task": "3"}
    assert part.encrypted
    assert whole.properties == {"eos.sink": "flights"}


def test_no_two_names_are_the_same() -> None:
    one = ProducerIdentity("flights")
    assert len({one.fresh_name() for _ in range(1_000)}) == 1_000
