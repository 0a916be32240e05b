"""What the Java client's schemas are asked to write, in the words of SchemaValues.java."""

from __future__ import annotations

VALUES = (
    "STRING größer 😀",
    "BYTES 00ff",
    "BOOLEAN true",
    "BOOLEAN false",
    "INT8 -128",
    "INT16 -32768",
    "INT32 -2147483648",
    "INT64 -9223372036854775808",
    "INT64 42",
    "FLOAT -0.5",
    "DOUBLE 0.1",
    "DOUBLE NaN",
    "DATE 2013-01-01T10:15:30.123Z",
    "DATE 1969-12-31T23:59:59.999Z",
    "TIME 36930123",
    "TIMESTAMP 2013-01-01T10:15:30.123Z",
    "INSTANT 2013-01-01T10:15:30.123456789Z",
    "INSTANT 1969-12-31T23:59:59.999999999Z",
    "LOCAL_DATE 1969-12-31",
    "LOCAL_TIME 23:59:59.999999999",
    "LOCAL_DATE_TIME 1969-12-31T23:59:59.999999999",
    "JSON",
    "AVRO",
    "TICKET",
    "KEY_VALUE INLINE",
    "KEY_VALUE SEPARATED",
    "NULL_KEY",
)
"""A kind, and a value of it; without one, the program's own record."""
