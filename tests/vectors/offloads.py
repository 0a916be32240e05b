"""Pulsar's own offloaders, as Maven has them, and what they wrote: offloads.json, taken apart.

`python -m tests.vectors.offloads` writes it anew. Each jar is a NAR, with all that it needs inside.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from eos.local import checks, jars
from eos.local.jars import Jars
from eos.local.places import Tell, quiet
from eos.pulsar.wire.checksum import crc32c
from eos.pulsar.wire.pulsar_pb2 import BrokerEntryMetadata, MessageMetadata

VERSION = "4.0.8"  # the newest one that was published; a broker 4.2.4 loads it

_DEPENDENCY = """    <dependency>
      <groupId>org.apache.pulsar</groupId>
      <artifactId>tiered-storage-{kind}</artifactId>
      <version>{version}</version>
    </dependency>
"""
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eos.local</groupId>
  <artifactId>offloaders</artifactId>
  <version>1</version>
  <dependencies>
{"".join(_DEPENDENCY.format(kind=kind, version=VERSION) for kind in ("jcloud", "file-system"))}  </dependencies>
</project>
"""
JARS = Jars(f"Pulsar offloaders {VERSION}", POM, about_jars=100, about_bytes=130 * checks.MEGABYTE)


def offloaders(folder: Path, tell: Tell = quiet) -> Path:
    """Put the NARs of both offloaders into a folder, for the broker's setting offloadersDirectory, and return it.

    Raises LocalError: Java, Maven, disk space or the network is missing.
    """
    JARS.classpath(tell)
    folder.mkdir(parents=True, exist_ok=True)
    for jar in JARS.folder().glob("tiered-storage-*.jar"):
        shutil.copyfile(jar, folder / f"{jar.stem}.nar")
    return folder


TOPIC = "persistent://public/default/a b*~"
MANAGED_LEDGER = "public/default/persistent/a+b*%7E"
UUID = "123e4567-e89b-42d3-a456-426614174000"
_FILE = Path(__file__).parent / "offloads.json"
_SIZES = {7: (12, 700), 8: (300, 8_000)}  # by ledger: entries, and bytes of a block


def entry(number: int) -> bytes:
    """Return an entry as a broker stores it; every third has the broker's metadata."""
    metadata = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1_700_000_000_000 + number)
    packed = metadata.SerializeToString()
    message = len(packed).to_bytes(4) + packed + b"payload %d " % number * (number % 4 + 1)
    message = b"\x0e\x01" + crc32c([message]).to_bytes(4) + message
    if number % 3:
        return message
    told = BrokerEntryMetadata(broker_timestamp=5, index=number).SerializeToString()
    return b"\x0e\x02" + len(told).to_bytes(4) + told + message


@dataclass(frozen=True)
class Offloaded:
    """One ledger in both formats.

    Attributes:
        ledger: its id.
        entries: what was stored.
        objects: {path: bytes}, below the location.
    """

    ledger: int
    entries: tuple[bytes, ...]
    objects: dict[str, bytes]

    @property
    def data(self) -> str:
        """The name of the data object; "-index" follows in that of its index."""
        return f"{UUID}-ledger-{self.ledger}"


def ledgers() -> dict[int, Offloaded]:
    """Return the ledgers of the vectors, by their ids: a small one and a large one."""
    told: dict[str, dict[str, str]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return {
        int(ledger): Offloaded(
            int(ledger),
            tuple(map(entry, range(_SIZES[int(ledger)][0]))),
            {name: base64.b64decode(content) for name, content in objects.items()},
        )
        for ledger, objects in told.items()
    }


def written_by_java(ledger: int) -> dict[str, str]:
    """Have Pulsar's offloaders store a ledger; return {path: base64}."""
    count, block_bytes = _SIZES[ledger]
    program = _FILE.parent / "java" / "Offloads.java"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(checks.java()), "-cp", f"{JARS.classpath()}:{jars.classpath()}", str(program), "offloads"]
        done = subprocess.run(
            [*command, str(ledger), UUID, str(block_bytes), MANAGED_LEDGER, folder],
            input="\n".join(entry(number).hex() for number in range(count)),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["name"]: one["bytes"] for one in told}


if __name__ == "__main__":
    _FILE.write_text(json.dumps({ledger: written_by_java(ledger) for ledger in _SIZES}, indent=1) + "\n")
