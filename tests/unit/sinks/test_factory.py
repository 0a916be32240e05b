"""`eos.sink`: its parameters are the options, in one place for an editor, the docs and the checks."""

from __future__ import annotations

import inspect
import logging
import pickle
import re
from contextlib import suppress
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, cast

import pytest

import eos
from eos.commit.registration import REGISTRATION, Registration
from eos.errors import InvalidInput
from eos.sinks import factory
from eos.sinks.columns import NAMED
from eos.sinks.options import SinkOptions
from eos.steps import unobserved
from tests.unit.sinks.fakes import OF_STREAM, ROWS, FakeQuery, expect_failed, in_a_thread

DIFFERENT: dict[str, Any] = {
    "name": "flights",
    "topic": "persistent://public/default/rows",
    "guarantee": "at-least-once",
    "value_format": "json",
    "register_schema": "org.example.Flight",
    **{part: f"the {part}" for part in NAMED},
    "ignore_null_fields": False,
    "key_hash": "java",
    "compression": "zstd",
    "batching": "key-based",
    "chunking": True,
    "encryption_keys": {"k": "file:k.pem"},
    "transaction_timeout_s": 61.0,
    "max_in_flight_bytes": 2 * 1024 * 1024,
    "small_batch_rows": 7,
    "attempts": 2,
    "request_timeout_s": 3.0,
    "connect_timeout_s": 4.0,
    "token": "file:/run/token",
    "basic": None,  # not together with a token
    "oauth2": None,  # nor this
    "tls_trust_certs": "a.pem",
    "tls_verify_hostname": False,
    "tls_certificate": "c.pem",
    "tls_key": "k.pem",
    "listener_name": "outside",
    "subscription_prefix": "role",
    "admin_url": "http://localhost:8080",
    "control_namespace": "public/control",
    "markers_kept": 9,
    "principal": "role",
    "producer_properties": {"team": "flights"},
    "observer": print,
    "metrics": [print],
}


def test_the_parameters_are_the_options_with_the_same_types_and_defaults() -> None:
    parameters = list(inspect.signature(eos.sink).parameters.values())
    options = {field.name: field for field in fields(SinkOptions)}
    assert parameters[0].name == "service_url"
    assert {one.name for one in parameters[1:]} == set(options)
    for one in parameters[1:]:
        assert one.kind is inspect.Parameter.KEYWORD_ONLY
        assert one.annotation == options[one.name].type
        missing = one.default is inspect.Parameter.empty
        assert missing == (one.name == "name")
        assert missing or one.default == options[one.name].default


def test_each_option_is_described_once() -> None:
    arguments = (inspect.getdoc(eos.sink) or "").partition("Raises:")[0]  # Python 3.13 keeps no indent in __doc__
    assert re.findall(r"^ {4}(\w+): ", arguments, re.MULTILINE) == list(inspect.signature(eos.sink).parameters)


def test_each_option_reaches_the_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, SinkOptions]] = []
    monkeypatch.setattr(factory, "Sink", lambda url, options: made.append((url, options)))
    monkeypatch.setattr(factory, "checked", lambda options: options)  # some of these don't go together
    assert set(DIFFERENT) == {field.name for field in fields(SinkOptions)}
    eos.sink("pulsar://a:1", **DIFFERENT)
    eos.sink(service_url="pulsar://a:1", name="flights", basic="user:password", oauth2="{}")
    assert made == [
        ("pulsar://a:1", SinkOptions(**DIFFERENT)),
        ("pulsar://a:1", SinkOptions(name="flights", basic="user:password", oauth2="{}", observer=unobserved)),
    ]


def test_unknown_and_missing_options_are_bad_input_before_anything_is_opened() -> None:
    given: dict[str, Any] = {"name": "flights", "compresion": "lz4"}
    with pytest.raises(eos.InvalidInput, match=r"no option 'compresion'\. Did you mean 'compression'\?"):
        eos.sink("pulsar://a:1", **given)
    with pytest.raises(eos.InvalidInput, match=r"'service_uri'\. Did you mean 'service_url'\?"):
        eos.sink(**{"service_uri": "pulsar://a:1", "name": "flights"})  # type: ignore[arg-type]
    with pytest.raises(eos.InvalidInput, match="needs name="):
        eos.sink("pulsar://a:1")  # type: ignore[call-arg]


# ---- in a batch function: a sink that can't be made, a job, a sink that is sent away


def made_badly(name: str | None = "s") -> None:
    eos.sink("pulsar://nowhere", name=cast(Any, name), topic="no/topic")


BAD_OPTIONS = [{"no_such_option": 1}, {"topic": "no/topic"}, {"attempts": 0}, {"token": "t", "basic": "u:p"}]


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("options", BAD_OPTIONS)
def test_a_sink_that_cannot_be_made_is_noted_and_cleared_by_one_that_can(
    sink: eos.Sink, query: FakeQuery, options: dict[str, Any], begun: bool
) -> None:
    if begun:
        sink(ROWS, 0)
    query.in_hand = 1
    with pytest.raises(InvalidInput) as caught:
        eos.sink("pulsar://nowhere", **{"topic": "t", "name": "s", **options})
    expect_failed(query, 1, str(caught.value))
    sink(ROWS, 1)
    assert (query.failed, query.ends_with, query.ends_after_batch) == (None, None, False)


@pytest.mark.parametrize("begun", [True, False])
def test_a_sink_that_cannot_be_made_in_a_thread_is_noted_for_a_query_that_has_a_sink_of_its_name(
    sink: eos.Sink, query: FakeQuery, begun: bool
) -> None:
    """The batch function may swallow what its thread raises, and the query ended well without the rows."""
    if begun:
        sink(ROWS, 0)
    else:
        query.files[REGISTRATION] = Registration("s", "topic", 0).text
    query.in_hand = 1
    in_a_thread(made_badly)
    expect_failed(query, 1, "no/topic")
    query.in_hand = 2
    with pytest.raises(InvalidInput, match="Batch 2 is not written: batch 1 failed"):
        sink(ROWS, 2)


@pytest.mark.parametrize("registered", [True, False])
def test_a_sink_that_cannot_be_made_in_a_thread_fails_no_query_of_another_sink(
    query: FakeQuery, caplog: pytest.LogCaptureFixture, registered: bool
) -> None:
    """A thread that starts a query of its own is one of no batch function. The log has a word where it may be."""
    if registered:
        query.files[REGISTRATION] = Registration("another", "topic", 0).text
    with caplog.at_level(logging.ERROR, "eos.sink"):
        in_a_thread(made_badly)
    assert (query.failed, query.ends_with) == (None, None)
    assert ("rows of batch 0 are missing" in caplog.text) is not registered


@pytest.mark.parametrize("name", ["another", None])
def test_what_another_sink_could_not_write_is_not_cleared(sink: eos.Sink, query: FakeQuery, name: str | None) -> None:
    with suppress(InvalidInput):
        made_badly(name)
    sink(ROWS, 0)
    assert query.ends_with is not None
    assert query.ends_after_batch is (name is None)


def test_a_sink_that_is_made_again_with_right_options_clears_it(sink: eos.Sink, query: FakeQuery) -> None:
    with suppress(InvalidInput):
        made_badly()
    sink(ROWS, 0)
    assert (query.failed, query.ends_with, query.ends_after_batch) == (None, None, False)


@pytest.mark.parametrize("run_id", ["run", "the next run"])
@pytest.mark.parametrize("name", ["s", None, "another"])
def test_no_sink_goes_on_behind_it(sink: eos.Sink, query: FakeQuery, name: str | None, run_id: str) -> None:
    with suppress(InvalidInput):
        made_badly(name)
    query.run_id, query.in_hand = run_id, 1
    with pytest.raises(InvalidInput, match=r"^Batch 1 is not written: .*batch 0.* failed in run run"):
        sink(ROWS, 1)


def test_a_sink_without_transactions_does_not_go_on_behind_one_of_any_name(query: FakeQuery) -> None:
    with suppress(InvalidInput):
        eos.sink("pulsar://nowhere", name=cast(Any, None))
    query.in_hand = 1
    with pytest.raises(InvalidInput, match="Batch 1 is not written"):
        eos.sink("pulsar://nowhere", name="s", topic="t", guarantee="at-least-once")(ROWS, 1)


def test_the_query_ends_where_no_sink_can_be_made_for_a_second_batch(sink: eos.Sink, query: FakeQuery) -> None:
    for query.in_hand in (0, 1):
        assert not query.ends_after_batch
        with suppress(InvalidInput):
            made_badly()
    assert query.ends_after_batch


def test_an_older_failure_stays_noted(sink: eos.Sink, query: FakeQuery) -> None:
    for query.in_hand in (3, 4):
        with suppress(InvalidInput):
            made_badly()
    assert query.failed is not None
    assert (query.failed.batch_id, query.failed.last) == (3, 4)


@pytest.mark.parametrize("options", [{}, {"no_such_option": 1}])
@pytest.mark.parametrize("begun", [True, False])
def test_a_job_in_a_batch_function_is_noted_for_good(
    sink: eos.Sink, query: FakeQuery, options: dict[str, Any], begun: bool
) -> None:
    """Its rows are none of the sink's, which may take the batch afterwards."""
    if begun:
        sink(ROWS, 0)
    query.in_hand = 1
    with pytest.raises(InvalidInput, match=r"called from foreachBatch|no_such_option") as caught:
        eos.write(ROWS, "pulsar://nowhere", job_id="j", **options)
    expect_failed(query, 1, str(caught.value))
    sink(ROWS, 1)
    assert query.ends_with is not None
    assert query.ends_after_batch


def test_a_job_in_a_thread_of_a_batch_function_is_refused_by_its_rows(
    query: FakeQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eos.sinks.job.ClassicDataFrame", SimpleNamespace)
    monkeypatch.setattr("eos.sinks.foreach_batch.ClassicDataFrame", SimpleNamespace)
    rows = SimpleNamespace(sparkSession=OF_STREAM, isStreaming=False)
    in_a_thread(lambda: cast(None, eos.write(cast(Any, rows), "pulsar://nowhere", job_id="j")))
    expect_failed(query, 0, "called from foreachBatch")
    assert query.ends_after_batch


def test_a_sink_that_is_sent_to_executors_is_noted(sink: eos.Sink, query: FakeQuery) -> None:
    with suppress(InvalidInput):
        pickle.dumps(sink)
    expect_failed(query, 0, "A sink stays in the driver")
