"""An issuer of tokens by OAuth 2.0 on this machine: OpenID discovery and a token endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

CLIENT_ID, CLIENT_SECRET = "etl", "s3cr3t+of/the client"
DISCOVERY, TOKEN = "/realm/.well-known/openid-configuration", "/realm/token"


class Issuer:
    """Gives whoever shows the client's secret the token that `make` returns.

    Attributes:
        url: the issuer's.
        forms: what was asked for, one form each time.
        answers: {path: what it answers in place of that: status, body and headers}.
        lives_s: what it says of how long a token lives; None: nothing.
        hold: cleared, it answers nothing until it is set.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self.forms: list[dict[str, str]] = []
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, str, dict[str, str]]] = {}
        self.lives_s: int | str | None = 3600
        self.hold = threading.Event()
        self.hold.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                if self.path in outer.answers:
                    self._answer(*outer.answers[self.path])
                elif self.path == DISCOVERY:
                    self._answer(200, json.dumps({"token_endpoint": f"{outer.url}/token"}), {})
                else:
                    self._answer(404, "no such page", {})

            def do_POST(self) -> None:
                outer.asked.append(self.path)
                sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(sent).items()}
                outer.forms.append(form)
                outer.hold.wait()
                shown = (form.get("client_id"), form.get("client_secret"))
                if self.path in outer.answers:
                    self._answer(*outer.answers[self.path])
                elif shown == (CLIENT_ID, CLIENT_SECRET) and form.get("grant_type") == "client_credentials":
                    told: dict[str, str | int] = {"access_token": make(), "token_type": "Bearer"}
                    if outer.lives_s is not None:
                        told["expires_in"] = outer.lives_s
                    self._answer(200, json.dumps(told), {})
                else:
                    words = {"error": "invalid_client", "error_description": f"bad secret {form['client_secret']}"}
                    self._answer(401, json.dumps(words), {})

            def _answer(self, status: int, body: str, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/realm"

    def options(self, **changed: str) -> dict[str, str]:
        """The options of the client that it knows."""
        return {"issuer_url": self.url, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, **changed}


@contextmanager
def issuing(make: Callable[[], str]) -> Iterator[Issuer]:
    """Run an issuer for the block."""
    issuer = Issuer(make)
    threading.Thread(target=issuer.http.serve_forever, args=[0.01], daemon=True).start()
    yield issuer
    issuer.hold.set()
    issuer.http.shutdown()
    issuer.http.server_close()
