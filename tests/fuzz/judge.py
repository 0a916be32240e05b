"""The allowed results for a damaged entry or value: an error that names it, or the result of another reader."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass

from eos.errors import DamagedFrame, InvalidInput
from eos.pulsar.wire.chunks import ChunkAssembler, ChunksMissing
from eos.pulsar.wire.decoding import COLUMNS, Column, decode
from eos.pulsar.wire.encryption import Decrypt
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.frames import FrameDecoder
from eos.schema.errors import Undecodable
from eos.schema.protobuf_schema import is_repeated, message_descriptor
from tests.between import between
from tests.fuzz.corpus import TOPIC, Value
from tests.one_by_one import rows_one_by_one
from tests.property.vector_comparison import same
from tests.wire import received

ALL: list[Column] = list(COLUMNS)
MOST = 4 * 1024 * 1024
"""Bytes of a message that readers take here."""
_MANY = 200
"""Values from which on each format is decoded by numpy."""
_MANY_FRAMES = 20
"""Frames from which on those of one form are read together."""


class Fault(AssertionError):
    """Something came out that must not."""


def whole(entries: list[Entry], decrypt: Decrypt) -> list[Entry] | str:
    """Return the messages of entries, those in chunks in one piece; the words of the error instead."""
    assembler = ChunkAssembler(MOST, decrypt)
    try:
        return [one for one in map(assembler.take, entries) if one is not None]
    except (DamagedFrame, ChunksMissing, InvalidInput) as error:
        return _named(error)


def rows(entries: list[Entry], decrypt: Decrypt) -> list[dict[str, Any]] | str:
    """Return the rows of entries; the words of the error instead. Raises Fault where one reads it otherwise."""
    messages = whole(entries, decrypt)
    if isinstance(messages, str):
        return messages
    try:
        found = decode(messages, ALL)
    except (DamagedFrame, InvalidInput) as error:
        return _named(error)
    found.validate(full=True)
    given = _in_order(found.to_pylist())
    plain = _in_order(rows_one_by_one(messages))
    for row in plain:
        row["event_time"] = None if row["event_time"] is None else _signed(row["event_time"])
        row["publish_time"], row["sequence_id"] = _signed(row["publish_time"]), _signed(row["sequence_id"])
    if given != plain:
        raise Fault(f"{given} was read, and one by one {plain}")
    return given


def framed(data: bytes, before: list[dict[str, Any]]) -> str:
    """Judge a damaged frame, whose checksum was not made anew. Args: the frame; the rows of the one that was sent."""
    try:
        frames = FrameDecoder().feed(data)
    except DamagedFrame:
        return "refused"
    entries = [entry for frame in frames for entry in frame.entries]
    for entry in entries:
        entry.topic = TOPIC
    found = rows(entries, lambda entry: entry)
    if isinstance(found, str):
        return "refused"
    for row in (*found, *before):
        row["message_id"] = None  # it stands in the command, which no checksum covers
    if found and found != before:
        raise Fault(f"a frame with a wrong checksum gave {found}; sent was {before}")
    return "the same"


def among(one: Entry, usual: Entry) -> None:
    """Judge a message that comes right after many usual ones. Raises Fault where it is read otherwise than alone."""
    (alone,), many = (
        _known(frames) for frames in ([received(one)], [*[received(usual)] * _MANY_FRAMES, received(one)])
    )
    if many[-1] != alone:
        raise Fault(f"alone it is {alone}, among others {many[-1]}")


def _known(frames: Sequence[bytes]) -> list[tuple[Any, ...]]:
    entries = [entry for frame in FrameDecoder().feed(b"".join(frames)) for entry in frame.entries]
    return [(one.num_messages, one.batched, one.plain, one.credible, one) for one in entries]


def value(one: Value, data: bytes) -> str:
    """Judge a damaged value, alone and after many good ones, with which numpy reads it.

    Raises Fault where it is read, and a reader that is not ours reads it otherwise, or where the two ways differ.
    """
    found, among = _last(one, [data]), _last(one, [*[one.data] * _MANY, data])
    if (found is None) != (among is None) or (found is not None and not same(found, among)):
        raise Fault(f"{one.name}: alone it is {found}, among others {among}")
    if found is None:
        return "refused"
    if one.schema.kind == "AVRO":
        _compare(one, found, _by_fastavro(one, data))
    elif one.schema.kind == "PROTOBUF_NATIVE":
        _compare(one, found, _by_google(one, data))
    elif one.schema.kind == "JSON":
        json.loads(data)  # text that is not JSON was refused
    return "read"


def _last(one: Value, data: Sequence[bytes]) -> Any:
    """Return the last value, None where it is refused. Raises Fault where another row is named, or no reason."""
    column = pa.array(data, pa.binary())
    try:
        found = one.decoder.decode(between(column), column)
    except Undecodable as error:
        if error.row != len(data) - 1 or not error.why:
            raise Fault(f"{error} names no row") from error
        return None
    found.validate(full=True)
    return found.take(pa.array([len(data) - 1]))  # a slice of a map still has the keys of all


def _compare(one: Value, found: pa.Array, theirs: Any) -> None:
    ours = _plain(found.cast(_counted(found.type))[0].as_py())
    if repr(ours) != repr(_plain(theirs)):
        raise Fault(f"{one.name}: {ours} was read, and by another library {_plain(theirs)}")


def _by_fastavro(one: Value, data: bytes) -> Any:
    schema = json.loads(one.schema.definition)
    counted = _without_times(schema)
    found: Any = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(counted), None)
    for field in schema["fields"]:
        if "timestamp-millis" in json.dumps(field["type"]) and found[field["name"]] is not None:
            found[field["name"]] *= 1000
    return found


def _without_times(schema: Any) -> Any:
    """Return the schema without logical types of times: Python's end with the year 9999."""
    if isinstance(schema, list):
        return [_without_times(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left = {name: part for name, part in schema.items() if name != "logicalType" or part == "decimal"}
    return {name: _without_times(part) for name, part in left.items()}


def _counted(kind: pa.DataType) -> pa.DataType:
    """Return the type with numbers in the place of times."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _counted(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _counted(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_counted(kind.value_type))
    return pa.int64() if pa.types.is_timestamp(kind) else pa.int32() if pa.types.is_date(kind) else kind


def _by_google(one: Value, data: bytes) -> Any:
    return _message(GetMessageClass(message_descriptor(one.schema.definition, "it")).FromString(data))


def _message(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        given = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = {key: _message(inner) for key, inner in given.items()}
        elif is_repeated(field):
            found[field.name] = [_symbol(field, item) for item in given]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        elif field.message_type is not None:
            found[field.name] = given.seconds * 1_000_000 + given.nanos // 1000
        else:
            found[field.name] = _symbol(field, given)
    return found


def _symbol(field: Any, given: Any) -> Any:
    return field.enum_type.values_by_number[given].name if field.enum_type is not None else given


def _plain(given: Any) -> Any:
    """Return a value with its maps in order, and its moments as microseconds."""
    if isinstance(given, dict):
        return {key: _plain(given[key]) for key in sorted(given)}
    if isinstance(given, list):
        if given and isinstance(given[0], tuple):
            return _plain(dict(given))
        return [_plain(item) for item in given] or {}
    if isinstance(given, Decimal):
        return format(given.normalize(), "f")
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def _named(error: Exception) -> str:
    words = str(error)
    if not re.search(r"entry \d+:-?\d+ ", words):
        raise Fault(f"an error that names no entry: {words}") from error
    return words


def _signed(number: int) -> int:
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number


def _in_order(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"properties": sorted(row["properties"])} for row in given]
