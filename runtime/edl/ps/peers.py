"""Concurrent calls of server 0 to the other servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from edl.ps.channel import Pending, ServerChannel

S = TypeVar("S", bound=msgspec.Struct)


class Peers:
    """Connections to the servers at these addresses."""

    def __init__(self, addresses: Sequence[str], token: str) -> None:
        self._channels = [ServerChannel(address, token) for address in addresses]

    def begin(self, header: msgspec.Struct, seconds: float) -> list[Pending]:
        return [channel.begin(header, (), seconds) for channel in self._channels]

    def ask(self, header: msgspec.Struct, kind: type[S], seconds: float) -> list[S]:
        """Call all servers and return their answers. Raises ClusterError if one of them fails."""
        return [pending.result(kind)[0] for pending in self.begin(header, seconds)]

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
