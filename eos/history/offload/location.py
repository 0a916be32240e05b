"""Where a cluster's offloaded ledgers are: a URL, and credentials, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from eos.config import FILE
from eos.credentials import SecretUnreadable, check_path, text_of
from eos.errors import InvalidInput
from eos.history.offload import OffloadUnavailable
from eos.history.offload.stored_object import storage_errors
from eos.json_reader import read_json
from eos.pickling import PickledByName

GOOGLE_PATIENCE = timedelta(seconds=20)
"""How long Google's client asks again while its storage can't be reached. Its own limit is a quarter of an hour, in
which the brokers would not be asked either."""


@dataclass(frozen=True, slots=True)
class _Kind:
    query: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()


_AZURE = _Kind(
    ("blob_storage_authority", "blob_storage_scheme", "dfs_storage_authority", "dfs_storage_scheme"),
    ("account_key", "sas_token", "tenant_id", "client_id", "client_secret"),
)
_KINDS: Mapping[str, _Kind] = {
    "s3": _Kind(
        ("region", "scheme", "endpoint_override"),
        ("access_key", "secret_key", "session_token", "role_arn", "session_name", "external_id"),
    ),
    "gs": _Kind(("scheme", "endpoint_override"), ("target_service_account",)),
    "abfs": _AZURE,
    "abfss": _AZURE,
    "hdfs": _Kind(("user", "replication", "kerb_ticket")),
    "file": _Kind(),
}
"""{scheme: what its URL may ask, and its credentials, by pyarrow's names}."""


@dataclass(frozen=True, slots=True)
class OffloadLocation(PickledByName):
    """Where offloaded ledgers are.

    Attributes:
        url: `s3://BUCKET`, `gs://BUCKET`, `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net`, `hdfs://HOST:PORT/FOLDER`
            or `file:///FOLDER`; after a bucket a folder may follow, and settings such as `?region=eu-west-1`. In a
            FOLDER `%20` is a space, and `%25` a percent sign.
        credentials: a JSON object, or `file:PATH` of one; "": those of the environment.
    """

    url: str
    credentials: str = field(default="", repr=False)

    @property
    def has_folders(self) -> bool:
        """Whether the filesystem offloader may write there: it takes HDFS and local folders, no object stores."""
        return urlsplit(self.url).scheme in ("hdfs", "file")

    def open(self) -> tuple[Any, str]:
        """Return a `pyarrow.fs.FileSystem`, and the path there, without a slash at its end.

        Raises OffloadUnavailable where the file of the credentials can't be read, or the file system not be made.
        """
        at = urlsplit(self.url)
        with storage_errors(self.url):
            files = _file_system(at, dict(parse_qsl(at.query)), self._secrets())
        base = f"{at.username}{at.path}" if at.scheme in ("abfs", "abfss") else f"{at.netloc}{at.path}"
        return files, (unquote(at.path) if at.scheme in ("hdfs", "file") else base).rstrip("/")

    def _secrets(self) -> dict[str, str]:
        if not self.credentials.startswith(FILE):
            return _object(self.credentials or "{}")
        path = Path(self.credentials.removeprefix(FILE).removeprefix("//"))
        try:
            found = _object(text_of(path))
            _refuse_others(found, _KINDS[urlsplit(self.url).scheme].credentials, "the JSON object")
            return found
        except (SecretUnreadable, InvalidInput) as error:
            raise OffloadUnavailable(f"the file {path} with the credentials can't be used ({error})") from error


def offload_location(url: str, credentials: str = "", *, option: str = "offload.url") -> OffloadLocation:
    """Return a location, once it is checked. Args: as of OffloadLocation; what the URL's option is called.

    Raises InvalidInput. No message shows a credential.
    """
    try:
        at = urlsplit(url)
        _ = at.port
    except ValueError:  # such as a bracket without its other, and a port that is not a number
        raise InvalidInput(f"{option} is not a URL. Give one such as s3://my-offloads.") from None
    kind = _KINDS.get(at.scheme)
    if kind is None:
        raise InvalidInput(
            f"{option} must begin with {', '.join(f'{one}://' for one in _KINDS)}, such as s3://my-offloads. The "
            f"scheme {at.scheme!r} is not supported."
        )
    azure = at.scheme in ("abfs", "abfss")
    if at.password is not None or (not azure and at.username is not None):
        raise InvalidInput(f"{option} must not hold credentials, since Spark logs it. Give offload.credentials.")
    if at.fragment or (at.scheme == "file" and (at.netloc or not at.path.strip("/"))):
        raise InvalidInput(f"{option}={url!r} is not a folder's URL, such as file:///data/offloads.")
    if at.scheme != "file" and (not at.hostname or (azure and not at.username)):
        raise InvalidInput(f"{option}={url!r} lacks the bucket, the container with its account, or the host.")
    _refuse_others(dict(parse_qsl(at.query, keep_blank_values=True)), kind.query, f"the URL of {option}")
    if credentials.startswith(FILE):
        check_path("offload.credentials", credentials)
    elif credentials:
        _refuse_others(_object(credentials), kind.credentials, f"offload.credentials for {at.scheme}")
    return OffloadLocation(url, credentials)


def _refuse_others(given: Mapping[str, str], known: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in known:
            takes = ", ".join(known) if known else "nothing"
            raise InvalidInput(f"{where} has {name!r}, which is not supported there. It takes {takes}.")


def _object(text: str) -> dict[str, str]:
    try:
        found = read_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise InvalidInput(
            'offload.credentials is not a JSON object of texts, such as {"access_key":"…","secret_key":"…"}, and '
            'not "file:PATH" of one.'
        )
    return found


def _file_system(at: SplitResult, query: dict[str, str], secrets: dict[str, str]) -> Any:
    from pyarrow import fs

    if at.scheme == "s3":
        if "region" not in query and "endpoint_override" not in query:
            query["region"] = fs.resolve_s3_region(at.netloc)
        return fs.S3FileSystem(**query, **secrets)
    if at.scheme == "gs":
        return fs.GcsFileSystem(retry_time_limit=GOOGLE_PATIENCE, **query, **secrets)
    if at.scheme in ("abfs", "abfss"):
        return fs.AzureFileSystem((at.hostname or "").partition(".")[0], **query, **secrets)
    return fs.FileSystem.from_uri(at._replace(path="/").geturl())[0]  # a folder it would have to be able to read
