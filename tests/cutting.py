"""A proxy of this machine that cuts connections: each after so many bytes of answers, as often as it is told to."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Stands before a server. left: how many connections it will cut yet."""

    def __init__(self, server: int, after: int, left: int) -> None:
        self.left = left
        self._server, self._after = server, after
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def refuse(self) -> None:
        """From now on connections are refused; those that are open remain."""
        _end(self._listener)

    def close(self) -> None:
        for each in (self._listener, *self._open):
            _end(each)

    def reopen(self) -> None:
        """Accept connections again, on the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # until it is closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._open += (client, server)
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                to.sendall(data)
        _end(to)

    def _answer(self, source: socket.socket, to: socket.socket) -> None:
        sent = 0
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                to.sendall(data)
                sent += len(data)
                if sent > self._after and self._may_cut():
                    break
        _end(source)
        _end(to)

    def _may_cut(self) -> bool:
        with self._lock:
            cuts = self.left > 0
            self.left -= cuts
            return cuts


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextlib.contextmanager
def proxied(server: int, *, after: int, left: int = 0) -> Iterator[Proxy]:
    """A proxy of the server's port, for a while."""
    proxy = Proxy(server, after, left)
    try:
        yield proxy
    finally:
        proxy.close()
