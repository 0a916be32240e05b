"""A default is the same value whatever reads the messages that lack it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eos.errors import InvalidInput
from eos.schema.description import Record, described
from eos.schema.errors import Undecodable
from eos.schema.json_values import FEWEST, JsonDecoder
from eos.schema.vector_columns import Unsure
from tests.unit.schema.registered import arrow_type, field, record, registered

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 2}
TIME = {"type": "int", "logicalType": "time-millis"}
BOUGHT = {
    "type": "record",
    "name": "B",
    "fields": [field("paid", PRICE, default="\x01"), field("left", ["null", PRICE])],
}
ONLY = record(field("a", "int"))


def decoder(writer: Any, reader: Any) -> JsonDecoder:
    theirs, ours = described(registered("JSON", writer)), described(registered("JSON", reader))
    assert isinstance(theirs, Record)
    assert isinstance(ours, Record)
    return JsonDecoder(theirs.node, ours.node, arrow_type(ours))


def read_by_each(reader: JsonDecoder, value: bytes) -> Iterator[tuple[str, Any]]:
    """Yield what the readers of values make of one, each with the name of the reader."""
    values = pa.array([value] * FEWEST, pa.binary())
    found = {"single": reader._checked(values), "few": reader.decode(values[:1]), "many": reader.decode(values)}
    for columns in reader._columns:
        found[type(columns.objects).__name__] = columns.array(values)
    with suppress(Unsure):
        found["in step"] = reader._in_step(values)
    for name, column in found.items():
        column.validate(full=True)
        yield name, column[-1].as_py()


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        (PRICE, "\x01\x00", Decimal("2.56")),
        (PRICE, "\xff", Decimal("-0.01")),
        (PRICE, "", Decimal("0.00")),
        (PRICE, 2.56, Decimal("2.56")),
        (PRICE, 7, Decimal("7.00")),
        (FIXED, "\xff\x00", Decimal("-2.56")),
        ([PRICE, "null"], "\x01\x00", Decimal("2.56")),
        ({"type": "array", "items": PRICE}, ["\x01", "\x02"], [Decimal("0.01"), Decimal("0.02")]),
        ({"type": "map", "values": ["null", PRICE]}, {"k": "\x01", "n": None}, [("k", Decimal("0.01")), ("n", None)]),
        (BOUGHT, {"left": "\x02"}, {"paid": Decimal("0.01"), "left": Decimal("0.02")}),
        (BOUGHT, {}, {"paid": Decimal("0.01"), "left": None}),
        ({"type": "array", "items": BOUGHT}, [{"paid": "\x03"}], [{"paid": Decimal("0.03"), "left": None}]),
        ("double", 0.1, 0.1),
        ("double", 7, 7.0),
        ("float", 0.5, 0.5),
        ({"type": "map", "values": "float"}, {"k": 0.5}, [("k", 0.5)]),
        ("int", -7, -7),
        ("boolean", True, True),
        ("bytes", "\xff", "\xff"),
        ("string", "x", "x"),
        (TIME, 5, 5),
        (["null", "string"], None, None),
        ({"type": "array", "items": "int"}, [], []),
    ],
)
def test_a_default_is_the_same_for_each_reader(kind: Any, default: Any, expected: Any) -> None:
    ours = record(field("a", "int"), field("p", kind, default=default))
    for writer in (ONLY, ours):  # the messages' schema lacks it, or a message alone does
        read = dict(read_by_each(decoder(writer, ours), b'{"a": 1}'))
        assert all(row == {"a": 1, "p": expected} for row in read.values()), read
        assert {"single", "few", "many", "Dictionaries"} <= read.keys()
        assert ("Structs" in read) == ("in step" in read) == ("decimal" not in str(kind))


WRONG: list[tuple[Any, Any, str]] = [
    ("int", "7", r"field 'p' is wrong: '7', where the schema has int\."),
    ("int", 1.0, r"field 'p' is wrong: 1\.0, where the schema has int\."),
    ("int", 2**31, r"field 'p' is wrong: 2147483648, which is beyond int\."),
    ("int", None, r"field 'p' is wrong: null, where the schema has no null\."),
    ("float", 1e39, r"field 'p' is wrong: 1E\+39, which is beyond float\."),
    ("string", "\ud800", r"field 'p' is wrong: '\\ud800', which is not a text in Unicode\."),
    (TIME, -5, r"field 'p' is wrong: -5, which is no time-millis of a day\."),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        2**62,
        "field 'p' is wrong: .* which Spark has no moment for",
    ),
    (PRICE, "\x7f\x00\x00", r"field 'p' is wrong: 83230\.72, which is beyond decimal\(4, 2\)\."),
    (PRICE, "€", "field 'p' is wrong: '€', where the schema has a decimal, which is a number in JSON"),
    (PRICE, 0.001, r"field 'p' is wrong: 0\.001, which is beyond decimal\(4, 2\)\."),
    (
        {"type": "enum", "name": "E", "symbols": ["A"]},
        "B",
        "field 'p' is wrong: 'B', which is none of the enum's symbols",
    ),
    ({"type": "array", "items": "int"}, ["x"], r"field 'p\[0\]' is wrong: 'x', where the schema has int\."),
    (BOUGHT, {"left": "\x7f\x00\x00"}, r"field 'p\.left' is wrong: 83230\.72, which is beyond decimal\(4, 2\)\."),
]


@pytest.mark.parametrize(("kind", "default", "words"), WRONG)
def test_a_wrong_default_that_each_message_needs_is_refused_before_any_is_read(
    kind: Any, default: Any, words: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^The default of {words}.*Correct the schema"):
        decoder(ONLY, record(field("a", "int"), field("p", kind, default=default)))
    inner, wider = (
        {"type": "array", "items": one} for one in (ONLY, record(field("a", "int"), field("p", kind, default=default)))
    )
    with pytest.raises(InvalidInput, match=r"^The default of field 'f\[\]\.p"):
        decoder(record(field("f", inner)), record(field("f", wider)))


@pytest.mark.parametrize(("kind", "default", "words"), WRONG)
@pytest.mark.parametrize("rows", [1, FEWEST])
def test_a_wrong_default_does_not_stop_messages_that_have_the_field(
    kind: Any, default: Any, words: str, rows: int
) -> None:
    """The Python client writes null as the default of a field that must be there."""
    may_be_null = ["null", *(kind if isinstance(kind, list) else [kind])] if default is not None else kind
    ours = record(field("a", "int"), field("p", may_be_null, default=default))
    reader = decoder(ours, ours)
    values = pa.array([b'{"a": 1, "p": %s}' % (b"3" if default is None else b"null")] * rows, pa.binary())
    assert reader.decode(values).to_pylist() == [{"a": 1, "p": 3 if default is None else None}] * rows
    with pytest.raises(Undecodable, match=r"field 'p.*: it is missing, and its default in the schema is wrong: "):
        reader.decode(pa.array([*values.to_pylist(), b'{"a": 1}'], pa.binary()))
