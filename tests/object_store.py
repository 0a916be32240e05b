"""An S3 on this machine: moto's server, in a process and an environment of its own.

Its packages ask for older versions than those that the tests run with, so it can't live beside them.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from eos.local.places import cache, locked, quiet
from tests.waiting import until

MOTO = "moto[server]==5.2.5"
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
    """Run one for the time of the block; its log goes into `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = folder / "s3.log"
    command = [str(_environment() / "bin" / "moto_server"), "-H", "127.0.0.1", "-p", address.partition(":")[2]]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            until(lambda: server.poll() is None and _answers(address))
            yield ObjectStore(address, log)
        finally:
            server.terminate()


def _environment() -> Path:
    """Return the environment with moto; make it when it is not there. It is whole once its mark is."""
    made = cache() / MOTO.replace("[server]==", "-")
    mark = made / "complete"
    with locked("moto", quiet):
        if not mark.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(made)], check=True)
            subprocess.run([str(made / "bin" / "python"), "-m", "pip", "install", "--quiet", MOTO], check=True)
            mark.touch()
    return made


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"http://{address}/moto-api/", timeout=5).status_code < 500
    except httpx.TransportError:
        return False
