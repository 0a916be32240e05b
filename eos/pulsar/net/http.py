"""HTTP clients, and the proxies that the environment names for them, as it does for curl and Python's other clients.

No proxy reaches this machine's own addresses, so these are asked directly, whatever NO_PROXY says.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from eos.addresses import is_this_machine
from eos.errors import InvalidInput

_NAMING: Final = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"


def http_client(
    url: str,
    *,
    timeout_s: float,
    verify: ssl.SSLContext | bool,
    auth: httpx.Auth | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Client:
    """Return a client for a URL and for where it leads. Raises InvalidInput where the environment's proxy is none."""
    asks_directly = is_this_machine(urlsplit(url).hostname or "")
    try:
        return httpx.Client(timeout=timeout_s, verify=verify, auth=auth, headers=headers, trust_env=not asks_directly)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise InvalidInput(
            f"The environment names a proxy ({_NAMING}, and NO_PROXY) that cannot be used for {url}: {error}. Correct "
            "or unset these variables"
        ) from error


def by_proxy(url: str) -> str:
    """Say which proxy a URL was asked by, after a sentence about what went wrong; "" where it was asked directly."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxies = getproxies()
    if is_this_machine(host) or proxy_bypass(host) or not (proxies.get(parts.scheme) or proxies.get("all")):
        return ""
    return (
        f". It was asked by the proxy that the environment names ({_NAMING}). Where it can be reached without, add "
        f"{host} to NO_PROXY"
    )
