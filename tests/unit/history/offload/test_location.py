from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pyarrow.fs
import pytest

from eos.errors import InvalidInput
from eos.history.offload import OffloadUnavailable
from eos.history.offload.location import GOOGLE_PATIENCE, OffloadLocation, offload_location


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("history", "must begin with s3://"),
        ("http://bucket", "The scheme 'http' is not supported"),
        ("s3://", "lacks the bucket"),
        ("s3://key:secret@bucket", "must not hold credentials"),
        ("s3://key@bucket", "must not hold credentials"),
        ("abfss://account.dfs.core.windows.net", "lacks the bucket"),
        ("abfss://c:secret@account.dfs.core.windows.net", "must not hold credentials"),
        ("s3://bucket?reigon=x", "has 'reigon', which is not supported there. It takes region, "),
        ("file:///a?region=x", "It takes nothing"),
        ("file://a/b", "is not a folder's URL"),
        ("file:///", "is not a folder's URL"),
        ("hdfs:///a", "or the host"),
    ],
)
def test_a_wrong_url_is_refused_in_words(url: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        offload_location(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "given", ["key", "[1]", '{"access_key": 1}', '{"acces_key": "hidden"}', '{"account_key": "hidden"}']
)
def test_wrong_credentials_are_refused_without_being_shown(given: str) -> None:
    with pytest.raises(InvalidInput, match=r"offload\.credentials") as refused:
        offload_location("s3://bucket", given)
    assert "hidden" not in str(refused.value)


def test_no_credential_is_in_a_repr() -> None:
    assert "hidden" not in repr(offload_location("s3://bucket", '{"access_key": "k", "secret_key": "hidden"}'))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """What file systems were made: name, arguments."""
    found: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    for name in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem"):

        def make(*args: Any, name: str = name, **options: Any) -> str:
            found.append((name, args, options))
            return name

        monkeypatch.setattr(pyarrow.fs, name, make)
    monkeypatch.setattr(pyarrow.fs, "resolve_s3_region", lambda bucket: f"region of {bucket}")
    return found


@pytest.mark.parametrize(
    ("url", "credentials", "expected", "base"),
    [
        ("s3://b", "", ("S3FileSystem", (), {"region": "region of b"}), "b"),
        (
            "s3://b/below/?endpoint_override=h:1&scheme=http",
            '{"access_key": "k", "secret_key": "s"}',
            (
                "S3FileSystem",
                (),
                {"endpoint_override": "h:1", "scheme": "http", "access_key": "k", "secret_key": "s"},
            ),
            "b/below",
        ),
        ("gs://b/below", "", ("GcsFileSystem", (), {"retry_time_limit": GOOGLE_PATIENCE}), "b/below"),
        (
            "abfss://c@a.dfs.core.windows.net/below",
            '{"account_key": "k"}',
            ("AzureFileSystem", ("a",), {"account_key": "k"}),
            "c/below",
        ),
    ],
)
def test_each_kind_of_storage_is_opened_with_its_settings(
    made: list[Any], url: str, credentials: str, expected: Any, base: str
) -> None:
    files, path = offload_location(url, credentials).open()
    assert made == [expected]
    assert (files, path) == (expected[0], base)


def test_the_file_of_the_credentials_is_read_each_time(made: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    location = offload_location("s3://b?region=r", f"file:{path}")
    for key in ("one", "two"):
        path.write_text(f'{{"access_key": "{key}"}}')
        location.open()
    assert [options["access_key"] for _, _, options in made] == ["one", "two"]
    path.write_text("hidden")
    with pytest.raises(OffloadUnavailable, match="credentials can't be used") as unread:
        location.open()
    assert "hidden" not in str(unread.value)
    path.write_text('{"acces_key": "hidden"}')
    with pytest.raises(OffloadUnavailable, match="has 'acces_key', which is not supported there") as unread:
        location.open()
    assert "hidden" not in str(unread.value)
    path.unlink()
    with pytest.raises(OffloadUnavailable, match="No such file"):
        location.open()


def test_a_folder_is_opened_below_its_root() -> None:
    assert OffloadLocation("file:///data/offloads/").open()[1] == "/data/offloads"


@pytest.mark.parametrize("folder", ["my offloads", "100% [old]", "été"])
@pytest.mark.parametrize("quoted", [True, False])
def test_a_folder_may_have_any_name(folder: str, quoted: bool, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    url = f"file://{tmp_path}/{quote(folder) if quoted else folder}"
    files, path = offload_location(url).open()
    assert path == f"{tmp_path}/{folder}"
    assert files.get_file_info(path).type == pyarrow.fs.FileType.Directory


def test_a_folder_on_hdfs_may_have_any_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = SimpleNamespace(from_uri=lambda url: (url, "not asked for"))
    monkeypatch.setattr(pyarrow.fs, "FileSystem", asked)
    opened = offload_location("hdfs://name:8020/my%20offloads/?user=me").open()
    assert opened == ("hdfs://name:8020/?user=me", "/my offloads")


def test_a_pyarrow_without_a_file_system_leaves_the_segment_to_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(**options: str) -> None:
        raise ImportError("The pyarrow installation is not built with support for 'S3FileSystem'")

    monkeypatch.setattr(pyarrow.fs, "S3FileSystem", lacks)
    with pytest.raises(OffloadUnavailable, match="not built with support"):
        offload_location("s3://b?region=r").open()
