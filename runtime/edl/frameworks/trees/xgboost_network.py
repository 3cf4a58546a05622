"""Collective calls of XGBoost over a group of workers, by the library's own communicator.

    rank 0: tracker ─ address by our group ─▶ all ranks: a ring of sockets of the library's

The communicator belongs to a thread, and to every matrix that is made there. So the rows are held and the rounds are
grown in a thread of their own, and scores in others concern this worker alone. A lost worker closes its sockets, and
the call of each other one fails; whether it is a loss or an error of XGBoost's, our group tells.
"""

from __future__ import annotations

import contextlib
import json
import math
import queue
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

from edl.collectives.base import Group

MEETING_SECS = 30  # timeout until all members have called the tracker; they have just met in our group
LEAVE_SECS = 2.0  # to wait until a communicator is closed: longer only if the host of the tracker is gone
_RETRIES = 1  # of a connection to another worker, which listens before its address is known


class XGBoostNetwork:
    """Communicator of XGBoost over `group`, with the same ranks. Raises GroupError if a member is lost meanwhile."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._member = _Member()
        # The library aborts a process with an open communicator at the end.
        self._at_exit = weakref.finalize(self, self._member.leave)
        timeout = math.ceil(group.timeout)
        address = b""
        if group.rank == 0:
            address = self._member.track(group.size, group.host, min(timeout, MEETING_SECS))
        address = group.broadcast(address or None, 0)
        self.call(
            collective.init,
            **json.loads(address),
            dmlc_task_id=f"{group.rank:06}",
            dmlc_timeout=timeout,
            dmlc_retry=_RETRIES,
        )

    def call(self, function: Callable[..., None], *arguments: Any, **named: Any) -> None:
        """Call a function in the thread of the communicator. All members make the same calls.

        Raises GroupError if a member is lost, and the library's error if none is. Then the network is closed.
        """
        try:
            self._member.call(partial(function, *arguments, **named))
        except xgboost.core.XGBoostError:
            self.close()  # which ends the calls of the others
            self._group.gather(np.zeros(1))
            raise

    def close(self) -> None:
        """Leave without waiting for others, or for the host of the tracker."""
        if self._at_exit.detach() is not None:
            self._member.leave()
            self._member.end()


class _Member:
    """Thread of a communicator, and the tracker of rank 0."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], None], Future[None]] | None] = queue.SimpleQueue()
        self._tracker: RabitTracker | None = None
        self._thread = threading.Thread(target=self._work, name="edl-xgboost", daemon=True)
        self._thread.start()

    def track(self, size: int, host: str, timeout: int) -> bytes:
        """Start a tracker. Return its address for `collective.init`, as JSON."""
        self._tracker = RabitTracker(size, host, sortby="task", timeout=timeout)
        self._tracker.start()
        return json.dumps(self._tracker.worker_args()).encode()

    def call(self, function: Callable[[], None]) -> None:
        self._begin(function).result()

    def leave(self) -> None:
        """Close the communicator and the tracker; if that takes long, go on with it in the thread.

        The library connects to the tracker once more. At an address that is no longer any pod's, nothing refuses that,
        and it takes twice the timeout of the network.
        """
        with contextlib.suppress(TimeoutError):
            self._begin(self._leave).result(LEAVE_SECS)

    def _leave(self) -> None:
        _close_communicator()
        if self._tracker is not None:
            with contextlib.suppress(xgboost.core.XGBoostError):
                self._tracker.free()
            self._tracker = None

    def _begin(self, function: Callable[[], None]) -> Future[None]:
        ended: Future[None] = Future()
        self._calls.put((function, ended))
        return ended

    def end(self) -> None:
        """End the thread. At the end of the process it stays: what the library destroys with it would need Python."""
        self._calls.put(None)

    def _work(self) -> None:
        xgboost.set_config(verbosity=0)
        while (call := self._calls.get()) is not None:
            function, ended = call
            try:
                function()
            except BaseException as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)


def _close_communicator() -> None:
    """Close the communicator of this thread."""
    try:
        collective.finalize()
    except xgboost.core.XGBoostError:  # the tracker is gone
        collective.init()  # in place of the open one, with which the process would abort at its end
