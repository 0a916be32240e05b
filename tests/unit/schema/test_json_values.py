from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema import json_values
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.json_values import JsonDecoder
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import GOLDEN_FLIGHT, field, golden, record, registered

FLIGHT = record(
    field("carrier", ["null", "string"]), field("delay", "int"), field("legs", {"type": "array", "items": "string"})
)
GOOD = {"carrier": "UA", "delay": -3, "legs": ["JFK", "LAX"]}


def decoder(schema: Any) -> JsonDecoder:
    described_as = described(registered("JSON", schema))
    assert isinstance(described_as, Record)
    return JsonDecoder(described_as.node, described_as.node, to_arrow_type(spark_type(described_as), timezone="UTC"))


def decoded(schema: Any, *values: bytes | None) -> list[Any]:
    found = decoder(schema).decode(pa.array(values, pa.binary()))
    found.validate(full=True)
    rows: list[Any] = found.to_pylist()
    return rows


def text(value: Any, **how: Any) -> bytes:
    return json.dumps(value, **how).encode()


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often values were looked at one by one, where few are read in step, too."""
    monkeypatch.setattr(json_values, "FEWEST", 1)
    calls: list[int] = []
    look = JsonDecoder._one_by_one

    def watched(self: JsonDecoder, values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return look(self, values)

    monkeypatch.setattr(JsonDecoder, "_one_by_one", watched)
    return calls


def test_values_of_known_types_are_read_at_once(one_by_one: list[int]) -> None:
    later = GOOD | {"carrier": None, "legs": []}
    rows = decoded(FLIGHT, text(GOOD, indent=True), None, text(later), b"null", text(GOOD | {"more": "x"}))
    assert rows == [GOOD, None, later, None, GOOD]
    assert one_by_one == []


def test_values_in_a_slice_of_a_column() -> None:
    values = pa.array([b"{", text(GOOD), None, text(GOOD)], pa.binary()).slice(1)
    assert decoder(FLIGHT).decode(values).to_pylist() == [GOOD, None, GOOD]


def test_nothing_at_all_and_nulls_alone() -> None:
    assert decoded(FLIGHT) == []
    assert decoded(FLIGHT, None, None) == [None, None]


def test_a_large_value_among_small_ones(one_by_one: list[int]) -> None:
    large = GOOD | {"carrier": "x" * 3_000_000}
    assert decoded(FLIGHT, text(GOOD), text(large), text(GOOD)) == [GOOD, large, GOOD]
    assert one_by_one == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (b"", r"^row 1: it is not JSON"),
        (b"{", r"^row 1: it is not JSON"),
        (b"\xff", r"^row 1: it is not JSON"),
        (text(GOOD) + text(GOOD), r"^row 1: it is not JSON: Extra data"),
        (text(GOOD) + b"," + text(GOOD), r"^row 1: it is not JSON: Extra data"),
        (text(GOOD) + b', "x": 3', r"^row 1: it is not JSON: Extra data"),
        (text([GOOD]), r"^row 1: \[.*, where the schema has a record"),
        (text(GOOD | {"delay": "3"}), r"^row 1, field 'delay': '3', where the schema has int"),
        (text(GOOD | {"delay": 1.0}), r"^row 1, field 'delay': 1.0, where the schema has int"),
        (text(GOOD | {"delay": True}), r"^row 1, field 'delay': True, where the schema has int"),
        (text(GOOD | {"delay": 2**31}), r"^row 1, field 'delay': 2147483648, which is beyond int"),
        (text(GOOD | {"delay": None}), r"^row 1, field 'delay': null, where the schema has no null"),
        (text({"legs": []}), r"^row 1, field 'delay': it is missing, and the schema has neither a default"),
        (text(GOOD | {"carrier": 7}), r"^row 1, field 'carrier': 7, where the schema has string"),
        (text(GOOD | {"legs": [None]}), r"^row 1, field 'legs\[0\]': null, where the schema has no null"),
        (text(GOOD | {"legs": ["a", 5]}), r"^row 1, field 'legs\[1\]': 5, where the schema has string"),
        (text(GOOD | {"legs": "a"}), r"^row 1, field 'legs': 'a', where the schema has array"),
        (text(GOOD | {"carrier": "\ud800"}), r"^row 1, field 'carrier': .*not a text in Unicode"),
    ],
)
def test_what_is_wrong_is_named_with_row_and_field(wrong: bytes, words: str) -> None:
    with pytest.raises(Undecodable, match=words):
        decoded(FLIGHT, text(GOOD), wrong, text(GOOD))


def test_text_that_is_no_utf_8_inside_a_string() -> None:
    with pytest.raises(Undecodable, match=r"^row 0: it is not JSON"):
        decoded(FLIGHT, text(GOOD).replace(b"UA", b"U\xff"))


def test_a_key_of_a_map_that_is_no_text_is_named() -> None:
    schema = record(field("seats", {"type": "map", "values": "int"}))
    with pytest.raises(Undecodable, match=r"^row 1, field 'seats': .*not a text in Unicode"):
        decoded(schema, b'{"seats": {"a": 1}}', b'{"seats": {"\\ud800": 1}}')


def test_a_missing_field_takes_its_default_and_a_null_stays_one(one_by_one: list[int]) -> None:
    schema = record(
        field("a", ["int", "null"], default=5), field("b", "string", default="x"), field("c", ["null", "int"])
    )
    assert decoded(schema, b"{}", b'{"a": null, "b": "y", "c": 1}') == [
        {"a": 5, "b": "x", "c": None},
        {"a": None, "b": "y", "c": 1},
    ]
    assert one_by_one == [2]


def test_a_default_stands_for_a_missing_field_that_may_be_null() -> None:
    schema = record(field("a", ["int", "null"], default=5))
    assert decoded(schema, b"{}", b'{"a": null}', b'{"a": 7}') == [{"a": 5}, {"a": None}, {"a": 7}]


def test_a_null_record_hides_the_fields_that_it_must_have(one_by_one: list[int]) -> None:
    inner = record(field("x", "int"), name="Inner")
    schema = record(field("a", ["null", inner]), field("many", {"type": "array", "items": ["null", "Inner"]}))
    rows = [{"a": None, "many": [None, {"x": 1}]}, {"a": {"x": 2}, "many": []}]
    assert decoded(schema, *map(text, rows)) == rows
    assert one_by_one == []
    with pytest.raises(Undecodable, match=r"^row 0, field 'many\[1\].x': it is missing"):
        decoded(schema, text({"a": None, "many": [None, {}]}))


def test_the_times_of_a_schema_are_numbers_in_json(one_by_one: list[int]) -> None:
    def logical(kind: str, name: str) -> dict[str, str]:
        return {"type": kind, "logicalType": name}

    schema = record(
        field("day", logical("int", "date")),
        field("ms", logical("int", "time-millis")),
        field("us", logical("long", "time-micros")),
        field("at", logical("long", "timestamp-millis")),
        field("at_us", ["null", logical("long", "timestamp-micros")]),
        field("here", logical("long", "local-timestamp-millis")),
        field("here_us", logical("long", "local-timestamp-micros")),
    )
    value = {"day": -1, "ms": 1, "us": 1, "at": -1, "at_us": 1, "here": 1, "here_us": 1}
    expected = {
        "day": date(1969, 12, 31),
        "ms": 1,
        "us": 1,
        "at": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        "at_us": datetime(1970, 1, 1, 0, 0, 0, 1, UTC),
        "here": datetime(1970, 1, 1, 0, 0, 0, 1000),
        "here_us": datetime(1970, 1, 1, 0, 0, 0, 1),
    }
    assert decoded(schema, text(value)) == [expected]
    assert one_by_one == []
    by_hand = decoder(schema)._one_by_one(pa.array([text(value)], pa.binary()))
    assert by_hand.to_pylist() == [expected]
    with pytest.raises(Undecodable, match="field 'day': '2013-01-01', where the schema has date"):
        decoded(schema, text(value | {"day": "2013-01-01"}))
    with pytest.raises(Undecodable, match="field 'at': 9223372036854775807 milliseconds since 1970"):
        decoded(schema, text(value | {"at": 2**63 - 1}))


def test_maps_and_decimals() -> None:
    price = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    schema = record(field("seats", {"type": "map", "values": "int"}), field("price", price))
    assert decoded(schema, b'{"seats": {"b": 1, "a": 2}, "price": 123.450}') == [
        {"seats": [("b", 1), ("a", 2)], "price": Decimal("123.45")}
    ]
    for wrong in ("1234", "0.001", '"1"'):
        with pytest.raises(Undecodable, match="field 'price': "):
            decoded(schema, f'{{"seats": {{}}, "price": {wrong}}}'.encode())
    with pytest.raises(Undecodable, match=r"field 'seats\[a\]': 'x', where the schema has int"):
        decoded(schema, b'{"seats": {"a": "x"}, "price": 1}')


def test_numbers_that_are_not_finite_as_java_and_python_write_them() -> None:
    schema = record(field("a", "double"))
    assert str(decoded(schema, b'{"a": NaN}', b'{"a": "NaN"}', b'{"a": "-Infinity"}')) == (
        "[{'a': nan}, {'a': nan}, {'a': -inf}]"
    )
    with pytest.raises(Undecodable, match="field 'a': 'many', where the schema has double"):
        decoded(schema, b'{"a": "many"}')


@pytest.mark.parametrize(("kind", "number"), [("double", "1e400"), ("float", "1e39")])
def test_a_number_beyond_its_type_is_named(kind: str, number: str) -> None:
    with pytest.raises(Undecodable, match=f"field 'a': .*, which is beyond {kind}"):
        decoded(record(field("a", kind)), f'{{"a": {number}}}'.encode())


def test_what_the_java_client_wrote() -> None:
    schema, value = golden("JSON")
    assert decoded(schema.definition, value) == [GOLDEN_FLIGHT | {"tail": "AP8="}]


def test_a_moment_before_the_first_year_is_read_whichever_values_lie_beside_it() -> None:
    """What is read one by one must not depend on the neighbours."""
    kinds = [{"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}]
    kinds += [{"type": "long", "logicalType": "local-timestamp-micros"}]
    numbers = [-749_897, -62_135_596_800_001, 253_402_300_800_000_000]
    schema = record(*(field(f"f{place}", kind) for place, kind in enumerate(kinds)), field("n", "double"))
    reader = decoder(schema)
    row = ", ".join(f'"f{place}": {number}' for place, number in enumerate(numbers))
    for beside in ("0.5", '"NaN"'):  # a text is read one by one, and so are its neighbours
        rows = [f'{{{row}, "n": 0.5}}'.encode(), f'{{{row}, "n": {beside}}}'.encode()]
        found = reader.decode(pa.array(rows, pa.binary()))
        counted = [found.field(f"f{place}").view(pa.int32() if place == 0 else pa.int64()) for place in range(3)]
        assert [column[0].as_py() for column in counted] == [numbers[0], numbers[1] * 1000, numbers[2]]


def test_a_float_read_as_a_double_is_the_float_whichever_values_lie_beside_it() -> None:
    theirs, ours = (described(registered("JSON", record(field("a", kind)))) for kind in ("float", "double"))
    assert isinstance(theirs, Record)
    assert isinstance(ours, Record)
    reader = JsonDecoder(theirs.node, ours.node, to_arrow_type(spark_type(ours), timezone="UTC"))
    for beside in (b'{"a": 0.5}', b'{"a": "NaN"}'):  # a text is read one by one, and so are its neighbours
        found = reader.decode(pa.array([b'{"a": 0.1}', beside], pa.binary()))
        assert found[0].as_py() == {"a": 0.10000000149011612}
