"""Conversation with ClickHouse over HTTP: recorded through a server in front of one, and played back by itself.

A file has the requests in their order, each with its answer; what a driver chooses at random is not part of a request.
Played back, a request that is not the next one is answered with an error that says so.
"""

from __future__ import annotations

import base64
import re
import threading
import urllib.error
import urllib.request
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

import msgspec

_RANDOM = re.compile(
    r"(?<=sqlflow_edl_new_)\w+|(?<=sqlflow_edl_old_)\w+|(?<=\bedl_)[0-9a-f]{8,}|(?<=job )\d{8}-[\w-]+"
)

_FEW_SETTINGS = (  # of the thousand that the driver asks for
    b"FROM system.settings",
    b"FROM (SELECT * FROM system.settings WHERE name LIKE 'output_format_arrow%')",
)


class Exchange(msgspec.Struct):
    """Request as text and its answer; `body` is compressed by zlib, in base64."""

    request: str
    status: int
    body: str


class Conversation:
    """Server on the loopback interface that plays the file, or writes it if the URL of a server is given."""

    def __init__(self, path: Path, upstream: str = "") -> None:
        self._path, self._upstream = path, upstream
        self._exchanges = [] if upstream else msgspec.json.decode(path.read_bytes(), type=list[Exchange])
        self._at = 0
        conversation = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = conversation._answer(
                    self.path, body, self.headers.get("X-ClickHouse-Format", "")
                )
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Conversation:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, *error: BaseException | TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        if self._upstream:
            if kind is None:
                self._path.write_bytes(
                    msgspec.json.format(msgspec.json.encode(self._exchanges), indent=1) + b"\n"
                )
        elif kind is None:
            assert self._at == len(self._exchanges), f"{self._exchanges[self._at].request} was not asked"

    def _answer(self, path: str, body: bytes, form: str) -> tuple[int, bytes]:
        given = parse_qs(urlsplit(path).query)
        statement = given.get("query", [body.decode(errors="replace")])[0]
        request = _RANDOM.sub("…", f"{given.get('database', [''])[0]}: {statement}")
        if self._upstream:
            status, answer = _forwarded(self._upstream + path, body.replace(*_FEW_SETTINGS), form)
            self._exchanges.append(
                Exchange(request, status, base64.b64encode(zlib.compress(answer, 9)).decode())
            )
            return status, answer
        if self._at == len(self._exchanges) or (found := self._exchanges[self._at]).request != request:
            wanted = self._exchanges[self._at].request if self._at < len(self._exchanges) else "nothing"
            return 500, f"Code: 1. DB::Exception: recorded is {wanted!r}, asked {request!r}. (ERROR)".encode()
        self._at += 1
        return found.status, zlib.decompress(base64.b64decode(found.body))


def _forwarded(url: str, body: bytes, form: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, data=body, headers={"X-ClickHouse-Format": form} if form else {})  # noqa: S310
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
