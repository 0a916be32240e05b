"""The use that the sink makes of a topic's registered schema."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Declared, Registered
from eos.schema.avro_text import parse_avro
from eos.schema.description import Description, Form, Pair, Primitive, Record, described
from eos.schema.encoder import encoder_of
from eos.schema.fit import misfit, value_misfit
from eos.schema.proposal import extended, new_schema
from eos.sinks.columns import ColumnRoles, ValueFormat

_TAKE_ANY_TEXT = (Primitive("STRING"), Primitive("BYTES"))


def check_columns(
    columns: StructType, roles: ColumnRoles, value_format: ValueFormat, topic: str, schema: Registered | None
) -> Registered | None:
    """Return the schema that the values are written by; None where they are bytes of no schema.

    Args: the columns of a DataFrame, their use, how they become values, the topic, and its newest schema, None where it
        has none.

    Raises InvalidInput for columns that do not fit the schema, naming the field and both types, and for a schema of
    another kind than the format's.
    """
    if value_format == "raw":
        return None
    if schema is None:
        if value_format == "json":
            return None
        raise InvalidInput(
            f"value_format={value_format!r} writes by the schema of the topic, but {topic} has none. Register one with "
            f"pulsar-admin schemas upload --filename FILE {topic}. Or use value_format='json' or 'raw'."
        )
    known = _known(schema, value_format)
    if value_format == "json" and known in _TAKE_ANY_TEXT:
        return schema
    if not _writes(value_format, known):
        writes, advice = _WRITES[value_format]
        raise InvalidInput(
            f"value_format={value_format!r} writes {writes}, but {schema} is {_kind(known)}. Its readers could not "
            f"read the rows. Use {advice}, or value_format='raw' with bytes that fit."
        )
    if isinstance(known, Pair) and known.separated and "key" in roles.parts:
        raise InvalidInput(
            f"Column {roles.parts['key']!r} gives the message's key, and so does the pair. {schema} keeps its key "
            "there. Drop it."
        )
    if value_format == "schema":
        wrong = value_misfit(columns[roles.parts["value"]].dataType, known)
    else:
        assert isinstance(known, Record)
        wrong = misfit(roles.payload, known.node, known.format)
    if wrong:
        raise InvalidInput(f"The rows do not fit {schema}: {wrong} Nothing is written. Correct the columns.")
    if value_format != "json":
        encoder_of(known)  # a default that is none is refused here too
    return schema


_WRITES: Mapping[ValueFormat, tuple[str, str]] = {
    "json": ("JSON", "a topic with a JSON schema or without one"),
    "avro": ("AVRO", "a topic with an AVRO schema"),
    "protobuf": ("PROTOBUF_NATIVE", "a topic with such a schema"),
    "schema": (
        "primitives, AVRO, PROTOBUF_NATIVE and pairs of these",
        "eos.write or eos.sink with value_format='json' for a JSON schema, which INSERT INTO does not write",
    ),
}
"""{format: what it writes; what to use for another schema}."""

_FORMS: Mapping[ValueFormat, tuple[Form, ...]] = {
    "json": ("JSON",),
    "avro": ("AVRO",),
    "protobuf": ("PROTOBUF_NATIVE",),
    "schema": ("AVRO", "PROTOBUF_NATIVE"),
}
"""{format: the schemas with fields that it writes by}."""


def _writes(value_format: ValueFormat, known: Description) -> bool:
    if isinstance(known, Record):
        return known.format in _FORMS[value_format]
    if isinstance(known, Pair):
        return value_format == "schema" and _writes("schema", known.key) and _writes("schema", known.value)
    return value_format == "schema"


def _kind(known: Description) -> str:
    if isinstance(known, Pair):
        return f"KEY_VALUE of {_kind(known.key)} and {_kind(known.value)}"
    return known.kind if isinstance(known, Primitive) else known.format


def new_version(
    payload: StructType, value_format: ValueFormat, schema: Registered | None, name: str
) -> Declared | None:
    """Return the schema to register before columns are written; None where they fit, or no field more would help.

    Args: the payload's columns; "json" or "avro"; the topic's newest schema, None where it has none; the name of a new
    record.

    Raises InvalidInput for a column that no schema has a place for.
    """
    (form,) = _FORMS[value_format]
    if schema is None:
        text = new_schema(payload, form, name)
        try:
            parse_avro(text, "The schema that the columns make")  # once registered it is there for good
        except InvalidInput as error:
            raise InvalidInput(f"{error}. Nothing is registered. Rename such fields, or drop them.") from error
        return Declared(form, text)
    known = _known(schema, value_format)
    if not isinstance(known, Record) or known.format != form or misfit(payload, known.node, form) is None:
        return None
    text = extended(known.text, payload, form)
    try:
        wrong = misfit(payload, parse_avro(text, f"the schema that is to follow {schema}"), form)
    except InvalidInput as error:
        wrong = str(error)
    if wrong:
        return None  # `check_columns` says by the newest one what is wrong
    return Declared(form, text, schema.declared.properties)


def not_taken(payload: StructType, value_format: ValueFormat, topic: str, schema: Registered | None, why: str) -> str:
    """Return what to say when the broker does not register a new version. Args: as above; the broker's words."""
    words = why.strip().splitlines()[0] if why.strip() else "it does not say why"
    if schema is None:
        return (
            f"{topic} takes no schema from its producers ({words}). Nothing is written. Register one with pulsar-admin "
            f"schemas upload --filename FILE {topic}."
        )
    known = _known(schema, value_format)
    wrong = misfit(payload, known.node, known.format) if isinstance(known, Record) else None
    return (
        f"The rows do not fit {schema}: {wrong} The topic takes no new version for it ({words}). Nothing is written. "
        "Correct the columns, or change the compatibility strategy with pulsar-admin topicPolicies "
        f"set-schema-compatibility-strategy STRATEGY {topic}."
    )


def _known(schema: Registered, value_format: ValueFormat) -> Description:
    try:
        return described(schema)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} So value_format={value_format!r} can't be checked against it. Use value_format='raw'."
        ) from error
