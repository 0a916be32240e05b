"""Which field of the messages is which field of the query: by names and by aliases, in every decoder."""

from __future__ import annotations

from typing import Any

import pytest

from eos.errors import InvalidInput
from eos.schema.avro_text import AvroField, Node
from eos.schema.field_names import matched
from tests.field_names import READERS, Read, fastavros, fields
from tests.unit.schema.registered import field, record

EVERY = pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())

NEW: tuple[str, list[str], int] = ("new", ["old"], 0)
OLD: tuple[str, list[str], int] = ("old", [], -1)
LATER: tuple[str, list[str], int] = ("later", ["old"], -2)
AROUND: dict[str, Any] = {
    "the value itself": (lambda kind: kind, lambda value: value, lambda value: value),
    "in a record": (
        lambda kind: record(field("in", kind), name="O"),
        lambda value: {"in": value},
        lambda value: {"in": value},
    ),
    "in a union": (
        lambda kind: record(field("in", ["null", kind]), name="O"),
        lambda value: {"in": value},
        lambda value: {"in": value},
    ),
    "in an array": (
        lambda kind: record(field("in", {"type": "array", "items": kind}), name="O"),
        lambda value: {"in": [value, value]},
        lambda value: {"in": [value, value]},
    ),
    "in a map": (
        lambda kind: record(field("in", {"type": "map", "values": kind}), name="O"),
        lambda value: {"in": {"k": value}},
        lambda value: {"in": [("k", value)]},
    ),
}
"""{where a record lies: (its schema's, its message's and its row's surroundings)}."""

AS_FASTAVRO = {
    "names moved along": (["a", "b"], [("b", ["a"], 0), ("c", ["b"], -1)], {"b": 5, "c": 6}),
    "names moved along twice": (
        ["a", "b", "c"],
        [("b", ["a"], 0), ("c", ["b"], -1), ("d", ["c"], -2)],
        {"b": 5, "c": 6, "d": 7},
    ),
    "names that changed places": (["a", "b"], [("b", ["a"], 0), ("a", ["b"], -1)], {"b": 6, "a": 5}),
    "an old name that is not back": (["old"], [NEW], {"new": 5}),
    "both written": (["new", "old"], [NEW, OLD], {"new": 5, "old": 6}),
    "one alias twice": (["old"], [NEW, LATER], {"new": 0, "later": 5}),
    "one alias twice, the other way round": (["old"], [LATER, NEW], {"later": -2, "new": 5}),
    "an alias of another field's name": (["a", "b"], [("x", ["b", "a"], 0), ("b", [], 0)], {"x": 5, "b": 6}),
    "none is written": (["z"], [NEW, OLD], {"new": 0, "old": -1}),
}
NOT_AS_FASTAVRO = {  # which raises KeyError, depends on the order of fields, or takes a name before an old name
    "an old name that came back": (["old"], [NEW, OLD], {"new": 5, "old": -1}),
    "an old name that came back before": (["old"], [OLD, NEW], {"old": -1, "new": 5}),
    "one alias twice, and the name": (["old"], [NEW, OLD, LATER], {"new": 0, "old": -1, "later": 5}),
    "the new name and the old one": (["new", "old"], [NEW], {"new": 5}),
    "two aliases of one field": (["a", "b"], [("x", ["b", "a"], 0)], {"x": 6}),
    "the last with an alias is written": (["old", "later"], [NEW, LATER], {"new": 5, "later": 6}),
}


@EVERY
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
@pytest.mark.parametrize(("written", "asked", "row"), AS_FASTAVRO.values(), ids=AS_FASTAVRO.keys())
def test_fields_are_matched_as_fastavro_does(
    read: Read, around: Any, written: list[str], asked: list[Any], row: dict[str, int]
) -> None:
    schema, message, seen = around
    writer, reader = schema(fields(*written)), schema(fields(*asked))
    value = message({name: 5 + place for place, name in enumerate(written)})
    assert fastavros(writer, reader, value) == message(row)
    assert read(writer, reader, value) == seen(row)


@EVERY
@pytest.mark.parametrize(("written", "asked", "row"), NOT_AS_FASTAVRO.values(), ids=NOT_AS_FASTAVRO.keys())
def test_an_old_name_counts_where_the_new_one_is_not_written_and_no_value_is_read_twice(
    read: Read, written: list[str], asked: list[Any], row: dict[str, int]
) -> None:
    value = {name: 5 + place for place, name in enumerate(written)}
    assert read(fields(*written), fields(*asked), value) == row
    try:
        theirs = fastavros(fields(*written), fields(*asked), value)
    except KeyError:
        return
    assert theirs != row  # else it belongs above


@EVERY
def test_fields_with_null_as_their_default_are_matched_like_others(read: Read) -> None:
    maybe = ["null", "int"]
    reader = record(field("new", maybe, aliases=["old"], default=None), field("old", maybe, default=None))
    assert read(fields("old"), reader, {"old": 5}) == {"new": 5, "old": None}


@EVERY
def test_named_types_with_other_names_are_matched_by_their_place(read: Read) -> None:
    def of(name: str, **more: Any) -> Any:
        enum = {"type": "enum", "name": f"{name}Enum", "symbols": ["A"]} | more.get("enum", {})
        return record(field("e", enum), field("r", fields("x", name=name) | more.get("record", {})), name=f"{name}s")

    aliases = {"enum": {"aliases": ["OldEnum"]}, "record": {"aliases": ["Old"]}}
    assert read(of("Old"), of("New", **aliases), {"e": "A", "r": {"x": 1}}) == {"e": "A", "r": {"x": 1}}


@pytest.mark.parametrize("form", ["AVRO one by one", "AVRO in step"])
def test_a_field_that_has_the_old_name_of_another_must_have_a_default_in_avro(form: str) -> None:
    with pytest.raises(InvalidInput, match=r"^field 'old' is not in the schema of the messages, and the schema of the"):
        READERS[form](fields("old"), fields(NEW, ("old", [], None)), {"old": 5})


def test_the_types_that_are_compared_are_those_of_the_matched_fields() -> None:
    text = field("old", "string", default="x")
    for read in READERS.values():
        row = read(fields("old"), record(field("new", "int", aliases=["old"]), text), {"old": 5})
        assert row == {"new": 5, "old": "x"}


@pytest.mark.parametrize("form", [form for form in READERS if form.startswith("JSON")])
@pytest.mark.parametrize("default", [{"new": 5}, {"new": 5, "old": 6}, {}])
@pytest.mark.parametrize("around", ["in a record", "in a union", "in an array", "in a map"])
def test_a_default_has_the_names_of_the_query_and_a_message_its_own(
    form: str, around: str, default: dict[str, int]
) -> None:
    schema, message, seen = AROUND[around]
    writer, reader = schema(fields("old")), schema(fields(NEW))
    kind = reader["fields"][0]["type"]
    of_the_default = kind[::-1] if around == "in a union" else kind
    reader = record(field("in", of_the_default, default=message(default)["in"]), name="O")
    assert READERS[form](writer, reader, message({"old": 7})) == seen({"new": 7})
    assert READERS[form](writer, reader, {}) == seen({"new": default.get("new", 0)})


def test_each_field_of_the_messages_is_found_once() -> None:
    def of(name: str, *aliases: str) -> AvroField:
        return AvroField(name, Node("int"), aliases=aliases)

    found = matched([of("a"), of("b"), of("c")], [of("x", "a", "b"), of("a"), of("y", "b", "c"), of("z", "b")])
    assert {name: theirs.name for name, theirs in found.items()} == {"x": "a", "z": "b", "y": "c"}
