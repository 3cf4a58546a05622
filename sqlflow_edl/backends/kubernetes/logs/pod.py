"""Log of one pod as it is written: each line once, however often the stream breaks."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError
from edl.cluster.kubernetes.outage import REFUSAL_SECS, Outage
from edl.cluster.kubernetes.pods import Pod
from sqlflow_edl.backends.kubernetes.job_status import JobObjects

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

PAUSE = 0.5  # seconds between two requests
MARGIN = 30  # seconds of overlap between two requests, against clock skew
MOST_STAMPS = 10_000  # lines that are remembered: more than a master writes in the time of an overlap

_STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\S+Z) ?(.*)", re.DOTALL)


class PodLog:
    """Reader of a pod's log, from one thread; `close` from any.

    follow: continue until the pod has ended. clock: seconds that go on while this machine sleeps.
    """

    def __init__(
        self, objects: JobObjects, pod: Pod, *, follow: bool, clock: Callable[[], float] = time.time
    ) -> None:
        self._objects = objects
        self._pod = pod
        self._follow = follow
        self._clock = clock
        self._closed = threading.Event()
        self._seen = Seen()
        self._heard_at = 0.0
        self._outage = Outage(clock)

    def close(self) -> None:
        self._closed.set()

    def __iter__(self) -> Iterator[str]:
        """Yield whole lines without their ends. Raises RefusedError without permission."""
        over = not self._follow
        while not self._closed.is_set():
            over = over or self._is_over()  # check before reading, or lines written in between are missed
            yield from self._read(last=over)
            if over:
                return
            self._closed.wait(PAUSE)

    def _is_over(self) -> bool:
        try:
            pod = self._objects.pod(self._pod.metadata.name)
        except APIUnreachableError:
            return False
        except APIRefusedError as error:
            self._pass_over(error)
            return False
        return pod is None or pod.metadata.uid != self._pod.metadata.uid or pod.has_ended

    def _read(self, *, last: bool) -> Iterator[str]:
        """Yield new lines of one stream; an incomplete line only if no more will come."""
        response = self._open()
        if response is None:
            return
        self._seen.again()
        for line in _lines(response, last=last):
            match = _STAMPED.match(line)
            self._heard_at = self._clock()
            if (
                match is None and not self._follow
            ):  # words of the kubelet: it has no log of the container any more
                yield line.decode("utf-8", "replace")
            if match is not None and self._seen.is_new(match[1]):
                yield match[2].decode("utf-8", "replace")
            if self._closed.is_set():
                response.close()
                return

    def _open(self) -> BaseHTTPResponse | None:
        """Open the stream, or return None if there is nothing to read now."""
        since = math.ceil(self._clock() - self._heard_at) + MARGIN if self._heard_at else None
        try:
            response = self._objects.log(self._pod, follow=self._follow, since_secs=since)
        except APIUnreachableError:
            return None
        except APIRefusedError as error:
            if error.status not in (400, 404):  # its container has not started, or it is gone
                self._pass_over(error)
            return None
        self._outage.on_answer()
        return response

    def _pass_over(self, error: APIRefusedError) -> None:
        """Raise a refusal, unless an API server that has just started may give it, and another look will follow."""
        self._outage.on_failure(self._clock(), refused=True)
        if not (self._follow and error.may_pass) or self._outage.refused_secs > REFUSAL_SECS:
            raise error


class Seen:
    """Detector of lines that were read before, after a log is reopened at an earlier position.

    A line is identified by its timestamp, and among lines of the same timestamp by its number. The lines of the two
    outputs of a container get their timestamps apart, so a line may have an earlier one than the line before it.
    """

    def __init__(self, most: int = MOST_STAMPS) -> None:
        self._most = most
        self._lines: dict[bytes, int] = {}  # numbers of lines by timestamp, as far as they are remembered
        self._again: dict[bytes, int] = {}  # the same since the log was read again
        self._forgotten = b""  # latest timestamp that is not remembered any more

    def again(self) -> None:
        """Note that the log is read again."""
        self._again = {}

    def is_new(self, stamp: bytes) -> bool:
        """Return True if the line is new. stamp: its timestamp as the kubelet writes it, of fixed width."""
        number = self._again[stamp] = self._again.get(stamp, 0) + 1
        if number <= self._lines.get(stamp, 0) or stamp <= self._forgotten:
            return False
        self._lines[stamp] = number
        while len(self._lines) > self._most:
            self._forgotten = max(self._forgotten, oldest := next(iter(self._lines)))
            del self._lines[oldest]
            self._again.pop(oldest, None)
        return True


def _lines(response: BaseHTTPResponse, *, last: bool) -> Iterator[bytes]:
    """Yield lines until the stream ends or breaks."""
    from urllib3.exceptions import HTTPError

    rest = b""
    try:
        for piece in response.stream(1 << 16):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
    except (HTTPError, OSError):
        return
    finally:
        response.close()
    if rest and last:
        yield rest
