"""Whatever message a schema allows is read by protobuf's own library as it was written, and by us."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema.decoder import Decoder
from eos.schema.description import described
from eos.schema.encoder import encoder_of
from eos.schema.errors import Undecodable
from eos.schema.protobuf_schema import message_descriptor
from eos.schema.spark_types import spark_type
from tests.unit.schema.registered import native

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SYMBOLS = ["NONE", "LATE", "EARLY"]
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


def whole(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    **{name: whole(32, signed=True) for name in ("int32", "sint32", "sfixed32")},
    **{name: whole(64, signed=True) for name in ("int64", "sint64", "sfixed64")},
    **{name: whole(32, signed=False) for name in ("uint32", "fixed32")},
    **{name: whole(64, signed=False).map(Decimal) for name in ("uint64", "fixed64")},
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": TEXTS,
    "bytes": st.binary(max_size=6),
    "Status": st.sampled_from(SYMBOLS),
    "google.protobuf.Timestamp": MOMENTS,
}


@dataclass
class Drawn:
    """A message, what it is made of, and values of it.

    Attributes:
        messages: {name: its lines}.
        rows: the values, nulls among them.
    """

    messages: dict[str, list[str]]
    rows: list[Any]


@st.composite
def values_of(draw: st.DrawFn, messages: dict[str, list[str]], name: str, depth: int) -> st.SearchStrategy[Any]:
    """Draw the lines of a message into `messages`; return its values."""
    lines: list[str] = []
    messages[name] = lines
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for number in range(1, draw(st.integers(1, 4)) + 1):
        kind = draw(st.sampled_from([*PLAIN, "message"] if depth else [*PLAIN]))
        if kind == "message":
            kind = f"{name}x{number}"
            one = draw(values_of(messages, kind, depth - 1))
            present = False
        else:
            one = PLAIN[kind]
            present = kind != "google.protobuf.Timestamp"
        label = draw(st.sampled_from(["", "optional ", "repeated ", "map"]))
        field = f"f{number}"
        if label == "map":
            lines.append(f"map<string, {kind}> {field} = {number}")
            fields[field] = st.dictionaries(TEXTS, one, max_size=3).map(lambda pairs: sorted(pairs.items()))
            continue
        lines.append(f"{label}{kind} {field} = {number}")
        if label == "repeated ":
            fields[field] = st.lists(one, max_size=3)
        else:
            fields[field] = one if present and not label else st.none() | one
    return st.fixed_dictionaries(fields)


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    messages: dict[str, list[str]] = {}
    rows = draw(values_of(messages, "M", 2))
    return Drawn(messages, draw(st.lists(st.none() | rows, max_size=4)))


def column_of(rows: list[Any], description: Any) -> pa.Array:
    return pa.array(rows, to_arrow_type(spark_type(description), timezone="UTC"))


def in_order(value: Any) -> Any:
    """Return a value whose maps are sorted by their keys: on the wire they have no order."""
    if isinstance(value, dict):
        return {name: in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        items = [in_order(item) for item in value]
        return sorted(items, key=lambda pair: str(pair[0])) if items and isinstance(items[0], tuple) else items
    return (value[0], in_order(value[1])) if isinstance(value, tuple) else value


def fill(message: Any, row: dict[str, Any]) -> Any:
    """Return a message with the fields of a row, set one by one as a program does."""
    for name, value in row.items():
        of = message.DESCRIPTOR.fields_by_name[name]
        if value is None:
            continue
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            for key, inner in value:
                inside = of.message_type.fields_by_name["value"]
                if inside.message_type is None:
                    getattr(message, name)[key] = plain(inside, inner)
                else:
                    set_message(getattr(message, name)[key], inner)
        elif isinstance(value, list):
            for inner in value:
                if of.message_type is None:
                    getattr(message, name).append(plain(of, inner))
                else:
                    set_message(getattr(message, name).add(), inner)
        elif of.message_type is None:
            setattr(message, name, plain(of, value))
        else:
            set_message(getattr(message, name), value)
    return message


def set_message(message: Any, value: Any) -> None:
    message.SetInParent()
    if isinstance(value, datetime):
        message.FromDatetime(value)
    else:
        fill(message, value)


def plain(of: Any, value: Any) -> Any:
    if of.enum_type is not None:
        return of.enum_type.values_by_name[value].number
    return int(value) if isinstance(value, Decimal) else value


@given(drawn())
def test_what_is_written_is_read_equal(one: Drawn) -> None:
    schema = native(one.messages, {"Status": SYMBOLS})
    description = described(schema)
    column = column_of(one.rows, description)
    written = encoder_of(description).encode(column)
    found = Decoder(description, description, column.type).decode(written.cast(pa.binary()))
    found.validate(full=True)
    assert in_order(found.to_pylist()) == in_order(column.to_pylist())


@given(drawn())
def test_protobufs_own_library_finds_the_message_that_a_program_makes(one: Drawn) -> None:
    schema = native(one.messages, {"Status": SYMBOLS})
    written = encoder_of(described(schema)).encode(column_of(one.rows, described(schema))).to_pylist()
    made = GetMessageClass(message_descriptor(schema.definition, "it"))
    assert [data is None for data in written] == [row is None for row in one.rows]
    for row, data in zip(one.rows, written, strict=True):
        if row is not None:
            assert made.FromString(data) == fill(made(), row)


@given(drawn(), st.data())
def test_damaged_values_are_an_error_of_their_row_or_other_values(one: Drawn, data: st.DataObject) -> None:
    description = described(native(one.messages, {"Status": SYMBOLS}))
    column = column_of(one.rows, description)
    written = encoder_of(description).encode(column).to_pylist()
    present = [row for row, value in enumerate(written) if value]
    if not present:
        return
    row = data.draw(st.sampled_from(present))
    cut = data.draw(st.integers(0, len(written[row]) - 1))
    written[row] = written[row][:cut] + data.draw(st.binary(max_size=3))
    found, wrong = None, row
    try:
        found = Decoder(description, description, column.type).decode(pa.array(written, pa.binary()))
    except Undecodable as error:
        wrong = error.row
    assert wrong == row
    if found is not None:
        found.validate(full=True)
        assert len(found) == len(written)
