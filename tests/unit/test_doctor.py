"""A control log whose records are gone is never told as one that never had them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from eos.commit.control_log import Record
from eos.config import Cluster
from eos.doctor import reset, skip
from eos.doctor.abort import abandoned
from eos.doctor.doctor import Doctor
from eos.doctor.owners import owners
from eos.doctor.sinks import EMPTY_LOG, sinks
from eos.errors import EosError
from eos.inspect.audit import audit
from eos.pulsar.net.admin import Admin
from eos.pulsar.net.client import Client
from tests.unit.doctor.cluster import BEGINS, HELD, INTENT, LOG, ROWS, FakeAdmin, FakeClient

NAMESPACE = "public/default"
LATER = replace(BEGINS, number=9, begins=False)
GONE = "the beginning of the control log is gone"


class Listed(FakeClient):
    def topics(self, namespace: str) -> list[str]:
        return [LOG]


def verify(client: Client, admin: Admin) -> str:
    return audit(client, Cluster("pulsar://nowhere"), "rows", NAMESPACE).problem


def list_sinks(client: Client, admin: Admin) -> str:
    (one,) = sinks(client, NAMESPACE)
    return str(one.problem)


def owner(client: Client, admin: Admin) -> str:
    (one,) = owners(admin, sinks(client, NAMESPACE), NAMESPACE)
    return one.said


def start_over(client: Client, admin: Admin) -> str:
    return reset.what_it_means(reset.look(client, admin, "rows"))


def skip_batch(client: Client, admin: Admin) -> str:
    return str(skip.look(client, "rows", 4))


def abort(client: Client, admin: Admin) -> str:
    return str(abandoned(client, "rows"))


def said(member: Callable[[Client, Admin], str], *log: Record) -> str:
    """What a command says of such a log, or the error that it ends with."""
    admin = FakeAdmin({ROWS: [HELD]})
    try:
        return member(cast(Client, Listed(list(log))), cast(Admin, admin))
    except EosError as error:
        return str(error)


MEMBERS = [list_sinks, verify, owner, start_over, skip_batch, abort]


@pytest.mark.parametrize("member", MEMBERS)
def test_an_empty_log_does_not_tell_that_the_sink_is_new(member: Any) -> None:
    assert EMPTY_LOG in said(member)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_log_without_its_beginning_and_without_a_marker_is_damaged(member: Any) -> None:
    assert GONE in said(member, LATER)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_log_that_begins_with_the_sink_is_whole(member: Any) -> None:
    told = said(member, BEGINS)
    assert EMPTY_LOG not in told
    assert GONE not in told


def test_a_transaction_that_a_log_without_its_beginning_does_not_name_may_have_been_committed() -> None:
    def look(*log: Record) -> bool:
        admin = cast(Admin, FakeAdmin({ROWS: [HELD]}))
        (found,) = Doctor(cast(Client, FakeClient(list(log))), admin, 0).look([ROWS])
        return found.loses_rows

    assert look(LATER, INTENT)
    assert look(LATER)
    assert look(BEGINS), "another log may name it"
    assert not look(BEGINS, INTENT)
