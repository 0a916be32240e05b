"""Ledgers that Pulsar's own offloader wrote, read from stand-ins for Google Cloud Storage and for Azure."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from pyarrow import fs

from eos.history.offload import OffloadMissing, OffloadUnavailable
from eos.history.offload.ledgers import OffloadedLedgers
from eos.history.offload.location import offload_location
from eos.pulsar.wire.stored_entry import body_of
from tests.encryption import key_pair
from tests.object_store import azure_store, google_store
from tests.vectors.offloads import TOPIC, UUID, Offloaded, ledgers

pytestmark = pytest.mark.soak

BUCKET = "history"
ACCOUNT, ACCOUNT_KEY = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)
"""Those of each Azurite."""


def objects() -> Iterator[tuple[str, bytes]]:
    """Yield what the jcloud offloader wrote of all ledgers."""
    for ledger in ledgers().values():
        yield from ((name, content) for name, content in ledger.objects.items() if name.startswith(ledger.data))


@pytest.fixture
def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OffloadedLedgers]:
    """By the key of a service account, as the application default credentials name it. The stand-in takes any."""
    account = {
        "type": "service_account",
        "client_email": "reader@project.iam.gserviceaccount.com",
        "private_key_id": "1",
        "private_key": key_pair().private,
        "token_uri": "http://127.0.0.1:1/token",
    }
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    with google_store(tmp_path, BUCKET) as store:
        for name, content in objects():
            store.put(name, content)
        yield OffloadedLedgers(offload_location(f"gs://{BUCKET}?endpoint_override={store.address}&scheme=http"))


@pytest.fixture
def azure_url(tmp_path: Path) -> Iterator[str]:
    azurite = shutil.which("azurite-blob")
    if azurite is None:
        pytest.skip("azurite-blob is not on the PATH: npm install -g azurite")
    with azure_store(azurite, tmp_path) as address:
        at = {f"{kind}_storage_authority": address for kind in ("blob", "dfs")}
        at |= {f"{kind}_storage_scheme": "http" for kind in ("blob", "dfs")}
        files = fs.AzureFileSystem(ACCOUNT, account_key=ACCOUNT_KEY, **at)
        files.create_dir(BUCKET)
        for name, content in objects():
            with files.open_output_stream(f"{BUCKET}/{name}") as out:
                out.write(content)
        yield f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net?{urlencode(at)}"


def read(reader: OffloadedLedgers, ledger: Offloaded, first: int, last: int) -> list[tuple[int, bytes]]:
    return [(number, bytes(body)) for number, body in reader.read(TOPIC, ledger.ledger, UUID, first, last)]


def check(reader: OffloadedLedgers) -> None:
    """Ranges at the bounds of blocks come whole, and what is not there is missing."""
    for ledger in ledgers().values():
        last = len(ledger.entries) - 1
        for first, end in ((0, last), (0, 0), (1, last // 2), (last, last)):
            expected = [
                (number, bytes(body_of(ledger.entries[number], 0, len(ledger.entries[number]))[0]))
                for number in range(first, end + 1)
            ]
            assert read(reader, ledger, first, end) == expected
        assert reader.holds(TOPIC, ledger.ledger, UUID)
    assert not reader.holds(TOPIC, 999, UUID)
    with pytest.raises(OffloadMissing, match="ledger-999-index does not exist in secondary storage"):
        list(reader.read(TOPIC, 999, UUID, 0, 0))


def test_ledgers_come_from_google_cloud_storage(google: OffloadedLedgers) -> None:
    check(google)


def test_ledgers_come_from_azure_to_who_has_the_key(azure_url: str) -> None:
    check(OffloadedLedgers(offload_location(azure_url, json.dumps({"account_key": ACCOUNT_KEY}))))
    stranger = offload_location(azure_url, json.dumps({"account_key": base64.b64encode(b"wrong").decode()}))
    with pytest.raises(OffloadUnavailable, match="can't be read from secondary storage"):
        list(OffloadedLedgers(stranger).read(TOPIC, 7, UUID, 0, 0))
