"""What stands in `cluster/` of a job folder, and who writes it.

spec.json      the client: how the job is run (`Spec`)
token          the supervisor: what every call must carry; readable by the user alone
address        the supervisor: host:port of the master, the same for the life of the supervisor
lock           the supervisor holds it as long as it lives: one job has one
supervisor     the supervisor: which process it is (`Process`)
    master         the supervisor: which process the present master is
commit         the supervisor: which process stores what the detached job made
metrics        the master: host:port where Prometheus finds its figures
events.jsonl   the master: what a client is told, one event a line (`edl.cluster.events`)
snapshot.json  the master: the figures of the running job (`edl.cluster.snapshot`)
kubernetes.json  the client: how a job there is deployed (`edl.kubernetes.deployment`)
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from edl.cluster.allotment import SlotRequest
from edl.data.process import start_time
from edl.errors import SpecError

MASTER = "edl.master.main"
WORKER = "edl.instance.worker:main"
SERVER = "edl.instance.server:main"
DEPLOYMENT = "kubernetes.json"  # of a job whose instances are pods
Role = Literal["supervisor", "master", "commit"]
TESTING = "EDL_TESTING_ENTRIES"  # more names that may be run, separated by commas; for tests


class QuotaUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The folder of a quota, and what a job asks of it."""

    folder: str
    request: SlotRequest


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a job is run by processes.

    framework: what workers import. threads: of the pools of each instance, its share of the cores. slots: workers and
    servers that may be there at once; 0: any number. quota: what other jobs use too, in place of slots of its own.
    master, worker, server: module, and module:function, that are run; none but ours can be named. master_arguments:
    follow those of every master. environment: what every instance finds set beside what it needs; no secrets.
    detached: the job goes on without the client that started it.
    """

    framework: Literal["keras", "torch"]
    threads: int = 1
    slots: int = 0
    quota: QuotaUse | None = None
    master: str = MASTER
    master_arguments: tuple[str, ...] = ()
    worker: str = WORKER
    server: str = SERVER
    environment: dict[str, str] = {}
    detached: bool = False
    version: Literal[1] = 1

    def __post_init__(self) -> None:
        for entry, ours in ((self.master, MASTER), (self.worker, WORKER), (self.server, SERVER)):
            if entry != ours and entry not in os.environ.get(TESTING, "").split(","):
                raise ValueError(f"{entry} is nothing that a job may run")
        if self.slots < 0:
            raise ValueError("a job has no fewer than 0 slots")
        if self.threads < 1:
            raise ValueError("an instance has at least one thread")


class Process(msgspec.Struct, frozen=True):
    """A process, told from a later one of its id; see `edl.data.process`."""

    pid: int
    started_as: str

    @classmethod
    def of(cls, pid: int) -> Process:
        return cls(pid, start_time(pid) or "")

    @property
    def runs(self) -> bool:
        return start_time(self.pid) == self.started_as


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """The folder `cluster` of the job folder `job`."""

    job: Path

    @property
    def path(self) -> Path:
        return self.job / "cluster"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def snapshot(self) -> Path:
        return self.path / "snapshot.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    def log(self, name: str) -> Path:
        """The log of an instance, of `master` or of `supervisor`."""
        return self.job / "logs" / f"{name}.log"

    def shown_log(self, name: str) -> str:
        """Where a person finds it: a file, or what shows the log of a pod."""
        deployed = (self.path / DEPLOYMENT).exists()
        return f"sqlflow logs {self.job.name} {name}" if deployed else str(self.log(name))

    # Each is written in one step, for who reads it at the same time --------------------------------------

    def write_spec(self, spec: Spec) -> None:
        self._write("spec.json", msgspec.json.encode(spec))

    def spec(self) -> Spec:
        """SpecError: it is not there, damaged, of another version, or names what may not run."""
        try:
            return msgspec.json.decode((self.path / "spec.json").read_bytes(), type=Spec)
        except (OSError, msgspec.MsgspecError) as error:
            raise SpecError(f"how job {self.job.name} is run cannot be read: {error}") from None

    def write_address(self, address: str) -> None:
        self._write("address", address.encode())

    def address(self) -> str:
        """Of the master; empty before there is one."""
        return self._read("address")

    def write_metrics(self, address: str) -> None:
        self._write("metrics", address.encode())

    def metrics(self) -> str:
        """Where the master serves `/metrics`; empty before it does."""
        return self._read("metrics")

    def make_token(self) -> None:
        """Unless there is one: instances that already run know it."""
        if not self.token():
            self._write("token", secrets.token_urlsafe(32).encode())

    def write_token(self, token: str) -> None:
        self._write("token", token.encode())

    def token(self) -> str:
        return self._read("token")

    def write_process(self, role: Role, process: Process) -> None:
        self._write(role, msgspec.json.encode(process))

    def process(self, role: Role) -> Process | None:
        """The process that has the role, or had it; None before there is one."""
        try:
            return msgspec.json.decode((self.path / role).read_bytes(), type=Process)
        except (OSError, msgspec.MsgspecError):
            return None

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="ascii")
        except FileNotFoundError:
            return ""

    def _write(self, name: str, content: bytes) -> None:
        self.path.mkdir(mode=0o700, exist_ok=True)
        replace_file(self.path / name, content)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read, in one step."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
