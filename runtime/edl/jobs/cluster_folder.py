"""Files of `cluster/` in a job folder, with their writers.

spec.json        client: specification of the run (`RunSpec`), of a training in one process for its resumption
cancel           client: request to cancel the job; SIGTERM tells the supervisor to look for it
token            supervisor: secret that every call must carry; readable by the user alone
address          supervisor: host:port of the master, constant while the supervisor runs
lock             supervisor: held while it runs, so that a job has only one
supervisor       supervisor: its own process (`Process`)
master           supervisor: process of the present master
commit           supervisor: process that stores the result of a detached job
state            master: its durable state (`edl.master.state_store`); without a master the training process writes it
metrics          master: host:port that serves metrics to Prometheus
events.jsonl     master: events for clients, one a line (`edl.jobs.event_log`)
snapshot.json    master: status of the running job (`edl.jobs.snapshot`); without a master its client writes both
kubernetes.json  client: deployment of a job on Kubernetes (`edl.cluster.kubernetes.deployment`)
settings.json    client: settings of a job on Kubernetes
kept             client: the checkpoint of a training on Kubernetes is in its data source (`edl.checkpoints.kept`)
client.json      client: its build, of a job on Kubernetes (`edl.build`)
spread           client: the instances run on several machines without a shared folder (`edl.cluster.nodes`)
join             client: join token of such a job; readable by the user alone
offer.json       client: offer of another machine to the job (`NodeOffer`)
tls/             client: certificates of the calls between machines (`edl.tls`)
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from edl.build import Build
from edl.errors import SpecError
from edl.files import replace_file
from edl.installation import VERSION
from edl.jobs.process import start_time
from edl.jobs.slots import SlotRequest
from edl.spec.job import Framework

MASTER = "edl.master.main"
WORKER = "edl.entrypoints.worker:main"
SERVER = "edl.entrypoints.parameter_server:main"
SCRIPT_MASTER = "edl.master.scripts"  # of `edl run`
SCRIPT_WORKER = "edl.entrypoints.script_worker:main"
MASTER_SECS = 30.0  # default silence of a master before it is replaced
MASTER_TIMEOUT = "EDL_MASTER_TIMEOUT"  # variable with another number of seconds
DEPLOYMENT = "kubernetes.json"  # deployment of a job with pods as instances
SETTINGS = "settings.json"  # its settings
CLIENT = "client.json"  # build that made it
_OF_PROCESSES = (
    *("spec.json", "cancel", "address", "supervisor", "master", "commit"),
    *("state", "metrics", "events.jsonl", "snapshot.json"),
)
RELAYED_FILES = "relayed"  # folder in the job folder of files that go through the master
# Names under which pods send files through the master that are no checkpoints.
ROWS, OUTPUT, SCRIPT = "rows", "output", "script"
RELAYED = (ROWS, OUTPUT, SCRIPT)
Role = Literal["supervisor", "master", "commit"]
# Variables that the instances of a resumed job find as in the first run.
_REMEMBERED = ("EDL_CHECKPOINTS", "EDL_CHECKPOINTS_BYTES", "SQLFLOW_MODEL_PATH", "SQLFLOW_MODEL_PACKAGES")
TESTING = "EDL_TESTING_ENTRIES"  # additional permitted entry points, separated by commas; for tests


def select_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to store with a job, so that it is resumed as it began, without URLs with accounts."""
    present = {name: environment[name] for name in _REMEMBERED if environment.get(name)}
    return {name: value for name, value in present.items() if not ("://" in value and "@" in value)}


def master_timeout(environment: Mapping[str, str], default: float = MASTER_SECS) -> float:
    """Return the seconds of silence before a master is replaced. Raises SpecError if the variable is no such number."""
    text = environment.get(MASTER_TIMEOUT, "")
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds < math.inf:
        raise SpecError(
            f"{MASTER_TIMEOUT} is {text!r}, not a number of seconds, at least 1",
            hint=f"leave it out for {default:g}",
        )
    return seconds


class QuotaUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Folder of a quota and the request of a job to it."""

    folder: str
    request: SlotRequest


class NodesUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several machines of a job: agents join at `listen`, host:port, up to `most` machines with the supervisor's.

    `slots` is the number of instances on each.
    """

    listen: str
    most: int
    slots: int


class NodeOffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Offer of this machine to a job elsewhere: `slots` instances with so many `threads`, in the current `folder`.

    `head` is the address, host:port, of the first machine. `host` is announced by the instances; empty is the address
    of the connection to the first machine. `join_secs` is the time to wait for an answer.
    """

    head: str
    slots: int
    threads: int
    folder: str
    host: str = ""
    join_secs: float = 600.0


class RunSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Specification of a job that runs as processes.

    `framework` is imported by workers. `threads` is the size of each instance's thread pools, its share of the cores.
    `slots` limits workers and servers together, 0 for no limit; `quota` is a shared limit in its place. `master`,
    `worker` and `server` are the module and the module:function to run; only modules of this package are permitted.
    `master_arguments` follow the arguments of every master. `environment` is set for every instance, and has no
    secrets. A `detached` job continues without the client that started it. `folder` is the current folder of all
    processes, in which relative paths of databases and modules are found; empty for the client's folder.
    `master_timeout` is the seconds of silence after which a master is killed and replaced. `client` is the version of
    sqlflow-edl that made the job. `nodes` are several machines; unset is this one.
    """

    framework: Framework
    threads: int = 1
    slots: int = 0
    quota: QuotaUse | None = None
    master: str = MASTER
    master_arguments: tuple[str, ...] = ()
    worker: str = WORKER
    server: str = SERVER
    environment: dict[str, str] = {}
    detached: bool = False
    folder: str = ""
    master_timeout: float = MASTER_SECS
    version: Literal[1] = 1
    client: str = VERSION
    nodes: NodesUse | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        permitted = {MASTER, WORKER, SERVER, SCRIPT_MASTER, SCRIPT_WORKER}
        for entry in (self.master, self.worker, self.server):
            if entry not in permitted and entry not in os.environ.get(TESTING, "").split(","):
                raise ValueError(f"{entry} is not a permitted entry point")
        if self.slots < 0:
            raise ValueError("the number of slots must not be negative")
        if self.threads < 1:
            raise ValueError("an instance has at least one thread")
        if not self.master_timeout > 0:
            raise ValueError("the timeout of the master must be above 0")


def with_surroundings(spec: RunSpec) -> RunSpec:
    """Return the spec with the variables that a resumed job must find, and the current folder unless it has one."""
    environment = {**select_variables(os.environ), **spec.environment}
    return msgspec.structs.replace(spec, environment=environment, folder=spec.folder or str(Path.cwd()))


class _MadeBy(msgspec.Struct):
    client: str = ""


class Process(msgspec.Struct, frozen=True):
    """Process with its start time, which distinguishes it from a later one with its pid; see `edl.jobs.process`."""

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
    """Folder `cluster` of the job folder `job`."""

    job: Path

    @property
    def path(self) -> Path:
        return self.job / "cluster"

    @property
    def is_deployed(self) -> bool:
        """True if the instances are pods: they share no folder."""
        return (self.path / DEPLOYMENT).exists()

    @property
    def is_spread(self) -> bool:
        """True if the instances share no folder: they are pods, or run on several machines."""
        return self.is_deployed or (self.path / "spread").exists()

    def mark_spread(self) -> None:
        """Record that the instances run on several machines."""
        self._write("spread", b"", durable=True)

    def write_join_token(self, token: str) -> None:
        self._write("join", token.encode())

    def join_token(self) -> str:
        return self._read("join")

    def write_offer(self, offer: NodeOffer) -> None:
        self._write("offer.json", msgspec.json.encode(offer))

    def offer(self) -> NodeOffer:
        """Return the offer of this machine. Raises SpecError if it is missing or damaged."""
        try:
            return msgspec.json.decode((self.path / "offer.json").read_bytes(), type=NodeOffer)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SpecError(f"the offer of this machine to a job cannot be read: {error}") from None

    def write_identity(self, files: Mapping[str, str]) -> Path:
        """Write the certificates of the job's calls, by the names of their files; return their folder."""
        folder = self.path / "tls"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            replace_file(folder / Path(name).name, content.encode("ascii"))
        return folder

    @property
    def has_run_spec(self) -> bool:
        """True if processes of this machine run the job, or can continue it."""
        return (self.path / "spec.json").exists()

    @property
    def state(self) -> Path:
        """Durable state of the master (`edl.master.state_store`)."""
        return self.path / "state"

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
        """Return the log file of an instance, of `master` or of `supervisor`."""
        return self.job / "logs" / f"{name}.log"

    def shown_log(self, name: str) -> str:
        """Return the log's location for a user: a file, or the command that shows the log of a pod."""
        if self.is_deployed:
            return f"sqlflow logs {self.job.name} {name}"
        file = str(self.log(name))
        return f"{file}, on its machine" if self.is_spread else file

    # Each file is written atomically, for concurrent readers ---------------------------------------------

    def write_run_spec(self, spec: RunSpec) -> None:
        self._write("spec.json", msgspec.json.encode(spec), durable=True)

    def run_spec(self) -> RunSpec:
        """Return the spec. Raises SpecError if it is missing, damaged, of another version, or names a forbidden
        entry point.
        """
        try:
            return msgspec.json.decode((self.path / "spec.json").read_bytes(), type=RunSpec)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            is_damaged = not isinstance(error, OSError | msgspec.ValidationError)
            what = "is damaged" if is_damaged else "cannot be read"
            raise SpecError(f"the run specification of job {self.job.name} {what}: {error}") from None

    def made_by(self) -> Build | None:
        """Return the build that made the job, also where this one cannot read the spec, or None if that is missing or
        damaged. Builds before the file `client.json` told their version alone.
        """
        try:
            return msgspec.json.decode((self.path / CLIENT).read_bytes(), type=Build)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            pass
        try:
            return Build(msgspec.json.decode((self.path / "spec.json").read_bytes(), type=_MadeBy).client)
        except msgspec.ValidationError:
            return Build()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def request_cancel(self) -> None:
        """Request that the job be cancelled. SIGTERM then makes the supervisor look; without this it means another end:
        the job is interrupted, and kept. A supervisor of an earlier version takes it for the cancellation either way.
        """
        self._write("cancel", b"")

    def withdraw_cancel(self) -> None:
        """Remove the request that an earlier run of the job has left."""
        (self.path / "cancel").unlink(missing_ok=True)

    @property
    def cancel_is_requested(self) -> bool:
        return (self.path / "cancel").exists()

    def mark_kept(self) -> None:
        """Record that the data source has the checkpoint and the rows of a training in pods that failed."""
        self._write("kept", b"", durable=True)

    def unmark_kept(self) -> None:
        (self.path / "kept").unlink(missing_ok=True)

    def forget_processes(self) -> None:
        """Remove what belongs to processes of this machine: pods run the job now."""
        for name in _OF_PROCESSES:
            (self.path / name).unlink(missing_ok=True)

    def forget_pods(self) -> None:
        """Remove what belongs to pods: processes of this machine run the job now."""
        for name in (DEPLOYMENT, SETTINGS, CLIENT, "kept"):
            (self.path / name).unlink(missing_ok=True)

    @property
    def is_kept(self) -> bool:
        return (self.path / "kept").exists()

    def write_master_address(self, address: str) -> None:
        self._write("address", address.encode())

    def address(self) -> str:
        """Return the master's address, empty if there is none yet."""
        return self._read("address")

    def write_metrics(self, address: str) -> None:
        self._write("metrics", address.encode())

    def metrics(self) -> str:
        """Return the address where the master serves `/metrics`, empty if it does not yet."""
        return self._read("metrics")

    def make_token(self) -> None:
        """Make a token unless there is one that running instances know."""
        if not self.token():
            self._write("token", secrets.token_urlsafe(32).encode(), durable=True)

    def write_token(self, token: str) -> None:
        self._write("token", token.encode())

    def token(self) -> str:
        return self._read("token")

    def write_process(self, role: Role, process: Process) -> None:
        self._write(role, msgspec.json.encode(process))

    def process(self, role: Role) -> Process | None:
        """Return the present or last process with the role, or None."""
        try:
            return msgspec.json.decode((self.path / role).read_bytes(), type=Process)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text(encoding="ascii")
        except FileNotFoundError:
            return ""

    def _write(self, name: str, content: bytes, *, durable: bool = False) -> None:
        self.path.mkdir(mode=0o700, exist_ok=True)
        replace_file(self.path / name, content, durable=durable)
