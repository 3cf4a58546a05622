"""Master process under a supervisor: `python -m edl.master.main JOB_FOLDER --port PORT --cluster-fd N`.

It writes to `cluster/` of the job folder: the durable state, the events that clients follow, and the current snapshot.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from edl import exit_codes
from edl.cluster.environment import own_address
from edl.cluster.local.cluster import ProcessCluster
from edl.cluster.local.parent_watch import continue_at_end_of
from edl.cluster.local.signals import dump_stacks_on_signal
from edl.errors import ClusterError, SQLFlowError
from edl.files import sync_tree
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.failure import to_failed
from edl.logs import log
from edl.master.backend import Backend, ClientResultStore
from edl.master.master import run
from edl.master.state_store import FileStateStore
from edl.spec import from_json

LEASE_SECS = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    options, folder = begin("edl.master.main", arguments)
    try:
        state_store = FileStateStore(folder.state, lambda: flush_job(folder.job))
    except ClusterError as error:  # the other master continues, and reports the job's end
        print(error.report, file=sys.stderr)
        return exit_codes.FAILED
    with EventLog(folder.events) as events, contextlib.closing(state_store):
        try:
            spec = from_json((options.job / "program" / "job.json").read_bytes())
            with contextlib.closing(ProcessCluster(options.cluster_fd)) as cluster:
                backend = Backend(
                    cluster=cluster,
                    state_store=state_store,
                    events=events,
                    result_store=ClientResultStore(),
                    show=lambda snapshot: snapshot.write(folder.snapshot),
                    address=own_address(options.port),
                    beat=cluster.beat,
                    want=cluster.want,
                )
                return run(spec, folder, backend, options.lease_secs)
        except SQLFlowError as error:
            print(error.report, file=sys.stderr)
            events.write(to_failed(error, folder.shown_log("master")))
            return exit_codes.JOB_FAILED


def begin(name: str, arguments: Sequence[str] | None) -> tuple[argparse.Namespace, ClusterFolder]:
    """Return the arguments of a master and the job's folder. The process ends with its supervisor's."""
    supervised = parser(name)
    supervised.add_argument("--port", type=int, required=True, help="port to listen on")
    supervised.add_argument(
        "--cluster-fd", type=int, required=True, help="descriptor of the supervisor's socket"
    )
    options = supervised.parse_args(arguments)
    folder = ClusterFolder(options.job)
    dump_stacks_on_signal()
    if (supervisor := folder.process("supervisor")) is not None:
        continue_at_end_of(supervisor.pid)
    return options, folder


def flush_job(job: Path) -> None:
    """Flush the folder of a job to disk: its checkpoints are of no use without its status, program and rows."""
    try:
        sync_tree(job)
    except OSError as error:
        log(f"the folder of the job cannot be flushed to disk: {error}")


def parser(name: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments that every master has."""
    new_parser = argparse.ArgumentParser(prog=name, description="Run one job with many workers.")
    new_parser.add_argument("job", type=Path, help="job folder")
    new_parser.add_argument(
        "--lease-secs",
        type=float,
        default=LEASE_SECS,
        help="seconds without a request after which a worker is given up",
    )
    return new_parser


if __name__ == "__main__":
    sys.exit(main())
