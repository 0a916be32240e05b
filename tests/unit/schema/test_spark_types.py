from __future__ import annotations

import pytest
from pyspark.sql.pandas.types import to_arrow_type

from eos.schema.description import Primitive, described
from eos.schema.primitives import PRIMITIVES
from eos.schema.spark_types import OF_PRIMITIVES, spark_type
from tests.unit.schema.registered import golden

FLIGHT = (
    "struct<carrier:string,delay:int,destination:struct<code:string,latitude:double>,distance:bigint,gate:int,"
    "late:boolean,legs:array<string>,origin:struct<code:string,latitude:double>,seats:map<string,int>,share:float,"
    "speed:double,status:string,stops:array<struct<code:string,latitude:double>>,tail:{bytes}>"
)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("AVRO", FLIGHT.format(bytes="binary")),
        ("JSON", FLIGHT.format(bytes="string")),
        ("TICKET", "struct<at:timestamp,boarding:int,day:date,fare:decimal(9,2)>"),
        ("KEY_VALUE INLINE", "struct<key:string,value:int>"),
    ],
)
def test_types_of_the_java_clients_schemas(asked: str, kind: str) -> None:
    assert spark_type(described(golden(asked)[0])).simpleString() == kind


def test_every_primitive_has_a_type_that_spark_has_as_arrow() -> None:
    assert OF_PRIMITIVES.keys() == PRIMITIVES.keys()
    for kind, layout in PRIMITIVES.items():
        arrow = to_arrow_type(spark_type(Primitive(kind)), timezone="UTC")
        assert layout is None or layout.unit == arrow
