"""Supervisor's side of its connection to the master."""

from __future__ import annotations

import asyncio
import socket

import msgspec

from edl.cluster import Change, NoRoomError, Order, Room
from edl.cluster.local.instances import Instances
from edl.cluster.local.messages import (
    Answer,
    Changed,
    Heartbeat,
    Hello,
    List,
    Ordered,
    Reply,
    Request,
    Resized,
    Start,
    Stop,
    Want,
    request_decoder,
    to_line,
)
from edl.errors import ClusterError


class MasterConnection:
    """Server of one master after another. Between two of them, changes are dropped: the next master lists all
    instances, and gets the last order. `heartbeats` counts the signs of life of all masters.
    """

    heartbeats = 0
    _order: Order | None = None

    def __init__(self) -> None:
        self._writer: asyncio.StreamWriter | None = None

    def notify(self, news: Change | Room) -> None:
        self._send(Changed(news) if isinstance(news, Change) else Resized(news))

    def order(self, order: Order) -> None:
        """Give the order to the present master, and to its successors."""
        self._order = order
        self._send(Ordered(order))

    async def serve(self, connection: socket.socket, instances: Instances, relaunches: int) -> None:
        """Greet the master and answer until the connection ends."""
        reader, self._writer = await asyncio.open_unix_connection(sock=connection)
        writer = self._writer
        self._send(Hello(relaunches, instances.room, self._order))
        try:
            while line := await reader.readline():
                request: Request = request_decoder.decode(line)
                if isinstance(request, Heartbeat):
                    self.heartbeats += 1
                else:
                    self._send(_answer(request, instances))
        except (ConnectionError, msgspec.MsgspecError, ValueError):
            pass  # a master that died within a line, or uses another protocol: its end follows
        finally:
            if self._writer is writer:
                self._writer = None
            writer.close()

    def _send(self, reply: Reply) -> None:
        if self._writer is not None:
            self._writer.write(to_line(reply))


def _answer(request: Start | Stop | Want | List, instances: Instances) -> Answer:
    if isinstance(request, List):
        return Answer(request.number, changes=tuple(instances.list()))
    if isinstance(request, Want):
        instances.wanted = request.least, request.most
        return Answer(request.number)
    try:
        if isinstance(request, Start):
            instances.start(request.instance)
        else:
            instances.stop(request.instance, request.grace)
    except ClusterError as error:
        return Answer(request.number, refused=error.message, no_room=isinstance(error, NoRoomError))
    return Answer(request.number)
