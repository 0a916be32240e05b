"""Values typed by the topics' registered schema.

The query reads by one schema: the newest one that its topics share when it is loaded, or the newest one with the type
that the query declares. A message names the version that it was written with, and is decoded by that one; where a topic
evolves while the query runs, its new messages are resolved to the query's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType

from eos.errors import InvalidInput
from eos.pickling import PickledByName
from eos.pulsar.protocol.schemas import Registered
from eos.pulsar.wire.decoding import Column
from eos.pulsar.wire.entry import Entry
from eos.pulsar.wire.fields import Places
from eos.pulsar.wire.spans import Payloads
from eos.schema.decoder import Decoder
from eos.schema.description import Description, Pair, Primitive, described, same
from eos.schema.errors import Undecodable
from eos.schema.spark_types import spark_type
from eos.source.errors import UnreadableMessage, stored_at

Lookup = Callable[[str, bytes], Registered | None]
"""Returns a version of a topic's schema, None where the registry has none."""

Choose = Callable[[Registered | None, Callable[[bytes], Registered | None]], Registered | None]
"""Chooses a version of a topic's schema. Args: its newest one, None where it has none; asks for a version."""


@dataclass(frozen=True, slots=True)
class ValueSchema(PickledByName):
    """The schema by which a query reads its values.

    Attributes:
        registered: the schema, as one of the topics has it.
        description: the same, typed.
    """

    registered: Registered
    description: Description

    @property
    def spark_type(self) -> DataType:
        """The type of the column `value`."""
        return spark_type(self.description)


def shared_schema(schemas: Mapping[str, Registered | None]) -> ValueSchema:
    """Return the schema that topics share. Args: {topic: its newest schema}.

    Raises InvalidInput where one has none, or another than the first, or where Spark has no counterpart.
    """
    if not schemas:
        raise InvalidInput("no topic is there yet, so valueFormat=schema finds no schema. Leave it out to read bytes.")
    shared: ValueSchema | None = None
    for topic, registered in schemas.items():
        if registered is None:
            raise InvalidInput(
                f"{topic} has no registered schema, so its values have no type. Leave valueFormat out to read bytes."
            )
        own = ValueSchema(registered, described(registered))
        if shared is None:
            shared = own
        elif not same(shared.description, own.description):
            raise InvalidInput(
                f"the topics have different schemas: {shared.registered} is {shared.description}, but {own.registered} "
                f"is {own.description}. Read them by a query each, or as bytes, without valueFormat. Or declare a type "
                "that each of them has in one of its versions, by .schema(…)."
            )
    assert shared is not None
    return shared


def of_type(
    declared: DataType, newest: Registered | None, ask: Callable[[bytes], Registered | None]
) -> Registered | None:
    """Return the newest version of a topic's schema whose values have this type; the newest one where none has.

    A query that declares its columns would else end at its next start, once the topic has a newer version.

    Args: the type; the topic's newest version, None where it has none; asks for a version.
    """
    if newest is None or _has_type(newest, declared):
        return newest
    last = int.from_bytes(newest.version, "big", signed=True)  # -1 where the schema was deleted
    older = (ask(number.to_bytes(8, "big")) for number in reversed(range(last)))
    return next((one for one in older if one is not None and _has_type(one, declared)), newest)


def _has_type(registered: Registered, declared: DataType) -> bool:
    with suppress(InvalidInput):  # Spark has no counterpart
        return ValueSchema(registered, described(registered)).spark_type == declared
    return False


def typed(topic: str, registered: Registered | None, *, must: bool = False) -> ValueSchema | None:
    """Return what a topic's values are typed by; None where they are bytes, as where its schema was deleted.

    Brokers tell of a deleted schema as of BYTES, and messages may name versions that the registry no longer has.

    Args: the topic; its newest schema, None where it has none; whether values that can't be typed are refused.

    Raises InvalidInput where they must be typed, and there is no schema, or Spark has no counterpart of it.
    """
    try:
        schema = shared_schema({topic: registered})
        _ = schema.spark_type
    except InvalidInput:
        if must:
            raise
        return None
    return schema if must or schema.description != Primitive("BYTES") else None


class TypedValues:
    """Decodes the values of one physical topic."""

    def __init__(self, schema: ValueSchema, topic: str, lookup: Lookup) -> None:
        """Args: what the query reads by; the physical topic; finds the version that a message names."""
        self._schema = schema
        self._separated = isinstance(schema.description, Pair) and schema.description.separated
        self._topic = topic
        self._lookup = lookup
        self._decoders: dict[bytes | None, Decoder] = {}

    def needs(self, entries: Sequence[Entry]) -> frozenset[Column]:
        """Return the columns that `decode` reads for these entries, besides the values."""
        keys: frozenset[Column] = frozenset({"key"} if self._separated else ())
        return keys | {"schema_version"} if len(_versions(entries)) > 1 else keys

    def decode(
        self,
        values: Payloads,
        decoded: pa.RecordBatch,
        entries: Sequence[Entry],
        messages: Places,
        target: pa.DataType,
    ) -> pa.Array:
        """Return the typed values.

        Args: the values of messages; columns of the same, those needed among them; the entries; which of their messages
        these are; the Arrow type.

        Raises UnreadableMessage, which names topic, message and field, for what is not as its schema says, and
        InvalidInput for a version that no longer goes with the query's.
        """
        keys = decoded.column("key") if self._separated else None
        parts, places = [], []
        for version, rows in _by_version(decoded, entries, len(values)):
            whole = len(rows) == len(values)
            own = keys if keys is None or whole else keys.take(pa.array(rows))
            try:
                parts.append(self._decoder(version, target).decode(values if whole else values.only(rows), own))
            except Undecodable as wrong:
                raise self._error(entries, int(messages[rows[wrong.row]]), version, wrong) from wrong
            places.append(rows)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], target)
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places))))

    def _decoder(self, version: bytes | None, target: pa.DataType) -> Decoder:
        if version not in self._decoders:
            writer = self._schema.description if version is None else self._written_by(version)
            try:
                self._decoders[version] = Decoder(writer, self._schema.description, target)
            except InvalidInput as error:
                raise InvalidInput(f"{self._topic}: {error}") from error
        return self._decoders[version]

    def _written_by(self, version: bytes) -> Description:
        registered = self._lookup(self._topic, version)
        if registered is None:
            raise InvalidInput(
                f"{self._topic} has messages of version {int.from_bytes(version, 'big')} of its schema, which the "
                "registry does not have any more. Read them as bytes, without valueFormat."
            )
        return described(registered)

    def _error(
        self, entries: Sequence[Entry], row: int, version: bytes | None, wrong: Undecodable
    ) -> UnreadableMessage:
        which = "without a schema version" if version is None else f"of schema version {int.from_bytes(version, 'big')}"
        field = f"field {wrong.field!r} of its value" if wrong.field else "its value"
        return UnreadableMessage(
            row,
            f"message {stored_at(entries, row)} of {self._topic}, {which}: {field} can't be decoded: {wrong.why}. "
            "Read the topic as bytes, without valueFormat, to see what it holds.",
        )


def _versions(entries: Sequence[Entry]) -> set[bytes | None]:
    """Return the schema versions that entries name. An entry names one or none. An empty one counts as none."""
    return {entry.metadata.schema_version or None for entry in entries}


def _by_version(decoded: pa.RecordBatch, entries: Sequence[Entry], rows: int) -> Iterator[tuple[bytes | None, Places]]:
    """Yield each schema version, None for messages without one, with its rows. Args: of `decode`; how many rows."""
    named = _versions(entries)
    if len(named) <= 1:
        yield from ((version, np.arange(rows)) for version in named)
        return
    versions = decoded.column("schema_version").dictionary_encode()
    codes = versions.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code in np.unique(codes):
        yield versions.dictionary[code].as_py() or None if code >= 0 else None, np.flatnonzero(codes == code)
