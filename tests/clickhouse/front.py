"""ClickHouse's HTTP interface in front of chdb, which is ClickHouse in process: `python front.py FOLDER`.

It prints its port. Needs chdb alone (`pip install chdb`, some 400 MB), so it can run in another environment. Statements
run one after another; a request's settings of formats are set before it, and other settings and all users are ignored.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from chdb.session import Session

_SETTINGS = re.compile(r"(?:in|out)put_format_\w+")
_INSERT = re.compile(rb"(INSERT INTO .+?) FORMAT (\w+)\s*\Z", re.DOTALL)
_CODE = re.compile(r"Code: (\d+)")
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    session: Session
    folder: Path

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *arguments: object) -> None:
        pass

    def _answer(self) -> None:
        given = dict(parse_qsl(urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        statement = given.pop("query", "").encode()
        data = body if statement else b""
        try:
            with lock:
                answer = self._run(given, statement or body, data)
        except Exception as error:  # of chdb, as the text that the server sends
            code = _CODE.search(str(error))
            self._send(
                500,
                f"{error} (version 26.9)\n".encode(),
                **{"X-ClickHouse-Exception-Code": code[1] if code else "1"},
            )
        else:
            self._send(200, answer)

    def _run(self, given: dict[str, str], statement: bytes, data: bytes) -> bytes:
        self.session.query(f"USE {given.get('database', 'default')}")
        for name, value in given.items():
            if _SETTINGS.fullmatch(name):
                self.session.query(f"SET {name} = '{value}'")
        if (insert := _INSERT.fullmatch(statement.strip())) and data:
            with tempfile.NamedTemporaryFile(dir=self.folder) as file:
                file.write(data)
                file.flush()
                rows = f" SELECT * FROM file('{file.name}', '{insert[2].decode()}')"
                return bytes(self.session.query(insert[1].decode() + rows).bytes())
        form = self.headers.get("X-ClickHouse-Format", "TabSeparated")
        return bytes(self.session.query(statement.decode(), form).bytes())

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"X-ClickHouse-Format": "", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def main(folder: str) -> None:
    Handler.folder = Path(folder)
    Handler.session = Session(str(Handler.folder / "data"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
