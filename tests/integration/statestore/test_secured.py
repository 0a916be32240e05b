"""bk:// on a ZooKeeper and a bookie that demand TLS, a role and a secret: a killed query goes on."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from statestore.hadoop.file_systems import Hadoop
from tests.integration.statestore.test_cli import Statestore
from tests.integration.statestore.test_cli import statestore as statestore
from tests.secured_bk import SECRET, SecuredBk
from tests.secured_bk import secured_bk as secured_bk

pytestmark = pytest.mark.slow


def test_the_person_on_call_may_look_and_nothing_else(
    secured_bk: SecuredBk, statestore: Statestore, tmp_path: Path
) -> None:
    root, auth = f"bk://localhost:{secured_bk.port}/seen", tmp_path / "auth"
    hash_of = base64.b64encode(hashlib.sha1(f"ops:{SECRET}-of-ops".encode()).digest()).decode()
    ours = secured_bk.options | {"fs.bk.root": "/seen", "fs.bk.zookeeper-readers": f"digest:ops:{hash_of}"}
    Hadoop.of(options=ours, own_jvm=True).write(f"{root}/x", b"1")
    auth.write_text(f"digest:ops:{SECRET}-of-ops")
    theirs = {"fs.bk.zookeeper-auth": f"file:{auth}", "fs.bk.tls.certificate": secured_bk.pem("ops")}
    given = [f"--option={name}={text}" for name, text in (ours | theirs).items()]
    assert statestore("ls", root, *given)[0] == 0
    assert statestore("cat", f"{root}/x", *given) == (0, "1")
    code, said = statestore("rm", f"{root}/x", *given)
    assert (code, "ZooKeeper refuses access" in said, "the digest user ops" in said) == (2, True, True), said
    assert statestore("cat", f"{root}/x", *given) == (0, "1")
