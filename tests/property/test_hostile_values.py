"""Whatever bytes a value has, each decoder gives a value, or an error of this library that names the row.

Another exception would end the query at that message at each restart, and `onDamagedEntry` could not pass over it.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.pulsar.protocol.schemas import Registered
from eos.schema import json_objects
from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.errors import Undecodable
from eos.schema.primitives import PRIMITIVES
from eos.schema.spark_types import spark_type
from tests.fuzz.mutations import mutated
from tests.property import evolving_avro, evolving_protobuf
from tests.property.vector_comparison import same
from tests.unit.schema.registered import field, record, registered

MANY = 120
"""Rows that are read in step."""

_POWERS = (
    *("5", "400", "-400", "999999999999999999", "1000000000000000000", "-1999999999999999998"),
    *(sign + "9" * digits for sign in ("", "+", "-") for digits in (20, 5_000)),
)
NUMBERS = (
    *("0", "-0", "1", "1.0", "0.0", "01", "1.", ".5", "-", "+1", "NaN", "-Infinity", "1e", "1e+", "0x1", "\u0661"),
    *(f"{digits}e{power}" for digits in ("1", "-1", "0", "-2.5") for power in _POWERS),
    *(
        sign + "9" * digits
        for sign in ("", "-")
        for digits in (9, 10, 18, 19, 20, 38, 39, 308, 309, 4300, 4301, 20_000)
    ),
    *("0." + "9" * 20_000, "9" * 20_000 + ".5e-99999999999999999999"),
)
OTHERS = ("null", "true", '""', '"\\ud800"', '"1"', "[]", "{}", "[" * 9_000, '{"a":' * 5_000, "\x00", '"\xff"', "")


def decoder(schema: Registered) -> Decoder:
    description = described(schema)
    return Decoder(description, description, to_arrow_type(spark_type(description), timezone="UTC"))


def judged(reader: Decoder, good: bytes, hostile: bytes) -> pa.Array | None:
    """Decode bytes alone and after many good values. Return the value, None where it is refused."""
    outcomes: list[pa.Array | None] = []
    for values in ([hostile], [*[good] * MANY, hostile]):
        column, named = pa.array(values, pa.binary()), len(values) - 1
        try:
            found = reader.decode(column, column)
        except Undecodable as error:
            outcomes.append(None)
            named = error.row
        else:
            found.validate(full=True)
            outcomes.append(found.take(pa.array([len(values) - 1])))
        assert named == len(values) - 1
    alone, among = outcomes
    assert (alone is None) == (among is None)
    assert alone is None or among is None or same(alone, among)
    return alone


def _leaves() -> list[Any]:
    """Return each type without parts that an Avro schema has here."""
    names = evolving_avro.Names(Random(1))
    drawn = [evolving_avro.leaf(names) for _ in range(400)]
    plain = {json.dumps(_without_names(kind)): kind for kind in drawn}
    return [plain[key] for key in sorted(plain)]


def _without_names(kind: Any) -> Any:
    return (
        {key: kind[key] for key in kind if key not in ("name", "size", "symbols")} if isinstance(kind, dict) else kind
    )


@pytest.mark.parametrize("parser", ["msgspec", "Python's"])
@pytest.mark.parametrize("kind", _leaves(), ids=lambda kind: json.dumps(_without_names(kind)))
def test_json_in_a_field(kind: Any, parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if parser != "msgspec":
        monkeypatch.setattr(json_objects, "msgspec", None)
    schema = registered("JSON", record(field("known", kind), field("n", "int")))
    for text in (*NUMBERS, *OTHERS):
        judged(decoder(schema), b'{"known": %s, "n": 1}' % _good(kind), f'{{"known": {text}, "n": 2}}'.encode())


def _good(kind: Any) -> bytes:
    plain = kind["type"] if isinstance(kind, dict) else kind
    if plain == "enum":
        return json.dumps(kind["symbols"][0]).encode()
    decimal = isinstance(kind, dict) and "precision" in kind
    return b"true" if plain == "boolean" else b'"x"' if plain in ("string", "bytes", "fixed") and not decimal else b"1"


@pytest.mark.parametrize("parser", ["msgspec", "Python's"])
def test_json_as_a_whole(parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if parser != "msgspec":
        monkeypatch.setattr(json_objects, "msgspec", None)
    schema = registered("JSON", record(field("n", "int")))
    for text in (*NUMBERS, *OTHERS):
        for form in ("%s", "[%s]", '{"n": 1} %s', '{"n": 2, "unknown": [%s]}', '{"n": 2, "unknown": {"a": %s}}'):
            judged(decoder(schema), b'{"n": 1}', (form % text).encode())


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:24])
@pytest.mark.parametrize("parser", ["msgspec", "Python's"])
def test_a_number_in_a_field_that_the_schema_does_not_know_is_passed_over(
    text: str, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser != "msgspec":
        monkeypatch.setattr(json_objects, "msgspec", None)
    reader = decoder(registered("JSON", record(field("n", "int"))))
    found = judged(reader, b'{"n": 1, "unknown": 1}', f'{{"n": 2, "unknown": {text}}}'.encode())
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except ValueError:
        assert found is None
    else:
        assert found is not None
        assert found.to_pylist() == [{"n": 2}]


def test_avro() -> None:
    seen = {True: 0, False: 0}
    for seed in range(60):
        random = Random(seed)
        theirs, _ = evolving_avro.pair(random, depth=2)
        reader = decoder(registered("AVRO", theirs))
        good = evolving_avro.written(theirs, random)
        for _ in range(6):
            seen[judged(reader, good, mutated(good, random, [good, b"\xff" * 9])) is None] += 1
    assert min(seen.values()) > 30


def test_protobuf() -> None:
    seen = {True: 0, False: 0}
    for seed in range(60):
        random = Random(seed)
        messages: evolving_protobuf.Messages = {}
        evolving_protobuf.draw(random, messages, "M", 2)
        reader = decoder(evolving_protobuf.schema(messages, evolving_protobuf.SYMBOLS, "proto3"))
        good = evolving_protobuf.written(random, messages, "M", odd=True)
        for _ in range(6):
            seen[judged(reader, good, mutated(good, random, [good, b"\xff" * 9])) is None] += 1
    assert min(seen.values()) > 30


@pytest.mark.parametrize("kind", PRIMITIVES)
def test_primitives_and_pairs_of_them(kind: str) -> None:
    random = Random(kind)
    layout = PRIMITIVES[kind]
    good = bytes(layout.parts.itemsize if layout else 3)
    properties = {"key.schema.type": kind, "value.schema.type": kind, "kv.encoding.type": "INLINE"}
    pair = 2 * (len(good).to_bytes(4, "big") + good)
    for schema, one in ((registered(kind), good), (registered("KEY_VALUE", bytes(8), properties), pair)):
        reader = decoder(schema)
        extremes = [
            b"",
            one[:-1],
            one + b"\0",
            b"\xff" * len(one),
            b"\x7f" + b"\xff" * (len(one) - 1),
            b"\x80" + one[1:],
        ]
        for hostile in (*extremes, *(mutated(one, random, [one, b"\xff" * 9]) for _ in range(60))):
            judged(reader, one, hostile)
