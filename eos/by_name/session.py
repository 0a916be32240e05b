"""Make a Spark session ready for the catalog and for `bk://`, and for `format("pulsar")` if Spark has not found it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from eos.by_name.options import for_reading
from eos.config import FILE
from eos.credentials import parse_oauth2
from eos.errors import InvalidInput
from eos.option_names import as_texts, same_name, spelling_key, without_parameters
from eos.source.table import OPTIONS, SYNONYMS
from eos.spark.capabilities import Capability, require
from eos.spark.jar import (
    FILE_SYSTEM,
    driver_has_jar,
    hiding,
    how_to_get_it,
    refuse_overriding_arguments,
    settings_before,
    settings_of,
    shipped_jar,
    with_jar,
)
from eos.sql.options import catalog_options

CLASS = "eos.sql.PulsarCatalog"
_SECRETS = ("token", "basic", "oauth2", "offload.credentials")
_HIDDEN = ("basic", "oauth2", "credentials")
"""What Spark does not hide by itself."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def configure_spark(
    builder: Any,
    *,
    service_url: str,
    admin_url: str | None = None,
    catalog: str = "pulsar",
    options: Mapping[str, str | int | float | bool] | None = None,
) -> Any:
    """Let a new session have a cluster's topics as tables, such as `pulsar.public.default.flights`.

        spark = configure_spark(SparkSession.builder, service_url="pulsar://localhost:6650").getOrCreate()

    The session also gets the jar of this package, so the file system `bk://` is there too. For the options of `bk://`
    call `statestore.configure_spark` on the same builder, before or after this call. For a second cluster call this
    again, with another name of the catalog.

    Args:
        builder: `SparkSession.builder`, with all other settings of the session.
        service_url: "pulsar://host:6650" or "pulsar+ssl://host:6651".
        admin_url: "http://host:8080" or "https://host:8443". Lists namespaces, and cuts topics into more tasks.
            Default: none.
        catalog: the name of the catalog in SQL.
        options: further options of `format("pulsar")` for each table, such as token, or guarantee for INSERT INTO.
            Default: none.

    Returns:
        The builder.

    Raises:
        InvalidInput: an option is wrong, a secret is given as a text that others could see, the jar is missing, a
            catalog of this name has other options already, or the JVM of the driver runs already without the jar, so
            that it is too late to add it.
        SparkLacks: Spark is older than 4.0.
    """
    require(Capability.PYTHON_SOURCES, "The catalog", "Nothing is configured. foreachBatch(eos.sink(…)) needs none.")
    if not isinstance(catalog, str) or not _NAME.fullmatch(catalog):
        raise InvalidInput(f"{catalog!r} is not a name for a catalog. Write letters, digits and underscores.")
    parameters = {"service.url": ("service_url", service_url), "admin.url": ("admin_url", admin_url)}
    more = without_parameters(as_texts({} if options is None else options), parameters)
    addresses = {"service.url": service_url} | ({} if admin_url is None else {"admin.url": admin_url})
    named = same_name(as_texts(addresses) | more, [option.name for option in OPTIONS], SYNONYMS)
    _check(named)
    jar = shipped_jar()
    if jar is None:
        raise InvalidInput(how_to_get_it())
    jvm_runs = driver_has_jar()
    if not jvm_runs:
        refuse_overriding_arguments()
        for secret in _SECRETS:
            _refuse_to_show(secret, str(named.get(secret, "")))
    before = settings_before(builder, jvm_runs)
    prefix = f"spark.sql.catalog.{catalog}"
    ours = {prefix: CLASS} | {f"{prefix}.{name}": value for name, value in named.items()}
    _refuse_mixture(prefix, ours, settings_of(builder), before if jvm_runs else {})
    settings = {**FILE_SYSTEM, **with_jar(before, str(jar)), **hiding(before, *_HIDDEN), **ours}
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def register(spark: SparkSession, name: str = "pulsar") -> None:
    """Make `format("pulsar")` known to this session, and to no other.

    Spark finds `format("pulsar")` by itself in the Python path of the driver. This call is needed where it can't, for
    instance with `spark.sql.execution.pyspark.python` set to another Python. It is also needed where `format("pulsar")`
    is another connector's: Databricks has one, and the jar pulsar-spark-connector brings one. Spark takes those first,
    and says nothing.

        eos.register(spark, "pulsar_eos")
        spark.readStream.format("pulsar_eos")

    Args:
        spark: the session.
        name: what `format` calls it.

    Raises:
        InvalidInput: it is not a name, there is no session, a data source of a jar has the name already, or Spark is
            older than 4.0, which has no data sources in Python.
    """
    require(Capability.PYTHON_SOURCES, 'format("pulsar")', "Nothing is registered. eos.sink and eos.write need none.")
    from eos.by_name.data_source import named  # its base class came with that capability

    if getattr(spark, "dataSource", None) is None:
        raise InvalidInput(f"spark= is {type(spark).__name__}. Give the session. Nothing is registered.")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a name for a data source. Write letters, digits and underscores.")
    try:
        spark.dataSource.register(named(name))
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise InvalidInput(
            f'this session has another data source "{name}" already, most likely of a jar such as '
            f'pulsar-spark-connector, and format("{name}") reads by that one. Nothing is registered. Choose another '
            'name, such as eos.register(spark, "pulsar_eos"), and read by format("pulsar_eos"). Or take that jar off '
            "the classpath (spark.jars, spark.jars.packages)."
        ) from error


def _session_settings() -> dict[str, str]:
    """Return the settings of the session to which `getOrCreate` would add those of the builder; {} where none is."""
    session: Any = SparkSession._instantiatedSession
    return {} if session is None or session._sc._jsc is None else dict(session.conf.getAll)


def _refuse_mixture(prefix: str, ours: Mapping[str, str], builder: Mapping[str, str], jvm: Mapping[str, str]) -> None:
    """Refuse a name that has settings of another cluster already, or other ones that would stay in force.

    The builder replaces the settings of the JVM one by one. What it does not replace, as options of the command line or
    of `spark-defaults.conf`, is of this cluster unless an address of another one stands beside it.
    """
    address = f"{prefix}.service.url"
    others = set[str]()
    replaced, *lasting = (_of_catalog(prefix, settings) for settings in (jvm, builder, _session_settings()))
    for there in (replaced, *lasting):
        if there.get(address, ours[address]) != ours[address]:
            others |= there.keys() - ours.keys()
    for there in lasting:
        if prefix in there:
            others |= {name for name in ours if there.get(name) != ours[name]}
    if others:
        raise InvalidInput(
            f"There is a catalog {prefix.rpartition('.')[2]!r} already, and it differs in {', '.join(sorted(others))}. "
            "The settings of two clusters would be mixed. Nothing is configured. Choose another name by catalog=, or "
            "give all options in one call, on a new builder and without a session that has this catalog. Settings of "
            "an earlier session stay until the process ends, and so do those of the command line and of "
            "spark-defaults.conf."
        )


def _of_catalog(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name == prefix or name.startswith(f"{prefix}.")}


def _check(given: Mapping[str, str]) -> None:
    """Refuse what the source does not take. The writer checks the options that only a writer knows."""
    reading = for_reading(given) if "guarantee" in map(spelling_key, given) else given
    catalog_options(reading)


def _refuse_to_show(name: str, value: str) -> None:
    """PySpark starts the driver's JVM with all settings of the builder as arguments, which every user can list."""
    if name == "oauth2":
        shows = bool(value) and bool(parse_oauth2(value).client_secret)  # in each of its spellings, and in key_file
    else:
        shows = bool(value) and not value.startswith(FILE)
    if shows:
        instead = 'key_file="file:PATH"' if name == "oauth2" else f'{name}="file:PATH"'
        raise InvalidInput(
            f"{name} as a text would be seen in the command line of Spark's JVM. Nothing is configured. Write it into "
            f"a file that only the job's user may read, on the machines of driver and executors, and use {instead}."
        )
