"""Object stores on this machine: moto's S3, an emulator of Google's, and Azurite, each in a process of its own.

Packages of the first two ask for older versions than those that the tests run with, so each has its own environment.
Azurite is a package of npm, of 360 MB: it is taken from the PATH.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from eos.local.checks import pick_ports
from eos.local.places import cache, locked, quiet
from tests.conftest import START_S
from tests.waiting import until

MOTO = "moto[server]==5.2.5"
GOOGLE = "gcp-storage-emulator==2026.7.19"
_SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, Signature=x"}


@dataclass(frozen=True)
class ObjectStore:
    """A running S3 that takes any credentials.

    Attributes:
        address: HOST:PORT.
        log: a file with a line for each request.
    """

    address: str
    log: Path

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        httpx.put(f"http://{self.address}/{name}", headers=_SIGNED, timeout=30).raise_for_status()


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run an S3 for the time of the block; its log goes into `folder`."""
    server = _environment("moto", MOTO) / "moto_server"
    with _served(folder / "s3.log", lambda port: [str(server), "-H", "127.0.0.1", "-p", port], "/moto-api/") as address:
        yield ObjectStore(address, folder / "s3.log")


@dataclass(frozen=True)
class GoogleStore:
    """A running Google Cloud Storage that takes any credentials, with one bucket. Attributes: HOST:PORT; the bucket."""

    address: str
    bucket: str

    def put(self, name: str, content: bytes) -> None:
        """Store an object."""
        where = f"http://{self.address}/upload/storage/v1/b/{self.bucket}/o"
        # Google's client ends the process where the store names no type.
        typed = {"Content-Type": "application/octet-stream"}
        asked = {"uploadType": "media", "name": name}
        httpx.post(where, params=asked, content=content, headers=typed, timeout=30).raise_for_status()


@contextmanager
def google_store(folder: Path, bucket: str) -> Iterator[GoogleStore]:
    """Run a Google Cloud Storage for the time of the block; its log goes into `folder`."""
    emulator = _environment("gcp-storage-emulator", GOOGLE) / "gcp-storage-emulator"

    def command(port: str) -> Sequence[str]:
        here = ("--host=127.0.0.1", f"--port={port}", "--in-memory", f"--default-bucket={bucket}")
        return [str(emulator), "start", *here]

    with _served(folder / "gcs.log", command, f"/storage/v1/b/{bucket}") as address:
        yield GoogleStore(address, bucket)


@contextmanager
def azure_store(azurite: str, folder: Path) -> Iterator[str]:
    """Run an Azure Blob Storage for the time of the block, and yield its HOST:PORT. Args: the path of azurite-blob."""

    def command(port: str) -> Sequence[str]:
        kept = ("--inMemoryPersistence", "--skipApiVersionCheck")
        return [azurite, "--blobHost", "127.0.0.1", "--blobPort", port, *kept]

    with _served(folder / "azure.log", command, "/devstoreaccount1/none") as address:
        yield address


@contextmanager
def _served(log: Path, command: Callable[[str], Sequence[str]], path: str) -> Iterator[str]:
    """Run a server on a free port, and yield its address once it answers. Args: its log; its command line; a path."""
    port = str(*pick_ports(1))
    with log.open("w") as out, subprocess.Popen(command(port), stdout=out, stderr=out) as server:

        def answers() -> bool:
            assert server.poll() is None, log.read_text()
            return _answers(f"http://127.0.0.1:{port}{path}")

        try:
            until(answers, f"{log.name} tells why no server came", patience_s=START_S)
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()  # nothing is kept, and Azurite waits for its clients to leave


def _environment(name: str, requirement: str) -> Path:
    """Return the folder of commands of an environment with a package. It is made first, and whole once its mark is."""
    made = cache() / f"{name}-{requirement.rpartition('==')[2]}"
    mark = made / "complete"
    with locked(name, quiet):
        if not mark.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(made)], check=True)
            subprocess.run([str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement], check=True)
            mark.touch()
    return made / "bin"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code < 500
    except httpx.TransportError:
        return False
