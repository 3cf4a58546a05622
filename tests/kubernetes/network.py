"""Addresses of this machine's loopback for pods and Services, which no other double that runs here has."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator

BLOCKS = range(1, 127)
OF_SERVICES = 128  # added to a block's number
HOLD = 50999  # the port whose socket says that a block is taken


class Network:
    """Of one double: a block of 127/8, held until its process ends."""

    def __init__(self) -> None:
        self._held, block = _take()
        self.pods = _addresses(block)
        self.services = _addresses(block + OF_SERVICES)


def _take() -> tuple[socket.socket, int]:
    for block in BLOCKS:
        held = socket.socket()
        try:
            held.bind((f"127.{block}.0.1", HOLD))
        except OSError:
            held.close()
        else:
            return held, block
    raise OSError("every block of addresses is taken")


def _addresses(block: int) -> Iterator[str]:
    return (f"127.{block}.{number // 256}.{number % 256}" for number in itertools.count(256))
