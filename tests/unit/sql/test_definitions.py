"""Topics made, changed, deleted and described by a client and an admin API that only remember."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, MapType, StringType, StructField, StructType

from eos.errors import ConnectionLost, InvalidInput, Refused, TopicMissing, Unanswered
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from eos.pulsar.net.policies import TopicPolicies
from eos.pulsar.protocol.schemas import Declared, Registered
from eos.pulsar.wire.message_id import TopicLedger
from eos.sinks.columns import ALIASES, ASSIGNED
from eos.source.columns import PARTS
from eos.sql.definitions import alter, create, described, drop

TOPIC = "persistent://public/default/t"


class Pulsar:
    """One topic, or none, as a client and the admin API see it."""

    def __init__(self, partitions: int | None = None, **own: str) -> None:
        self.there = partitions
        self.own = own
        self.schemas: list[Declared] = []
        self.forbidden: tuple[str, ...] = ()
        self.fails: dict[str, Exception] = {}

    def _fail(self, step: str) -> None:
        if step in self.fails:
            raise self.fails[step]

    def partitions(self, topic: str) -> int:
        if self.there is None:
            raise TopicMissing(topic)
        return self.there

    def create(self, topic: str, partitions: int) -> None:
        if self.there is not None:
            raise Refused("PUT", "409", "there is one")
        self._fail("create")
        self.there = partitions

    def register(self, topic: str, schema: Declared) -> None:
        self._fail("register")
        self.schemas.append(schema)

    def schema(self, topic: str) -> Registered | None:
        return Registered(topic, bytes(7) + b"\x02", "AVRO", b"{}", {}) if self.schemas else None

    def properties(self, topic: str) -> dict[str, str]:
        if "properties" in self.forbidden:
            raise Refused("GET", "403", "not for you")
        return dict(self.own)

    def set_properties(self, topic: str, properties: dict[str, str]) -> None:
        self._fail("set_properties")
        self.own |= properties

    def unset_property(self, topic: str, name: str) -> None:
        del self.own[name]

    def set_partitions(self, topic: str, number: int) -> None:
        self.there = number

    def delete(self, topic: str) -> None:
        assert self.there == 0
        self.there = None

    def delete_partitioned(self, topic: str) -> None:
        assert self.there
        self.there = None

    def keeping(self, topic: str) -> TopicPolicies:
        return TopicPolicies(0, (), 60, -1)

    def ledgers(self, topic: str) -> list[TopicLedger]:
        if "ledgers" in self.forbidden:
            raise Refused("GET", "403", "not for you")
        return [TopicLedger(1, 10, 100), TopicLedger(2, 0, 0)]

    def stored_bytes(self, topic: str, *, partitioned: bool) -> int:
        return 321


def of(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


TEXT, NUMBER, BYTES = StringType(), IntegerType(), BinaryType()
A = of(a=NUMBER)
REQUIRED = StructType([StructField("id", NUMBER, False)])


def made(pulsar: Pulsar, columns: StructType, **properties: str) -> bool:
    return create(cast(Client, pulsar), cast(Admin, pulsar), TOPIC, columns, properties)


FOREIGN = [
    ({"location": "/x"}, "LOCATION"),
    ({"external": "true"}, "EXTERNAL"),
    ({"hive.serde": "org.Serde"}, "STORED AS and ROW FORMAT"),
    ({"option.token": "pa55word", "token": "pa55word"}, r"OPTIONS \(token …\).*WITH"),
    ({"option.mine": "pa55word", "mine": "pa55word"}, r"OPTIONS \(mine …\).*TBLPROPERTIES"),
    *(
        ({name: "pa55word"}, f"{name} is an option of a read or a write.*WITH")
        for name in (
            "token",
            "basic",
            "oauth2",
            "offload.credentials",
            "offloadCredentials",
            "service_url",
            "guarantee",
        )
    ),
    *(
        ({name: "7"}, f"{name} is not a property")
        for name in ("retention", "Schema", "schema.version", "segments", "size")
    ),
]
"""What would be seen by others as a property, or have no effect in silence."""
COLLATED = StringType("UTF8_LCASE")


def test_columns_that_are_no_part_of_a_message_make_a_schema() -> None:
    pulsar = Pulsar()
    assert made(pulsar, of(id=NUMBER, __key=TEXT), partitions="3", owner="me", Team="ops")
    (schema,) = pulsar.schemas
    assert (pulsar.there, pulsar.own) == (3, {"Team": "ops"})
    assert b'"id"' in schema.definition
    assert b"__key" not in schema.definition


@pytest.mark.parametrize("name", [*(part.name for part in PARTS if part.name != "value"), *ALIASES, *ASSIGNED])
def test_no_column_of_a_message_is_a_field(name: str) -> None:
    for spelled in (name, name.upper()):
        pulsar = Pulsar()
        made(pulsar, of(id=NUMBER, **{spelled: TEXT}))
        assert spelled.encode() not in pulsar.schemas[0].definition


OPEN = [Unanswered("30 s"), ConnectionLost("reset"), *(Refused("PUT", code, "no") for code in ("408", "500", "504"))]


@pytest.mark.parametrize("error", [*OPEN, Refused("PUT", "403", "no"), Refused("subscribe", "NotAllowedError", "no")])
@pytest.mark.parametrize(
    ("step", "state"),
    [
        ("create", "may be made, without its schema and its properties"),
        ("register", "is made, and may have no schema"),
        ("set_properties", "is made, and may lack its properties"),
    ],
)
def test_a_topic_that_is_made_in_part_or_perhaps_is_told_of(step: str, state: str, error: Exception) -> None:
    """A second CREATE TABLE would find it, and IF NOT EXISTS would pass over it in silence."""
    pulsar = Pulsar()
    pulsar.fails[step] = error
    refused = step == "create" and error not in OPEN  # then there is none
    with pytest.raises(Refused if refused else InvalidInput) as told:
        made(pulsar, A, Team="ops")
    assert refused or (f"{TOPIC} {state} ({error})" in str(told.value) and "delete the topic" in str(told.value))


@pytest.mark.parametrize("word", ["partitions", "Partitions", "PARTITIONS"])
def test_properties_of_ours_are_known_in_any_spelling(word: str) -> None:
    pulsar = Pulsar()
    made(pulsar, A, **{word: "3", word.replace("artitions", "ARTITIONS"): "3"}, Droppable="true")
    assert (pulsar.there, pulsar.own) == (3, {"droppable": "true"})
    changed(pulsar, **{word: "4"}, DROPPABLE=None)
    assert (pulsar.there, pulsar.own) == (4, {})
    with pytest.raises(InvalidInput, match="twice"):
        changed(pulsar, partitions="5", pARTITIONS="6")


@pytest.mark.parametrize(
    "columns", [of(), of(value=BYTES), of(VALUE=BYTES), of(value=TEXT, __key=BYTES, __publishTime=NUMBER)]
)
def test_bytes_make_no_schema(columns: StructType) -> None:
    pulsar = Pulsar()
    assert made(pulsar, columns)
    assert (pulsar.there, pulsar.schemas) == (1, [])


def test_a_struct_of_the_value_is_the_schema() -> None:
    pulsar = Pulsar()
    made(pulsar, of(value=A, __key=TEXT), value_format="json")
    (schema,) = pulsar.schemas
    assert schema.kind == "JSON"
    assert b'"a"' in schema.definition


def test_a_topic_that_is_there_is_left_as_it_is() -> None:
    pulsar = Pulsar(2)
    assert not made(pulsar, A, Team="ops")
    assert (pulsar.there, pulsar.own, pulsar.schemas) == (2, {}, [])


@pytest.mark.parametrize(
    ("columns", "properties", "words"),
    [
        (of(**{"a-b": NUMBER}), {}, "Rename it"),
        (REQUIRED, {}, "NOT NULL of id"),
        *(
            (of(**{name: kind}), {}, "NOT NULL of id")
            for name in ("value", "inner")
            for kind in (REQUIRED, StructType([StructField("deep", REQUIRED)]))
        ),
        (of(inner=ArrayType(REQUIRED)), {}, "NOT NULL of id"),
        (of(inner=MapType(TEXT, REQUIRED)), {}, "NOT NULL of id"),
        (StructType([StructField("value", BYTES, False)]), {}, "NOT NULL of value"),
        *(
            (of(a=kind), {}, "COLLATE UTF8_LCASE of a means nothing")
            for kind in (COLLATED, ArrayType(COLLATED), MapType(TEXT, COLLATED), MapType(COLLATED, TEXT))
        ),
        (of(value=COLLATED), {}, "COLLATE UTF8_LCASE of value"),
        (of(a=of(b=COLLATED)), {}, "COLLATE UTF8_LCASE of b"),
        (A, {"provider": "parquet"}, "another data source"),
        *((A, foreign, words) for foreign, words in FOREIGN),
        (A, {"partitions": "many"}, "whole number"),
        (A, {"valueFormat": "raw"}, "'avro' or 'json'"),
    ],
)
def test_what_no_topic_can_be_is_refused_before_there_is_one(
    columns: StructType, properties: dict[str, str], words: str
) -> None:
    pulsar = Pulsar()
    with pytest.raises(InvalidInput, match=words) as refused:
        made(pulsar, columns, **properties)
    assert pulsar.there is None
    assert "pa55word" not in str(refused.value)


@pytest.mark.parametrize(("foreign", "words"), FOREIGN)
def test_what_is_no_property_of_a_topic_is_not_set_later_but_may_be_unset(foreign: dict[str, str], words: str) -> None:
    own = {"Team": "ops"} | foreign
    pulsar = Pulsar(0, **own)
    with pytest.raises(InvalidInput, match=words):
        changed(pulsar, more="x", **foreign)
    assert pulsar.own == own
    changed(pulsar, **dict.fromkeys(foreign))
    assert pulsar.own == {"Team": "ops"}


def changed(pulsar: Pulsar, **properties: str | None) -> None:
    alter(cast(Client, pulsar), cast(Admin, pulsar), TOPIC, properties)


def test_partitions_grow_and_properties_change() -> None:
    pulsar = Pulsar(2, old="x", kept="y")
    changed(pulsar, partitions="5", new="z", old=None, never=None)
    assert (pulsar.there, pulsar.own) == (5, {"kept": "y", "new": "z"})


def test_properties_that_are_set_need_no_right_to_read_them() -> None:
    pulsar = Pulsar(2)
    pulsar.forbidden = ("properties",)
    changed(pulsar, new="z")
    assert pulsar.own == {"new": "z"}


@pytest.mark.parametrize(
    ("now", "partitions", "words"),
    [(3, "2", "takes none away"), (0, "2", "has no partitions"), (3, "x", "whole number"), (3, None, "whole number")],
)
def test_a_number_of_partitions_that_pulsar_can_t_give_changes_nothing(
    now: int, partitions: str | None, words: str
) -> None:
    pulsar = Pulsar(now)
    with pytest.raises(InvalidInput, match=words):
        changed(pulsar, new="z", partitions=partitions)
    assert (pulsar.there, pulsar.own) == (now, {})


@pytest.mark.parametrize("partitions", [0, 2])
def test_only_a_topic_that_says_so_is_deleted(partitions: int) -> None:
    pulsar = Pulsar(partitions, droppable="false")
    with pytest.raises(InvalidInput, match=r"Nothing is deleted.*'droppable' = 'true'"):
        drop(cast(Client, pulsar), cast(Admin, pulsar), TOPIC)
    assert pulsar.there == partitions
    pulsar.own["droppable"] = "true"
    drop(cast(Client, pulsar), cast(Admin, pulsar), TOPIC)
    assert pulsar.there is None


def test_a_topic_is_described_as_far_as_the_role_may_see() -> None:
    pulsar = Pulsar(2, team="ops")
    made(other := Pulsar(), A)
    pulsar.schemas = other.schemas
    pulsar.forbidden = ("ledgers",)
    known = described(cast(Client, pulsar), cast(Admin, pulsar), TOPIC)
    assert "not known" in known.pop("segments")
    assert known == {
        "team": "ops",
        "partitions": "2",
        "schema": "AVRO",
        "schema.version": "2",
        "retention": "60 minutes, -1 MB (-1: without limit)",
        "size": "321 bytes",
    }
    assert described(cast(Client, pulsar), None, TOPIC).keys() == {"partitions", "schema", "schema.version"}


@pytest.mark.parametrize(
    "error", [Unanswered("no answer within 30 s"), Refused("GET", "503", "busy"), Refused("GET", "403", "no")]
)
def test_properties_that_are_not_told_are_not_shown_as_none(error: Exception) -> None:
    class Silent(Pulsar):
        def properties(self, topic: str) -> dict[str, str]:
            raise error

    pulsar = Silent(2, droppable="true")
    assert described(cast(Client, pulsar), cast(Admin, pulsar), TOPIC)["properties"] == f"not known: {error}"
    told = Pulsar(2)
    assert "properties" not in described(cast(Client, told), cast(Admin, told), TOPIC)
