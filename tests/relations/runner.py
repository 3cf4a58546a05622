"""Processes that check seed after seed, and the choice of what they check next."""

from __future__ import annotations

import math
import multiprocessing
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.relations.checking import Outcome, check
from tests.relations.registry import Relation

SLICE = 3.0  # seconds after which a process reports what it has done
HANGS = 240.0  # seconds without a report, after which a check is taken to hang


@dataclass
class Tally:
    """Sums of one relation. met: combinations of source and model."""

    relation: Relation
    seeds: int = 0
    pairs: int = 0
    refused: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    met: set[tuple[str, str]] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    @property
    def covers(self) -> bool:
        sources, models = ({each[at] for each in self.met} for at in (0, 1))
        return len(sources) == len(self.relation.sources) and len(models) == len(self.relation.models)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.pairs += outcome.pairs
        self.refused += outcome.refused
        self.seconds += outcome.seconds
        self.cpu += outcome.cpu
        self.met.add((outcome.source, outcome.model))
        if outcome.failure:
            self.failures.append(outcome.failure)


class Schedule:
    """Choice of relation and seeds: first what covers each relation's sources and models, then time by pace: a relation
    of a hundred pairs a second gets three times as much as one of a pair a second or less.

    most_failures: of a relation, after which it is left alone.
    """

    def __init__(self, relations: Sequence[Relation], first: int, most_failures: int = 1) -> None:
        self.tallies = {each.name: Tally(each) for each in relations}
        self._next = {each.name: first - first % each.cover for each in relations}
        self._spent = {each.name: 0.0 for each in relations}
        self._end_of_cover = {each.name: self._next[each.name] + each.cover for each in relations}
        self._most_failures = most_failures
        self._busy: Counter[str] = Counter()

    def take(self) -> tuple[str, range] | None:
        """Name and seeds of the next piece of work, or None if there is none."""
        open_ = [name for name, tally in self.tallies.items() if len(tally.failures) < self._most_failures]
        if not open_:
            return None
        uncovered = [name for name in open_ if self._next[name] < self._end_of_cover[name]]
        name = min(uncovered or open_, key=self._turn)
        tally = self.tallies[name]
        pace = tally.seconds / tally.seeds if tally.seeds else SLICE
        number = 1 if name in uncovered else max(1, min(500, int(SLICE / max(pace, 1e-3))))
        seeds = range(self._next[name], self._next[name] + number)
        self._next[name] = seeds.stop
        self._busy[name] += 1
        return name, seeds

    def _turn(self, name: str) -> tuple[int, float]:
        """Sort key of relations, the next one first."""
        tally = self.tallies[name]
        pace = tally.pairs / tally.seconds if tally.seconds else 0.0
        return self._busy[name], self._spent[name] / (1 + math.log10(max(1.0, pace)))

    def put(self, name: str, outcomes: Sequence[Outcome], seconds: float) -> None:
        self._busy[name] -= 1
        self._spent[name] += seconds
        for outcome in outcomes:
            self.tallies[name].add(outcome)


def run(
    schedule: Schedule, minutes: float, processes: int, report: Callable[[str], None], prepare: str = ""
) -> None:
    """Check until the time is over or nothing is left to check. prepare: name of a fault to put back first."""
    deadline = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="relations-", ignore_cleanup_errors=True) as folder:
        workers = [_Worker(Path(folder), prepare) for _ in range(processes)]
        try:
            for outcome in _outcomes(workers, schedule, deadline):
                if outcome.failure:
                    report(outcome.failure)
        finally:
            for worker in workers:
                worker.end()


def _outcomes(workers: list[_Worker], schedule: Schedule, deadline: float) -> Iterator[Outcome]:
    """Hand out work until the deadline; of a worker that hangs or dies, the work is a failure."""
    while True:
        for worker in workers:
            if worker.work is None and time.monotonic() < deadline and (work := schedule.take()):
                worker.begin(work)
        busy = {worker.pipe: worker for worker in workers if worker.work is not None}
        if not busy:
            return
        for pipe in wait([*busy], timeout=5.0):
            worker = busy[pipe]  # type: ignore[index]
            name, outcomes, seconds = worker.take()
            schedule.put(name, outcomes, seconds)
            yield from outcomes
        for worker in workers:
            if worker.work is not None and time.monotonic() - worker.began > HANGS:
                name, seeds = worker.work
                lost = Outcome(name, seeds.start, "", "", failure=f"{name} hangs: one of the seeds {seeds}")
                worker.restart()
                schedule.put(name, [lost], HANGS)
                yield lost


class _Worker:
    """A process that checks what it is sent. folder: of the servers that all of them share."""

    def __init__(self, folder: Path, prepare: str) -> None:
        self._folder, self._prepare = folder, prepare
        self.restart(first=True)

    def restart(self, *, first: bool = False) -> None:
        if not first:
            self._process.kill()
            self._process.join()
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, self._folder, self._prepare), daemon=False)
        self._process.start()
        other.close()
        self.work: tuple[str, range] | None = None
        self.began = 0.0

    def begin(self, work: tuple[str, range]) -> None:
        self.work, self.began = work, time.monotonic()
        self.pipe.send(work)

    def take(self) -> tuple[str, list[Outcome], float]:
        assert self.work is not None
        (name, seeds), seconds = self.work, time.monotonic() - self.began
        try:
            outcomes = self.pipe.recv()
        except EOFError:
            died = f"{name}: the process died in one of the seeds {seeds}"
            outcomes = [Outcome(name, seeds.start, "", "", failure=died)]
            self.restart()
        self.work = None
        return name, outcomes, seconds

    def end(self) -> None:
        if self.work is None:
            self.pipe.close()
            self._process.join(30)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _work(pipe: Connection, servers: Path, prepare: str) -> None:
    """Check what comes through the pipe, until it closes."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)  # what libraries print
    from tests.relations.catalog import RELATIONS
    from tests.relations.faults import put_back
    from tests.relations.places import opened

    with put_back(prepare), opened(servers) as place:
        place.warm()
        while True:
            try:
                name, seeds = pipe.recv()
            except (EOFError, OSError):
                return
            try:
                outcomes = []
                for seed in seeds:
                    outcomes.append(check(RELATIONS[name], place, seed))
                    if outcomes[-1].failure:
                        break
            except BaseException:
                failure = traceback.format_exc()
                outcomes = [Outcome(name, seeds.start, "", "", failure=f"{name}, seeds {seeds}:\n{failure}")]
            pipe.send(outcomes)
