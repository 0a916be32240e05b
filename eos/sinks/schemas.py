"""What the sink asks of a topic's registered schema."""

from __future__ import annotations

from pyspark.sql.types import StructType

from eos.errors import InvalidInput
from eos.pulsar.protocol.schemas import Registered
from eos.schema.description import Primitive, Record, described
from eos.schema.fit import misfit
from eos.sinks.columns import payload_of

_TAKE_ANY_TEXT = (Primitive("STRING"), Primitive("BYTES"))


def check_json(columns: StructType, schema: Registered | None) -> None:
    """Refuse columns whose JSON does not fit the topic's schema.

    Args: the columns of a DataFrame; the newest schema of the topic, None where it has none.

    Raises InvalidInput, naming the field and both types, also for a schema that is not one of JSON.
    """
    if schema is None:
        return
    try:
        known = described(schema)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} So value_format='json' can't be checked against it; use value_format='raw'."
        ) from error
    if known in _TAKE_ANY_TEXT:
        return
    if not isinstance(known, Record) or known.format != "JSON":
        raise InvalidInput(
            f"value_format='json' writes JSON, but {schema} is {schema.kind}: its readers could not read the rows. Use "
            "a topic with a JSON schema or without one, or value_format='raw' with bytes that fit."
        )
    if wrong := misfit(payload_of(columns), known.node):
        raise InvalidInput(f"The rows do not fit {schema}: {wrong} Nothing is written. Correct the columns.")
