"""`statestore restore`, also as `statestore savepoint restore`: a savepoint as a new checkpoint, in step if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from eos.cli.connection import ConnectionSettings, connecting_later
from statestore.cli import console
from statestore.cli.options import (
    SAVEPOINT,
    AsJson,
    Conf,
    HadoopOptions,
    JobName,
    Namespace,
    SinkName,
    cluster_of,
    job_and_output,
    parse_options,
)
from statestore.cli.spark import spark_for
from statestore.errors import InvalidInput
from statestore.json_fields import to_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from statestore.roll_forward import Output
    from statestore.roll_forward.jobs import Job


@connecting_later
def restore(
    source: Annotated[str, typer.Argument(help=f"{SAVEPOINT[:-1]}, or the topic that it is on.")],
    target: Annotated[
        str, typer.Argument(help="An empty place for the new checkpoint. For a name, bk:// in its tree.")
    ],
    savepoint: Annotated[
        str | None, typer.Option(help="Which savepoint on the topic, by default the only one.")
    ] = None,
    in_step: Annotated[
        bool,
        typer.Option(
            "--in-step",
            help="Roll the state forward to the sink's output. Needs --job, --sink and a service URL.",
        ),
    ] = False,
    job: JobName = None,
    sink: SinkName = None,
    namespace: Namespace = "public/default",
    source_logs: Annotated[
        str | None,
        typer.Option(help="For file sources, a checkpoint with their logs, by default that of the savepoint."),
    ] = None,
    conf: Conf = None,
    option: HadoopOptions = None,
    as_json: AsJson = False,
    *,
    by: ConnectionSettings,
) -> None:
    """Make a new checkpoint of a savepoint, from which its query resumes.

    With --in-step it runs the batches between the savepoint and the sink's output again, with exactly their input,
    and writes no rows. Run the same command again if it was interrupted.
    """
    from statestore.savepoints import restoration
    from statestore.savepoints.topic import is_topic

    options = parse_options(option)
    if savepoint is not None and not is_topic(source):
        raise InvalidInput("--savepoint is for topics. A savepoint on BookKeeper is restored by `restore NAME TARGET`")
    if in_step:
        start, output = job_and_output(job, sink, namespace, by)
        with spark_for(options, conf, source, target) as spark:
            _in_step(
                *(source, target, start, output, spark, as_json),
                name=savepoint,
                source_logs_of=source_logs,
                options=options,
                cluster=cluster_of(source, by) if is_topic(source) else None,
            )
        return
    given = {"--job": job, "--sink": sink, "--source-logs": source_logs, "--conf": conf}
    if idle := [name for name, value in given.items() if value]:
        raise InvalidInput(
            f"{', '.join(idle)} would do nothing without --in-step. Give --in-step to bring the state in step with the "
            "sink's output, or leave out the rest"
        )
    cluster = cluster_of(source, by) if is_topic(source) else None
    with console.bar(f"Reading {savepoint or 'the savepoint'}") as show:
        progress = console.bytes_of(show)
        made = restoration.restore(source, target, name=savepoint, options=options, cluster=cluster, progress=progress)
    console.show(to_json(made), as_json, f"{target} is at batch {made.batch_id} of savepoint {made.name}")


def _in_step(
    source: str,
    target: str,
    start: Job,
    output: Output,
    spark: SparkSession,
    as_json: bool,
    **more: Any,
) -> None:
    from statestore.roll_forward import RollForwardStep, restore_in_step

    def tell(step: RollForwardStep, batch: int) -> None:
        if step is RollForwardStep.RESTORE:
            console.tell(f"{target} is at batch {batch}")
        elif step is RollForwardStep.REPLAY:
            console.tell(f"batch {batch} was run again")

    done = restore_in_step(source, target, start, output, spark=spark, observer=tell, **more)
    said = f"{target} is at batch {done.batch_id}, as the output of {output.name} is. Start the query on it"
    console.show(to_json(done), as_json, said)
