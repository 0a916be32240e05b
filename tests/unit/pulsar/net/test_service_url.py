"""Where a cluster is reached, and what is no address."""

from __future__ import annotations

import pytest

from eos.errors import InvalidInput
from eos.pulsar.net.service_url import Address, addresses


def test_service_urls() -> None:
    assert addresses("pulsar://a:1,b,[::1]:2/") == [Address("a", 1), Address("b", 6650), Address("::1", 2)]
    assert addresses("pulsar+ssl://a") == [Address("a", 6651, tls=True)]
    assert str(Address("::1", 2, tls=True)) == "pulsar+ssl://[::1]:2"


@pytest.mark.parametrize(
    "url", ["http://a:8080", "a:6650", "pulsar://", "pulsar://a:x", "pulsar://a:0", "pulsar://a/b"]
)
def test_wrong_service_urls(url: str) -> None:
    with pytest.raises(InvalidInput):
        addresses(url)


@pytest.mark.parametrize("url", ["pulsar://me:s3cret@a:1", "me:s3cret@a:1", "pulsar+ssl://a:1,s3cret@b:1"])
def test_a_user_in_a_service_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"before the @.*by the option basic, token or oauth2") as told:
        addresses(url)
    assert "s3cret" not in str(told.value)
