"""Jobs of the `edl` command on Kubernetes: the place `kubernetes` of `edl.cli.place`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from edl.cli.place import Listener
from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.connect import connect
from edl.cluster.kubernetes.deployment import read_deployment
from edl.cluster.kubernetes.output_maps import join_parts, paths, read_map
from edl.data.results import RESULT, ResultFolder
from edl.errors import ClusterError
from edl.jobs.events import JobEvent, Output, StatementEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.spec import JobSpec
from sqlflow_edl.backends.images.builders import build_and_push
from sqlflow_edl.backends.kubernetes import dry_run, submit
from sqlflow_edl.backends.kubernetes.apply import AT_ONCE, submission
from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle
from sqlflow_edl.backends.kubernetes.manifests import pods
from sqlflow_edl.backends.kubernetes.manifests.config_maps import MOST
from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings, read_configuration


def place(profile: str, pairs: list[tuple[str, str]]) -> KubernetesPlace:
    """Return the place with the settings of a profile, and of name=value of the command line."""
    settings = read_configuration(profile, pairs=pairs).settings()
    pods.check_settings(settings)
    return KubernetesPlace(settings)


class KubernetesPlace:
    """Kubernetes as a `edl.cli.place.JobPlace`."""

    most = MOST

    def __init__(self, settings: KubernetesSettings) -> None:
        self._settings = settings

    def check(self) -> None:
        self._settings = submit.with_context(self._settings)

    def build_image(self, folder: Path) -> None:
        build_and_push(
            folder, self._settings.own_image, lambda text: print(text, file=sys.stderr, flush=True)
        )

    def objects(self, job: JobFolder, spec: JobSpec) -> str:
        return dry_run.describe_submission(submission(job, spec, self._settings))

    def start(self, job: JobFolder, spec: JobSpec, listener: Listener) -> None:
        follower = _Follower(listener)
        submit.wait_for_start(submit.start_job(job, spec, self._settings, follower), follower)

    def lines(self, job: JobFolder) -> AbstractContextManager[Iterable[tuple[str, str]]]:
        return KubernetesJobHandle(job).logs(None, follow=True)

    def follow(self, job: JobFolder, listener: Listener, *, cancels: bool) -> Outcome:
        """Follow the job, and place its output into the folder, as if it had run there.

        Raises ClusterError if the output is gone.
        """
        handle = KubernetesJobHandle(job)
        outcome = submit.follow_job(handle, _Follower(listener), cancels=cancels)
        if outcome.archive or (outcome.kind == "predict" and outcome.tasks):
            _fetch_output(job, outcome)
        return msgspec.structs.replace(outcome, archive=job.archive.name if outcome.archive else "")


class _Follower:
    """Receiver of a job's events and notes for a listener of the `edl` command."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def note(self, text: str) -> None:
        self._listener.note(text)

    def progress(self, event: StatementEvent) -> None:
        if isinstance(event, JobEvent) and not isinstance(event, Output):
            self._listener(event)


def _fetch_output(job: JobFolder, outcome: Outcome) -> None:
    """Write the output from the job's ConfigMaps into its folder. Raises ClusterError if a part is gone."""
    deployment = read_deployment(job.path)
    if deployment is None:
        raise ClusterError(f"job {job.id} is not in the cluster")
    if not deployment.outputs:  # pods have written it themselves
        return
    calls = Calls(connect(deployment.context))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        maps = pool.map(lambda path: read_map(calls, path), paths(deployment))
        files = join_parts({key: content for parts in maps for key, content in parts.items()})
    job.results.mkdir(exist_ok=True)
    for name, content in files.items():  # no other names: a master is not trusted with the job folder
        if name == job.archive.name:
            job.archive.write_bytes(content)
        elif RESULT.fullmatch(name):
            (job.results / name).write_bytes(content)
    present = (
        job.archive.exists()
        if outcome.archive
        else len(ResultFolder(job.results).staged_files()) >= outcome.tasks
    )
    if not present:
        raise ClusterError(f"the output of job {job.id} is not complete in its ConfigMaps")
