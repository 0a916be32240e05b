"""`statestore restore`, also as `statestore savepoint restore`: a savepoint as a new checkpoint, in step if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli import console
from statestore.cli.console import AsJson, HadoopOptions, parse_options
from statestore.cli.savepoint import SAVEPOINT, Token, Trust, bar, cluster_of, show
from statestore.errors import InvalidInput
from statestore.hadoop.session import session
from statestore.savepoints import bookkeeper, portable
from statestore.savepoints.topic import is_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statestore.in_step import Output
    from statestore.in_step.jobs import Job

JobName = Annotated[
    str | None, typer.Option("--job", help="The job, package.module:function; see statestore.in_step.jobs.")
]
SinkName = Annotated[str | None, typer.Option("--sink", help="The name of the job's exactly-once sink.")]
ServiceUrl = Annotated[
    str | None, typer.Option("--service-url", help="The Pulsar cluster of the sink's output: pulsar://host:port.")
]
Namespace = Annotated[str, typer.Option(help="tenant/namespace of the sink's topic.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", help="A setting of the Spark session, NAME=VALUE. Repeatable.")
]


def restore(
    source: Annotated[str, typer.Argument(help=f"{SAVEPOINT[:-1]}, or the topic that it is on.")],
    target: Annotated[str, typer.Argument(help="The new checkpoint, where nothing is. For a name: bk:// in its tree.")],
    name: Annotated[str | None, typer.Option(help="Which savepoint on the topic. Default: the only one.")] = None,
    in_step: Annotated[
        bool, typer.Option("--in-step", help="Roll the state forward to the sink's output. Needs the next three.")
    ] = False,
    job: JobName = None,
    sink: SinkName = None,
    service_url: ServiceUrl = None,
    namespace: Namespace = "public/default",
    source_logs: Annotated[
        str | None, typer.Option(help="For file sources: a checkpoint with their logs. Default: the savepoint's.")
    ] = None,
    conf: Conf = None,
    token_file: Token = None,
    trust_certs: Trust = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
) -> None:
    """Make a new checkpoint of a savepoint; its query resumes from there.

    With --in-step the batches between the savepoint and the sink's output are run again one by one, with exactly the
    input that they had, and without being written. Run the same command again if it was interrupted.
    """
    options = parse_options(option)
    if name is not None and not is_topic(source):
        raise InvalidInput("--name is for topics: a savepoint on BookKeeper is restored by `restore NAME TARGET`")
    if in_step:
        start, output = job_and_output(job, sink, service_url, namespace, token_file, trust_certs)
        with session(options, settings_of(conf)) as spark:
            _in_step(
                *(source, target, start, output, spark, as_json),
                name=name,
                source_logs_of=source_logs,
                options=options,
                cluster=cluster_of(source, token_file, trust_certs) if is_topic(source) else None,
            )
    elif not is_topic(source):
        savepoint = bookkeeper.restore(source, target, options=options)
        show(asdict(savepoint), as_json, f"{target} is at batch {savepoint.batch} of savepoint {source}")
    else:
        cluster = cluster_of(source, token_file, trust_certs)
        with bar(f"Reading {name or 'the savepoint'}") as progress:
            manifest = portable.restore(source, target, name, options=options, cluster=cluster, progress=progress)
        show(asdict(manifest), as_json, f"{target} is at batch {manifest.batch} of savepoint {manifest.name}")


def job_and_output(
    job: str | None,
    sink: str | None,
    service_url: str | None,
    namespace: str,
    token_file: Path | None,
    trust_certs: Path | None,
) -> tuple[Job, Output]:
    """Import the user's job, and say what its sink has written.

    Raises:
        InvalidInput: one is missing, or wrong.
    """
    from statestore.in_step.jobs import load_job

    if job is None:
        raise InvalidInput(
            "--job is missing: package.module:function, which starts the query; see statestore.in_step.jobs"
        )
    output = sink_output(sink, service_url, namespace, token_file, trust_certs)
    return load_job(job), output


def sink_output(
    sink: str | None, service_url: str | None, namespace: str, token_file: Path | None, trust_certs: Path | None
) -> Output:
    """Say what a sink has written.

    Raises:
        InvalidInput: the sink or its cluster is missing.
    """
    from statestore.in_step import Output

    if sink is None or service_url is None:
        missing = "--sink, the name of the job's sink," if sink is None else "--service-url, the cluster it writes to,"
        raise InvalidInput(f"{missing} must be given: the sink's control log tells what it has written")
    return Output(cluster_of(f"{service_url.rstrip('/')}/any", token_file, trust_certs), sink, namespace)


def settings_of(conf: Sequence[str] | None) -> dict[str, str]:
    """Read `--conf NAME=VALUE`.

    Raises:
        InvalidInput: not of this form.
    """
    found = {}
    for pair in conf or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidInput(f"--conf takes NAME=VALUE, such as spark.sql.shuffle.partitions=4, not {pair!r}")
        found[name] = value
    return found


def _in_step(
    source: str,
    target: str,
    start: Job,
    output: Output,
    spark: SparkSession,
    as_json: bool,
    **more: Any,
) -> None:
    from statestore.in_step import Step, restore_in_step

    def tell(step: Step, batch: int) -> None:
        if step is Step.RESTORE:
            console.tell(f"{target} is at batch {batch}")
        elif step is Step.REPLAY:
            console.tell(f"batch {batch} was run again")

    done = restore_in_step(source, target, start, output, spark, observer=tell, **more)
    said = f"{target} is at batch {done.batch}, as the output of {output.name} is: start the query on it"
    show(asdict(done), as_json, said)
