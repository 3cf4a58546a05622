"""Starts the double in a process of its own, and says to it what a test wants."""

from __future__ import annotations

import itertools
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import msgspec

from tests.maxcompute.faults import Fault

ACCOUNT = "LTAItester"
SECRET = "s3cret/with+signs=%"  # noqa: S105
REPOSITORY = Path(__file__).parents[2]


@dataclass
class Running:
    """A double that runs. Every test has a project of its own."""

    port: int
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def new_project(self) -> str:
        return f"project_{next(self._numbers)}"

    def url(self, project: str = "", secret: str = SECRET, *, port: int = 0) -> str:
        """Of a project, a new one unless it is named. port: of a proxy before the double."""
        port = port or self.port
        password, tunnel = quote(secret, safe=""), quote(f"http://127.0.0.1:{port}/api", safe="")
        options = f"curr_project={project or self.new_project()}&scheme=http&tunnel={tunnel}"
        return f"maxcompute://{ACCOUNT}:{password}@127.0.0.1:{port}/api?{options}"

    def go_wrong(self, *faults: Fault) -> None:
        """From now on; what was to go wrong before is forgotten."""
        self._tell("faults", msgspec.json.encode(faults))

    def poll(self, times: int) -> None:
        """An instance says so often that it still runs."""
        self._tell("polls", str(times).encode())

    def requests(self) -> list[str]:
        """Port of the client, method and target of each request since the last time."""
        return msgspec.json.decode(self._tell("requests"), type=list[str])

    def reset(self) -> None:
        self._tell("reset")
        self.requests()

    def _tell(self, what: str, body: bytes = b"") -> bytes:
        url = f"http://127.0.0.1:{self.port}/double/{what}"
        with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
            found: bytes = answer.read()
        return found


@contextmanager
def running() -> Iterator[Running]:
    """The double as long as this lasts; it ends by itself when the test process does."""
    command = [sys.executable, "-m", "tests.maxcompute.server", ACCOUNT]
    process = subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(SECRET + "\n")
    process.stdin.flush()
    try:
        yield Running(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
