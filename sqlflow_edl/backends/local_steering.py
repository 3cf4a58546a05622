"""Pause of a job on this machine, and its numbers of workers and servers, by calls to its master."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from edl.checkpoints import factory
from edl.cluster.local.client import is_supervised
from edl.cluster.quota.quota import Quota
from edl.data.cells import format_count
from edl.errors import ClusterError
from edl.jobs.cluster_folder import SCRIPT_MASTER, ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.rpc import control_pb2 as pb
from edl.spec import Checkpoints, JobSpec
from sqlflow_edl.backends import master_call
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.backends.report import state_of
from sqlflow_edl.backends.steering import PauseObstacle, ending

POLL = 0.1


class SteeredLocalJob:
    """`sqlflow_edl.backends.steering.SteeredJob` on this machine."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        self._cluster = ClusterFolder(folder.path)

    def is_paused(self) -> bool:
        status = self.folder.status()
        if status.state == "paused":
            return True
        self._check_runs()
        return False

    def is_of_script(self) -> bool:
        return self._cluster.run_spec().master == SCRIPT_MASTER

    def _check_runs(self) -> None:
        status = self.folder.status()
        if not status.is_alive:
            raise ClusterError(f"job {self.folder.id} does not run: its state is {state_of(status)}")

    # Pause -----------------------------------------------------------------------------------------------

    def explain_obstacle(self) -> PauseObstacle | None:
        status, end = self.folder.status(), ending(self.folder)
        if status.kind != "train":
            return PauseObstacle(
                f"it is not a training, but of the kind {status.kind}, and would begin anew", hint=end
            )
        if not is_supervised(self.folder):
            return PauseObstacle(
                "it runs in one process, which has no master",
                hint=f"SIGTERM to its command, process {status.pid}, keeps it; --workers 1 gives the next one a master",
            )
        if self.is_of_script():
            return PauseObstacle("it runs a script of `edl run`, which keeps its own state", hint=end)
        return None

    def checkpoint_settings(self, spec: JobSpec) -> Checkpoints:
        return factory.adapt_settings(spec.checkpoints, self.folder.path, spec.cluster.parameter_servers)

    def advise_on_checkpoints(self, spec: JobSpec) -> str:
        return "train without train.checkpoint_copies and with EDL_CHECKPOINTS not set to `master`"

    def pause(self) -> str:
        master_call.call(
            self.folder,
            lambda channel: channel.call(channel.stub.Pause, pb.PauseRequest(), master_call.CALL_SECS),
        )
        supervisor = self._cluster.process("supervisor")
        while supervisor is not None and supervisor.runs:
            time.sleep(POLL)
        if (state := state_of(self.folder.status())) != "paused":
            raise ClusterError(f"job {self.folder.id} has ended before it was paused: its state is {state}")
        from edl.master.resume import point

        return f"; when it is resumed, {point(self.folder)}"

    # Numbers ---------------------------------------------------------------------------------------------

    def check_workers(self, numbers: Numbers) -> None:
        self._check_runs()
        if not is_supervised(self.folder):
            raise ClusterError(
                f"job {self.folder.id} runs in one process, without workers",
                hint=f"cancel it, and run its statement again with --workers {numbers.workers or 2}",
            )

    def request_numbers(self, spec: JobSpec, numbers: Numbers) -> Numbers:
        request = pb.ScaleRequest(workers=numbers.workers, servers=numbers.servers)
        answer = master_call.call(
            self.folder, lambda channel: channel.call(channel.stub.Scale, request, master_call.CALL_SECS)
        )
        return Numbers(int(answer.before), int(answer.servers_before))

    def wait_for(self, numbers: Numbers) -> str:
        return ""  # the master has answered

    def list_limits(self, before: Numbers, numbers: Numbers) -> Iterator[str]:
        quota = self._cluster.run_spec().quota
        now = Numbers(numbers.workers or before.workers, numbers.servers or before.servers)
        if quota is not None and now.total > before.total:
            slots = Quota(Path(quota.folder)).look()[0]
            yield (
                f"its quota {quota.folder} has {format_count(slots, 'slot')}, and the job needs {now.total}: "
                "the others wait"
                if now.total > slots
                else f"they begin when its quota {quota.folder} has free slots"
            )
