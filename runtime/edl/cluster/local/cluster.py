"""Cluster of processes on this machine: the master's side of its connection to the supervisor."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Iterator

import msgspec

from edl.cluster import Change, Instance, NoRoomError, Order, Room
from edl.cluster.local.messages import (
    Answer,
    Changed,
    Heartbeat,
    Hello,
    List,
    Ordered,
    Resized,
    Start,
    Stop,
    Want,
    reply_decoder,
    to_line,
)
from edl.cluster.local.parent_watch import abandon
from edl.errors import ClusterError

SECONDS = 10.0  # timeout of the supervisor's answer, which takes a thousandth of a second


class ProcessCluster:
    """Client of the supervisor at the other end of the socket `descriptor`. Thread-safe.

    If the supervisor ends, this process ends at once, as all of its processes do. `relaunches` counts the masters of
    this job that died before this one.
    """

    unfit: frozenset[str] = frozenset()  # there is one machine

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._lines = self._socket.makefile("rb")
        greeting = self._greeting()
        self.relaunches, self.room = greeting.relaunches, greeting.room
        self._sending = threading.Lock()
        self._number = 0
        self._answers: dict[int, queue.SimpleQueue[Answer]] = {}
        self._changes: queue.SimpleQueue[Change | Room | Order | None] = queue.SimpleQueue()
        if greeting.order is not None:
            self._changes.put(greeting.order)
        self._closed = False
        threading.Thread(target=self._listen, name="edl-cluster", daemon=True).start()

    def start(self, instance: Instance) -> None:
        self._ask(Start(self._next(), instance))

    def stop(self, instance: Instance, grace: float) -> None:
        self._ask(Stop(self._next(), instance, grace))

    def want(self, least: int, most: int) -> None:
        """Ask the job's quota, if any, for so many slots."""
        self._ask(Want(self._next(), least, most))

    def list(self) -> list[Change]:
        return [*self._ask(List(self._next())).changes]

    def watch(self) -> Iterator[Change | Room | Order]:
        while (change := self._changes.get()) is not None:
            yield change

    def beat(self) -> None:
        """Send a sign of life; none if the supervisor does not read."""
        if self._sending.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):
                    self._socket.send(to_line(Heartbeat()), socket.MSG_DONTWAIT)
            finally:
                self._sending.release()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the listening thread

    def _greeting(self) -> Hello:
        line = self._lines.readline()
        if not line:
            abandon()
        reply = reply_decoder.decode(line)
        if not isinstance(reply, Hello):
            raise ClusterError("the supervisor uses another protocol")
        return reply

    def _next(self) -> int:
        with self._sending:
            self._number += 1
            return self._number

    def _ask(self, request: Start | Stop | Want | List) -> Answer:
        """Return the answer. Raises ClusterError if the supervisor refuses or does not answer."""
        mailbox = self._answers[request.number] = queue.SimpleQueue()
        try:
            with self._sending:
                self._socket.sendall(to_line(request))
            answer = mailbox.get(timeout=SECONDS)
        except OSError:
            raise ClusterError("the connection to the supervisor is closed") from None
        except queue.Empty:
            raise ClusterError(f"the supervisor did not answer within {SECONDS:.0f} s") from None
        finally:
            del self._answers[request.number]
        if answer.no_room:
            raise NoRoomError(answer.refused)
        if answer.refused:
            raise ClusterError(answer.refused)
        return answer

    def _listen(self) -> None:
        """Deliver messages until the cluster is closed or the supervisor is gone."""
        try:
            for line in self._lines:
                self._deliver(line)
        except OSError:
            pass
        if not self._closed:
            abandon()
        self._changes.put(None)
        self._lines.close()
        self._socket.close()

    def _deliver(self, line: bytes) -> None:
        try:
            reply = reply_decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # a partial line: the end follows
        if isinstance(reply, Changed):
            self._changes.put(reply.change)
        elif isinstance(reply, Resized):
            self.room = reply.room
            self._changes.put(reply.room)
        elif isinstance(reply, Ordered):
            self._changes.put(reply.order)
        elif isinstance(reply, Answer) and (mailbox := self._answers.get(reply.number)):
            mailbox.put(reply)
