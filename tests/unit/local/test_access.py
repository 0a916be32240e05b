"""A local Pulsar that asks for tokens: the files it makes, and the setting that is refused."""

from __future__ import annotations

import base64
import hmac
import json
from pathlib import Path

import pytest

from eos.config import Credentials
from eos.local import LocalError
from eos.local.access import credentials, refuse_half, require_tokens, signed, token_file


def test_the_token_names_the_administrator_and_is_signed_with_the_key(tmp_path: Path) -> None:
    home = tmp_path / "data"
    settings = require_tokens(home)
    head, body, signature = token_file(home).read_text().split(".")
    assert json.loads(base64.urlsafe_b64decode(body + "==")) == {"sub": settings["superUserRoles"]}
    key = (home / "token.key").read_bytes()
    wanted = base64.urlsafe_b64encode(hmac.digest(key, f"{head}.{body}".encode(), "sha256")).rstrip(b"=").decode()
    assert (len(key), signature) == (32, wanted)
    assert settings["tokenSecretKey"] == f"file://{home}/token.key"
    assert settings["brokerClientAuthenticationParameters"] == f"file://{home}/token"


def test_the_broker_finds_the_secrets_in_a_folder_whose_name_has_blanks_and_other_letters(tmp_path: Path) -> None:
    settings = require_tokens(tmp_path / "my d\u00e4ta")
    url = f"file://{tmp_path}/my%20d%C3%A4ta/token"
    assert (settings["tokenSecretKey"], settings["brokerClientAuthenticationParameters"]) == (f"{url}.key", url)


def test_only_the_owner_can_read_the_secrets_and_a_second_start_finds_them(tmp_path: Path) -> None:
    first = require_tokens(tmp_path)
    token = token_file(tmp_path).read_text()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert require_tokens(tmp_path) == first
    assert token_file(tmp_path).read_text() == token


def test_credentials_are_those_of_the_token_where_there_is_one(tmp_path: Path) -> None:
    assert credentials(tmp_path) == Credentials()
    require_tokens(tmp_path)
    assert credentials(tmp_path) == Credentials("token", f"file:{tmp_path}/token")


def test_two_keys_sign_two_tokens() -> None:
    assert signed({"sub": "admin"}, b"a" * 32) != signed({"sub": "admin"}, b"b" * 32)


@pytest.mark.parametrize("value", ["true", "True", True])
def test_a_setting_that_shuts_out_every_client_is_refused(value: str | bool) -> None:
    with pytest.raises(LocalError, match=r"shuts out every client.*Use --auth token"):
        refuse_half({"authenticationEnabled": value})


def test_other_settings_are_taken() -> None:
    refuse_half({"authenticationEnabled": "false", "brokerDeduplicationEnabled": True})
