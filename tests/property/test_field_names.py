"""Fields that were renamed, and names that came back: every decoder matches the same fields, and none of them twice."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.field_names import READERS, fastavros, fields

NAMES = "abcde"


def some(random: Random) -> tuple[list[str], list[tuple[str, list[str], int]]]:
    """Return the names that are written, and the fields of the query with their aliases and defaults."""
    written = random.sample(NAMES, random.randint(1, 4))
    ours = random.sample(NAMES, random.randint(1, 4))
    return written, [
        (name, random.sample(NAMES, random.choice([0, 1, 1, 2])), -place) for place, name in enumerate(ours)
    ]


def check_rules(found: dict[str, int], value: dict[str, int], asked: list[Any]) -> None:
    """Hold a row against the rules. Written numbers are positive and differ; defaults are not."""
    read = [number for number in found.values() if number > 0]
    assert len(set(read)) == len(read), "a field of the message was read twice"
    for name, aliases, default in asked:
        by_alias = [value[alias] for alias in aliases if alias in value and alias != name]
        if found[name] == default:
            assert name not in value or value[name] in read, "its value went to a newer name of it"
            assert all(number in read for number in by_alias), "an alias that nobody has"
        elif found[name] != value.get(name):
            assert found[name] in by_alias
            assert name not in value or value[name] in read, "its value went to a newer name of it"


@pytest.mark.parametrize("pairs", [300, pytest.param(20_000, marks=pytest.mark.soak)])
def test_every_decoder_matches_the_same_fields_and_none_of_them_twice(pairs: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(pairs):
        written, asked = some(Random(seed))
        value = {name: place for place, name in enumerate(written, 1)}
        rows = {name: read(fields(*written), fields(*asked), value) for name, read in READERS.items()}
        found = rows["AVRO one by one"]
        assert rows == dict.fromkeys(READERS, found), f"seed {seed}: {written} as {asked}"
        check_rules(found, value, asked)
        seen["by an alias"] += any(found[name] > 0 and name not in value for name, _, _ in asked)
        seen["a name that went to a newer one"] += any(name in value and found[name] != value[name] for name in found)
        try:
            seen["as fastavro"] += fastavros(fields(*written), fields(*asked), value) == found
        except KeyError:
            seen["fastavro has no answer"] += 1
    print(dict(seen))
    assert seen["by an alias"] > pairs // 10
    assert seen["a name that went to a newer one"] > pairs // 20
    assert seen["as fastavro"] > pairs // 3
