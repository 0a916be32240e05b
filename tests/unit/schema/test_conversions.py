"""Which type is read as which: for all pairs, and for what is beyond the types without parts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.errors import InvalidInput
from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.errors import Undecodable
from eos.schema.spark_types import spark_type
from tests.schema_pairs import TYPES, schema_of, written, wrongly_read
from tests.unit.schema.registered import field, record, registered

FORMS = ("AVRO", "JSON")
CONVERTED = {
    ("int", "long"), ("int", "float"), ("int", "double"), ("long", "int"), ("long", "float"), ("long", "double"),
    ("float", "double"), ("string", "bytes"), ("bytes", "string"), ("enum", "other enum"), ("other enum", "enum"),
    ("timestamp-millis", "timestamp-micros"), ("timestamp-micros", "timestamp-millis"),
    ("local-timestamp-millis", "local-timestamp-micros"), ("local-timestamp-micros", "local-timestamp-millis"),
    ("decimal", "finer decimal"), ("finer decimal", "decimal"),
}  # fmt: skip
IN_JSON_A_TEXT = {("string", "bytes"), ("bytes", "string")}


def decoder(form: str, writer: Any, reader: Any) -> Decoder:
    theirs, ours = (described(registered(form, schema)) for schema in (writer, reader))
    return Decoder(theirs, ours, to_arrow_type(spark_type(ours), timezone="UTC"))


def read(form: str, writer: Any, reader: Any, *values: bytes) -> list[Any]:
    found: list[Any] = decoder(form, writer, reader).decode(pa.array(values, pa.binary())).to_pylist()
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_pair_of_types_is_read_with_its_meaning_or_refused(form: str) -> None:
    wrong = [words for before in TYPES for now in TYPES if (words := wrongly_read(form, before, now))]
    assert wrong == []


@pytest.mark.parametrize("form", FORMS)
def test_the_same_pairs_are_converted_in_every_format(form: str) -> None:
    def taken(before: str, now: str) -> bool:
        try:
            decoder(form, schema_of(TYPES[before]), schema_of(TYPES[now]))
        except InvalidInput:
            return False
        return True

    found = {(before, now) for before in TYPES for now in TYPES if before != now and taken(before, now)}
    of_any_size = {("fixed", "larger fixed"), ("larger fixed", "fixed")}
    assert found == (CONVERTED if form == "AVRO" else CONVERTED - IN_JSON_A_TEXT | of_any_size)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("before", "now", "number", "words"),
    [
        ("long", "double", 2**53 + 1, "9007199254740993, which is not exact as a double"),
        ("int", "float", 2**24 + 1, "16777217, which is not exact as a float"),
        ("long", "int", 2**31, "2147483648, which is beyond int"),
        ("enum", "other enum", "A", "'A', which is none of the enum's symbols, B, C"),
        ("finer decimal", "decimal", b"\x01", "0.001, which is beyond decimal"),
    ],
)
def test_a_value_that_the_other_type_has_no_place_for_is_named(
    form: str, before: str, now: str, number: Any, words: str
) -> None:
    good = written(form, TYPES[before], {"enum": "B", "finer decimal": b"\0"}.get(before, 0))
    bad = written(form, TYPES[before], number)
    with pytest.raises(Undecodable, match=f"^row 1, field 'a': {words}"):
        read(form, schema_of(TYPES[before]), schema_of(TYPES[now]), good, bad)


def test_what_is_exact_in_a_wider_type_is_read() -> None:
    for form in FORMS:
        data = written(form, TYPES["long"], 2**60)
        assert read(form, schema_of(TYPES["long"]), schema_of(TYPES["double"]), data) == [{"a": float(2**60)}]


@pytest.mark.parametrize("form", FORMS)
def test_a_pair_is_refused_wherever_it_lies(form: str) -> None:
    def around(kind: Any) -> Any:
        inner = record(field("a", {"type": "array", "items": ["null", kind]}), name="I")
        return record(field("in", {"type": "map", "values": inner}))

    words = (
        r"^field 'in\[\]\.a\[\]' was written as long, and the query reads it as timestamp-millis: the two do not mean"
    )
    with pytest.raises(InvalidInput, match=words):
        decoder(form, around("long"), around(TYPES["timestamp-millis"].schema))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("before", "now"), [("int", {"type": "array", "items": "int"}), (record(name="I"), "int")])
def test_a_part_and_what_has_parts_do_not_go_together(form: str, before: Any, now: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^field 'a' was written as .*, and the query reads it as"):
        decoder(form, record(field("a", before)), record(field("a", now)))


def test_a_default_is_a_value_of_the_querys_type_also_where_the_messages_have_another() -> None:
    millis, micros = (TYPES[f"timestamp-{unit}"].schema for unit in ("millis", "micros"))
    writer, reader = record(field("a", millis)), record(field("a", micros, default=1_500_000))
    rows = read("JSON", writer, reader, b'{"a": 1500}', b"{}")
    assert rows[0] == rows[1]


def test_a_field_of_another_name_is_found_by_its_alias() -> None:
    reader = record(field("now", ["null", "long"], default=None) | {"aliases": ["before"]})
    writer = record(field("before", "int"))
    assert read("JSON", writer, reader, b'{"before": 5}') == [{"now": 5}]
    assert read("AVRO", writer, reader, b"\x0a") == [{"now": 5}]


def test_an_enum_of_avro_has_a_symbol_for_those_that_it_does_not_have() -> None:
    reader = {"type": "enum", "name": "E", "symbols": ["UNKNOWN"], "default": "UNKNOWN"}
    writer = record(field("a", TYPES["enum"].schema))
    for form in FORMS:
        assert read(form, writer, record(field("a", reader)), written(form, TYPES["enum"], "B")) == [{"a": "UNKNOWN"}]


def test_a_symbol_that_json_has_beyond_its_schema_is_named() -> None:
    schema = record(field("a", TYPES["enum"].schema))
    with pytest.raises(Undecodable, match=r"^row 1, field 'a': 'Z', which is none of the enum's symbols, A, B"):
        read("JSON", schema, schema, b'{"a": "A"}', b'{"a": "Z"}')


def test_a_field_that_the_schema_of_a_json_message_does_not_tell_of_is_read_by_the_querys() -> None:
    writer, reader = record(field("a", "int")), record(field("a", "int"), field("b", ["null", "int"], default=None))
    assert read("JSON", writer, reader, b'{"a": 1, "b": 2}', b'{"a": 1}') == [{"a": 1, "b": 2}, {"a": 1, "b": None}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "day"), [("time-millis", 86_400_000), ("time-micros", 86_400_000_000)])
def test_a_time_that_no_day_has_is_named(form: str, name: str, day: int) -> None:
    kind = TYPES[name]
    assert read(form, schema_of(kind), schema_of(kind), written(form, kind, day - 1)) == [{"a": day - 1}]
    for wrong in (-1, day):
        data = (written(form, kind, 0), written(form, kind, wrong))
        with pytest.raises(Undecodable, match=rf"^row 1, field 'a': {wrong}, which is no {name} of a day"):
            read(form, schema_of(kind), schema_of(kind), *data)
