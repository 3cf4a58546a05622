"""Sends the requests of a recorded trace to the double, in their order, and compares every answer and watch event."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.kubernetes.normal import Mapping
from tests.kubernetes.process import Cluster

Record = dict[str, Any]
TRACES = Path(__file__).parent / "traces"
PATIENCE = 6.0  # seconds for what the double does of its own accord
ADMINISTRATOR = None
LATE = 3.0  # seconds of the double's clock
MOMENT = 0.1
ROUNDING = 0.001
SLOW = 1.0  # seconds: a request that waits for the clock


def records(name: str) -> list[Record]:
    """In the order of their times. A call's record stands where its answer was complete, after what it caused."""
    found = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    offset, last = 0.0, 0.0
    for record in found:
        if record["t"] + offset < last - 100:  # another recording begins
            offset = last + 1
        record["t"] += offset
        last = max(last, record["t"])
    _repeat_specs(found)
    return _linearised(sorted(found, key=lambda record: record["t"]))


def _repeat_specs(found: list[Record]) -> None:
    """The recording leaves out a spec that is the same as in the previous event of an object."""
    specs: dict[tuple[str, str], Any] = {}
    for record in found:
        if "event" in record and "spec" in (recorded := record["event"]["object"]):
            key = record["step"], recorded["metadata"].get("uid", "")
            if isinstance(recorded["spec"], str):
                recorded["spec"] = specs[key]
            specs[key] = recorded["spec"]


def _linearised(found: list[Record]) -> list[Record]:
    """Calls that raced, in the order in which the server did them, which the versions in their answers tell."""
    racing = [record for record in found if record["step"].startswith("race-")]

    def place(record: Record) -> tuple[int, int]:
        asked, answer = record["request"], record["response"]
        if answer["status"] == 409:  # some write came before
            return int(asked["body"]["metadata"]["resourceVersion"]) + 1, 1
        return int(answer["body"]["metadata"]["resourceVersion"]), 0 if asked["method"] == "PUT" else 1

    times = sorted(record["t"] for record in racing)
    ordered = [
        {**record, "t": moment} for record, moment in zip(sorted(racing, key=place), times, strict=True)
    ]
    return sorted([record for record in found if record not in racing] + ordered, key=lambda one: one["t"])


class Stream:
    """A watch that is open. Events are taken in the order of each object, as they are told."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response, self._socket = connection, response, connection.sock
        self._lines: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._early: deque[Any] = deque()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            for line in self._response:
                self._lines.put(json.loads(line))
        except (OSError, http.client.HTTPException, ValueError):
            pass  # closed by us
        self._lines.put(None)
        self._response.close()
        self._connection.close()

    def take(self, wanted: Callable[[Any], bool], patience: float = PATIENCE) -> Any:
        """The next event of that kind; None when the stream ends before. `queue.Empty` when none comes."""
        for event in self._early:
            if wanted(event):
                self._early.remove(event)
                return event
        while True:
            event = self._lines.get(timeout=patience)
            if event is None:
                self._lines.put(None)
                return None
            if wanted(event):
                return event
            self._early.append(event)

    def rest(self) -> list[Any]:
        """What comes until the end and was not asked for."""
        self.take(lambda event: False)
        return list(self._early)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it has ended by itself
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()


@dataclass
class Replay:
    """`exceptions`: differences that are known, by what their text begins with.

    `unrecorded`: pods that were made beside the recording; they are made when their first event is due.
    """

    cluster: Cluster
    name: str
    exceptions: dict[str, str]
    unrecorded: set[str] = field(default_factory=set)
    mapping: Mapping = field(default_factory=Mapping)
    differences: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    _streams: dict[str, Stream] = field(default_factory=dict)
    _ends: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0

    def run(self) -> None:
        self.cluster.pass_time(0)
        try:
            self._replay()
        finally:
            for stream in self._streams.values():
                stream.close()

    def _replay(self) -> None:
        for record in records(self.name):
            self._go_on_to(record["t"])
            if "request" in record:
                self._request(record)
            elif "watch" in record:
                self._watch(record)
            elif record.get("note", "").startswith("the steps below were recorded some minutes later"):
                self.cluster.compact(1001)

    def _go_on_to(self, moment: float) -> None:
        if moment > self._now:
            self.cluster.pass_time(moment - self._now)
            self._now = moment

    def _note(self, step: str, found: list[str]) -> None:
        for one in found:
            known = self._known(step, one)
            if known is None:
                self.differences.append(f"{step}: {one}")
            else:
                self.used.add(known)

    def _known(self, step: str, difference: str) -> str | None:
        return next((start for start in self.exceptions if f"{step}: {difference}".startswith(start)), None)

    def _request(self, record: Record) -> None:
        label = f"{record['step']} {record['request']['path'].rpartition('/')[2]}"
        is_read, until = record["request"]["method"] == "GET", time.monotonic() + PATIENCE
        while True:
            answer = self._answer(record)
            mapping = self.mapping.copy()
            found = list(_compared(mapping, record["response"], answer))
            unknown = [one for one in found if self._known(label, one) is None]
            if not unknown or not is_read or time.monotonic() > until or answer["status"] >= 400:
                break
            time.sleep(0.02)  # what is read is on its way there
        self.mapping = mapping
        self._note(label, found)

    def _answer(self, record: Record) -> Record:
        if record["took"] < SLOW:
            return self._sent(record)[0]
        answers: queue.SimpleQueue[Record] = queue.SimpleQueue()
        threading.Thread(target=lambda: answers.put(self._sent(record)[0]), daemon=True).start()
        while True:
            try:
                return answers.get(timeout=0.02)
            except queue.Empty:
                self.cluster.pass_time(SLOW)
                self._now += SLOW

    def _sent(self, record: Record) -> tuple[Record, Any, Any]:
        asked = record["request"]
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=PATIENCE)
        path = self.mapping.text(asked["path"])
        if asked["query"]:
            path += "?" + urlencode(self.mapping.translated(asked["query"]))
        headers = self._headers(asked)
        connection.request(asked["method"], path, self._body(asked["body"]), headers)
        response = connection.getresponse()
        body = response.read()
        is_json = (response.headers["Content-Type"] or "").startswith("application/json")
        answer = {
            "status": response.status,
            "headers": {"Content-Type": response.headers["Content-Type"]},
            "body": json.loads(body) if is_json else body.decode(),
        }
        for header, name in (("Warning", "warning"), ("Retry-After", "retry_after")):
            if header in response.headers:
                answer[name] = [response.headers[header]]
        connection.close()
        return answer, connection, response

    def _headers(self, asked: Record) -> dict[str, str]:
        headers = {"Content-Type": asked["content_type"]} if asked.get("content_type") else {}
        auth = asked.get("auth", ADMINISTRATOR)
        if auth is ADMINISTRATOR:
            headers["Authorization"] = f"Bearer {self.cluster.administrator}"
        elif auth != "none":
            token = self.mapping.text("<TOKEN>") if "of the ServiceAccount" in auth else "bad"
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _body(self, recorded: Any) -> bytes | None:
        if recorded is None:
            return None
        sent = self.mapping.translated(recorded)
        return sent.encode() if isinstance(sent, str) else json.dumps(sent).encode()

    def _watch(self, record: Record) -> None:
        step = record["step"]
        if "opened" in record:
            self._streams[step] = self._opened(record)
            self._ends[step] = self._now + float(record["watch"]["query"].get("timeoutSeconds", "inf"))
        elif "event" in record:
            self._event(step, record["event"])
        elif record["closed"]["by"] == "server":
            end = self._ends[step]
            if record["t"] > end - SLOW:  # its time was counted from a little earlier
                self._go_on_to(end + ROUNDING)
            stream = self._streams.pop(step)
            left = [event for event in stream.rest() if event["type"] != "BOOKMARK"]
            stream.close()
            self._note(step, [f"not recorded: {event}" for event in left])
        else:
            self._streams.pop(step).close()

    def _opened(self, record: Record) -> Stream:
        asked = record["watch"]
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=PATIENCE)
        path = asked["path"] + "?" + urlencode(self.mapping.translated(asked["query"]))
        connection.request("GET", path, headers=self._headers(asked))
        response = connection.getresponse()
        connection.sock.settimeout(None)
        if response.status != record["opened"]["status"]:
            self._note(record["step"], [f"opened with {response.status}"])
        return Stream(connection, response)

    def _awaited(self, stream: Stream, wanted: Callable[[Any], bool]) -> Any:
        """It may take the double a little longer, by its clock, and processes as long as they run."""
        until, latest = time.monotonic() + PATIENCE, self._now + LATE
        while True:
            try:
                return stream.take(wanted, MOMENT)
            except queue.Empty:
                if time.monotonic() > until:
                    return None
                if self._now < latest:
                    self._go_on_to(self._now + MOMENT)

    def _event(self, step: str, recorded: Any) -> None:
        name = self.mapping.text(recorded["object"]["metadata"].get("name", ""))
        if recorded["type"] == "ADDED" and name in self.unrecorded:
            self.unrecorded.remove(name)
            metadata = {"name": name, "labels": recorded["object"]["metadata"].get("labels", {})}
            namespace = recorded["object"]["metadata"]["namespace"]
            pod = {"metadata": metadata, "spec": recorded["object"]["spec"]}
            self.cluster.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        wanted = _wanted(
            recorded, name, is_bound=self.mapping.knows(recorded["object"]["metadata"].get("name", ""))
        )
        event = self._awaited(self._streams[step], wanted)
        if event is None:
            metadata = recorded["object"]["metadata"]
            self._note(step, [f"never came: {recorded['type']} {name} {metadata.get('resourceVersion')}"])
        else:
            self._note(step, self.mapping.differences(recorded, event, f"{recorded['type']} {name}"))


def _wanted(recorded: Any, name: str, *, is_bound: bool) -> Callable[[Any], bool]:
    """Which event is the recorded one: the next of its object, whose name a server may have made."""
    is_bookmark = recorded["type"] == "BOOKMARK"
    prefix = recorded["object"]["metadata"].get("generateName")

    def wanted(event: Any) -> bool:
        metadata = event["object"]["metadata"]
        if prefix and not is_bound:
            return bool(event["type"] == "ADDED" and metadata.get("generateName") == prefix)
        return (event["type"] == "BOOKMARK") == is_bookmark and metadata.get("name", "") == name

    return wanted


def _compared(mapping: Mapping, recorded: Record, ours: Record) -> Iterator[str]:
    if recorded["status"] != ours["status"]:
        yield f"status {recorded['status']} recorded, {ours['status']} here: {ours['body']}"
    else:
        yield from mapping.differences(recorded, ours)
