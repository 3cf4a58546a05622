"""A log that is followed, to compare what comes with what was recorded."""

from __future__ import annotations

import contextlib
import http.client
import queue
import re
import socket
import threading

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")


class Followed:
    """One that is open. How it was cut into pieces on its way does not matter."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response, self._socket = connection, response, connection.sock
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._come = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while piece := self._response.read1(1 << 16):
                self._pieces.put(piece)
        self._pieces.put(b"")
        self._response.close()
        self._connection.close()

    def take(self, length: int, patience: float) -> str:
        """So much of it, or less at its end. `queue.Empty`: it has not come yet."""
        while len(self._come) < length:
            piece = self._pieces.get(timeout=patience)
            if not piece:
                self._pieces.put(piece)
                break
            self._come += piece
        taken, self._come = self._come[:length], self._come[length:]
        return taken.decode()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()


def without_times(text: str) -> str:
    return STAMP.sub("TIME ", text)
