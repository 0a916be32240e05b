"""The proof of who this client is, in the form that a broker or the admin API asks for.

A caller's function, and the question to an issuer, runs in a thread of its own, so that one that hangs holds a
connection up no longer than an answer may take. While it runs, it is not started again: who wants a token meanwhile
gets the same one. So a function that never returns costs one thread in each process.
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path

from eos.config import FILE, Credentials, OAuth2, Provider
from eos.credentials import SecretUnreadable, text_of
from eos.errors import BadCredentials, NoCredentials
from eos.json_reader import read_json

_TOKEN = re.compile(r"[\x21-\x7e]+")  # visible ASCII: all that a header of HTTP takes (RFC 9110, 5.5)

_MOST_FUNCTIONS = 64
"""Of the callers' functions that a process keeps, at most: a sink for each batch may bring one for each."""

_guard = threading.Lock()
_functions: dict[Provider, Callable[[], object]] = {}
_running: dict[Provider | OAuth2, Future[object]] = {}


def provider(name: str, pickled: bytes, function: Callable[[], object]) -> Provider:
    """Return a function as credentials carry it; this process calls the function itself, others what was pickled."""
    made = Provider(name, pickled)
    _keep(made, function)
    return made


def secret(credentials: Credentials, timeout_s: float, *, fresh: bool = False) -> str:
    """Return the token or password. It is asked for again where it comes from a file or a function.

    Args: whose, the seconds that a function or an issuer may take, and whether an issuer is asked though there is a
        token.

    Raises:
        NoCredentials: the file can't be read; the function raised something; it or the issuer took too long.
        BadCredentials: what they give is nothing, or no token.
    """
    data = credentials.data
    if isinstance(data, Provider):
        source, found = f"the function {data.name}", _asked(data, timeout_s)
    elif isinstance(data, OAuth2):
        source, found = f"the issuer {data.issuer_url}", _issued(data, timeout_s, fresh)
    elif data.startswith(FILE):
        source, found = data, _read(Path(data.removeprefix(FILE).removeprefix("//")), credentials.method)
    else:
        source, found = f"the option {credentials.method}", data
    if not isinstance(found, str):
        raise BadCredentials(f"{source} returned {type(found).__name__}. It must return a token, which is a str")
    if credentials.method == "token":
        found = found.strip()
    if not found:
        raise BadCredentials(f"{source} gave an empty text in place of a {_NAMES[credentials.method]}")
    if credentials.method == "token" and not _TOKEN.fullmatch(found):
        raise BadCredentials(
            f"{source} gave no token. The text has characters that are not visible ASCII, such as a blank"
        )
    if credentials.method == "basic" and ":" not in found:
        raise BadCredentials(f"{source} has no colon. It must be user:password")
    return found


_NAMES = {"token": "token", "basic": "user and password"}


def auth_data(credentials: Credentials, timeout_s: float, *, fresh: bool = False) -> bytes:
    """Return what CONNECT carries: the token, "user:password", or nothing for "none" and "tls". As `secret`."""
    if credentials.method in ("none", "tls"):
        return b""
    return secret(credentials, timeout_s, fresh=fresh).encode()


def without(shown: bytes, words: str) -> str:
    """Return what a broker says without what it was shown: a plugin for authentication may repeat it."""
    return words.replace(shown.decode(), "…") if shown else words


def expiry(shown: bytes) -> str:
    """Say when a token expired by its own claim "exp" (RFC 7519, 4.1.4), which brokers leave out of their refusals.

    Args: what CONNECT carried. Returns: words for a message; "" for a token that has not expired, or does not tell.
    """
    try:
        seconds = read_json(base64.urlsafe_b64decode(shown.split(b".")[1] + b"=="))["exp"]
        at = datetime.fromtimestamp(seconds, UTC)
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return ""
    return f" (the token expired at {at:%Y-%m-%d %H:%M:%S} UTC)" if at < datetime.now(UTC) else ""


def kept_no_longer(credentials: Credentials) -> bool:
    """Let go of a token that may have been kept and is not accepted; False where none ever is kept."""
    if not isinstance(credentials.data, OAuth2):
        return False
    from eos.pulsar.net import oauth2

    oauth2.forget(credentials.data)
    return True


def _read(path: Path, method: str) -> str:
    try:
        return text_of(path).strip()
    except SecretUnreadable as why:
        raise NoCredentials(f"can't read the credentials for '{method}' authentication in {path}: {why}") from None


def _issued(source: OAuth2, timeout_s: float, fresh: bool) -> object:
    from eos.pulsar.net import oauth2  # with httpx, which a task seldom needs

    if not fresh and (token := oauth2.kept(source)) is not None:
        return token
    answer = _started(source, lambda: oauth2.ask(source, timeout_s))
    try:
        return answer.result(timeout_s)
    except TimeoutError:
        raise NoCredentials(
            f"the issuer {source.issuer_url} gave no token within {timeout_s:g} s (request_timeout_s)"
        ) from None


def _asked(source: Provider, timeout_s: float) -> object:
    answer = _started(source, lambda: _function(source)())
    try:
        error = answer.exception(timeout_s)
    except TimeoutError:
        raise NoCredentials(
            f"the function {source.name} gave no token within {timeout_s:g} s (request_timeout_s). It still runs"
        ) from None
    if error is not None:
        raise NoCredentials(
            f"the function {source.name} gave no token. It raised {type(error).__name__}{_place(error)}. The "
            "text of that error is left out, since it may contain a secret"
        )
    return answer.result()


def _function(source: Provider) -> Callable[[], object]:
    found = _functions.get(source)
    return _keep(source, pickle.loads(source.pickled) if found is None else found)


def _keep(source: Provider, function: Callable[[], object]) -> Callable[[], object]:
    """Keep a function as the one that was used last, and let go of the one that was not used for longest."""
    with _guard:
        _functions.pop(source, None)
        _functions[source] = function
        if len(_functions) > _MOST_FUNCTIONS:
            del _functions[next(iter(_functions))]
    return function


def _started(source: Provider | OAuth2, ask: Callable[[], object]) -> Future[object]:
    """Return what a question comes to: the one that is under way, or else this one, begun now."""
    with _guard:
        answer = _running.get(source)
        if answer is None:
            answer = Future()
            threading.Thread(target=_run, args=(source, ask, answer), name="eos credentials", daemon=True).start()
            _running[source] = answer
    return answer


def _run(source: Provider | OAuth2, ask: Callable[[], object], answer: Future[object]) -> None:
    found: object = None
    failed: BaseException | None = None
    try:
        found = ask()
    except BaseException as error:  # SystemExit too: the waiting thread must know
        failed = error
    with _guard:
        del _running[source]
    if failed is None:
        answer.set_result(found)
    else:
        answer.set_exception(failed)


def _place(error: BaseException) -> str:
    """Say which line raised it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "" if last is None else f" ({Path(last.tb_frame.f_code.co_filename).name}, line {last.tb_lineno})"


def _forget_running() -> None:
    """In a forked child the threads of its parent don't run."""
    global _guard
    _guard = threading.Lock()
    _running.clear()


os.register_at_fork(after_in_child=_forget_running)
