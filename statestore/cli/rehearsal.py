"""`statestore drill rehearse | shadow | total-loss`: the drills that are rows of steps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eos.addresses import without_user
from eos.cli.connection import ConnectionSettings, connecting_later
from eos.config import FILE
from eos.spark.jar import SECRETS
from statestore.cli import console
from statestore.cli.drill import needed_packages, run_and_report
from statestore.cli.options import (
    Conf,
    HadoopOptions,
    JobName,
    Namespace,
    SinkName,
    job_and_output,
    parse_options,
    sink_output,
)
from statestore.cli.spark import spark_for

if TYPE_CHECKING:
    from statestore.drills.acts.rehearsal import Live
    from statestore.roll_forward import Output

Checkpoint = Annotated[str, typer.Argument(help="The live job's checkpoint. Nothing in it is changed.")]
Report = Annotated[Path, typer.Option(help="Folder for the journal and the report.")]


_SECRET = re.compile(f"{SECRETS}|basic|oauth2|zookeeper-auth|account[.]key|private[.]?key|encryption.*[.]key")
"""What Spark hides by default, what `configure_spark` adds, and keys of object stores."""
_CLASS = ".provider"
"""The end of an option's name whose value is a class, as of spark.hadoop.fs.s3a.aws.credentials.provider."""


@connecting_later
def rehearse(
    context: typer.Context,
    checkpoint: Checkpoint,
    sink: SinkName = None,
    namespace: Namespace = "public/default",
    report: Report = Path("drill-rehearsal"),
    conf: Conf = None,
    option: HadoopOptions = None,
    *,
    by: ConnectionSettings,
) -> None:
    """Restore a live job's checkpoint and newest savepoint to a scratch place, and compare them with the live state.

    The command removes what it makes. Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    with needed_packages():
        from statestore.drills.acts.acts import perform
        from statestore.drills.acts.rehearsal import rehearse as act

    output = sink_output(sink, namespace, by) if sink or by.by_option.service_url else None
    with _live(checkpoint, output, option, conf) as live:
        run_and_report(report, lambda: perform("rehearsal", report, _rerun(context), partial(act, live), console.tell))


@connecting_later
def shadow(
    context: typer.Context,
    checkpoint: Checkpoint,
    job: JobName = None,
    sink: SinkName = None,
    batches: Annotated[int, typer.Option(min=1, help="How many batches of the live job to run.")] = 3,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for each next batch of the live job.")] = 120.0,
    namespace: Namespace = "public/default",
    report: Report = Path("drill-shadow"),
    conf: Conf = None,
    option: HadoopOptions = None,
    *,
    by: ConnectionSettings,
) -> None:
    """Run a job beside the live one on the same batches, without output, and compare the states.

    --job is the new code, or the same code under another Spark. Exit codes: 0 PASS, 1 FAIL,
    2 bad input, 3 UNKNOWN.
    """
    with needed_packages():
        from statestore.drills.acts.acts import perform
        from statestore.drills.acts.shadow import Shadow, follow

    start, output = job_and_output(job, sink, namespace, by)
    plan = Shadow(start, batches, timeout)
    with _live(checkpoint, output, option, conf) as live:
        run_and_report(
            report, lambda: perform("shadow", report, _rerun(context), partial(follow, live, plan), console.tell)
        )


def total_loss(context: typer.Context, report: Report = Path("drill-total-loss")) -> None:
    """Lose a job's checkpoint, driver, disk and bookies, and restore it from a savepoint on another cluster's topic.

    It starts two clusters and a job of its own. Exit codes: 0 PASS, 1 FAIL, 2 bad input, 3 UNKNOWN.
    """
    with needed_packages():
        from statestore.drills.acts.acts import perform
        from statestore.drills.acts.total_loss import PLAN, lose_everything

    act = partial(lose_everything, report)
    run_and_report(report, lambda: perform("total-loss", report, _rerun(context), act, console.tell, PLAN))


COMMANDS: dict[str, Callable[..., None]] = {"rehearse": rehearse, "shadow": shadow, "total-loss": total_loss}
"""By the name on the command line."""


@contextmanager
def _live(checkpoint: str, output: Output | None, option: list[str] | None, conf: list[str] | None) -> Iterator[Live]:
    from statestore.drills.acts.rehearsal import Live

    options = parse_options(option)
    with spark_for(options, conf, checkpoint) as spark:
        yield Live(checkpoint, spark, output, options)


def _rerun(context: typer.Context) -> str:
    """The command line that does the same again. Files with secrets are named, and other secrets are left out.

    So is what the environment says: it is there again, and may hold secrets.
    """
    words = [*context.command_path.split()]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if value is None or value == parameter.get_default(context):
            continue
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "ENVIRONMENT":
            continue
        if parameter.name == "oauth2" or (parameter.name in ("token", "basic") and not value.startswith("file:")):
            continue
        if value is False:
            words.append(parameter.secondary_opts[0])
            continue
        flag = [parameter.opts[0]] if parameter.param_type_name == "option" else []
        if isinstance(value, (list, tuple)):
            words += [word for one in value for word in (*flag, _without_secret(str(one)))]
        else:
            words += [*flag, without_user(str(value))]
    return shlex.join(words)


def _without_secret(word: str) -> str:
    """Return NAME=VALUE, or the name alone where Spark or we would hide the value."""
    name, equals, value = word.partition("=")
    hidden = any(_SECRET.search(one) for one in (name, value)) and not name.endswith(_CLASS)
    if value and hidden and not value.startswith(FILE):
        return f"{name}=…"
    return name + equals + without_user(value)
