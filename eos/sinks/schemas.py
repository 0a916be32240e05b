"""What the sink asks of a topic's registered schema."""

from __future__ import annotations

from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.schema.description import Description, Primitive, Record, described
from eos.schema.encoder import encoder_of
from eos.schema.fit import misfit
from eos.sinks.columns import ValueFormat, payload_of

_TAKE_ANY_TEXT = (Primitive("STRING"), Primitive("BYTES"))


def check_columns(
    columns: StructType, value_format: ValueFormat, topic: str, schema: Registered | None
) -> Registered | None:
    """Return the schema that the values are written by; None where they are bytes of no schema.

    Args: the columns of a DataFrame; how they become values; the topic; its newest schema, None where it has none.

    Raises InvalidInput for columns that do not fit the schema, naming the field and both types, and for a schema of
    another kind than the format's.
    """
    if value_format == "raw":
        return None
    if schema is None:
        if value_format == "json":
            return None
        raise InvalidInput(
            f"value_format={value_format!r} writes by the schema of the topic, but {topic} has none. Register an AVRO "
            f"schema: pulsar-admin schemas upload --filename FILE {topic}. Or use value_format='json'."
        )
    known = _known(schema, value_format)
    if value_format == "json" and known in _TAKE_ANY_TEXT:
        return schema
    form = "JSON" if value_format == "json" else "AVRO"
    if not isinstance(known, Record) or known.format != form:
        raise InvalidInput(
            f"value_format={value_format!r} writes {form}, but {schema} is {schema.kind}: its readers could not read "
            f"the rows. {_ADVICE[form]}, or value_format='raw' with bytes that fit."
        )
    if wrong := misfit(payload_of(columns), known.node, form):
        raise InvalidInput(f"The rows do not fit {schema}: {wrong} Nothing is written. Correct the columns.")
    if form == "AVRO":
        encoder_of(known)  # a default that is none is refused here too
    return schema


_ADVICE = {
    "JSON": "Use a topic with a JSON schema or without one",
    "AVRO": "Use a topic with an AVRO schema",
}


def _known(schema: Registered, value_format: ValueFormat) -> Description:
    try:
        return described(schema)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} So value_format={value_format!r} can't be checked against it; use value_format='raw'."
        ) from error
