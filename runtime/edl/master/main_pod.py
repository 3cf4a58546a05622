"""The master of a job on Kubernetes: `python -m edl.master.main_pod JOB_FOLDER`, in the pod of the job's Job.

Nothing on its disk matters: the durable and the present state are ConfigMaps, events go to its standard output among
other lines, and what the job made to its data source, or to ConfigMaps for its client. A master that dies is followed
by another one, of the same Job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from edl import exit_codes, tls
from edl.checkpoints.kept import KeptCheckpoint, keeps_checkpoints
from edl.checkpoints.master_store import Keeper
from edl.cluster.environment import own_address
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.connect import connect
from edl.cluster.kubernetes.deployment import Deployment, read_deployment
from edl.cluster.kubernetes.job_events import JobEvents
from edl.cluster.kubernetes.output_maps import OutputMaps
from edl.cluster.kubernetes.state_store import ConfigMapStateStore
from edl.cluster.kubernetes.status_map import StatusMap
from edl.cluster.kubernetes.wishes import JobWishes
from edl.cluster.local.signals import dump_stacks_on_signal, end_on_sigterm
from edl.errors import ClusterError, SpecError, SQLFlowError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventStream
from edl.jobs.failure import to_failed
from edl.jobs.job_folder import JobFolder
from edl.master.backend import Backend, ClientResultStore, ResultStore
from edl.master.main import parser
from edl.master.master import run
from edl.master.result_store import SourceResultStore
from edl.models.pending import Intent, read_intent
from edl.spec import from_json

INTERVAL = 1.0  # seconds between two lines of progress, all of which are stored in the pod's log
GRACE = 5.0  # seconds for remaining instances to leave after the end of the job


def main(arguments: Sequence[str] | None = None) -> int:
    return serve("edl.master.main_pod", arguments, _run)


def serve(
    name: str, arguments: Sequence[str] | None, run: Callable[[ClusterFolder, EventStream, float], int]
) -> int:
    """Run a master in a pod, and return the exit code. It tells the Job whether another master may succeed."""
    end_on_sigterm()
    dump_stacks_on_signal()
    options = parser(name).parse_args(arguments)
    folder, events = ClusterFolder(options.job), EventStream(sys.stdout.buffer)
    try:
        return run(folder, events, options.lease_secs)
    except ClusterError as error:  # the next master may succeed
        print(error.report, file=sys.stderr)
        return exit_codes.FAILED
    except SQLFlowError as error:  # permanent: the job's files are wrong
        print(error.report, file=sys.stderr)
        events.write(to_failed(error, folder.shown_log("master")))
        return exit_codes.JOB_FAILED


def _run(folder: ClusterFolder, events: EventStream, lease_secs: float) -> int:
    spec = from_json((folder.job / "program" / "job.json").read_bytes())
    with connect_master(folder, events, spec.cluster.workers, keeps=spec.kind == "train") as connection:
        return run(spec, folder, connection.backend, lease_secs)


@dataclass(frozen=True, slots=True)
class Connected:
    """Connections of a master in a pod: its backend, and what that is made of."""

    backend: Backend
    cluster: KubernetesCluster
    board: StatusMap
    output: OutputMaps


@contextmanager
def connect_master(
    folder: ClusterFolder, events: EventStream, workers: int, *, keeps: bool = False
) -> Iterator[Connected]:
    """Connect a master to the cluster. `keeps`: it keeps a checkpoint in the data source, if that can."""
    deployment, intent = _read_job_files(folder)
    with (
        connect(in_pod=True) as api,
        closing(ConfigMapStateStore(api, deployment)) as state_store,
        closing(StatusMap(api, deployment)) as board,
        closing(JobWishes(api, deployment)) as wishes,
        closing(KubernetesCluster(api, deployment, workers)) as cluster,
        closing(OutputMaps(api, deployment)) as output,
        closing(JobEvents(api, deployment)) as job_events,
    ):
        job = JobFolder(folder.job)
        result_store: ResultStore = SourceResultStore(job, intent) if intent.source else ClientResultStore()
        backend = Backend(
            cluster=cluster,
            state_store=state_store,
            events=events,
            result_store=result_store,
            relayed=None if intent.source else Keeper(job.relay_folder, arrived=output.put),
            show=board.show,
            show_end=board.end,
            wishes=wishes.read,
            address=own_address(names.PORT),
            metrics_port=None if tls.identity() else names.METRICS,  # they would be plain
            health_port=names.HEALTH,
            interval=INTERVAL,
            wait_secs=deployment.policy.longest_wait,
            least_workers=deployment.policy.least_workers,
            supervised=False,
            end_instances=lambda: cluster.end_all(GRACE),
            log=job_events.log,
            kept=KeptCheckpoint(intent.source, job.id)
            if keeps and keeps_checkpoints(intent.source)
            else None,
        )
        yield Connected(backend, cluster, board, output)


def _read_job_files(folder: ClusterFolder) -> tuple[Deployment, Intent]:
    deployment, intent = read_deployment(folder.job), read_intent(folder.job)
    if deployment is None or intent is None:
        raise SpecError(f"the files of job {folder.job.name} lack its deployment or its intent")
    return deployment, intent


if __name__ == "__main__":
    sys.exit(main())
