"""What the sink's producers say of themselves."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import eos
from eos.errors import InvalidInput
from eos.sinks.options import SinkOptions, checked
from eos.sinks.producer_properties import MAX_BYTES, introduction

KEY = base64.b64encode(b'{"client_id": "job", "client_secret": "s3cret-of-mine"}').decode()


def test_what_spark_has_no_such_thing_of_is_left_out() -> None:
    said = introduction("flights", {"team": "air"}, {"spark.app.id": "app-1", "spark.query.name": None}, encrypted=True)
    assert (said.name, said.encrypted) == ("flights", True)
    assert said.properties == {
        "team": "air",
        "eos.sink": "flights",
        "eos.version": eos.__version__,
        "spark.app.id": "app-1",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("team=air", "producer_properties= is str. It must be a dict of texts"),
        ({"team": 7}, "'team' with a value of type int. Names and values must be str"),
        ({7: "team"}, "'7' with a value of type str"),
        ({"": "x"}, "'' with a value of type str. .* no name empty"),
        ({"eos.sink": "other"}, "'eos.sink', but names that begin with 'eos.' or 'spark.' are the sink's"),
        ({"spark.app.id": "x"}, "'spark.app.id', but names"),
        ({"a": "x" * MAX_BYTES}, f"has {MAX_BYTES + 1} bytes. It must have at most {MAX_BYTES}"),
        ({"how": "token t0k3n-of-mine"}, "has a secret under 'how'"),
    ],
)
def test_bad_properties_are_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        checked(SinkOptions(name="flights", producer_properties=given, token="t0k3n-of-mine"))
    assert "t0k3n" not in str(caught.value)


def test_a_password_is_a_secret_too_and_a_short_one_only_alone() -> None:
    for password, value in [("long-password", "u:long-password"), ("air", "air")]:
        with pytest.raises(InvalidInput, match="has a secret under 'team'"):
            checked(SinkOptions(name="f", producer_properties={"team": value}, basic=f"u:{password}"))
    checked(SinkOptions(name="f", producer_properties={"team": "airlines"}, basic="u:air"))
    checked(SinkOptions(name="f", producer_properties={"team": "file:x"}, token="file:x"))


@pytest.mark.parametrize(
    "shown",
    [
        {"client_id": "job", "client_secret": "s3cret-of-mine"},
        {"privateKey": f"data:application/json;base64,{KEY}"},
    ],
)
def test_the_secret_of_a_client_is_one_too(shown: dict[str, str]) -> None:
    oauth2 = {"issuer_url": "https://issuer", **shown}
    with pytest.raises(InvalidInput, match="has a secret under 'team'") as told:
        checked(SinkOptions(name="f", producer_properties={"team": "by s3cret-of-mine"}, oauth2=oauth2))
    assert "s3cret-of" not in str(told.value)
    checked(SinkOptions(name="f", producer_properties={"team": "air"}, oauth2=oauth2))
