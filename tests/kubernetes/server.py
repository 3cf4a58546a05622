"""The double's process: an HTTP server on loopback that the official client takes for a Kubernetes API server.

    python -m tests.kubernetes.server FOLDER quick|real

FOLDER is where pods live; how fast they come is up to the last argument. The administrator's token comes on standard
input; the port is printed.

`/double/…` is for tests: faults, the clock, compaction. The server ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from tests.kubernetes import messages
from tests.kubernetes.access import Access
from tests.kubernetes.api import Api
from tests.kubernetes.budgets import Budgets
from tests.kubernetes.clock import Clock
from tests.kubernetes.collector import Collector
from tests.kubernetes.controllers import QUICK, REAL, Controllers
from tests.kubernetes.disruption import PodCollector, Taints
from tests.kubernetes.errors import RefusedError, status, throttled
from tests.kubernetes.events import Events
from tests.kubernetes.eviction import Evictions
from tests.kubernetes.expiry import Expiry
from tests.kubernetes.faults import Fault, Faults
from tests.kubernetes.jobs import Jobs
from tests.kubernetes.kinds import NAMESPACE
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.logs import Logs
from tests.kubernetes.messages import Answer, Request
from tests.kubernetes.namespaces import Namespaces
from tests.kubernetes.network import Network
from tests.kubernetes.nodes import NODE_NAME, add_node, lose_node
from tests.kubernetes.queues import Queues
from tests.kubernetes.quotas import Quotas
from tests.kubernetes.registry import Registry
from tests.kubernetes.scheduler import Scheduler
from tests.kubernetes.services import Services
from tests.kubernetes.store import Store


class Double:
    """Everything but HTTP."""

    def __init__(self, administrator: str, folder: Path, url: str, *, at_real_pace: bool) -> None:
        self.store = Store()
        self.clock = Clock(self.store.changed)
        self.network = Network()
        self.registry = Registry(self.store, self.clock, self.network.services)
        self.access = Access(self.store, self.clock, administrator)
        self.api = Api(self.registry, self.access)
        self.faults = Faults()
        self.requests: list[str] = []
        with self.store.changed:
            for name in ("default", "kube-system"):
                self.registry.create(NAMESPACE, "", {"metadata": {"name": name}})
            add_node(self.registry)
        pace = REAL if at_real_pace else QUICK
        services = Services(self.store, self.network.services)
        events = Events(self.store, self.clock, NODE_NAME)
        self.kubelet = Kubelet(
            self.registry, self.access, services, events, self.network.pods, folder, url, pace
        )
        Logs(self.api, self.kubelet)
        Evictions(self.api)
        self.queues = Queues(self.registry)
        parts = [
            Jobs(self.registry, events, pace),
            Expiry(self.registry),
            Namespaces(self.registry),
            Budgets(self.store, self.clock),
            Quotas(self.store),
            self.queues,
            Taints(self.registry, pace),
            PodCollector(self.registry, pace),
            Collector(self.registry, pace),
            services,
            Scheduler(self.registry, events, pace),
            self.kubelet,
        ]
        self.controllers = Controllers(self.store, self.clock, parts, self.stop)
        self.controllers.start()

    def stop(self, code: int = 1) -> None:
        """The whole process, with its pods."""
        self.kubelet.kill_all()
        os._exit(code)

    def answer(self, request: Request) -> Answer:
        try:
            match request.path:
                case ("apis", "visibility.kueue.x-k8s.io", "v1beta1", _, space, _, queue, "pendingworkloads"):
                    user = self.access.user(request.headers.get("authorization", ""))
                    if not user.is_administrator:  # no Role of the tests has it
                        return messages.told(status(403, "Forbidden", "no right to see the queue"), 403)
                    return messages.told(self.queues.pending(space, queue))
                case ("apis", "kueue.x-k8s.io", "v1beta1", _, space, "workloads", *name):
                    return self._workloads(request, space, *name)
            return self.api.answer(request)
        except RefusedError as refused:
            return messages.refusal(refused)
        except Exception as mistake:  # of the double itself, which nobody shall try again
            told = "".join(traceback.format_exception(mistake))
            return messages.told(status(400, "DoubleFailed", told), 400)

    def _workloads(self, request: Request, namespace: str, name: str = "") -> Answer:
        """Return the workloads that Kueue has not admitted, with its reason."""
        user = self.access.user(request.headers.get("authorization", ""))
        if not user.is_administrator:
            return messages.told(status(403, "Forbidden", "no right to read workloads"), 403)
        items = self.queues.workloads(namespace)
        if not name:
            return messages.told(
                {"kind": "WorkloadList", "apiVersion": "kueue.x-k8s.io/v1beta1", "items": items}
            )
        named = [item for item in items if item["metadata"]["name"] == name]
        return messages.told(named[0]) if named else messages.told(status(404, "NotFound", name), 404)

    def control(self, request: Request) -> Answer:
        """What tests ask of the double itself."""
        asked = json.loads(request.body or b"null")
        match request.path[1]:
            case "faults":
                self.faults.replace(msgspec.convert(asked, list[Fault]))
            case "clock":
                return messages.told(self.controllers.pass_time(asked))
            case "queue":
                self.queues.limit(*asked)
            case "compact":
                self.store.compact(asked or self.store.revision)
            case "cut":
                for watch in list(self.api.watches):
                    watch.end()
            case "add-node":
                with self.store.changed:
                    add_node(self.registry, *asked)
            case "lose-node":
                with self.store.changed:
                    self.kubelet.lose(asked)
                    lose_node(self.registry, asked)
            case "memory":
                with self.store.changed:
                    self.kubelet.run_out_of_memory(*asked)
            case what:
                return messages.told(self._heard(what))
        return messages.told(None)

    def _heard(self, what: str) -> Any:
        """Return the calls of clients."""
        if what == "calls":
            return [(user, vars(call)) for user, call in list(self.api.calls)]
        told, self.requests = self.requests, []
        return told


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    double: Double

    def do_GET(self) -> None:
        request = self._request()  # with its body, else the next one on this connection begins in it
        if request.path[:1] == ("double",):
            self._send(self.double.control(request))
            return
        line = f"{self.command} {unquote(self.path)}"
        self.double.requests.append(line)
        fault = self.double.faults.of(line)
        if fault is not None and fault.kind == "delay":
            time.sleep(fault.seconds)
        if fault is not None and fault.kind == "drop":
            self.close_connection = True
            return
        answer = self._answer(request, fault)
        if fault is not None and fault.kind == "lose":
            self.close_connection = True
            return
        if answer.stream is not None:
            self._stream(answer, answer.stream, fault)
        else:
            self._send(answer)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as http.server calls them

    def log_message(self, *_: Any) -> None:
        """Tests ask for what was requested."""

    def _answer(self, request: Request, fault: Fault | None) -> Answer:
        if fault is not None and fault.kind == "throttle":
            return messages.refusal(throttled())
        if fault is not None and fault.kind == "status":
            return messages.told(status(fault.status, "", fault.message), fault.status)
        return self.double.answer(request)

    def _request(self) -> Request:
        path, _, query = self.path.partition("?")
        parts = tuple(unquote(part) for part in path.strip("/").split("/"))
        options = dict(parse_qsl(query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return Request(self.command, parts, options, headers, body)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _stream(self, answer: Answer, pieces: Iterator[bytes], fault: Fault | None) -> None:
        """Chunked; one that is cut ends without the last chunk."""
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        cut = fault.events if fault is not None and fault.kind == "cut" else None
        for number, piece in enumerate(pieces):
            if number == cut:
                break
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            self.wfile.write(b"0\r\n\r\n")
            return
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the midst of an answer is no error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    folder, pace = sys.argv[1:]
    server = Server(("127.0.0.1", 0), Handler)
    administrator, url = sys.stdin.readline().rstrip("\n"), f"http://127.0.0.1:{server.server_address[1]}"
    Handler.double = Double(administrator, Path(folder), url, at_real_pace=pace == "real")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    Handler.double.stop(0)


if __name__ == "__main__":
    main()
