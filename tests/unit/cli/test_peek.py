"""What `eos peek` prints, with the Pulsar faked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eos.cli import app as cli
from eos.config import Cluster, Credentials, Tls
from eos.errors import EosError, InvalidInput, Refused, TopicMissing
from eos.inspect.rows import TopicRow, TopicRows
from eos.pulsar.net.admin import Admin
from eos.pulsar.wire.message_id import MessageId

BASE = "persistent://public/default"


def eos(*words: str) -> Result:
    return CliRunner().invoke(cli.typer_app, words)


def row(number: int, key: bytes | None = b"k", event_time_ms: int | None = None) -> TopicRow:
    value = None if number == 1 else b"[red]%d \xff" % number
    return TopicRow(
        0, MessageId(5, number, -1 if number else 2), key, value, 1_700_000_000_123, event_time_ms, {"a": "b"}
    )


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> list[Cluster]:
    """30 rows are stored and 2 come; the list holds which clusters were asked."""
    asked: list[Cluster] = []

    def stored(rows: TopicRows) -> Iterator[TopicRow]:
        asked.append(rows._options.cluster)
        return (row(number) for number in range(30))

    monkeypatch.setattr(TopicRows, "stored", stored)
    monkeypatch.setattr(TopicRows, "coming", lambda rows: iter([row(3), row(1, key=None)]))
    return asked


def test_rows_are_a_table_of_the_columns_that_hold_something() -> None:
    answer = eos("peek", "t")
    head, *_ = (line for line in answer.stdout.splitlines() if "partition" in line)
    assert [word.strip() for word in head.strip("┃").split("┃")] == [
        "partition",
        "place",
        "published",
        "key",
        "value",
        "properties",
    ]
    for shown in ("5:0:2", "5:1 ", "2023-11-14T22:13:20.123Z", "[red]0 \\xff", "null", "a=b", "20 rows."):
        assert shown in answer.output
    assert "2 rows." in eos("peek", "t", "--limit", "2").output


def test_rows_are_objects_for_programs() -> None:
    first, second, *_ = map(json.loads, eos("peek", "t", "--json").stdout.splitlines())
    assert first == {
        "partition": 0,
        "ledger": 5,
        "entry": 0,
        "batch_index": 2,
        "publish_time_ms": 1_700_000_000_123,
        "event_time_ms": None,
        "key": "k",
        "value": "[red]0 \\xff",
        "properties": {"a": "b"},
    }
    assert second["value"] is None


@pytest.mark.parametrize(
    ("event_time_ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000 ms"),
        (1_700_000_000_000_000_000, "1700000000000000000 ms"),  # nanoseconds
        (2**63 - 1, "9223372036854775807 ms"),
        (-(2**63), "-9223372036854775808 ms"),  # 2**63 on the wire
    ],
)
def test_an_event_time_of_no_calendar_is_shown_as_a_number(
    monkeypatch: pytest.MonkeyPatch, event_time_ms: int, shown: str
) -> None:
    monkeypatch.setattr(TopicRows, "stored", lambda rows: iter([row(0, event_time_ms=event_time_ms)]))
    answer = eos("peek", "t")
    assert (answer.exit_code, shown in answer.stdout) == (0, True), answer.output


def test_what_comes_is_a_line_each() -> None:
    assert eos("peek", "t", "--follow").stdout == "0\t5:3\tk\t[red]3 \\xff\n0\t5:1\t\tnull\n"
    assert eos("peek", "t", "-f", "--from", "latest", "--limit", "1").stdout.count("\n") == 1


def test_control_characters_are_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    value = "a\nb\x9b\t\x7f\r"
    bad = TopicRow(0, MessageId(5, 0, -1), b"\x1b[2J", value.encode(), 0, None, {"p": "\x1b]0;x\x07"})
    monkeypatch.setattr(TopicRows, "stored", lambda rows: iter([bad]))
    monkeypatch.setattr(TopicRows, "coming", lambda rows: iter([bad]))
    assert eos("peek", "t", "-f").stdout == "0\t5:0\t\\x1b[2J\ta\\nb\\x9b\\t\\x7f\\r\n"
    table = eos("peek", "t").stdout
    assert not set("\x1b\x9b\x7f\r\x07") & set(table)
    for shown in (r"\x1b[2J", r"b\x9b", r"\x7f\r", r"p=\x1b]0;x\x07"):
        assert shown in table
    assert json.loads(eos("peek", "t", "--json").stdout)["value"] == value


def test_latest_alone_would_show_nothing_and_is_refused() -> None:
    assert isinstance(eos("peek", "t", "--from", "latest").exception, InvalidInput)


def test_the_options_of_the_connection_are_those_of_the_other_commands(there: list[Cluster]) -> None:
    options = ("--service-url", "pulsar+ssl://h:1", "--token", "abc", "--tls-trust-certs", "ca.pem")
    assert eos("peek", "t", *options).exit_code == 0
    cluster = Cluster("pulsar+ssl://h:1", Credentials("token", "abc"), Tls("ca.pem", True, None, None))
    assert there == [cluster]


def peeked_with_admin(
    monkeypatch: pytest.MonkeyPatch, filters: tuple[str, ...] | EosError = (), source: str | EosError | None = None
) -> Result:
    """Return what the command printed. Args: what the admin API answers of entry filters, and of a shadow topic."""

    def answered(answer: Any) -> Callable[[Admin, str], Any]:
        def asked(admin: Admin, topic: str) -> Any:
            assert topic == f"{BASE}/t"
            if isinstance(answer, EosError):
                raise answer
            return answer

        return asked

    monkeypatch.setattr(Admin, "entry_filters", answered(filters))
    monkeypatch.setattr(Admin, "shadow_source", answered(source))
    return eos("peek", "t", "--json", "--admin-url", "http://localhost:8080")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"filters": ("one", "two")}, "The brokers apply the entry filters one, two to t. They leave out"),
        (
            {"filters": Refused("GET", "401", "no permission")},
            "Whether the brokers apply entry filters to t is not known: GET",
        ),
        ({"source": f"{BASE}/s"}, f"t is a shadow topic of {BASE}/s. Brokers deliver messages of aborted and of open"),
        ({"source": Refused("GET", "401", "no permission")}, "Whether t is a shadow topic is not known: GET"),
    ],
)
def test_what_makes_the_rows_others_is_told_and_the_rows_are_shown(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], said: str
) -> None:
    shown = peeked_with_admin(monkeypatch, **answers)
    assert (shown.exit_code, shown.stderr.startswith(said), len(shown.stdout.splitlines())) == (0, True, 20), shown


@pytest.mark.parametrize("answers", [{}, dict.fromkeys(("filters", "source"), TopicMissing("Topic not found"))])
def test_of_a_usual_topic_and_of_one_that_is_gone_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any]
) -> None:
    shown = peeked_with_admin(monkeypatch, **answers)
    assert (shown.exit_code, shown.stderr) == (0, "")
