"""JSON in step: what is not surely right is left to the decoder that names row and field."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.pulsar.wire.fields import joined
from eos.pulsar.wire.spans import Payloads
from eos.schema import vector_columns
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.json_text import JsonData
from eos.schema.json_values import FEWEST, JsonDecoder
from eos.schema.json_vector_decoder import top_column
from eos.schema.spark_types import spark_type
from eos.schema.vector_columns import Unsure
from tests.unit.schema.registered import field, record, registered

MAYBE = ["null", "string"]
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


def in_step(schema: Any, *values: bytes) -> list[Any]:
    """Decode by numpy alone, good values around these. Raises Unsure."""
    description = described(registered("JSON", schema))
    assert isinstance(description, Record)
    target = to_arrow_type(spark_type(description), timezone="UTC")
    found = vector_columns.decode(pa.array(values, pa.binary()), top_column(description.node, target), JsonData)
    found.validate(full=True)
    return list(found.to_pylist())


def of(kind: Any, *texts: str) -> list[Any]:
    """Decode the texts of one field."""
    schema = record(field("f", kind))
    return [row["f"] for row in in_step(schema, *(f'{{"f":{text}}}'.encode() for text in texts))]


@pytest.mark.parametrize(
    ("kind", "good", "wrong"),
    [
        ("int", "2147483647", ["2147483648", "1.0", "1e1", "01", "-", "", '"1"', "+1", "0x1", "1 2", "null"]),
        ("int", "-2147483648", ["-2147483649", "--1", "- 1"]),
        ("long", "9223372036854775807", ["9223372036854775808", "18446744073709551617", "1" * 25, "9" * 300]),
        ("long", "-9223372036854775808", ["-9223372036854775809", "-18446744073709551617"]),
        ("double", "1e308", ["1e309", "1e99999999999", "9" * 900, "NaN", "Infinity"]),
        ("double", "-1.5E-3", [".5", "5.", "1e", "1e+", "-.5", "01.5", "1.5.5", "1e5e5"]),
        ("float", "3.4028234e38", ["3.5e38", "1e400"]),
        ("boolean", "true", ["tru", "trux", "True", "fals", "falsx", "falsee", "truefalse", "xxxxx", "1", '"true"']),
        ("string", '"a"', ['"a', 'a"', '"a""', '"\x01"', '"\t"', '"' + "x" * 70 + '\n"', "null", "'a'"]),
        (MAYBE, '"nul"', ["nul", "nulx", "nulll", "none", '"a']),
        (ENUM, '"B"', ['"C"', '""', "0"]),
        ({"type": "array", "items": "int"}, "[1,2]", ["[1,]", "[,1]", "[1 2]", "[1", "1]", "[1}", "{}", "[null]"]),
        ({"type": "map", "values": "int"}, '{"a":1}', ['{"a":1,}', '{"a"}', "{a:1}", '{"a":1,"a":2}', "[]", '{"a":1']),
    ],
)
def test_what_is_no_such_value_is_left_to_the_last_word(kind: Any, good: str, wrong: list[str]) -> None:
    assert len(of(kind, good, f" {good}\n")) == 2
    for text in wrong:
        for values in ((text, good), (good, text)):
            with pytest.raises(Unsure):
                of(kind, *values)


def test_an_enum_without_symbols_has_no_value_in_step_either() -> None:
    empty = ENUM | {"symbols": []}
    assert of(["null", empty], "null", "null") == [None, None]
    for kind in (empty, ["null", empty]):
        with pytest.raises(Unsure):
            of(kind, '"A"', '"A"')
    with pytest.raises(Undecodable, match="row 0, field 'f': 'A', which is none of the enum's symbols"):
        _decoder(empty).decode(pa.array([b'{"f":"A"}'] * FEWEST))


def test_after_some_calls_that_are_not_read_in_step_a_parser_is_asked_at_once() -> None:
    reader = _decoder("double")
    odd, plain = (pa.array([b'{"f":%s}' % text] * FEWEST) for text in (b'"NaN"', b"1"))
    with patch.object(reader, "_in_step", wraps=reader._in_step) as tried:
        for _ in range(4 + 60):
            assert math.isnan(reader.decode(odd)[0].as_py()["f"])
        assert tried.call_count == 4
        assert [reader.decode(plain)[0].as_py() for _ in range(3)] == [{"f": 1.0}] * 3
        assert tried.call_count == 7


def test_numbers_are_read_to_the_last_digit() -> None:
    wholes = [0, 7, -1, 12_345_678, 123_456_789, -1_234_567_890_123_456, 10**18, 9_007_199_254_740_993]
    assert of("long", *map(str, wholes)) == wholes
    reals = ["0", "0.1", "-2.5e3", "1E-7", "0.30000000000000004", "9007199254740993", "5e-324", "123456789.123456789"]
    assert of("double", *reals) == [float(text) for text in reals]


@pytest.mark.parametrize("text", ["-0", "-0.0"])
def test_minus_nothing_is_what_the_parser_makes_of_it(text: str) -> None:
    """A whole number of Python's has no sign at 0."""
    with pytest.raises(Unsure):
        of("double", "1", text)
    found = _decoder("double").decode(pa.array([b'{"f":1}'] * FEWEST + [f'{{"f":{text}}}'.encode()]))
    assert math.copysign(1, found[-1].as_py()["f"]) == (1 if text == "-0" else -1)


def _decoder(kind: Any) -> JsonDecoder:
    description = described(registered("JSON", record(field("f", kind))))
    assert isinstance(description, Record)
    return JsonDecoder(description.node, description.node, to_arrow_type(spark_type(description), timezone="UTC"))


def test_values_of_any_order_and_with_any_fields_come_in_their_order() -> None:
    schema = record(field("a", "int"), field("b", MAYBE), field("c", {"type": "array", "items": MAYBE}))
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": "x", "c": []},
        {"c": ["p", None], "a": 2},
        {"b": None, "c": ["q"], "a": 3},
        {"a": 4, "b": "y" * 50, "c": ["r", "s", "t"]},
        {"new": 1.5, "a": 5, "c": [""]},
    ]
    found = in_step(schema, *(json.dumps(row, indent=row["a"] % 2 or None).encode() for row in rows))
    assert found == [{"a": row["a"], "b": row.get("b"), "c": row["c"]} for row in rows]


def test_keys_in_any_order_in_each_value_are_left_to_a_parser() -> None:
    """Each order takes steps of its own, over ever fewer values."""
    names = [f"f{place}" for place in range(9)]
    schema = record(*(field(name, "int") for name in names))
    orders = [Random(row).sample(names, 9) for row in range(300)]
    values = [json.dumps({name: row for name in order}).encode() for row, order in enumerate(orders)]
    with pytest.raises(Unsure):
        in_step(schema, *values)
    assert in_step(schema, *values[:6]) == [dict.fromkeys(names, row) for row in range(6)]


@pytest.mark.parametrize("after", [0, FEWEST])
def test_a_long_key_of_one_value_reads_nothing_beyond_the_last(after: int) -> None:
    long = b'{"%s":1,"f":7}' % (b"k" * 700)
    assert in_step(record(field("f", "int")), long, *[b'{"f":1}'] * after)[0] == {"f": 7}
    with pytest.raises(Unsure):
        in_step(record(field("f", "int")), long, b'{"f":1,"', b"{}")


def test_a_value_in_which_a_default_is_missing_among_others_is_left_to_the_last_word() -> None:
    schema = record(field("f", "int", default=3), field("g", "int"))
    assert in_step(schema, b'{"g":1}', b'{"g":2}') == [{"f": 3, "g": 1}, {"f": 3, "g": 2}]
    with pytest.raises(Unsure):
        in_step(schema, b'{"g":1}', b'{"f":9,"g":2}')


def test_texts_with_escapes_are_what_a_parser_makes_of_them() -> None:
    texts = [
        '"',
        "\\",
        '\\"',
        '"' * 9,
        "\\" * 9,
        '\\"' * 20,
        "é\n\t",
        "\U0001f600",
        "plain",
        "",
        '","g":"',
        "x" * 60 + '"\\',
    ]
    schema = record(field("f", "string"), field("g", MAYBE), field("m", {"type": "map", "values": "string"}))
    rows = [{"f": text, "g": None if place % 3 else text, "m": {text: text}} for place, text in enumerate(texts)]
    for ascii_only in (True, False):
        found = in_step(schema, *(json.dumps(row, ensure_ascii=ascii_only).encode() for row in rows))
        assert found == [row | {"m": [(row["f"], row["f"])]} for row in rows]


@pytest.mark.parametrize("text", ["\\", "\\x", "\\u12", "\\ud800", "\\\\\\", "a\\'", "\\\n"])
def test_an_escape_that_is_none_is_left_to_the_last_word(text: str) -> None:
    for texts in (['"a"', f'"{text}"'], [f'"{text}"', '"a"']):
        with pytest.raises(Unsure):
            of("string", *texts)


def test_what_looks_like_a_backslash_between_two_values_is_none() -> None:
    """The size of a value, which lies before it, can be 92."""
    texts = ['"a"', '"\\\\"', '"\\""', '""']
    parts = [f'{{"f":{text}}}'.encode() for text in texts]
    data, bounds = joined([b"\\" + part for part in parts])
    schema = described(registered("JSON", record(field("f", "string"))))
    assert isinstance(schema, Record)
    kind = to_arrow_type(spark_type(schema), timezone="UTC")
    starts, sizes = bounds[:-1] + 1, np.diff(bounds) - 1
    for missing in (np.zeros(4, np.bool_), np.array([True, False, True, False]), np.ones(4, np.bool_)):
        given = Payloads(data, starts, sizes, missing)
        found = vector_columns.decode(given, top_column(schema.node, kind), JsonData).to_pylist()
        rows = zip(texts, missing, strict=True)
        assert found == [None if absent else {"f": json.loads(text)} for text, absent in rows]
        slashes = JsonData(data, starts[~missing], bounds[1:][~missing]).slashes
        assert len(slashes) == 2 * (not missing[1]) + (not missing[2]), "those of the values"


@pytest.mark.parametrize("absent", ["never", "null", "a default"])
@pytest.mark.parametrize("around", ["%s", '{"in":%s}', '{"list":[{"f":0},%s]}'], ids=["top", "inside", "in a list"])
def test_a_backslash_outside_of_a_text_is_left_to_the_last_word(around: str, absent: str) -> None:
    """Also one in a name, where the field may be missing: it may be another way to write the name of a field."""
    one = {"never": field("f", "int"), "null": field("f", ["null", "int"]), "a default": field("f", "int", default=7)}
    inner = record(one[absent])
    nested = {"type": "record", "name": "N", "fields": inner["fields"]}
    schema = {
        "%s": inner,
        '{"in":%s}': record(field("in", nested)),
        '{"list":[{"f":0},%s]}': record(field("list", {"type": "array", "items": nested})),
    }[around]
    good = (around % '{"f":1}').encode()
    assert in_step(schema, good, good)
    for value in (
        '{"f":1\\}',
        '{\\"f":1}',
        '{"f\\"":1}',
        '{"f":1}\\',
        '{"\\u0066":1}',
        '{"f":1,"\\u0066":2}',
        '{"f":1,"o\\u0074her":2}',
        '{"f":1,"\\a":2}',
    ):
        for values in ([value, '{"f":1}'], ['{"f":1}', value], [value, value]):
            with pytest.raises(Unsure):
                in_step(schema, *((around % text).encode() for text in values))
