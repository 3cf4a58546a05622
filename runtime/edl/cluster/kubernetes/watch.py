"""Stream of a job's pods: consecutive watches in a thread, each resuming at the end of the last one."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from edl.cluster.kubernetes.api_calls import APIUnreachableError, Calls
from edl.cluster.kubernetes.pods import Pod, PodEvent, Refusal
from edl.errors import ClusterError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

SILENCE_SECS = 10.0  # seconds without data after a watch's duration
LEAST_SECS = 1.0  # minimum interval between the starts of two watches
PATIENCE = 10.0  # seconds without a watch after which the cache counts as outdated

_events = msgspec.json.Decoder(PodEvent)
_pods = msgspec.json.Decoder(Pod)
_refusals = msgspec.json.Decoder(Refusal)

News = tuple[Pod, bool]  # False after its deletion


class PodStream:
    """Stream of pod events, starting at a version of their list. `secs` is the duration of one watch."""

    def __init__(self, calls: Calls, path: str, selector: str, version: str, secs: float) -> None:
        self._calls, self._path, self._secs = calls, path, secs
        self._query: dict[str, str | int] = {
            "labelSelector": selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": max(1, round(secs)),
        }
        self._version = version
        self._reached = time.monotonic()  # last contact to the server
        self._news: queue.SimpleQueue[News | ClusterError | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._response: BaseHTTPResponse | None = None
        threading.Thread(target=self._run, name="edl-pods", daemon=True).start()

    def next(self, secs: float) -> News | None:
        """Return the next event, or None after `secs` seconds or when closed.

        Raises ClusterError if the stream cannot resume; list the pods and open a new one.
        """
        try:
            news = self._news.get(timeout=secs)
        except queue.Empty:
            return None
        if isinstance(news, ClusterError):
            raise news
        return news

    def close(self) -> None:
        self._closed.set()
        self._news.put(None)
        if (response := self._response) is not None:
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # it is just ending
                response.shutdown()  # wakes the reading thread

    def _run(self) -> None:
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                self._watch()
            except APIUnreachableError as error:
                if time.monotonic() - self._reached > PATIENCE:
                    return self._news.put(error)
            except ClusterError as error:
                return self._news.put(error)
            self._closed.wait(max(0.0, began + LEAST_SECS - time.monotonic()))
        return None

    def _watch(self) -> None:
        """Run one watch to its end. Raises UnreachableError if it breaks."""
        from urllib3.exceptions import HTTPError

        silence = self._secs + SILENCE_SECS
        response = self._calls.stream(self._path, {**self._query, "resourceVersion": self._version}, silence)
        self._response, self._reached = response, time.monotonic()
        try:
            for line in _lines(response):
                if self._closed.is_set():
                    return
                self._receive(_events.decode(line))
        except (HTTPError, OSError, ValueError, msgspec.DecodeError) as error:
            raise APIUnreachableError(f"the watch of pods was interrupted: {error}") from None
        finally:
            self._reached = time.monotonic()
            self._response = None
            response.close()

    def _receive(self, event: PodEvent) -> None:
        if event.type == "ERROR":
            raise ClusterError(f"the watch of pods ended: {_refusals.decode(event.object).message}")
        pod = _pods.decode(event.object)
        self._version = pod.metadata.resource_version
        if event.type != "BOOKMARK":
            self._news.put((pod, event.type != "DELETED"))


def _lines(response: BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the complete lines of the response; a truncated last line is dropped."""
    rest = b""
    for piece in response.stream(1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        yield from filter(None, lines)
