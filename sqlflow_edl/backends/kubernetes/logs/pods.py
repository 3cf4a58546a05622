"""Logs of all pods of a job, or of one instance's pods: past and new lines."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from edl.cluster.kubernetes.api_calls import APIUnreachableError
from edl.cluster.kubernetes.pods import Pod
from edl.errors import ClusterError
from edl.jobs.event_log import decode_event
from sqlflow_edl.backends.kubernetes.job_status import JobObjects, instance_name
from sqlflow_edl.backends.kubernetes.logs.pod import PodLog

LOOK = 2.0  # seconds between two polls of the pods

Line = tuple[str, str]


class PodLogs:
    """Lines with the names of their instances, without the events that the master prints for followers of the job.

    instance: None for all. follow: continue until the job has ended.
    """

    def __init__(self, objects: JobObjects, instance: str | None, *, follow: bool) -> None:
        self._objects = objects
        self._instance = instance
        self._follow = follow
        self._logs: dict[str, tuple[str, PodLog]] = {}  # by uid: name of the instance, and the log
        self._lines: queue.Queue[Line | ClusterError | None] = queue.Queue()
        self._reading = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self._logs.values()))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if not self._follow:
            for name_and_log in filter(None, map(self._new_log, self._objects.pods())):
                yield from _lines(*name_and_log)
            return
        going = True
        while going or self._reading:
            going = going and self._follow_new_pods()
            yield from self._come()

    def _follow_new_pods(self) -> bool:
        """Start to read the logs of new pods; return whether the job continues."""
        try:
            job = self._objects.job()  # read before the pods, or the last of them are missed
            pods = self._objects.pods()
        except APIUnreachableError:
            return True
        for pod in pods:
            name_and_log = self._new_log(pod)
            if name_and_log is None:
                continue
            name, log = name_and_log
            self._reading += 1
            reader = threading.Thread(
                target=_pass_on, args=(name, log, self._lines), name="sqlflow-log", daemon=True
            )
            reader.start()
            if pod.has_ended:  # read it to the end first, to keep the order of time
                reader.join()
        return job is not None and not job.is_over

    def _new_log(self, pod: Pod) -> tuple[str, PodLog] | None:
        """Return the log of the pod with the name of its instance, or None if it is known or not selected."""
        name, uid = instance_name(pod), pod.metadata.uid
        if uid in self._logs or self._instance not in (None, name):
            return None
        follow = self._follow and not pod.has_ended
        self._logs[uid] = name, PodLog(self._objects, pod, follow=follow)
        return self._logs[uid]

    def _come(self) -> Iterator[Line]:
        """Yield lines, until none has come for a while or a log has ended."""
        while True:
            try:
                line = self._lines.get(timeout=LOOK)
            except queue.Empty:
                return
            if line is None:
                self._reading -= 1
                return
            if isinstance(line, ClusterError):
                raise line
            yield line

    def __enter__(self) -> PodLogs:
        return self

    def __exit__(self, *error: object) -> None:
        for _, log in self._logs.values():
            log.close()


def _lines(name: str, log: PodLog) -> Iterator[Line]:
    return ((name, f"{text}\n") for text in log if decode_event(text) is None)


def _pass_on(name: str, log: PodLog, lines: queue.Queue[Line | ClusterError | None]) -> None:
    """Pass lines to the queue, in a thread of its own."""
    try:
        for line in _lines(name, log):
            lines.put(line)
    except ClusterError as error:
        lines.put(error)
    finally:
        lines.put(None)
