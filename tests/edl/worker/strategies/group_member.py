"""A member of groups in a process of its own, and the process that forks members once it has imported the framework.

    python -m tests.edl.worker.strategies.group_member FRAMEWORK DESCRIPTOR

A test says what a member is to do, in lines of JSON over a socket (`tests.edl.worker.strategies.groups`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edl import frameworks
from edl.collectives.base import GroupError
from edl.frameworks import Minibatches
from edl.program import load
from edl.reachability import Peer
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import Report, Task
from edl.worker.strategies.base import VoidError

SIZE = 16
ROWS = 400
rng = np.random.default_rng(11)
FEATURES: dict[str, Any] = {
    "x": rng.normal(size=(ROWS, 3)).astype(np.float32),
    "f0": rng.integers(0, 60, ROWS),
    "f1": rng.integers(0, 60, ROWS),
}
LABELS = (np.sin(FEATURES["f0"] / 10) + FEATURES["x"][:, 0])[:, None].astype(np.float32)
WEIGHTS = rng.uniform(0.5, 1.5, ROWS).astype(np.float32)


def rows(first: int, last: int, size: int = SIZE, weighted: bool = False) -> Minibatches:
    """The rows [first, last)."""
    some = slice(first, last)
    whole = Minibatches(FEATURES, LABELS, size, WEIGHTS if weighted else None)
    return whole.rows(some)


def create(program: Path, seed: int) -> frameworks.Adapter:
    few = rows(0, 2)
    return frameworks.create(load(program), few.features, few.labels, seed=seed)


def halved(first: int, count: int) -> np.ndarray:
    """A learning rate for each step."""
    return (0.02 / 2 ** np.arange(first, first + count)).astype(np.float32)


class PromptPeer(Peer):
    """Peer that has its reason reported before `failed` returns, so that no answer can come before it."""

    def on_failure(self, find: Callable[[], str] | None = None) -> None:
        super().on_failure(find)
        for thread in threading.enumerate():
            if thread.name == "edl-reachability":
                thread.join()


class Member:
    """Does what it is told, and is the rendezvous of its own strategy: the test forms the groups."""

    def __init__(self, name: str, said: Any, say: Callable[[dict[str, Any]], None]) -> None:
        self._name = name
        self._said = said
        self._say = say
        self._without: list[str] = []
        self._number = 0
        self._leaves_at = -1
        self.followed: dict[str, Any] = {}
        self._told: list[str] = []

    def run(self) -> None:
        for line in self._said:
            given = json.loads(line)
            answer = getattr(self, given.pop("do"))(**given)
            self._say(answer or {})

    # What it is told ----------------------------------------------------------------------------------------

    def build(self, program: str, seed: int, least_timeout: float) -> dict[str, Any]:
        from edl.collectives.gloo import GlooHost
        from edl.worker.strategies.allreduce import member
        from edl.worker.strategies.allreduce.strategy import AllReduce

        member.LEAST_TIMEOUT = least_timeout
        self.adapter = create(Path(program), seed)
        host = GlooHost()
        self.strategy = AllReduce(self.adapter, self, host, self._name)
        peer = PromptPeer("the other members of its group", "", tell=self._told.append, seconds=0.0)
        self.strategy._others = peer
        return {"address": host.address}

    def told(self) -> dict[str, Any]:
        """Return the lines that it reports about members that it cannot reach."""
        return {"told": self._told}

    def join(self) -> dict[str, Any]:
        self.strategy.join()
        return self._stands()

    def train(
        self,
        first: int,
        last: int,
        size: int = SIZE,
        weighted: bool = False,
        rates: bool = False,
        happens: str = "",
        at: int = -1,
    ) -> dict[str, Any]:
        """happens: what befalls it in the step that follows `at` others."""
        self._happen(happens, at)
        minibatches = rows(first, last, size, weighted)
        task = Task(1, "train", first, last, 1)
        try:
            losses = self.strategy.train(minibatches, Report(task), halved if rates else None)
        except VoidError:
            return {"void": True, **self._stands()}
        except ZeroDivisionError:
            return {"raised": True}
        finally:
            self._leaves_at = -1
        return {"losses": losses.tolist(), **self._stands()}

    def flush(self) -> dict[str, Any]:
        before = self.strategy.is_durable(self.strategy.mark())
        self.strategy.flush()
        return {"before": before, "after": self.strategy.is_durable(self.strategy.mark())}

    def keep(self, epoch: int) -> None:
        self.strategy.keep(epoch)

    def random(self) -> dict[str, Any]:
        return {"random": self.adapter.get_random().hex()}

    def save(self, path: str, epoch: int = 0) -> None:
        """Weights, and with the present weights the optimizer's state."""
        from edl.models.weights import save

        weights = dict(self.strategy.weights(epoch))
        state = {f"state/{name}": array for name, array in self.adapter.get_state().items()}
        save(weights if epoch else weights | state, Path(path))

    def store(self, key: str, value: str = "") -> dict[str, Any]:
        """Set it, or get it."""
        if value:
            self._store.set(key, value.encode())
            return {}
        return {"value": self._store.get(key).decode()}

    def _stands(self) -> dict[str, Any]:
        return {"step": self.strategy.step, "without": self._without, **self.followed}

    def _happen(self, what: str, at: int) -> None:
        strategy = self.strategy
        add_up = strategy.sum

        def befallen(part: Any) -> Any:
            if strategy.step == at:
                vars(strategy).pop("sum")
                if what == "killed":
                    os._exit(1)
                if what == "frozen":
                    os.kill(os.getpid(), signal.SIGSTOP)
                if what == "raises":
                    raise ZeroDivisionError
                if what == "late":  # the others have taken the step
                    add_up(part)
                    raise GroupError
            return add_up(part)

        if what == "leaves":
            self._leaves_at = at
        elif what:
            strategy.sum = befallen  # type: ignore[method-assign]

    # The rendezvous -----------------------------------------------------------------------------------------

    def next_group(self, done: Report | None = None) -> WorkerGroup:
        self._done = done
        self._say({"seeks": self._number, "without": self._without})
        return msgspec.json.decode(self._said.readline(), type=WorkerGroup)

    def position(self) -> bytes:
        done = self._done
        return json.dumps({"rows": done.rows if done else 0, "loss": done.loss if done else 0.0}).encode()

    def follow(self, position: bytes, group: WorkerGroup, store: Any, rank: int) -> None:
        self._number, self._store = group.number, store
        self.followed = {"group": group.number, "rank": rank, **json.loads(position)}

    @property
    def regroup(self) -> bool:
        return self.strategy.step == self._leaves_at

    def leave_out(self, members: Sequence[str]) -> None:
        self._without = list(members)


def _serve(framework: str, control: socket.socket) -> None:
    """Fork a member for each name that comes, with its socket."""
    frameworks.prepare(framework, 1)
    import edl.collectives.gloo
    import edl.embeddings.kernels
    import edl.worker.strategies.allreduce.strategy  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        name, descriptors, _, _ = socket.recv_fds(control, 100, 1)
        if not name:
            return
        if child := os.fork():
            os.close(descriptors[0])
            control.send(child.to_bytes(4, "little"))
            continue
        control.close()
        _be(name.decode(), socket.socket(fileno=descriptors[0]))


def _be(name: str, connection: socket.socket) -> None:
    try:
        said = connection.makefile("r")
        Member(name, said, lambda answer: connection.sendall(json.dumps(answer).encode() + b"\n")).run()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
