"""numpy decodes the same as Google's library: random messages, their evolutions, any order, damaged bytes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema import vector_columns
from eos.schema.description import Record, described
from eos.schema.protobuf_decoder import ProtobufDecoder
from eos.schema.protobuf_vector_decoder import FEWEST
from eos.schema.vector_columns import Unsure
from tests.between import between
from tests.property import evolving_protobuf
from tests.property.evolving_avro import damaged
from tests.property.evolving_protobuf import SYMBOLS
from tests.property.vector_comparison import compared
from tests.unit.schema.registered import arrow_type

ROWS = FEWEST + 10


def by_numpy(decoder: ProtobufDecoder, values: pa.Array) -> pa.Array | None:
    try:
        return vector_columns.decode(between(values), decoder.vector_column())
    except Unsure:
        return None


def drawn(random: Random) -> tuple[evolving_protobuf.Messages, ProtobufDecoder]:
    """Return messages, and a decoder of them by a version that may be another one. Raises InvalidInput."""
    messages: evolving_protobuf.Messages = {}
    evolving_protobuf.draw(random, messages, "M", 2)
    now, syntax = messages, random.choice(["proto2", "proto3", "proto3"])
    symbols = SYMBOLS
    if random.random() < 0.7:
        now = evolving_protobuf.evolved(random, messages)
        symbols = random.choice([SYMBOLS, [*SYMBOLS, "LOST"], ["NONE", "EARLY", "LATE"]])
    theirs = described(evolving_protobuf.schema(messages, SYMBOLS, syntax))
    ours = described(evolving_protobuf.schema(now, symbols, syntax))
    assert isinstance(theirs, Record)
    assert isinstance(ours, Record)
    return messages, ProtobufDecoder(theirs, ours, arrow_type(ours))


@pytest.mark.parametrize("schemas", [20, pytest.param(3_000, marks=pytest.mark.soak)])
def test_numpy_gives_what_googles_library_gives(schemas: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(schemas):
        random = Random(seed)
        try:
            messages, decoder = drawn(random)
        except InvalidInput:
            seen["refused pair"] += 1
            continue
        kind = ("damaged", "odd", "plain")[seed % 3]
        rows: list[Any] = [evolving_protobuf.written(random, messages, "M", odd=kind == "odd") for _ in range(ROWS)]
        if kind == "damaged":
            for _ in range(random.choice([1, 1, 3])):
                row = random.randrange(ROWS)
                rows[row] = damaged(rows[row], random)
        if random.random() < 0.3:
            rows = [None if random.random() < 0.2 else row for row in rows]
        values = pa.array([b"before", *rows], pa.binary()).slice(1)
        became = compared(decoder, by_numpy(decoder, values), values, f"seed {seed}: {messages}")
        seen[f"{kind}, {became}"] += 1
    print(schemas, "schemas:", dict(sorted(seen.items())))
    assert seen["damaged, refused, one by one"] > schemas // 10
    assert seen["plain, decoded, by numpy"] > 4 * seen["plain, decoded, one by one"]
    assert seen["odd, decoded, by numpy"] > 0
