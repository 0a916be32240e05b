"""Commands of statestore that need few tests each: of checkpoints, rehearsals and restores."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from statestore.checkpoint import verification
from statestore.checkpoint.findings import CheckpointFinding, Severity
from statestore.cli import rehearsal as cli_rehearsal
from statestore.cli.app import typer_app
from statestore.cli.options import HadoopOptions
from statestore.errors import InvalidInput

# ---- checkpoint


@pytest.mark.parametrize(
    ("severities", "answer", "code"),
    [
        ((), "yes", 0),
        (("warning",), "yes", 0),
        (("warning", "unknown"), "unknown", 3),
        (("unknown", "error", "warning"), "no", 1),
    ],
)
def test_the_answer_is_the_exit_code(
    severities: tuple[Severity, ...], answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = tuple(CheckpointFinding(severity, "note", f"found: {severity}", "") for severity in severities)

    def verify(uri: str, *_: Any, **__: Any) -> verification.VerificationReport:
        return verification.VerificationReport(uri, "id", (3,), 1, 10, None, findings)

    monkeypatch.setattr(verification, "verify", verify)
    told = CliRunner().invoke(typer_app, ["verify", "file:///checkpoint"])
    assert told.exit_code == code
    assert ("whether Spark would go on is not known" in told.stderr) == (answer == "unknown")
    as_json = CliRunner().invoke(typer_app, ["verify", "file:///checkpoint", "--json"])
    said = json.loads(as_json.stdout)
    assert (as_json.exit_code, said["answer"], said["ok"]) == (code, answer, answer == "yes")


# ---- rehearsal


def test_the_line_that_does_a_drill_again_has_what_was_given() -> None:
    app = typer.Typer()
    seen: list[str] = []

    @app.callback()
    def _root() -> None: ...

    @app.command()
    def shadow(
        context: typer.Context,
        checkpoint: str,
        batches: int = 3,
        conf: Annotated[list[str] | None, typer.Option("--conf")] = None,
        option: HadoopOptions = None,
        token: str | None = None,
        basic: str | None = None,
        oauth2: str | None = None,
        tls_verify_hostname: bool | None = None,
    ) -> None:
        seen.append(cli_rehearsal._rerun(context))

    words = ["shadow", "bk://z:1/q r", "--batches", "5", "--conf", "a=1", "--conf", "b=2"]
    assert CliRunner().invoke(app, words, prog_name="statestore").exit_code == 0
    line = "statestore shadow 'bk://z:1/q r' --batches 5 --conf a=1 --conf b=2"
    assert seen == [line]
    secrets = ["--token", "s3cret", "--basic", "u:s3cret", "--oauth2", '{"client_secret": "s3cret"}']
    more = ["--no-tls-verify-hostname"]
    assert CliRunner().invoke(app, [*words, *secrets, *more], prog_name="statestore").exit_code == 0
    assert CliRunner().invoke(app, [*words, "--token", "file:/t"], prog_name="statestore").exit_code == 0
    assert seen[1:] == [f"{line} --no-tls-verify-hostname", f"{line} --token file:/t"]

    seen.clear()
    hidden = ["spark.hadoop.fs.s3a.secret.key", "spark.x.accessKey", "spark.sql.catalog.c.basic", "spark.app.TOKEN"]
    hidden += ["spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", "spark.hadoop.fs.s3a.encryption.key"]
    hidden += ["spark.hadoop.fs.gs.auth.service.account.private.key", "fs.s3a.server-side-encryption.key"]
    of_state = ["fs.bk.zookeeper-auth", "fs.bk.password"]
    shown = ["spark.executor.memory=1g", "spark.sql.catalog.c.token=file:/t"]
    shown += ["spark.hadoop.fs.s3a.aws.credentials.provider=org.SimpleAWSCredentialsProvider"]
    given = [word for setting in (*(f"{name}=s3cret" for name in hidden), *shown) for word in ("--conf", setting)]
    given += [word for name in of_state for word in ("-o", f"{name}=digest:u:s3cret")]
    given += ["--conf", "spark.driver.extraJavaOptions=-Dmy.password=s3cret", "-o", "fs.bk.password=file:/secret"]
    given += ["--conf", "spark.sql.warehouse.dir=s3a://me:s3cret@bucket"]
    environment = {"STATESTORE_OPTIONS": "fs.bk.password=s3cret"}
    for words in (["shadow", "s3a://me:s3cret@bucket/token=1", *given], ["shadow", "bk://z:1/q"]):
        done = CliRunner().invoke(app, words, prog_name="statestore", env=environment)
        assert done.exit_code == 0, done.output
    assert "s3cret" not in "".join(seen)
    said = shlex.split(seen[0])
    assert {
        *shown,
        "fs.bk.password=file:/secret",
        "s3a://…@bucket/token=1",
        "spark.sql.warehouse.dir=s3a://…@bucket",
    } <= {*said}
    assert {f"{name}=…" for name in (*hidden, *of_state, "spark.driver.extraJavaOptions")} <= {*said}
    assert seen[1] == "statestore shadow bk://z:1/q", "the environment is there again"


# ---- restore


IN_STEP = ["restore", "name", "bk://z:1/new", "--in-step"]
SHADOW = ["drill", "shadow", "bk://z:1/q"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*IN_STEP], "--job is missing"),
        ([*IN_STEP, "--job", "a:b"], "--sink, the name of the job's sink, must be given"),
        ([*IN_STEP, "--job", "a:b", "--sink", "s"], "--service-url, the cluster it writes to, must be given"),
        ([*IN_STEP, "--job", "no", "--sink", "s", "--service-url", "pulsar://h:1"], "'no' names no job"),
        ([*IN_STEP, "--job", "os:getcwd", "--sink", "s", "--service-url", "pulsar://h:1"], "os:getcwd is not a job"),
        (["restore", "name", "bk://z:1/new", "--savepoint", "x"], "--savepoint is for topics"),
        ([*IN_STEP[:-1], "--job", "a:b", "--sink", "s"], "--job, --sink would do nothing without --in-step"),
        ([*IN_STEP[:-1], "--source-logs", "x"], "--source-logs would do nothing without --in-step"),
        ([*IN_STEP[:-1], "--conf", "a=b"], "--conf would do nothing without --in-step"),
        (["savepoint", *IN_STEP], "--job is missing"),
        ([*SHADOW], "--job is missing"),
        (["drill", "rehearse", "bk://z:1/q", "--sink", "s"], "--service-url, the cluster it writes to, must be given"),
        (["drill", "--report", "x", "--kills", "5", "total-loss"], "--kills, --report before total-loss belongs"),
    ],
)
def test_what_is_missing_is_named(words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(typer_app, words)
    assert isinstance(result.exception, InvalidInput)
    assert says in str(result.exception)
    assert list(tmp_path.iterdir()) == [], "no journal was begun"
