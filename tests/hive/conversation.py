"""Conversation by the protocol of HiveServer2: recorded through a server before a real one, and played back by itself.

A file has the calls in their order, each with its answer. A call is known by its name, a statement by its text, without
what is chosen at random and the last digits of numbers, in which processors differ. Only the last of the answers to
how a statement goes is recorded. Played back, a call that is not the next one ends the connection, and is reported at
the end.
"""

from __future__ import annotations

import base64
import re
import socket
import socketserver
import struct
import threading
import zlib
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType

import msgspec
from impala._thrift_gen.TCLIService import TCLIService
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

_RANDOM = re.compile(
    r"(?<=sqlflow_edl_new_)\w+|(?<=sqlflow_edl_old_)\w+|(?<=\bedl_)[0-9a-f]{8,}|(?<=job )\d{8}-[\w-]+"
)
_LAST_DIGITS = re.compile(r"(?<=\.\d{12})\d+")
_RUNNING = (0, 1, 7)  # initialized, running, pending
_START, _OK, _COMPLETE = 1, 2, 5  # messages of SASL


class Exchange(msgspec.Struct):
    """Call as text, and its answer compressed by zlib, in base64."""

    call: str
    answer: str


class Conversation:
    """Server on the loopback interface that plays the file, or writes it if the port of a server is given."""

    def __init__(self, path: Path, upstream: int = 0) -> None:
        self._path, self._upstream = path, upstream
        self._exchanges = [] if upstream else msgspec.json.decode(path.read_bytes(), type=list[Exchange])
        self._at = 0
        self._unexpected = ""
        conversation = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                conversation._serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
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
        assert not self._unexpected, self._unexpected
        if self._upstream:
            if kind is None:
                self._path.write_bytes(
                    msgspec.json.format(msgspec.json.encode(self._exchanges), indent=1) + b"\n"
                )
        elif kind is None:
            assert self._at == len(self._exchanges), f"{self._exchanges[self._at].call} was not asked"

    def _serve(self, client: socket.socket) -> None:
        for _ in ("PLAIN", "the account"):
            _read(client, struct.unpack(">xI", _read(client, 5))[0])
        client.sendall(struct.pack(">BI", _COMPLETE, 0))
        with _logged_in(self._upstream) if self._upstream else nullcontext() as server:
            while head := _read(client, 4):
                message = _read(client, struct.unpack(">I", head)[0])
                answer = self._forwarded(server, message) if server else self._played(_call(message))
                client.sendall(struct.pack(">I", len(answer)) + answer)

    def _forwarded(self, server: socket.socket, message: bytes) -> bytes:
        call = _call(message)
        while True:
            server.sendall(struct.pack(">I", len(message)) + message)
            answer = _read(server, struct.unpack(">I", _read(server, 4))[0])
            if not call.startswith("GetOperationStatus") or _state(answer) not in _RUNNING:
                break
        self._exchanges.append(Exchange(call, base64.b64encode(zlib.compress(answer, 9)).decode()))
        return answer

    def _played(self, call: str) -> bytes:
        wanted = self._exchanges[self._at].call if self._at < len(self._exchanges) else "nothing"
        if _LAST_DIGITS.sub("", wanted) != _LAST_DIGITS.sub("", call):
            self._unexpected = f"recorded is {wanted!r}, asked {call!r}"
            raise AssertionError(self._unexpected)
        self._at += 1
        return zlib.decompress(base64.b64decode(self._exchanges[self._at - 1].answer))


def _read(connection: socket.socket, count: int) -> bytes:
    """Return that many bytes, or none if the connection ended."""
    found = b""
    while len(found) < count:
        if not (part := connection.recv(count - len(found))):
            return b""
        found += part
    return found


def _logged_in(port: int) -> socket.socket:
    server = socket.create_connection(("127.0.0.1", port))
    for status, text in ((_START, b"PLAIN"), (_OK, b"\0test\0test")):
        server.sendall(struct.pack(">BI", status, len(text)) + text)
    _read(server, struct.unpack(">xI", _read(server, 5))[0])
    return server


def _call(message: bytes) -> str:
    protocol = TBinaryProtocol(TMemoryBuffer(message))
    name, _, _ = protocol.readMessageBegin()
    if name != "ExecuteStatement":
        return name
    given = TCLIService.ExecuteStatement_args()
    given.read(protocol)
    return f"{name}: {_RANDOM.sub('…', given.req.statement)}"


def _state(answer: bytes) -> int:
    protocol = TBinaryProtocol(TMemoryBuffer(answer))
    protocol.readMessageBegin()
    found = TCLIService.GetOperationStatus_result()
    found.read(protocol)
    return int(found.success.operationState or 0)
