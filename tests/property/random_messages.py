"""Messages of protobuf drawn at random: their descriptors, and values that these allow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from eos.pulsar.protocol.schemas import Registered
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


def schema_of(one: Drawn) -> Registered:
    """Return the topic's schema of a message that was drawn."""
    return native(one.messages, {"Status": SYMBOLS})


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
