"""Options and arguments that several verbs take, and what is made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eos.cli.connection import ConnectionSettings
from eos.config import Cluster
from statestore.errors import InvalidInput
from statestore.hadoop.options import PREFIX, checked

if TYPE_CHECKING:
    from statestore.roll_forward import Output
    from statestore.roll_forward.jobs import Job

AsJson = Annotated[bool, typer.Option("--json", help="JSON in place of a table.")]
HadoopOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        envvar="STATESTORE_OPTIONS",
        help="A Hadoop option, fs.bk.NAME=VALUE, or @FILE of some, as in spark-defaults.conf. Repeatable.",
    ),
]
Operators = Annotated[
    int | None,
    typer.Option(help="How many stateful operators the query has (stateOperators in its progress).", min=0),
]
JobName = Annotated[
    str | None, typer.Option("--job", help="The job as package.module:function (see statestore.roll_forward.jobs).")
]
SinkName = Annotated[str | None, typer.Option("--sink", help="The name of the job's exactly-once sink.")]
Namespace = Annotated[
    str, typer.Option(help="tenant/namespace of the sink's control topic, its control_namespace or else its topic's.")
]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", help="A setting of the Spark session, NAME=VALUE. Repeatable.")
]
SAVEPOINT = "The savepoint's name."


def parse_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """Read `--option fs.bk.NAME=VALUE` and `--option @FILE`, each name checked; those that come later win.

    Raises:
        InvalidInput: not of this form, an unknown name, a value of the wrong kind, or a file that can't be read.
    """
    found: dict[str, str] = {}
    for pair in pairs or ():
        expected = "--option takes NAME=VALUE, such as fs.bk.root=/eos-bk, or @FILE"
        found |= _of_file(Path(pair[1:])) if pair.startswith("@") else _pairs([pair], expected)
    return checked(found)


def _of_file(path: Path) -> dict[str, str]:
    """Read the options of bk:// out of a file of Spark's settings; the others are passed over."""
    from eos.spark.jar import FILE_SYSTEM, settings_in
    from statestore.hadoop.session import HADOOP

    try:
        settings = settings_in(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"--option @{path}: the file can't be read: {error}") from error
    found = {name.removeprefix(HADOOP): value for name, value in settings.items()}
    return {
        name: value for name, value in found.items() if name.startswith(PREFIX) and HADOOP + name not in FILE_SYSTEM
    }


def settings_of(conf: Sequence[str] | None) -> dict[str, str]:
    """Read `--conf NAME=VALUE`.

    Raises:
        InvalidInput: not of this form.
    """
    return _pairs(conf, "--conf takes NAME=VALUE, such as spark.sql.shuffle.partitions=4")


def cluster_of(uri: str, by: ConnectionSettings) -> Cluster:
    """Return the cluster of a topic's address, as the caller reaches it. Raises InvalidInput for TLS without a use."""
    from statestore.savepoints.topic import TopicAddress

    return by.cluster(TopicAddress.parse(uri).service_url)


def sink_output(sink: str | None, namespace: str, by: ConnectionSettings) -> Output:
    """Say what a sink has written.

    Raises:
        InvalidInput: the sink or its cluster is missing.
    """
    from statestore.roll_forward import Output

    service_url = by.said.service_url
    if sink is None or service_url is None:
        missing = "--sink, the name of the job's sink," if sink is None else "--service-url, the cluster it writes to,"
        raise InvalidInput(f"{missing} must be given. The sink's control log tells what it has written")
    return Output(cluster_of(f"{service_url.rstrip('/')}/any", by), sink, namespace)


def job_and_output(job: str | None, sink: str | None, namespace: str, by: ConnectionSettings) -> tuple[Job, Output]:
    """Import the user's job, and say what its sink has written.

    Raises:
        InvalidInput: one is missing, or wrong.
    """
    from statestore.roll_forward.jobs import load_job

    if job is None:
        raise InvalidInput(
            "--job is missing: package.module:function, which starts the query. See statestore.roll_forward.jobs"
        )
    output = sink_output(sink, namespace, by)
    return load_job(job), output


def _pairs(given: Sequence[str] | None, expected: str) -> dict[str, str]:
    found = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals:
            begun = re.split(r"[\s:]", pair.strip(), maxsplit=1)[0]  # what follows may be a secret
            raise InvalidInput(f"{expected}; {begun!r} has no =")
        found[name.strip()] = value
    return found
