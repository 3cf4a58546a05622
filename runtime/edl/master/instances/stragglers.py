"""Throughput of each instance over the last seconds, to find hot servers and stragglers."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from statistics import fmean, median

from edl.jobs.snapshot import InstanceLoad
from edl.master.ps.ps_manager import Servers
from edl.master.tasks import progress
from edl.master.tasks.task_manager import TaskManager

WINDOW = 10.0  # seconds
HOT = 1.5  # multiple of the mean busy time of all servers
SLOW = 0.5  # fraction of the median speed of all instances of a role
_BUSY = 0.02  # busy fraction below which no server is hot


class Window:
    """Growing counters over the last WINDOW seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, tuple[float, ...]]] = deque()

    def add(self, now: float, *counts: float) -> None:
        self._seen.append((now, counts))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def rates(self) -> tuple[float, ...]:
        """Rate of each counter per second, or empty if it is not known yet."""
        if not self._seen:
            return ()
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        seconds = ended - began
        return tuple(max(0.0, b - a) / seconds for a, b in zip(first, last, strict=True)) if seconds else ()


class Loads:
    """Load of the instances of one job."""

    def __init__(self, tasks: TaskManager, servers: Servers | None) -> None:
        self._tasks = tasks
        self._servers = servers
        self._workers: defaultdict[tuple[str, int], Window] = defaultdict(Window)
        self._calls: defaultdict[tuple[str, int], Window] = defaultdict(Window)
        self._notes: dict[str, str] = {}
        self._rates: dict[str, float] = {}  # of workers
        self._all = Window()

    def look(self, now: float) -> None:
        """Sample the counters of all instances; call it about once a second."""
        self._all.add(now, progress.rows(self._tasks))
        members = self._tasks.state.members
        workers = {(name, member.incarnation) for name, member in members.items() if not member.gone}
        servers = {
            (record.instance, record.incarnation) for record in self._tasks.state.servers if record.address
        }
        for windows, present in ((self._workers, workers), (self._calls, servers)):
            for gone in windows.keys() - present:
                del windows[gone]
        for key in workers:
            self._workers[key].add(now, self._tasks.rows_of(key[0]))
        for name, incarnation in servers:
            figures = self._servers.figures(name) if self._servers else None
            if figures is not None:
                calls = figures.pulls + figures.pushes
                window = self._calls[name, incarnation]
                window.add(now, figures.rows_pulled, figures.rows_pushed, figures.busy, calls)
        self._rates = {name: rates[0] for (name, _), rates in _known_rates(self._workers)}
        self._notes = self._update_notes()

    @property
    def job_rate(self) -> float:
        """Rows per second of the whole job."""
        return next(iter(self._all.rates), 0.0)

    def rate(self, name: str) -> float:
        """Return the rows per second of a worker."""
        return self._rates.get(name, 0.0)

    def load(self, name: str) -> InstanceLoad | None:
        """Return the load of a server, or None if the instance is not a server or has not reported yet."""
        if self._servers is None or not self._servers.address(name):
            return None
        figures = self._servers.figures(name)
        if figures is None:
            return None
        rates = next(
            (rates for (server, _), rates in _known_rates(self._calls) if server == name), (0.0,) * 4
        )
        pulled, pushed, busy = rates[:3]
        return InstanceLoad(sum(figures.rows.values()), figures.bytes, pulled, pushed, busy, figures.rows)

    def note(self, name: str) -> str:
        """Return `hot` for a server with more work than the others, `straggling` for an instance that is slower than
        the others.
        """
        return self._notes.get(name, "")

    def _update_notes(self) -> dict[str, str]:
        busy = {name: rates[2] for (name, _), rates in _known_rates(self._calls)}
        speeds = {name: rates[3] / rates[2] for (name, _), rates in _known_rates(self._calls) if rates[2]}
        notes = dict.fromkeys(_hot(busy), "hot")
        slow = [*_slow(self._rates)] if self._tasks.rendezvous.independent else []
        return notes | dict.fromkeys([*slow, *_slow(speeds)], "straggling")


def _known_rates(
    windows: Mapping[tuple[str, int], Window],
) -> list[tuple[tuple[str, int], tuple[float, ...]]]:
    return [(key, window.rates) for key, window in windows.items() if window.rates]


def _hot(busy: Mapping[str, float]) -> list[str]:
    mean = fmean(busy.values()) if busy else 0.0
    return [name for name, share in busy.items() if mean > _BUSY and share > HOT * mean]


def _slow(speeds: Mapping[str, float]) -> list[str]:
    usual = median(speeds.values()) if speeds else 0.0
    return [name for name, speed in speeds.items() if speed < SLOW * usual]
