"""Each door takes each option in each spelling: the table is every option that there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from eos.by_name.options import OPTIONS as WRITING
from eos.by_name.options import SERVICE_URL, for_reading, parse_write_options
from eos.errors import InvalidInput
from eos.option_names import same_name, spelling_key, whole_number
from eos.sinks.job import LEFT_OUT
from eos.sinks.options import SinkOptions, check_names, checked, names_checked
from eos.source.options import parse_options
from eos.source.table import OPTIONS as READING

URL = "pulsar://h:6650"
OF_THE_SINK = [one.name for one in fields(SinkOptions)]


def spellings(name: str) -> set[str]:
    """`startingOffsets`, `starting_offsets` and, as for `service.url`, with dots; each also in capitals."""
    snake = re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[1].lower()}", name).replace(".", "_")
    first, *rest = snake.split("_")
    words = {name, snake, first + "".join(map(str.capitalize, rest)), snake.replace("_", ".")}
    return words | {word.upper() for word in words}


@names_checked(check_names)
def sink(service_url: str, *, name: str, **options: Any) -> dict[str, Any]:
    return {"service_url": service_url, "name": name, **options}


@names_checked(partial(check_names, call="eos.write()", needs="job_id", without=LEFT_OUT))
def write(df: object, service_url: str, *, job_id: str, **options: Any) -> dict[str, Any]:
    return {"df": df, "service_url": service_url, "job_id": job_id, **options}


@pytest.mark.parametrize("option", ["service_url", *OF_THE_SINK])
def test_functions_take_each_spelling(option: str) -> None:
    for word in spellings(option):
        given: dict[str, Any] = {"service_url": URL, "name": "n"} | {option: "x"}
        assert sink(**{word if name == option else name: value for name, value in given.items()}) == given
    if option in LEFT_OUT or option == "name":
        return
    for word in spellings(option):
        job: dict[str, Any] = {"df": 1, "service_url": URL, "job_id": "j"} | {option: "x"}
        assert write(**{word if name == option else name: value for name, value in job.items()}) == job


@pytest.mark.parametrize("option", [one.name for one in READING])
def test_the_source_takes_each_spelling(option: str) -> None:
    for word in spellings(option):
        assert same_name({word: "x"}, (one.name for one in READING)) == {option: "x"}


@pytest.mark.parametrize("option", [SERVICE_URL, *(one.name for one in WRITING)])
def test_the_writers_take_each_spelling(option: str) -> None:
    for word in spellings(option):
        assert same_name({word: "x"}, [SERVICE_URL, *(one.name for one in WRITING)]) == {option: "x"}


def test_no_two_options_of_a_door_have_one_spelling() -> None:
    for door in (OF_THE_SINK, [one.name for one in READING], [SERVICE_URL, *(one.name for one in WRITING)]):
        assert len(set(map(spelling_key, door))) == len(door)


TABLE = {"serviceUrl": URL, "topic": "t", "starting_offsets": "earliest", "adminUrl": "http://h:8080"}
WRITTEN = {"guarantee": "at-least-once", "keyHash": "java", "value_format": "bytes"}


def test_a_view_made_with_options_of_the_source_is_read_and_written() -> None:
    table = TABLE | WRITTEN | {"failOnDataLoss": "false", "checkpointLocation": "/c"}
    sink_options = parse_write_options(table, "df.write").sink
    assert (sink_options.key_hash, sink_options.value_format) == ("java", "raw")
    reading = for_reading({name: value for name, value in table.items() if name != "checkpointLocation"})
    found = parse_options(reading, "batch")
    assert (found.fail_on_data_loss, found.admin_url, found.typed) == (False, "http://h:8080", False)


@pytest.mark.parametrize("word", ["valueFormat", "value_format", "VALUEFORMAT"])
@pytest.mark.parametrize(("value", "typed", "written"), [("schema", True, "schema"), ("avro", False, "avro")])
def test_one_value_format_is_read_and_written(word: str, value: str, typed: bool, written: str) -> None:
    table = TABLE | {"guarantee": "at-least-once", word: value}
    assert parse_write_options(table, "df.write").sink.value_format == written
    assert parse_options(for_reading(table), "batch").typed is typed


@pytest.mark.parametrize("value", ["raw", "bytes"])
def test_raw_and_bytes_are_one_value(value: str) -> None:
    given: Any = {"name": "n", "topic": "t", "value_format": value}
    assert checked(SinkOptions(**given)).value_format == "raw"
    assert parse_options(TABLE | {"valueFormat": value}, "batch").typed is False
    same_name({"value_format": "raw", "valueFormat": "bytes"}, ["value_format"])


DOORS: dict[str, Callable[[dict[str, str]], object]] = {
    "sink": lambda given: sink(name="n", **given),
    "write": lambda given: write(df=1, job_id="j", **given),
    "source": lambda given: parse_options({"topic": "t", **given}, "batch"),
    "writer": lambda given: parse_write_options({"topic": "t", "guarantee": "at-least-once", **given}, "df.write"),
}


@pytest.mark.parametrize("door", DOORS)
def test_one_option_given_twice_must_have_one_value(door: str) -> None:
    DOORS[door]({"service.url": URL, "service_url": URL, "serviceUrl": URL})
    with pytest.raises(InvalidInput, match=r"twice with different values, as 'service\.url' and as 'service_url'"):
        DOORS[door]({"service.url": URL, "service_url": "pulsar://other:6650"})


def test_a_place_and_a_name_are_twice() -> None:
    with pytest.raises(InvalidInput, match="'service_url' is given twice, by its place and by its name"):
        sink(URL, name="n", **{"service.url": URL})


@pytest.mark.parametrize("door", DOORS)
def test_a_misspelt_option_is_answered_by_the_nearest_in_each_spelling(door: str) -> None:
    known = {"source": [one.name for one in READING], "writer": [SERVICE_URL, *(one.name for one in WRITING)]}
    without = {"name", *(LEFT_OUT if door == "write" else ())}
    for option in known.get(door, [name for name in OF_THE_SINK if name not in without]):
        for word in spellings(option):
            with pytest.raises(InvalidInput, match=rf"has no option '{re.escape(word)}t'.*Did you mean '{option}'\?"):
                DOORS[door]({"service.url": URL, f"{word}t": "x"})


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("007", 7), ("", None), ("-1", None), ("1.5", None), (" 1", None), ("0" * 5_000, 0)]
)
def test_a_whole_number_is_read(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_a_number_that_python_does_not_read_is_larger_than_any_limit() -> None:
    assert (whole_number("1" + "0" * 5_000) or 0) > 2**64
