"""Pulsar's own `client.conf`, as far as it tells how to reach a cluster.

Keys, defaults and plugins are those of pulsar-admin and pulsar-client (conf/client.conf of Pulsar 4.2.4, and
org.apache.pulsar.client.impl.auth). A key that this library can't follow is refused by name. Other keys are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from eos.cli.layers import Layer, flag
from eos.credentials import SecretUnreadable, text_of
from eos.errors import InvalidInput
from eos.json_reader import read_json
from eos.option_names import did_you_mean

_LINE = re.compile(r"\s*(?P<key>[^\s=:#!][^\s=:]*)\s*[=:\s]\s*(?P<value>.*?)\s*")
_VERIFY = "tlsEnableHostnameVerification"
KEYS: Mapping[str, str] = {
    "service_url": "brokerServiceUrl",
    "admin_url": "webServiceUrl",
    "tls_trust_certs": "tlsTrustCertsFilePath",
    "tls_verify_hostname": _VERIFY,
    "tls_certificate": "tlsCertificateFilePath",
    "tls_key": "tlsKeyFilePath",
}
"""{our name of an option: its key}, besides authPlugin and authParams."""
_AUTH = "org.apache.pulsar.client.impl.auth."


def read_client_conf(path: Path, *, credentials: bool = True) -> Layer:
    """Return what a client.conf says. Empty values count as not said.

    Args: where; whether its authPlugin counts.

    Raises:
        InvalidInput: it can't be read; it names an authentication plugin that is not understood, or parameters that the
            plugin does not take; or it wants key stores, or certificates that are not checked.
    """
    try:
        text = text_of(path)
    except SecretUnreadable as why:
        raise InvalidInput(f"can't read {path}: {why}. Give the path of a client.conf, or none") from None
    return _layer(_keys(text), path, credentials)


def _keys(text: str) -> dict[str, str]:
    """Return the keys of a file of Java properties; a value may have its backslashes, but goes over one line only."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {one["key"]: re.sub(r"\\(.)", r"\1", one["value"]) for one in found if one is not None and one["value"]}


def _layer(keys: Mapping[str, str], path: Path, credentials: bool) -> Layer:
    for key, instead in _REFUSED.items():
        if flag(keys.get(key), f"{key} in {path}"):
            raise InvalidInput(f"{path} has {key}=true, and {instead}.")
    shown = _credentials(keys, path) if credentials else {}
    texts = {name: keys.get(key) for name, key in KEYS.items() if key != _VERIFY}
    return Layer(tls_verify_hostname=flag(keys.get(_VERIFY), f"{_VERIFY} in {path}"), **texts | shown)


def _credentials(keys: Mapping[str, str], path: Path) -> dict[str, str | None]:
    plugin, params = keys.get("authPlugin", ""), keys.get("authParams", "")
    name = plugin.removeprefix(_AUTH)
    if name not in _PLUGINS:
        known = [f"{_AUTH}{one}" for one in _PLUGINS if "Authentication" in one]
        raise InvalidInput(
            f"{path} has authPlugin={plugin}, which is not understood.{did_you_mean(plugin, [*known, *_PLUGINS])} "
            f"Understood are {', '.join(known)}. Or name other credentials by an option, or by the environment."
        )
    return _PLUGINS[name](params, f"authParams in {path}")


_REFUSED = {
    "useKeyStoreTls": "key stores of Java are not read. Give PEM files, by tlsTrustCertsFilePath and the like",
    "tlsAllowInsecureConnection": "certificates are always checked. Give tlsTrustCertsFilePath",
}


def _token(params: str, where: str) -> dict[str, str | None]:
    for beginning in ("token:", "data:"):
        if params.startswith(beginning):
            return {"token": params.removeprefix(beginning)}
    if params.startswith("env:"):
        raise InvalidInput(f"{where} takes a token from {params}. Set EOS_TOKEN in place of it.")
    token = _parameters(params, where).get("token") if params.startswith("{") else params
    return {"token": token or _lacks(where, "token:TOKEN or file:///PATH")}


def _basic(params: str, where: str) -> dict[str, str | None]:
    given = _parameters(params, where)
    user, password = given.get("userId"), given.get("password")
    if not user or not password:
        _lacks(where, "userId and password")
    return {"basic": f"{user}:{password}"}


def _tls(params: str, where: str) -> dict[str, str | None]:
    given = _parameters(params, where)
    certificate, key = given.get("tlsCertFile"), given.get("tlsKeyFile")
    if not certificate or not key:
        _lacks(where, "tlsCertFile and tlsKeyFile")
    return {"tls_certificate": certificate, "tls_key": key}


def _oauth2(params: str, where: str) -> dict[str, str | None]:
    return {"oauth2": params or _lacks(where, "a JSON object with issuerUrl and privateKey")}


def _nothing(params: str, where: str) -> dict[str, str | None]:
    return {}


_PLUGINS: Mapping[str, Callable[[str, str], dict[str, str | None]]] = {
    "AuthenticationToken": _token,
    "AuthenticationBasic": _basic,
    "AuthenticationTls": _tls,
    "oauth2.AuthenticationOAuth2": _oauth2,
    "token": _token,  # pulsar-client of C++ and Python knows them by these names
    "basic": _basic,
    "tls": _tls,
    "oauth2": _oauth2,
    "": _nothing,
    "AuthenticationDisabled": _nothing,
}


def _parameters(params: str, where: str) -> dict[str, str]:
    """Read parameters as JSON, or as "key:value,key:value"."""
    if not params.startswith("{"):
        parts = (part.partition(":") for part in params.split(","))
        return {key.strip(): value for key, _, value in parts}
    try:
        given = read_json(params)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        _lacks(where, "a JSON object")
    return {str(key): str(value) for key, value in given.items()}


def _lacks(where: str, what: str) -> NoReturn:
    raise InvalidInput(f"{where} lacks {what}.")
