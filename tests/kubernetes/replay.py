"""Sends the requests of a recorded trace to the double, in their order, and compares every answer and watch event."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.kubernetes.followed import Followed, without_times
from tests.kubernetes.normal import Mapping
from tests.kubernetes.process import Cluster
from tests.kubernetes.recording import Glances, Known, Record, records, second_at_start

PATIENCE = 6.0  # seconds for what the double does of its own accord
ADMINISTRATOR = None
MOMENT = 0.1
ROUNDING = 0.001
ENDLESS = 2**63  # bytes
SLOW = 1.0  # seconds: a request that waits for the clock


class Stream:
    """A watch that is open. Events are taken in the order of each object, as they are told; glances are dropped."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        glances: Glances | None,
    ) -> None:
        self._connection, self._response, self._socket = connection, response, connection.sock
        self._glances = glances
        self._lines: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._early: deque[Any] = deque()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            for event in map(json.loads, self._response):
                if self._glances is None or not self._glances.is_one(event):
                    self._lines.put(event)
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

    def give_back(self, event: Any) -> None:
        """It is to be taken again."""
        self._early.appendleft(event)

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
    """`known`: what the double does otherwise. What of it was met is in `met`, all else in `differences`."""

    cluster: Cluster
    name: str
    known: Known
    mapping: Mapping = field(init=False)
    differences: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    _streams: dict[str, Stream] = field(default_factory=dict)
    _glances: dict[str, Glances] = field(default_factory=dict)
    _logs: dict[str, Followed] = field(default_factory=dict)
    _ends: dict[str, float] = field(default_factory=dict)
    _now: float = 0.0

    def __post_init__(self) -> None:
        self.mapping = Mapping(self.known.words, self.known.hurry)

    def run(self) -> None:
        found = records(self.name)
        began = self.cluster.pass_time(0)
        self.cluster.pass_time((second_at_start(found) - began) % 1)
        try:
            self._replay(found)
        finally:
            for stream in [*self._streams.values(), *self._logs.values()]:
                stream.close()

    def _replay(self, found: list[Record]) -> None:
        for record in found:
            self._go_on_to(record["t"])
            if "request" in record:
                self._request(record)
            elif "watch" in record:
                self._watch(record)
            elif "stream" in record:
                self._follow(record)
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
                self.met.add(known)

    def _known(self, step: str, difference: str) -> str | None:
        return next(
            (start for start in self.known.exceptions if f"{step}: {difference}".startswith(start)), None
        )

    def _request(self, record: Record) -> None:
        label = f"{record['step']} {record['request']['path'].rpartition('/')[2]}"
        is_read, began, asked = record["request"]["method"] == "GET", time.monotonic(), self._now
        while True:
            answer = self._answer(record)
            mapping = self.mapping.copy()
            found = list(_compared(mapping, record["response"], answer))
            unknown = [one for one in found if self._known(label, one) is None]
            waited = time.monotonic() - began
            if not unknown or not is_read or waited > PATIENCE or answer["status"] >= 400:
                break
            time.sleep(0.02)  # what is read is on its way there
            self._let_time_pass(asked + waited)
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
            "body": json.loads(body) if is_json else body.decode() or None,
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
            self._streams[step], self._glances[step] = self._opened(record), self._new_glances()
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
        opened = self._opened_stream(record, record["watch"])
        return Stream(*opened, self._new_glances() if self.known.was_busy else None)

    def _opened_stream(
        self, record: Record, asked: Record
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.port, timeout=PATIENCE)
        path = asked["path"] + "?" + urlencode(self.mapping.translated(asked["query"]))
        connection.request("GET", path, headers=self._headers(asked))
        response = connection.getresponse()
        connection.sock.settimeout(None)
        if response.status != record["opened"]["status"]:
            self._note(record["step"], [f"opened with {response.status}"])
        return connection, response

    def _new_glances(self) -> Glances:
        return Glances(lambda version, before: self.mapping.pass_over(version, before))

    def _follow(self, record: Record) -> None:
        """A log. What comes between its last recorded piece and its end is up to how long processes had."""
        step = record["step"]
        if "opened" in record:
            connection, response = self._opened_stream(record, record["stream"])
            self._logs[step] = Followed(connection, response)
        elif "chunk" in record:
            log, recorded = self._logs[step], record["chunk"]
            ours = self._awaited(functools.partial(log.take, len(recorded))) or ""
            if without_times(ours) != without_times(recorded):
                self._note(step, [f"{recorded!r} recorded, {ours!r} here"])
        elif self._awaited(functools.partial(self._logs[step].take, ENDLESS)) is None:
            self._note(step, ["does not end"])

    def _awaited(self, take: Callable[[float], Any]) -> Any:
        """It may take the double a little longer, by its clock, and processes as long as they run.

        So its clock goes on meanwhile, but no faster than the time of the processes.
        """
        began, asked = time.monotonic(), self._now
        while True:
            try:
                return take(MOMENT)
            except queue.Empty:
                waited = time.monotonic() - began
                if waited > PATIENCE:
                    return None
                self._let_time_pass(asked + waited)

    def _differs(self, recorded: Any, event: Any) -> bool:
        return bool(self.mapping.copy().differences(recorded, event))

    def _let_time_pass(self, until: float) -> None:
        if (due := self._now + self.cluster.due()) < until:
            self._go_on_to(due + ROUNDING)

    def _event(self, step: str, recorded: Any) -> None:
        recorded_name = recorded["object"]["metadata"].get("name", "")
        if self.known.was_busy and self._glances[step].is_one(recorded):
            return
        said = f"{step} {recorded['object']['metadata'].get('resourceVersion')}"
        if said in self.known.races:
            self.met.add(said)
            return
        name = self.mapping.text(recorded_name)
        if recorded["type"] == "ADDED" and name in self.known.unrecorded and name not in self.met:
            self.met.add(name)
            metadata = {"name": name, "labels": recorded["object"]["metadata"].get("labels", {})}
            namespace = recorded["object"]["metadata"]["namespace"]
            pod = {"metadata": metadata, "spec": recorded["object"]["spec"]}
            self.cluster.ask("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
        wanted = _wanted(
            recorded, name, is_bound=self.mapping.knows(recorded["object"]["metadata"].get("name", ""))
        )
        take = functools.partial(self._streams[step].take, wanted)
        event = self._awaited(take)
        while said in self.known.late and event and self._differs(recorded, event):
            event = self._awaited(take)
        if said in self.known.passing and event and self._differs(recorded, event):
            self._streams[step].give_back(event)
        elif event is None:
            metadata = recorded["object"]["metadata"]
            self._note(
                step, [f"never came: {recorded['type']} {recorded_name} {metadata.get('resourceVersion')}"]
            )
        else:
            self._note(step, self.mapping.differences(recorded, event, f"{recorded['type']} {recorded_name}"))


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
