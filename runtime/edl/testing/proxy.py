"""Loopback proxy in front of a parameter server, which can close all its connections; see `edl.testing`."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

_PIECE = 1 << 16


def interpose() -> Callable[[], None]:
    """Make the server of this process register a proxy's address. Return the function that closes its connections.

    Data that the server has not sent by then is lost, and its clients reconnect.
    """
    from edl.entrypoints import parameter_server

    proxy = _Proxy()
    serving = "serve"  # imported by it from another module
    serve = getattr(parameter_server, serving)

    def behind_the_proxy(*arguments: Any) -> tuple[Any, int]:
        served, port = serve(*arguments)
        return served, proxy.listen(port)

    setattr(parameter_server, serving, behind_the_proxy)
    return proxy.sever


class _Proxy:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

    def listen(self, port: int) -> int:
        """Listen in front of the server at `port`. Return the proxy's port."""
        threading.Thread(target=self._accept, args=(port,), name="edl-proxy", daemon=True).start()
        return int(self._listener.getsockname()[1])

    def sever(self) -> None:
        print("all connections are closed", file=sys.stderr, flush=True)
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self, port: int) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            with self._lock:
                self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        """Forward data until either end closes, then close the other."""
        with contextlib.suppress(OSError):
            while piece := one.recv(_PIECE):
                other.sendall(piece)
        with self._lock:
            self._open.discard(one)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
