"""What a topic's descriptors say, and what of it has no counterpart in Spark."""

from __future__ import annotations

import json

import pytest

from eos.errors import InvalidInput
from eos.schema.description import described, same
from eos.schema.spark_types import spark_type
from tests.modules import modules_with
from tests.protobuf import proto
from tests.unit.schema.registered import TOPIC, native, registered

STATUS = {"Status": ["UNKNOWN", "LATE"]}
WHOLE = {
    "Flight": [
        "optional string carrier = 1",
        "sfixed32 delay = 2",
        "uint32 seats = 3",
        "fixed64 id = 4",
        "repeated Status status = 5",
        "map<string, Leg> legs = 6",
        "google.protobuf.Timestamp at = 7",
        "one of place bytes gate = 8",
        "one of place bool remote = 9",
    ],
    "Leg": ["double share = 1", "repeated float parts = 2"],
}


def test_a_message_is_a_struct_of_its_fields() -> None:
    assert spark_type(described(native(WHOLE, STATUS))).simpleString() == (
        "struct<carrier:string,delay:int,seats:bigint,id:decimal(20,0),status:array<string>,"
        "legs:map<string,struct<share:double,parts:array<float>>>,at:timestamp,gate:binary,remote:boolean>"
    )
    assert str(described(native(WHOLE, STATUS))) == "PROTOBUF_NATIVE t.Flight"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ({"A": ["B b = 1"], "B": ["repeated A a = 1"]}, r"field 'b\.a\[\]' is the message t\.A inside itself"),
        ({"A": ["map<int32, string> names = 1"]}, r"field 'names' is a map whose keys are not strings"),
        ({"A": ["map<string, B> bs = 1"], "B": []}, r"field 'bs\[\]' is the message t\.B without fields"),
        ({"A": []}, r"types: it is the message t\.A without fields"),
        ({"A": ["B b = 1"], "B": ["int32 x = 1", "int32 X = 2"]}, r"field 'b' is a message with two fields whose"),
    ],
)
def test_what_has_no_counterpart_in_spark_is_refused_by_its_field(messages: dict[str, list[str]], words: str) -> None:
    with pytest.raises(InvalidInput, match=f"version 0 of the schema of {TOPIC} can't be read as Spark's types: .*"):
        described(native(messages))
    with pytest.raises(InvalidInput, match=words):
        described(native(messages))


def test_a_group_is_refused() -> None:
    grouped = {"A": ["group part = 1"]}
    with pytest.raises(InvalidInput, match="field 'part' is a group"):
        described(native(grouped | {"group": ["int32 x = 1"]}, syntax="proto2"))


@pytest.mark.parametrize(
    "definition",
    [
        b"no JSON",
        b"[" * 100_000,
        b"[]",
        b"{}",
        json.dumps(json.loads(proto(WHOLE, STATUS)) | {"rootMessageTypeName": "t.None"}).encode(),
        json.dumps(json.loads(proto(WHOLE, STATUS)) | {"fileDescriptorSet": "AAAA"}).encode(),
        proto({"A": ["B b = 1"]}),
    ],
)
def test_what_is_no_set_of_descriptors_is_refused(definition: bytes) -> None:
    with pytest.raises(InvalidInput, match="is not a protobuf schema"):
        described(registered("PROTOBUF_NATIVE", definition))


def test_protobuf_with_avros_text_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="register the message as PROTOBUF_NATIVE: of PROTOBUF the registry"):
        described(registered("PROTOBUF", b"{}"))


def test_two_versions_are_told_apart() -> None:
    one, again = described(native(WHOLE, STATUS)), described(native(WHOLE, STATUS, number=1))
    assert same(one, again)
    assert not same(one, described(native({"Flight": ["int32 delay = 2"]})))


def test_labels_are_asked_for_in_one_place_alone() -> None:
    """Protobuf 5, with which no test of CI runs, has neither attribute: `is_repeated` and `is_required` know both."""
    found = modules_with(r"\w\.is_(?:repeated|required)\b", "eos", "statestore", "tests")
    assert found == {"eos/schema/protobuf_schema.py"}
