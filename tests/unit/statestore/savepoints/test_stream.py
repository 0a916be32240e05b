"""A savepoint as messages: cut, put together, and refused where anything is missing or wrong."""

from __future__ import annotations

import json
import zlib
from dataclasses import fields, replace
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import Damaged, InvalidInput
from statestore.json_fields import key_of
from statestore.savepoints.stream import (
    Cutter,
    FilePart,
    Manifest,
    SavepointContent,
    Seen,
    Sum,
    files_of,
    pack_list,
    unpack_list,
)
from statestore.savepoints.topic import TopicAddress

FILES = {"state/0/0/1.delta": b"a" * 25, "state/0/0/empty": b"", "offsets/0": b"0123456789", "metadata": b"{}"}


def messages(files: dict[str, bytes], chunk: int = 10, name: str = "one") -> list[FilePart]:
    """As the writer makes them."""
    cutter = Cutter(chunk)
    contents: list[SavepointContent] = []
    parts: list[bytes] = []
    for path, data in files.items():
        own = Sum()
        parts += cutter.cut(own.over([data[:7], data[7:]]))
        contents.append(SavepointContent(path, own.size, own.crc32c))
    parts += cutter.rest()
    lists = pack_list(contents, chunk)
    made = [FilePart(name, name, "data", n, part) for n, part in enumerate(parts)]
    made += [FilePart(name, name, "files", n, part) for n, part in enumerate(lists, len(parts))]
    sums = cutter.sum
    manifest = Manifest(name, name, "bk://h:1/q", 3, "q", 5, len(files), sums.size, sums.crc32c, len(parts), len(lists))
    return [*made, FilePart(name, name, "manifest", len(made), manifest.encode())]


def put_together(parts: list[FilePart]) -> dict[str, bytes]:
    """As the reader does it."""
    seen = Seen("one")
    for part in parts:
        seen.take(part)
    assert not seen.lacks(), seen.lacks()
    assert seen.manifest is not None
    contents = unpack_list(seen.manifest, seen.lists)
    again = Seen("one")
    data = (part.data for part in parts if again.take(part) and part.kind == "data")
    return {path: b"".join(blocks) for path, blocks in files_of(seen.manifest, contents, data)}


PATHS = st.text(st.characters(codec="utf-8", exclude_characters="/."), min_size=1, max_size=9)


@given(
    st.dictionaries(st.lists(PATHS, min_size=1, max_size=3).map("/".join), st.binary(max_size=60), max_size=9),
    st.integers(1, 40),
)
def test_any_files_come_back(files: dict[str, bytes], chunk: int) -> None:
    parts = messages(files, chunk)
    assert all(len(part.data) <= chunk for part in parts[:-1])
    assert put_together(parts) == files


def test_messages_that_come_twice_are_used_once() -> None:
    parts = messages(FILES)
    assert put_together([parts[0], *parts[:3], *parts[1:], parts[-1]]) == FILES


@pytest.mark.parametrize("missing", range(len(messages(FILES))))
def test_a_missing_message_is_named(missing: int) -> None:
    parts = messages(FILES)
    seen = Seen("one")
    for part in parts[:missing] + parts[missing + 1 :]:
        seen.take(part)
    expected = (
        f"of its {len(parts)} messages number {missing} is missing"
        if missing < len(parts) - 1
        else f"its manifest, the last of its messages, is missing, and {missing} messages came before"
    )
    assert seen.lacks() == expected


def test_a_changed_byte_is_found_in_the_message() -> None:
    part = messages(FILES)[0]
    properties = part.properties()
    assert FilePart.of(properties, part.data) == part
    with pytest.raises(Damaged, match="message 0 does not have its CRC32C"):
        FilePart.of(properties, b"A" + part.data[1:])
    with pytest.raises(Damaged, match=NOT_WRITTEN):
        FilePart.of({**properties, "kind": "other"}, part.data)


NOT_WRITTEN = "has properties that this library did not write"
WRONG = {
    "its bytes": ({}, b"A" + messages(FILES)[1].data[1:], "message 1 does not have its CRC32C"),
    "no bytes": ({}, None, "message 1 does not have its CRC32C"),
    "its kind": ({"kind": "other"}, messages(FILES)[1].data, f"message 1 {NOT_WRITTEN}"),
    "its number": ({"number": "one"}, messages(FILES)[1].data, f"message one {NOT_WRITTEN}"),
    "its sum": ({"crc32c": ""}, messages(FILES)[1].data, f"message 1 {NOT_WRITTEN}"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_message_that_cannot_be_read_is_held_against_its_savepoint(wrong: str) -> None:
    properties, data, says = WRONG[wrong]
    parts = messages(FILES)
    seen = Seen("id")
    for part in parts:
        bad = part.number == 1
        seen.look({**part.properties(), **(properties if bad else {})}, data if bad else part.data)
    assert (seen.condition, seen.name) == ("damaged", "one")
    assert seen.lacks().startswith(says)

    again = Seen("id")  # the same message once more, and whole
    again.look(parts[0].properties(), parts[0].data)
    again.look({**parts[1].properties(), **properties}, data)
    for part in parts[1:]:
        again.look(part.properties(), part.data)
    assert (again.condition, again.lacks()) == ("ready", "")


NEWER = Manifest.decode(messages(FILES)[-1].data).encode().replace(b'"v":1', b'"v":2,"more":[]')


@pytest.mark.parametrize(
    ("manifest", "condition", "says"),
    [
        (NEWER, "unknown version", "its manifest has the version 2, and this statestore reads version 1. Use a newer"),
        (NEWER.replace(b'"v":2', b'"v":0'), "damaged", "its manifest cannot be read"),
        (NEWER.replace(b'"v":2', b'"v":"2"'), "damaged", "its manifest cannot be read"),
        (b"[]", "damaged", "its manifest cannot be read"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_held_against_its_savepoint(
    manifest: bytes, condition: str, says: str
) -> None:
    parts = messages(FILES)
    seen = Seen("id")
    for part in [*parts[:-1], replace(parts[-1], data=manifest)]:
        seen.look(part.properties(), part.data)
    assert (seen.condition, seen.name, seen.manifest) == (condition, "one", None)
    assert seen.lacks().startswith(says)


@pytest.mark.parametrize("name", [one.name for one in fields(Manifest)])
@pytest.mark.parametrize("value", [None, True, 1.5, [], "x", -1, 7])
def test_a_field_of_another_type_is_found_in_the_manifest(name: str, value: Any) -> None:
    field = key_of(name)
    said = {**json.loads(messages(FILES)[-1].data), field: value}
    kind = get_type_hints(Manifest)[name]
    may_be = type(value) is kind and (value != -1 or field in ("batch", "created_ms", "crc32c"))
    if may_be:
        assert Manifest.decode(json.dumps(said).encode())
    else:
        with pytest.raises(Damaged, match=rf"cannot be read, {field} is wrong"):
            Manifest.decode(json.dumps(said).encode())


def test_wrong_bytes_are_found_in_the_file_and_in_the_whole() -> None:
    parts = messages(FILES)
    wrong = [replace(parts[0], data=b"A" + parts[0].data[1:]), *parts[1:]]
    with pytest.raises(Damaged, match=r"state/0/0/1.delta of savepoint one does not have its CRC32C"):
        put_together(wrong)
    manifest = Manifest.decode(parts[-1].data)
    other = replace(parts[-1], data=replace(manifest, crc32c=1).encode())
    with pytest.raises(Damaged, match="not those that its manifest counts"):
        put_together([*parts[:-1], other])
    short = [*parts[:3], replace(parts[3], data=b""), *parts[4:]]
    with pytest.raises(Damaged, match="offsets/0 of savepoint one ends 5 bytes too early"):
        put_together(short)
    fewer = replace(parts[-1], data=replace(manifest, files=3).encode())
    with pytest.raises(Damaged, match="not the one that its manifest counts"):
        put_together([*parts[:-1], fewer])


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "state/../../x", "", "a//b", "./x"])
def test_a_file_outside_the_checkpoint_is_refused(path: str) -> None:
    with pytest.raises(Damaged, match="outside its checkpoint"):
        put_together(messages({"metadata": b"{}", path: b"x"}))


@pytest.mark.parametrize(
    "line",
    [
        "[1, 2, 3]",
        '["a", "2", 3]',
        '["a", -2, 3]',
        '["a", 2.0, 3]',
        '["a", true, 3]',
        '["a", 2]',
        '{"path": "a", "length": 2, "crc32c": 3}',
        "no JSON",
        "[" * 100_000,
    ],
)
def test_a_list_of_files_that_is_none_is_refused(line: str) -> None:
    manifest = Manifest("id", "one", "bk://h:1/q", 3, "q", 5, 1, 2, 0, 1, 1)
    with pytest.raises(Damaged, match="list of files of savepoint one cannot be read"):
        unpack_list(manifest, [zlib.compress(line.encode())])


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"v":true}', b'{"v":1,"id":"x"}', b"[" * 100_000])
def test_a_manifest_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Damaged):
        Manifest.decode(data)


@pytest.mark.parametrize(
    ("uri", "service_url", "topic"),
    [
        ("pulsar://h:6650/t/n/x", "pulsar://h:6650", "persistent://t/n/x"),
        ("pulsar://h:6650/x", "pulsar://h:6650", "persistent://public/default/x"),
        ("pulsar+ssl://a:1,b:2/t/n/x", "pulsar+ssl://a:1,b:2", "persistent://t/n/x"),
    ],
)
def test_topics_have_addresses(uri: str, service_url: str, topic: str) -> None:
    assert TopicAddress.parse(uri) == TopicAddress(service_url, topic)


@pytest.mark.parametrize("uri", ["pulsar://h:6650", "pulsar://h:6650/a/b", "http://h/t/n/x", "pulsar:///x", "x"])
def test_what_is_no_topics_address_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInput, match="Write pulsar://host:port/tenant/namespace/topic"):
        TopicAddress.parse(uri)
