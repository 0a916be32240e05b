"""A savepoint as messages: cut, put together, and refused where anything is missing or wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.errors import Damaged, InvalidInput
from statestore.savepoints.folder import Folder
from statestore.savepoints.stream import (
    Content,
    Cutter,
    Manifest,
    Part,
    Seen,
    Sum,
    files_of,
    pack_list,
    unpack_list,
)
from statestore.savepoints.topic import TopicAddress

FILES = {"state/0/0/1.delta": b"a" * 25, "state/0/0/empty": b"", "offsets/0": b"0123456789", "metadata": b"{}"}


def messages(files: dict[str, bytes], chunk: int = 10, name: str = "one") -> list[Part]:
    """As the writer makes them."""
    cutter = Cutter(chunk)
    contents: list[Content] = []
    parts: list[bytes] = []
    for path, data in files.items():
        own = Sum()
        parts += cutter.cut(own.over([data[:7], data[7:]]))
        contents.append(Content(path, own.size, own.crc32c))
    parts += cutter.rest()
    lists = pack_list(contents, chunk)
    made = [Part(name, name, "data", n, part) for n, part in enumerate(parts)]
    made += [Part(name, name, "files", n, part) for n, part in enumerate(lists, len(parts))]
    sums = cutter.sum
    manifest = Manifest(name, name, "bk://h:1/q", 3, "q", 5, len(files), sums.size, sums.crc32c, len(parts), len(lists))
    return [*made, Part(name, name, "manifest", len(made), manifest.encode())]


def put_together(parts: list[Part]) -> dict[str, bytes]:
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
        else f"its manifest is missing, the last of its messages; {missing} came before"
    )
    assert seen.lacks() == expected


def test_a_changed_byte_is_found_in_the_message() -> None:
    part = messages(FILES)[0]
    properties = part.properties()
    assert Part.of(properties, part.data) == part
    with pytest.raises(Damaged, match="Message 0 of savepoint one does not have its CRC32C"):
        Part.of(properties, b"A" + part.data[1:])
    assert Part.of({}, b"another program's") is None
    with pytest.raises(Damaged, match="properties that are none of ours"):
        Part.of({**properties, "kind": "other"}, part.data)


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


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"v":2}', b'{"v":1,"id":"x"}'])
def test_a_manifest_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Damaged):
        Manifest.decode(data)


def test_a_folder_is_read_and_written_whole(tmp_path: Path) -> None:
    source = Folder(tmp_path / "a")
    source.begin()
    for path, data in FILES.items():
        source.write(path, [data])
    (tmp_path / "a/commits").mkdir()
    (tmp_path / "a/commits/0").write_bytes(b"v1")
    paths = [path for path, _ in source.files()]
    assert paths[-2:] == ["commits/0", "metadata"]
    assert dict(source.files())["state/0/0/1.delta"] == 25
    assert b"".join(source.read("offsets/0")) == b"0123456789"
    assert (tmp_path / "a/metadata").read_bytes() == b"{}"
    with pytest.raises(InvalidInput, match="There is something at"):
        Folder(tmp_path / "a").begin()


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
    with pytest.raises(InvalidInput, match="expected pulsar://host:port/tenant/namespace/topic"):
        TopicAddress.parse(uri)
