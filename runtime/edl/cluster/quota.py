"""A quota of slots that jobs of one machine share: a folder where each supervisor keeps what its job wants and holds.

    quota.json   how many slots there are
    lock         held while anything in the folder is read or changed, for thousandths of a second
    jobs/ID      a job's `Demand`, under a lock of its supervisor's: when that is free, the job is gone, and so are its
                 slots

Nobody decides for all: each supervisor computes the same allotment (`edl.cluster.allotment`), gives back what it holds
above its own, and takes what is free up to it.
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

from edl.cluster.allotment import Demand, SlotRequest, allot
from edl.cluster.folder import QuotaUse
from edl.errors import ClusterError
from edl.spec import Cluster

FOLDER = "EDL_QUOTA"  # the environment variable that names the quota of every job
LOCK_SECONDS = 5.0  # that another process may hold the lock, which takes thousandths of one
TURN_SECONDS = 0.01  # the same for a supervisor, which has other things to do
_SIZE, _PARTIAL, _LOCK = "quota.json", "quota.json.partial", "lock"


class _Size(msgspec.Struct, frozen=True):
    slots: int
    version: Literal[1] = 1


class Quota:
    """The quota in a folder. ClusterError, of all methods: there is none, or it cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs = folder / "jobs"

    def resize(self, slots: int) -> None:
        """Have so many slots, and a folder if there is none. Jobs that have more than their part give it back.

        ClusterError, besides: the folder holds something else, which must stay as it is.
        """
        if slots < 1:
            raise ClusterError(f"a quota has at least one slot, not {slots}")
        with self._readably():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = {path.name for path in self.folder.iterdir()}
            if _SIZE in found:
                self.slots()  # or it is of something else
            elif found - {_LOCK, _PARTIAL}:  # which one that was interrupted leaves
                raise ClusterError(
                    f"{self.folder} is no quota, and not empty",
                    hint="name a folder that is empty, or is not there yet",
                )
            (self.folder / _LOCK).touch(0o600)
        with self.locked():
            partial = self.folder / _PARTIAL
            partial.write_bytes(msgspec.json.encode(_Size(slots)))
            partial.replace(self.folder / _SIZE)
            self._jobs.mkdir(exist_ok=True)

    def look(self) -> tuple[int, list[Demand]]:
        """How many slots there are, and the jobs that want some by rank."""
        with self.locked():
            return self.slots(), sorted(self.demands(), key=lambda demand: demand.rank)

    def join(self, job: str, request: SlotRequest) -> Membership:
        """Be one of the jobs; it holds nothing yet. ClusterError: there are fewer slots than it needs."""
        self.check(request)
        with self.locked():
            return Membership(self, Demand(job, request, time.time()))

    def check(self, request: SlotRequest) -> None:
        """ClusterError: there are fewer slots than a job needs."""
        with self.locked():
            slots = self.slots()
        if request.least > slots:
            raise ClusterError(
                f"the job needs at least {request.least} slots, and the quota {self.folder} has {slots}",
                hint=f"edl quota {self.folder} --slots {request.least} makes it larger",
            )

    # With the lock held ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Have the folder for ourselves. ClusterError: somebody else has had it for so long."""
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
        """Of the jobs that live; what others left is removed."""
        found = []
        for path in self._jobs.iterdir():
            with path.open("rb") as file:
                if _lock(file.fileno()):
                    path.unlink()
                else:
                    found.append(msgspec.json.decode(file.read(), type=Demand))
        return found

    @contextlib.contextmanager
    def _readably(self) -> Iterator[None]:
        """What the system, or a damaged file, says, as a ClusterError."""
        try:
            yield
        except FileNotFoundError:
            hint = f"edl quota {self.folder} --slots N makes one"
            raise ClusterError(f"there is no quota {self.folder}", hint=hint) from None
        except (OSError, msgspec.MsgspecError) as error:
            raise ClusterError(f"the quota {self.folder} cannot be used: {error}") from None


class Membership:
    """A job's place in a quota, from `join` until `leave` or the end of this process."""

    def __init__(self, quota: Quota, demand: Demand) -> None:
        self._quota = quota
        self._demand = demand
        self._path = quota.folder / "jobs" / demand.job
        self._file = self._enter()

    def turn(self, occupied: int) -> int:
        """Take and give back slots, as things stand; how many instances the job may have from now on.

        occupied: instances that are there; their slots are free for others when they have ended. ClusterError: not
        now; what was so before stays so.
        """
        with self._quota.locked(TURN_SECONDS):
            if not self._is_there:  # somebody removed the folder, and made it again
                left, self._file = self._file, self._enter()
                os.close(left)
                raise ClusterError(
                    f"the quota {self._quota.folder} was made anew"
                )  # others are not in it yet
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

    def leave(self) -> None:
        """Want and hold nothing any more."""
        with contextlib.suppress(ClusterError), self._quota.locked():
            self._path.unlink()
        os.close(self._file)

    def _enter(self) -> int:
        """A file of ours in the folder, for which we hold the lock."""
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
    """How a job of such a cluster uses the quota in the folder, or the one that `EDL_QUOTA` names; None: it uses none.

    It can begin with one worker and its parameter servers. ClusterError: the quota is too small, or there is none.
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
    """Whether nobody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: int, demand: Demand) -> None:
    """In place: the lock is on this very file, and who reads it has the folder's lock."""
    data = msgspec.json.encode(demand)
    os.pwrite(file, data, 0)
    os.truncate(file, len(data))
