"""JSON that is read column by column is what each value alone is read as: random schemas, and values of all sorts."""

from __future__ import annotations

import gc
import json
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.schema import json_objects, json_values
from eos.schema.description import Record, described
from eos.schema.json_values import JsonDecoder
from eos.schema.spark_types import spark_type
from eos.schema.vector_columns import Unsure
from tests.between import between
from tests.property import evolving_avro
from tests.property.vector_comparison import outcome, same
from tests.unit.schema.registered import field, record, registered

ROWS = 12
RAW = {  # as the text of the JSON has them
    "int": ["2147483647", "2147483648", "-2147483649", "1.0", "1e2", "true", '"1"'],
    "long": ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "12345678901234567890", "1.5"],
    "float": ["3.4028235e38", "3.5e38", "1e400", "NaN", '"NaN"', "-Infinity", "16777217", "0.1", "-0", "1" * 400],
    "double": [
        "1e308",
        "1e309",
        "NaN",
        '"Infinity"',
        "9007199254740993",
        "0.30000000000000004",
        "-0.0",
        "-0",
        "5e-324",
    ],
    "string": ['"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', "1", "null", '"é"'],
    "boolean": ["0", "1", '"true"', "null"],
}


def text(schema: Any, random: Random, odd: float) -> str:
    """Return a random value as JSON's text; seldom one that the schema does not allow."""
    if isinstance(schema, list):
        branch = random.choice(schema)
        return "null" if branch == "null" else text(branch, random, odd)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if random.random() < odd:
        return random.choice(RAW.get(kind, ["null", "{}", "[]", "1", '"x"', "[[[[1]]]]", "nul", ""]))
    if kind == "record":
        pairs = [(one["name"], text(one["type"], random, odd)) for one in schema["fields"] if random.random() > odd]
        if random.random() < odd * 3:
            pairs.append(random.choice([("other", "[1, {}]"), *pairs]))
        if random.random() < 0.1:
            random.shuffle(pairs)
        space = random.choice(["", " ", "\n\t "]) if random.random() < 0.1 else " "
        return "{" + f",{space}".join(f'"{key(name, value, odd)}":{space}{value}' for name, value in pairs) + "}"
    if kind == "array":
        return "[" + ",".join(text(schema["items"], random, odd) for _ in range(random.choice([0, 1, 3]))) + "]"
    if kind == "map":
        some = ["\ud800"] if random.random() < odd else ["a", "b", "", "é", "c"]
        keys = [random.choice(some) for _ in range(random.choice([0, 1, 3]))]
        return "{" + ",".join(f"{json.dumps(one)}:{text(schema['values'], random, odd)}" for one in keys) + "}"
    return plain(schema if isinstance(schema, dict) else {"type": schema}, random)


def key(name: str, value: str, odd: float) -> str:
    """Return a field's name, seldom with an escape in it. What is drawn for the values does not change by it."""
    random = Random(name + value)
    if random.random() >= odd:
        return name
    return random.choice([f"\\u{ord(name[0]):04x}{name[1:]}", f"{name}\\u0000", f"\\{name}", f"{name}\\"])


def plain(schema: dict[str, Any], random: Random) -> str:
    kind, logical = schema["type"], schema.get("logicalType", "")
    if logical == "decimal":
        return random.choice(["0", "-1", "1.5" if schema["scale"] else "7", "12345678"])
    if logical in evolving_avro.DAYS:
        return str(random.randrange(evolving_avro.DAYS[logical] + (random.random() < 0.02)))
    if kind in ("int", "long"):
        bits = random.choice([3, 20, 31, 31 if kind == "int" or random.random() < 0.8 else 56])
        return str(random.randint(-(2**bits), 2**bits - 1) if not logical else random.randint(-(10**6), 10**6))
    if kind in ("float", "double"):
        return random.choice(["0", "1", "0.1", "-2.5e3", "1234567.125", "0.30000000000000004", str(random.random())])
    if kind == "boolean":
        return random.choice(["true", "false"])
    if kind == "enum":
        return json.dumps(random.choice(schema["symbols"]))
    letters = random.choice(['ab€\U0001f600"\\ x', "ab€\U0001f600 x:,{}[]"])
    return json.dumps(
        "".join(random.choices(letters, k=random.choice([0, 3, 8, 40]))), ensure_ascii=random.random() < 0.1
    )


def mistyped(data: bytes, random: Random) -> bytes:
    """Return JSON with another character, one too few or one too many, of those that mean something in JSON."""
    at = random.randrange(len(data))
    character = random.choice([*list('"\\{}[],:09-+.en \n'), ""])
    return data[:at] + character.encode() + data[at + random.choice([0, 1]) :]


def decoder(writer: Any, reader: Any) -> JsonDecoder:
    theirs, ours = described(registered("JSON", writer)), described(registered("JSON", reader))
    assert isinstance(theirs, Record)
    assert isinstance(ours, Record)
    return JsonDecoder(theirs.node, ours.node, to_arrow_type(spark_type(ours), timezone="UTC"))


@pytest.mark.parametrize("schemas", [150, pytest.param(5_000, marks=pytest.mark.soak)])
def test_columns_give_what_each_value_gives(schemas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_values, "FEWEST", 1)
    seen: Counter[str] = Counter()
    for seed in range(schemas):
        random = Random(seed)
        theirs, ours = evolving_avro.pair(random, depth=2)
        try:
            reader = decoder(theirs, ours)
        except InvalidInput:
            continue
        odd = random.choice([0.0, 0.0, 0.002, 0.02])
        rows: list[Any] = [text(theirs, random, odd).encode() for _ in range(ROWS)]
        if random.random() < 0.1:
            rows[3] = random.choice(
                [None, b"null", b"", b" {} ", b"\xff", rows[3].decode().encode("utf-16"), rows[3] + b"x"]
            )
        if random.random() < 0.3:
            rows[5] = random.choice((evolving_avro.damaged, mistyped))(rows[5], random)
        values = pa.array(rows, pa.binary())
        single, quick = outcome(reader._checked, values), outcome(reader._one_by_one, values)
        where = f"seed {seed}: {theirs} as {ours}: {rows}"
        for found in (quick, outcome(reader.decode, values), outcome(reader.decode, between(values))):
            assert found == single if isinstance(single, str) else same(found, single), where
        seen["refused" if isinstance(single, str) else "decoded"] += 1
        try:
            in_step = outcome(reader._in_step, between(values))
            assert in_step == single if isinstance(single, str) else same(in_step, single), f"in step, {where}"
            seen["in step"] += 1
        except Unsure:
            seen["in step unsure"] += 1
        for columns in reader._columns:
            name = type(columns.objects).__name__
            try:
                array = columns.array(values)
            except Unsure:
                seen[f"{name} unsure"] += 1
                continue
            assert same(array, single), f"{name}, {where}"
            seen[name] += 1
    print(dict(seen))
    assert seen["in step"] > schemas // 8
    assert seen["Structs"] > schemas // 5
    assert seen["Dictionaries"] > schemas // 5
    assert seen["refused"] > schemas // 20
    assert seen["decoded"] > schemas // 5


ODD = {  # what a parser could pass over where the schema does not know a field, or take for something else
    "text that is not UTF-8, unknown": b'{"a": {"x": 1}, "b": "\xff"}',
    "a key that is not UTF-8, unknown": b'{"a": {"x": 1}, "\xff": 1}',
    "half a surrogate, unknown": b'{"a": {"x": 1}, "b": "\\ud800"}',
    "half a surrogate, a key": b'{"a": {"\\ud800": 1}}',
    "a number that is none, unknown": b'{"a": {"x": 1}, "b": 01}',
    "a number without an end, unknown": b'{"a": {"x": 1}, "b": 1.}',
    "NaN, unknown": b'{"a": {"x": 1}, "b": NaN}',
    "a control character, unknown": b'{"a": {"x": 1}, "b": "\x01"}',
    "a control character in a key, unknown": b'{"a": {"x": 1}, "b\x01": 1}',
    "a control character in a long text, unknown": b'{"a": {"x": 1}, "b": "' + b"x" * 60 + b'\n"}',
    "a tab in a key": b'{"a": {"x\t": 1}}',
    "a text without an end": b'{"a": {"x": 1}, "b": "c}',
    "a long text without an end": b'{"a": {"x": 1}, "b": "' + b"x" * 60 + b"}",
    "no colon": b'{"a" {"x": 1}}',
    "no comma": b'{"a": {"x": 1 "y": 1}}',
    "a comma too many": b'{"a": {"x": 1,}}',
    "a comma too many in a record": b'{"a": {"x": 1},}',
    "a comma alone": b'{"a": {,}}',
    "a bracket of another kind": b'{"a": {"x": 1]}',
    "no end": b'{"a": {"x": 1}',
    "white space behind": b'{"a": {"x": 1}} \n',
    "white space of another kind": '{"a":\u00a0{"x": 1}}'.encode(),
    "a form feed": b'{"a":\x0c{"x": 1}}',
    "a zero before": b'{"a": {"x": 01}}',
    "a plus": b'{"a": {"x": +1}}',
    "a minus alone": b'{"a": {"x": -}}',
    "minus zero": b'{"a": {"x": -0}}',
    "the least": b'{"a": {"x": -2147483648}}',
    "nineteen digits": b'{"a": {"x": 9223372036854775807}}',
    "twenty digits": b'{"a": {"x": 10000000000000000000}}',
    "half a word": b'{"a": {"x": 1}, "b": tru}',
    "a word too long": b'{"a": {"x": 1}, "b": nulls}',
    "half of null": b"nul",
    "a field twice": b'{"a": {"x": 1}, "a": {"x": 2}}',
    "a key twice": b'{"a": {"x": 1, "y": 2, "x": 3}}',
    "a key with an escape": b'{"\\u0061": {"x": 1}}',
    "two values": b'{"a": {"x": 1}} {"a": {"x": 1}}',
    "null behind": b'{"a": {"x": 1}}\x00',
    "null": b"null",
    "a list": b'[{"x": 1}]',
    "deep": b'{"a": {"x": 1}, "b": ' + b"[" * 900 + b"]" * 900 + b"}",
    "too deep": b'{"a": {"x": 1}, "b": ' + b"[" * 90_000 + b"]" * 90_000 + b"}",
    "UTF-16": '{"a": {"x": 1}}'.encode("utf-16"),
    "with a mark of its order": '{"a": {"x": 1}}'.encode("utf-8-sig"),
    "a whole fraction": b'{"a": {"x": 1.0}}',
    "a number as a text": b'{"a": {"x": "1"}}',
    "beyond the type": b'{"a": {"x": 2147483648}}',
    "beyond any type": b'{"a": {"x": ' + b"9" * 5_000 + b"}}",
    "empty": b"",
}


@pytest.mark.parametrize("parser", ["msgspec", "Python's"])
@pytest.mark.parametrize("value", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("may_be_missing", [False, True])
def test_no_parser_takes_what_the_last_word_refuses(
    value: bytes, parser: str, monkeypatch: pytest.MonkeyPatch, *, may_be_missing: bool
) -> None:
    if parser != "msgspec":
        monkeypatch.setattr(json_objects, "msgspec", None)
    monkeypatch.setattr(json_values, "FEWEST", 1)
    numbers = {"type": "map", "values": "int"}
    schema = record(field("a", ["null", numbers] if may_be_missing else numbers))
    reader = decoder(schema, schema)
    assert len(reader._columns) == (2 if parser == "msgspec" else 1)
    values = pa.array([b'{"a": {}}', value])
    single, found = outcome(reader._checked, values), outcome(reader.decode, values)
    assert found == single if isinstance(single, str) else same(found, single)


def test_the_collection_of_garbage_is_on_again_afterwards() -> None:
    schema = record(field("a", {"type": "map", "values": "int"}))
    reader = decoder(schema, schema)
    assert gc.isenabled()
    assert reader.decode(pa.array([b'{"a": {"x": 1}}'])).to_pylist() == [{"a": [("x", 1)]}]
    assert isinstance(outcome(reader.decode, pa.array([b'{"a": {"x": "y"}}'])), str)
    assert gc.isenabled()
