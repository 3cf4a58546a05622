"""The double's process: an HTTP server on loopback that pyodps takes for MaxCompute.

    python -m tests.maxcompute.server ACCOUNT      the secret comes on standard input; prints the port

`/double/…` is for tests: faults, what was asked for, and settings. The server ends when its standard input does.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from tests.maxcompute import metadata, tunnel
from tests.maxcompute.answers import Answer, Request, json_error, xml_error
from tests.maxcompute.faults import Fault, Faults
from tests.maxcompute.instances import Instances
from tests.maxcompute.signature import authorization
from tests.maxcompute.storage import Project, RefusedError, World

PREFIX = "/api"  # of every path, as with the real service


class Double:
    """Everything but HTTP."""

    def __init__(self, account: str, secret: str) -> None:
        self.account, self.secret = account, secret
        self.world = World()
        self.instances = Instances(self.world)
        self.faults = Faults()
        self.requests: list[str] = []

    def answer(self, request: Request, part: float) -> Answer:
        with self.world.lock:
            match request.path:
                case ("tenants",):
                    return metadata.tenant()
                case ("projects", name):
                    return metadata.project(self.world.project(name))
                case ("projects", name, *rest):
                    return self._in_project(self.world.project(name), tuple(rest), request, part)
        raise RefusedError(404, "NoSuchObject", "there is nothing of this name")

    def _in_project(self, project: Project, rest: tuple[str, ...], request: Request, part: float) -> Answer:
        match rest:
            case ("tables",):
                return metadata.tables(project, request)
            case ("tables", name):
                table = project.table(name)
                if "x-odps-tunnel-version" in request.headers:
                    return tunnel.table(self.world, table, request, part)
                return metadata.table(table, request)
            case ("instances",) if request.method == "POST":
                return self.instances.submit(project, request)
            case ("instances", found):
                if "x-odps-tunnel-version" not in request.headers:
                    return self.instances.tell(found, request)
                if request.method == "POST":
                    return self.instances.tunnel(found, request)
                return tunnel.download(self.world, request, part, of_instance=True)
            case ("logs",):
                return Answer()
        raise RefusedError(404, "NoSuchObject", "there is nothing of this name")

    def control(self, request: Request) -> Answer:
        """What tests ask of the double itself."""
        match request.path[1]:
            case "faults":
                self.faults.clear()
                for fault in msgspec.json.decode(request.body, type=list[Fault]):
                    self.faults.add(fault)
            case "polls":
                self.instances.polls = int(request.body)
            case "requests":
                told, self.requests = self.requests, []
                return Answer(msgspec.json.encode(told))
            case "reset":
                self.faults.clear()
                self.instances.polls = 0
        return Answer()

    def signed(self, request: Request, target: str) -> bool:
        given = request.headers.get("authorization", "")
        wanted = authorization(request.method, target, request.headers, self.account, self.secret)
        return given == wanted


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    double: Double

    def do_GET(self) -> None:
        request = self._request()  # with its body, else the next one on this connection begins in it
        if request.path[:1] == ("double",):
            self._send(self.double.control(request))
            return
        line = f"{self.command} {unquote(self.path)}"
        self.double.requests.append(f"{self.client_address[1]} {line}")
        fault = self.double.faults.of(line)
        if fault is not None and fault.kind == "delay":
            time.sleep(fault.seconds)
        if fault is not None and fault.kind == "drop":
            self.close_connection = True
            return
        answer = self._answer(request, fault)
        if fault is not None and fault.kind == "lose":
            self.close_connection = True
            return
        self._send(answer, fault)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - as http.server calls them

    def log_message(self, *_: Any) -> None:
        """Tests ask for what was requested."""

    def _answer(self, request: Request, fault: Fault | None) -> Answer:
        error = json_error if "x-odps-tunnel-version" in request.headers else xml_error
        if not self.double.signed(request, self.path.removeprefix(PREFIX)):
            return error(
                401, "SignatureNotMatch", "The request signature is not the one that was calculated."
            )
        if fault is not None and fault.kind == "status":
            return error(fault.status, fault.code, "asked for by a test")
        if fault is not None and fault.kind == "expire":
            self.double.world.downloads.pop(request.options.get("downloadid", ""), None)
            self.double.world.uploads.pop(request.options.get("uploadid", ""), None)
        try:
            return self.double.answer(request, fault.part if fault and fault.kind == "short" else 1.0)
        except RefusedError as refused:
            return error(refused.status, refused.code, refused.message)
        except Exception as mistake:  # of the double itself, which nobody shall try again
            return error(400, "DoubleFailed", "".join(traceback.format_exception(mistake)))

    def _request(self) -> Request:
        path, _, query = self.path.partition("?")
        parts = tuple(unquote(part) for part in path.removeprefix(PREFIX).strip("/").split("/"))
        options = dict(parse_qsl(query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, parts, options, headers, self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, answer: Answer, fault: Fault | None = None) -> None:
        body = answer.body
        self.send_response(answer.status)
        for name, value in {"x-odps-request-id": "0", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if fault is not None and fault.kind == "flip":
            at = len(body) // 2
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        if fault is not None and fault.kind == "cut":
            body = body[: int(len(body) * fault.part)]
            self.close_connection = True
        self.wfile.write(body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the midst of an answer is no error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    secret = sys.stdin.readline().rstrip("\n")
    Handler.double = Double(sys.argv[1], secret)
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
