"""Starts the double in a process of its own, and says to it what a test wants."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from tests.kubernetes.faults import Fault
from tests.kubernetes.nodes import NODE_NAME

REPOSITORY = Path(__file__).parents[2]


@dataclass
class Cluster:
    """A double that runs. Every test has a namespace of its own."""

    port: int
    administrator: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = None) -> Any:
        """The official client of whom the token belongs to: the administrator unless it is given."""
        from kubernetes import client

        configuration = client.Configuration(host=self.url)
        configuration.api_key["authorization"] = f"Bearer {token or self.administrator}"
        configuration.retries = False
        return client.ApiClient(configuration)

    def new_namespace(self) -> str:
        name = f"space-{next(self._numbers)}"
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return name

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """As the administrator, without a client."""
        headers = {"Authorization": f"Bearer {self.administrator}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        with contextlib.closing(connection), connection.getresponse() as answer:
            told = json.load(answer)
            assert answer.status < 300, told
            return told

    def go_wrong(self, *faults: Fault) -> None:
        """From now on; what was to go wrong before is forgotten."""
        self.ask("POST", "/double/faults", msgspec.to_builtins(faults))

    def pass_time(self, seconds: float) -> float:
        """The double's clock goes on at once, and from now on only so. Its time then."""
        return float(self.ask("POST", "/double/clock", seconds)["now"])

    def due(self) -> float:
        """In how many seconds of its clock it has something to do, when it has settled; infinity where it has not."""
        told = self.ask("POST", "/double/clock", 0)
        return float("inf") if told["due"] is None else float(told["due"] - told["now"])

    def run_out_of_memory(self, namespace: str, pod: str) -> None:
        """The pod's first container is killed for it."""
        self.ask("POST", "/double/memory", [namespace, pod])

    def capacity(self, **amounts: str) -> None:
        """From now on the node has so much for pods: cpu, memory, pods."""
        path = f"/api/v1/nodes/{NODE_NAME}/status"
        status = self.ask("GET", path)["status"]
        allocatable = {**status["allocatable"], **amounts}
        self.ask("PUT", path, {"status": {**status, "allocatable": allocatable}})

    def queue(self, namespace: str, name: str, **amounts: str) -> None:
        """Make a queue of Kueue that admits Jobs and pods up to that, or change what it admits: cpu, memory, pods."""
        self.ask("POST", "/double/queue", [namespace, name, amounts])

    def add_node(self, name: str, **amounts: str) -> None:
        """One more, with so much for pods. The first is node-1."""
        self.ask("POST", "/double/add-node", [name, amounts])

    def lose_node(self, name: str) -> None:
        """As when a machine stops: its pods are gone, which nobody says, and deleted when they were tolerated for a
        moment; they are terminating until the node is removed.
        """
        self.ask("POST", "/double/lose-node", name)

    def remove_node(self, name: str) -> None:
        """As the owner of the machines does when one does not come back: what was on it is Failed, and gone."""
        self.ask("DELETE", f"/api/v1/nodes/{name}")

    def compact(self, revision: int = 0) -> None:
        """What is older cannot be listed or watched any more; without a revision, all that was."""
        self.ask("POST", "/double/compact", revision)

    def cut_watches(self) -> None:
        self.ask("POST", "/double/cut", 0)

    def calls(self, user: str) -> list[dict[str, str]]:
        """Return the user's last calls, allowed or not: verb, group, resource, namespace and name of each."""
        return [call for name, call in self.ask("POST", "/double/calls") if name == user]

    def requests(self) -> list[str]:
        """Method and target of each request since the last time."""
        return self.ask("POST", "/double/requests")  # type: ignore[no-any-return]


@contextmanager
def api_server(folder: Path, *, pace: Literal["quick", "real"] = "quick") -> Iterator[Cluster]:
    """The double as long as this lasts; it ends by itself when the test process does. Pods live in the folder."""
    command = [sys.executable, "-m", "tests.kubernetes.server", str(folder), pace]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    administrator = secrets.token_hex(16)
    process.stdin.write(administrator + "\n")
    process.stdin.flush()
    try:
        yield Cluster(int(process.stdout.readline()), administrator)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
