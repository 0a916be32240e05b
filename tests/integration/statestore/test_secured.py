"""bk:// on a ZooKeeper and a bookie that demand TLS, a role and a secret: a killed query goes on."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from statestore.hadoop.file_systems import Hadoop
from tests.child_process import ChildProcess
from tests.integration.statestore.conftest import RunJob, StartJob
from tests.integration.statestore.test_cli import Statestore
from tests.integration.statestore.test_cli import statestore as statestore
from tests.leaks import Left
from tests.secured_bk import SECRET, USER, SecuredBk
from tests.secured_bk import secured_bk as secured_bk

pytestmark = pytest.mark.slow
CANARY = "canary-of-secrets"
AT_ONCE_S = 20
"""A refusal that took as long was tried again and again; a busy machine starts a JVM meanwhile."""

LOGGING = """status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %-5level %c %m%n%throwable
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
{quiet}
"""
CHECKPOINT = {
    "metadata": '{"id":"7e8f1d1a-0d3c-4f43-9f6c-6f0f4d8d2b11"}',
    "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}\n0',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/0": "0",
}
"""A query's that keeps no state."""
LOUD = ("eos.bk", "org.apache.zookeeper", "org.apache.bookkeeper", "org.apache.hadoop")


def test_a_killed_query_goes_on_and_the_tools_see_it(
    secured_bk: SecuredBk,
    start_job: StartJob,
    run_job: RunJob,
    statestore: Statestore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, conf = tmp_path / "in", tmp_path / "conf"
    for folder in (files, conf, tmp_path / "events"):
        folder.mkdir()
    loud = "".join(f"logger.l{i}.name = {name}\nlogger.l{i}.level = debug\n" for i, name in enumerate(LOUD))
    (conf / "log4j2.properties").write_text(LOGGING.format(file=tmp_path / "spark.log", quiet=loud))
    defaults = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        **{f"spark.hadoop.{name}": text for name, text in secured_bk.options.items()},
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{name} {text}\n" for name, text in defaults.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
    checkpoint = f"bk://localhost:{secured_bk.port}/{CANARY}"
    (files / "1.txt").write_text("a\nb\na\n")

    left = Left()
    first = start_job("count", checkpoint=checkpoint, files=str(files), until=str(tmp_path / "never"))
    given = ["--option", f"@{conf / 'spark-defaults.conf'}"]
    told = [(2, "")]

    def committed() -> bool:
        told[0] = statestore("cat", f"{checkpoint}/commits/0", *given)
        return told[0][0] == 0

    first.until(committed, lambda: told[0][1])
    left.add("command lines", command_lines(first))
    first.kill()
    (files / "2.txt").write_text("b\nc\n")
    again = run_job("count", checkpoint=checkpoint, files=str(files))
    assert again["counts"] == {"a": 2, "b": 2, "c": 1}

    listed, names = statestore("ls", checkpoint, "--json", *given)
    assert (listed, "offsets" in names, "state" in names) == (0, True, True), names
    verified, report = statestore("verify", checkpoint, "--operators", "1", *given)
    assert verified == 0, report
    made, said = statestore("savepoint", "create", "before", checkpoint, *given)
    assert made == 0, said
    assert "before" in statestore("savepoint", "list", checkpoint, *given)[1]
    assert statestore("cp", checkpoint, (tmp_path / "copy").as_uri(), *given)[0] == 0

    left.add_folder("the event log", tmp_path / "events")
    left.add_folder("the checkpoint", tmp_path / "copy")
    left.add_folder("the servers", secured_bk.servers)
    left.add("logs", (tmp_path / "spark.log").read_bytes())
    left.add("what the tools say", f"{names}{report}{said}")
    hadoop = Hadoop.of(options=secured_bk.options, own_jvm=True)
    left.add("repr", f"{hadoop!r} {hadoop.options} {CANARY}")
    planted = {"command lines", "the event log", "the checkpoint", "the servers", "logs", "what the tools say", "repr"}
    assert left.holding(CANARY) >= planted - {"the checkpoint"}
    assert left.holding(SECRET) == set()


def command_lines(process: ChildProcess) -> str:
    """The arguments and the environment of a process and those that it started, as all, or its user, can list them."""
    first = psutil.Process(process.pid)
    living = [one for one in (first, *first.children(recursive=True)) if one.status() != psutil.STATUS_ZOMBIE]
    return "\n".join(f"{one.cmdline()} {one.environ()}" for one in living)


def test_the_person_on_call_may_look_and_nothing_else(
    secured_bk: SecuredBk, statestore: Statestore, tmp_path: Path
) -> None:
    root, auth = f"bk://localhost:{secured_bk.port}/seen", tmp_path / "auth"
    hash_of = base64.b64encode(hashlib.sha1(f"ops:{SECRET}-of-ops".encode()).digest()).decode()
    ours = secured_bk.options | {"fs.bk.root": "/seen", "fs.bk.zookeeper-readers": f"digest:ops:{hash_of}"}
    hadoop, query = Hadoop.of(options=ours, own_jvm=True), f"{root}/query"
    for name, text in CHECKPOINT.items():
        hadoop.write(f"{query}/{name}", text.encode())
    auth.write_text(f"digest:ops:{SECRET}-of-ops")
    theirs = {"fs.bk.zookeeper-auth": f"file:{auth}", "fs.bk.tls.certificate": secured_bk.pem("ops")}
    owner, given = ([f"--option={name}={text}" for name, text in one.items()] for one in (ours, ours | theirs))
    assert statestore("savepoint", "create", "kept", query, "--operators=0", *owner)[0] == 0
    looks = (
        ("ls", query),
        ("cat", f"{query}/metadata"),
        ("stat", f"{query}/metadata"),
        ("du", query),
        ("orphans", root),
        ("verify", query, "--stateless"),
        ("snapshots", query),
        ("savepoint", "list", root),
        ("cp", query, (tmp_path / "copy").as_uri(), "--operators=0"),
    )
    for words in looks:
        code, said = statestore(*words, *given)
        assert code == 0, (words, said)
    changes = (
        ("rm", f"{query}/metadata"),
        ("cp", (tmp_path / "copy").as_uri(), f"{root}/other"),
        ("savepoint", "create", "more", query),
        ("savepoint", "delete", "kept", root),
        ("restore", "kept", f"{root}/restored"),
    )
    answers = {words: statestore(*words, *given) for words in changes}
    diff = ("diff", "kept", query)
    command = [sys.executable, "-m", "statestore", *diff, *given]  # it starts a Spark, and stops that of its process
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    answers[diff] = (ended.returncode, ended.stdout + ended.stderr)
    for words, (code, said) in answers.items():
        refused = "refuses access" in said or "may only read" in said
        assert (code, refused, "the digest user ops" in said) == (2, True, True), (words, said)
    assert statestore("cat", f"{query}/metadata", *given) == (0, CHECKPOINT["metadata"])


def test_what_is_said_when_it_fails(secured_bk: SecuredBk, statestore: Statestore, tmp_path: Path) -> None:
    root = f"bk://localhost:{secured_bk.port}/said"
    Hadoop.of(options=secured_bk.options, own_jvm=True).write(f"{root}/x", b"1")
    wrong, lacking = tmp_path / "wrong", tmp_path / "lacking"
    wrong.write_text(f"digest:{USER}:wrong-{SECRET}")
    other, unknown = str(secured_bk.home / "other.pem"), {"fs.bk.tls.certificate": secured_bk.pem("norole")}
    auth, trust = "fs.bk.zookeeper-auth", "fs.bk.tls.trust-certs"
    cases: dict[str, tuple[dict[str, str], str]] = {
        "another secret": (unknown | {auth: f"file:{wrong}"}, f"is the digest user {USER}, by {auth}. Set that to"),
        "no secret": (unknown | {auth: ""}, f"is nobody, by {auth}. Set that to digest:user:password, or file:PATH"),
        "a missing file": ({auth: f"file:{lacking}"}, f"{auth} names {lacking}, which is no file"),
        "another authority": (
            {trust: other},
            "its certificate is not trusted (unable to find valid certification path",
        ),
        "no TLS": (
            {"fs.bk.tls": "none"},
            f"it speaks TLS there, and this client is not told to: set fs.bk.tls and {trust}",
        ),
    }
    for case, (changed, words) in cases.items():
        given = [f"--option={name}={text}" for name, text in (secured_bk.options | changed).items()]
        begun = time.monotonic()
        code, said = statestore("cat", f"{root}/x", *given)
        assert (code, words in said, SECRET in said) == (2, True, False), (case, said)
        assert time.monotonic() - begun < AT_ONCE_S, (case, said)
