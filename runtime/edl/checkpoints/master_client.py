"""Checkpoints on the disk of the master, for instances that share none: sent and fetched over its port.

A file is sent in pieces. After a lost call it continues at the same position; after the master lost the file, from the
start. Calls wait for an absent master; those that send only shortly, since the next checkpoint will do as well.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from edl.checkpoints import Facts, GoneError
from edl.checkpoints.integrity import checksum
from edl.checkpoints.local_copies import Copies
from edl.checkpoints.master_store import PIECE
from edl.errors import JobError, SpecError
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import AwayError, MasterChannel
from edl.rpc.control_pb2_grpc import MasterStub

CALL_SECS = 20.0
RETRY_SECS = 0.2  # seconds between two calls to an absent master
PATIENCE = 30.0  # seconds that sending waits for an absent master

R = TypeVar("R")


class Relay(Copies):
    """Client of the master's store."""

    def __init__(self, folder: Path, address: str, token: str) -> None:
        super().__init__(folder)
        self._address = address
        self._token = token

    def names(self, having: str = "") -> list[str]:
        return sorted(name for name, files in self._list_files().items() if not having or having in files)

    def facts(self, name: str) -> Facts:
        """Return nothing: the master tells names alone."""
        return Facts()

    def remove(self, name: str) -> None:
        self._call(lambda stub: stub.Discard, pb.DiscardRequest(name=name))

    def clear(self) -> None:
        """Do nothing: the checkpoints vanish with the master's disk."""

    def _send(self, name: str, path: Path) -> None:
        """Send a file. Raises JobError if the master has no room, AwayError if it is absent for long."""
        size, crc = path.stat().st_size, checksum(path)
        with path.open("rb") as file:
            upto = 0
            while True:
                file.seek(upto)
                request = pb.KeepRequest(
                    name=name, file=path.name, size=size, crc=crc, start=upto, data=file.read(PIECE)
                )
                answer = self._call(lambda stub: stub.Keep, request, PATIENCE)
                if answer.refused:
                    raise JobError(answer.refused)
                upto = answer.upto
                if upto == size:
                    return

    def _receive(self, name: str, file: str, path: Path) -> None:
        with path.open("wb") as opened:
            while True:
                request = pb.FetchRequest(name=name, file=file, start=opened.tell())
                answer = self._call(lambda stub: stub.Fetch, request)
                if answer.gone:
                    raise GoneError(f"the checkpoint {name} is gone")
                opened.write(answer.data)
                if opened.tell() >= answer.size:
                    break
        if checksum(path) != answer.crc:
            raise SpecError(f"{file} of the checkpoint {name} arrived damaged")

    def _files(self, name: str) -> Sequence[str]:
        return self._list_files().get(name, ())

    def _list_files(self) -> dict[str, list[str]]:
        answer = self._call(lambda stub: stub.ListKept, pb.ListKeptRequest())
        return {folder.name: list(folder.files) for folder in answer.folders}

    def _call(
        self, method: Callable[[MasterStub], Callable[..., R]], request: Any, patience: float = math.inf
    ) -> R:
        """Call a method, selected from the present stub in each attempt."""
        end = time.monotonic() + patience
        while True:
            try:
                return self._channel.call(method(self._channel.stub), request, CALL_SECS)
            except AwayError:
                if time.monotonic() >= end:
                    raise
                time.sleep(RETRY_SECS)

    @cached_property
    def _channel(self) -> MasterChannel:
        """Separate channel to the master, so that large files delay no heartbeat."""
        return MasterChannel(self._address, self._token)
