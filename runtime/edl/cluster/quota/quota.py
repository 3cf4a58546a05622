"""Quota of slots that jobs of one machine share: a folder where each supervisor records its job's request and slots.

    quota.json   number of slots
    lock         held while anything in the folder is read or changed, for thousandths of a second
    jobs/ID      a job's `Demand`, locked by its supervisor: if the lock is free, the job is gone, and so are its slots

There is no coordinator: each supervisor computes the same allocation (`edl.jobs.slots`), returns slots that
exceed its own, and takes free ones up to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from edl.errors import ClusterError
from edl.jobs.cluster_folder import QuotaUse
from edl.jobs.slots import Demand, SlotRequest, allot
from edl.spec import Cluster

FOLDER = "EDL_QUOTA"  # environment variable with the quota folder of all jobs
LOCK_SECONDS = 5.0  # timeout for the lock, which is held for thousandths of a second
TURN_SECONDS = 0.01  # the same for a supervisor: its event loop must not block
_SIZE, _PARTIAL, _LOCK = "quota.json", "quota.json.partial", "lock"


class _Size(msgspec.Struct, frozen=True):
    slots: int
    version: Literal[1] = 1


class Quota:
    """Quota in a folder. Its methods raise ClusterError if there is none, or it cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs = folder / "jobs"

    def resize(self, slots: int) -> None:
        """Set the number of slots; create the folder if it is missing. Jobs that hold more than their part return
        slots.

        Raises ClusterError also if the folder holds other files; they are left as they are.
        """
        if slots < 1:
            raise ClusterError(f"a quota has at least one slot, not {slots}")
        with self._readably():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = {path.name for path in self.folder.iterdir()}
            if _SIZE in names:
                self.slots()  # fails if the file is of another kind
            elif names - {_LOCK, _PARTIAL}:  # more than an interrupted resize leaves
                raise ClusterError(
                    f"{self.folder} is not a quota, and not empty",
                    hint="name a folder that is empty or does not exist",
                )
            (self.folder / _LOCK).touch(0o600)
        with self.lock():
            partial = self.folder / _PARTIAL
            partial.write_bytes(msgspec.json.encode(_Size(slots)))
            partial.replace(self.folder / _SIZE)
            self._jobs.mkdir(exist_ok=True)

    def look(self) -> tuple[int, list[Demand]]:
        """Return the number of slots, and the jobs that request some, by rank."""
        with self.lock():
            return self.slots(), sorted(self.demands(), key=lambda demand: demand.rank)

    def join(self, job: str, request: SlotRequest) -> Membership:
        """Add a job that holds nothing yet. Raises ClusterError if the quota has fewer slots than it needs."""
        self.check(request)
        with self.lock():
            return Membership(self, Demand(job, request, time.time()))

    def check(self, request: SlotRequest) -> None:
        """Raise ClusterError if the quota has fewer slots than a job needs."""
        with self.lock():
            slots = self.slots()
        if request.least > slots:
            raise ClusterError(
                f"the job needs at least {request.least} slots, and the quota {self.folder} has {slots}",
                hint=f"edl quota {self.folder} --slots {request.least} makes it larger",
            )

    # With the lock held ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Lock the folder. Raises ClusterError if another process holds the lock for `seconds`."""
        with self._readably():
            file = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        try:
            deadline = time.monotonic() + seconds
            while not _lock(file):
                if time.monotonic() >= deadline:
                    raise ClusterError(f"another process holds the lock of the quota {self.folder}")
                time.sleep(0.001)
            with self._readably():
                yield
        finally:
            os.close(file)

    def slots(self) -> int:
        return msgspec.json.decode((self.folder / _SIZE).read_bytes(), type=_Size).slots

    def demands(self) -> list[Demand]:
        """Return the demands of running jobs; remove other jobs' demands."""
        decoded = []
        for path in self._jobs.iterdir():
            with path.open("rb") as file:
                if _lock(file.fileno()):
                    path.unlink()
                else:
                    decoded.append(msgspec.json.decode(file.read(), type=Demand))
        return decoded

    @contextlib.contextmanager
    def _readably(self) -> Iterator[None]:
        """Convert system errors and damaged files to ClusterErrors."""
        try:
            yield
        except FileNotFoundError:
            hint = f"edl quota {self.folder} --slots N creates one"
            raise ClusterError(f"there is no quota {self.folder}", hint=hint) from None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ClusterError(f"the quota {self.folder} cannot be used: {error}") from None


class Membership:
    """Membership of a job in a quota, from `join` until `leave` or the end of this process."""

    def __init__(self, quota: Quota, demand: Demand) -> None:
        self._quota = quota
        self._demand = demand
        self._path = quota.folder / "jobs" / demand.job
        self._file = self._enter()

    def turn(self, occupied: int, range_wanted: tuple[int, int] | None = None) -> int:
        """Take and return slots; return the number of instances that the job may have from now on.

        `occupied` counts present instances; their slots are free for others once they have ended. `range_wanted`
        replaces the least number of slots and the number that the job can use. Raises ClusterError if that is
        impossible now; the previous state then holds.
        """
        with self._quota.lock(TURN_SECONDS):
            if not self._is_there:  # the folder was removed and created again
                left, self._file = self._file, self._enter()
                os.close(left)
                # Other jobs have not joined it yet.
                raise ClusterError(f"the quota {self._quota.folder} was created anew")
            if range_wanted is not None:
                self._request(*range_wanted)
            slots, demands = self._quota.slots(), self._quota.demands()
            ours, least = self._demand, self._demand.request.least
            target = allot(demands, slots)[ours.job]
            free = slots - sum(demand.holds for demand in demands if demand.job != ours.job)
            held = min(target, max(free, least if ours.holds else 0))
            room = held if held >= least else 0
            if (holds := max(occupied, room)) != ours.holds:
                changed = msgspec.structs.replace(ours, holds=holds)
                _write(self._file, changed)
                self._demand = changed
            return room

    def _request(self, least: int, most: int) -> None:
        """Record other numbers of slots that the job has to have and can use."""
        request = SlotRequest(least, max(least, most), self._demand.request.priority)
        if request != self._demand.request:
            self._demand = msgspec.structs.replace(self._demand, request=request)
            _write(self._file, self._demand)

    def leave(self) -> None:
        """Return all slots and leave the quota."""
        with contextlib.suppress(ClusterError), self._quota.lock():
            self._path.unlink()
        os.close(self._file)

    def _enter(self) -> int:
        """Create this job's file in the folder and lock it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(file)
            _write(file, self._demand)
        except OSError:
            os.close(file)
            raise
        return file

    @property
    def _is_there(self) -> bool:
        return self._path.exists() and os.path.samestat(self._path.stat(), os.fstat(self._file))


def use_of(cluster: Cluster, folder: Path | None) -> QuotaUse | None:
    """Return a job's use of the quota in the folder, or in `EDL_QUOTA`, or None without one.

    The job can begin with one worker and its parameter servers. Raises ClusterError if the quota is too small or
    missing.
    """
    named = folder or os.environ.get(FOLDER, "")
    if not named:
        return None
    quota = Quota(Path(named).absolute())
    servers = cluster.parameter_servers
    request = SlotRequest(1 + servers, max(1, cluster.workers) + servers, cluster.priority)
    quota.check(request)
    return QuotaUse(str(quota.folder), request)


def _lock(file: int) -> bool:
    """Lock the file; return False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: int, demand: Demand) -> None:
    """Write in place: the lock is on this very file, and readers hold the folder's lock."""
    data = msgspec.json.encode(demand)
    os.pwrite(file, data, 0)
    os.truncate(file, len(data))
