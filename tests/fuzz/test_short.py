"""Some thousand cases, always the same: `make fuzz` tries others for half an hour."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.run import MEMORY_BYTES, Fuzzer, grown, most

CASES = 6_000


def test_damage_is_named_or_read_as_others_read_it(tmp_path: Path) -> None:
    start = most()
    fuzzer = Fuzzer(tmp_path)
    for seed in range(CASES):
        try:
            fuzzer.case(seed)
        except Exception as error:
            raise AssertionError(f"the case of seed {seed}: {type(error).__name__}: {error}") from error
    assert sum(fuzzer.outcomes.values()) == CASES
    for kind, outcome in (("value", "read"), ("entry", "read"), ("frame", "the same")):
        assert fuzzer.outcomes[kind, outcome] > CASES // 20, "damage that nothing survives tries little"
        assert fuzzer.outcomes[kind, "refused"] > CASES // 20
    assert grown(start) <= MEMORY_BYTES
