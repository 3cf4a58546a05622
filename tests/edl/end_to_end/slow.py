"""Jobs that take their time until a test has done with them what it wants: so nothing depends on who is quicker."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from edl.jobs.events import Tally
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import WAITING, Snapshot, read_snapshot
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.local import LocalJobHandle
from tests.edl.end_to_end.distributed import Event, Job

SECONDS = 60.0  # until a wait of a test has failed
POLL = 0.05
STEPS = "def loss(labels, predictions):\n"  # what may take its time: each step, in PyTorch,
BLOCKS = "def feed(batch, mode):\n"  # or each block of rows,
ROUNDS = "def on_round():\n"  # or each round of trees; their program ends with `CALLBACKS`
CALLBACKS = f"""

from edl.callbacks import Callback


{ROUNDS}    pass


class Rounds(Callback):
    def on_epoch_end(self, epoch, metrics, control):
        on_round()


def callbacks():
    return [Rounds()]
"""


def slow_trees(data: pa.Table, **job: Any) -> SlowJob:
    """Trees, because their processes start fastest; each round takes its time."""
    return SlowJob(data, of=ROUNDS, framework="lightgbm", append=CALLBACKS, **job)


class SlowJob(Job):
    """Each step, or what `of` says, takes `seconds` until `hurry` is called; all of them, more than the test does."""

    def __init__(self, data: pa.Table, *, of: str = STEPS, seconds: float = 0.1, **job: Any) -> None:
        super().__init__(data, **job)
        self._told = self.folder.path / "hurry"
        self._rows = 0
        self._running: Future[Outcome] = Future()
        model = self.folder.program / "model.py"
        text = model.read_text()
        assert of in text
        path = f"__import__('pathlib').Path({str(self._told)!r})"
        wait = f"    __import__('time').sleep(0 if {path}.exists() else {seconds})\n"
        model.write_text(text.replace(of, of + wait))

    def hurry(self) -> None:
        self._told.touch()

    def slow_down(self) -> None:
        self._told.unlink(missing_ok=True)

    def run_until(self, enough: Callable[[Event], object]) -> Outcome:
        """Run it, slowly until `enough` says so of an event."""
        return self.run(lambda event: self.hurry() if enough(event) else None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run it meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            self._running = pool.submit(self.run)
            try:
                yield
            finally:
                self.hurry()

    def result(self) -> Outcome:
        """Of the job that runs, which hurries from now on."""
        self.hurry()
        return self._running.result()

    def until(self, true: Callable[[Snapshot], object]) -> None:
        """Of what its master shows."""
        end = time.monotonic() + SECONDS
        while (now := read_snapshot(self.cluster.snapshot)) is None or not true(now):
            assert not self._running.done(), self.logs()
            assert time.monotonic() < end, self.logs()
            time.sleep(POLL)

    def trains(self, running: int, waiting: int = 0) -> Callable[[Snapshot], bool]:
        """Whether so many workers have got on since this was true the last time, and so many others wait for slots."""

        def true(now: Snapshot) -> bool:
            if now.rows <= self._rows or (now.group and len(now.members) != running):
                return False
            states = Counter(row.state for row in now.instances if row.role == "worker")
            del states["ended"]
            if states != Counter(running=running) + Counter({WAITING: waiting}):
                return False
            self._rows = now.rows
            return True

        return true

    def scale(self, workers: int | None = None, servers: int | None = None) -> None:
        LocalJobHandle(self.folder).scale(Numbers(workers, servers))


def started_again(times: int) -> Callable[[Event], bool]:
    """Whether so many instances have been, the master among them."""
    return lambda event: isinstance(event, Tally) and event.relaunches >= times
